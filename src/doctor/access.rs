//! Checks that every listener has the authentication it requires: tokens, an API key or OAuth.

use std::sync::Arc;

use super::{Check, Findings, SetupContext};
use crate::access::TokenFile;
use crate::config::Config;
use crate::config::address::Listen;

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let looked = tokio::task::spawn_blocking(move || subject.config.as_ref().map(inspect)).await;
    looked.ok()?.unwrap_or_default().check("access")
}

fn inspect(config: &Config) -> Findings {
    let mut findings = Findings::default();
    let tokens = match config.tokens_file().map(|path| TokenFile::new(path).read()).transpose() {
        Ok(tokens) => tokens.unwrap_or_default().len(),
        Err(error) => {
            findings.problem(error.to_string(), "correct the file, or move it away and create new tokens");
            return findings;
        }
    };
    let anybody = tokens > 0 || config.server.token.is_some() || config.server.oauth.is_some();
    let addresses = config.server.listen.iter().map(|address| match address {
        Listen::Port(port) => (address.to_string(), port.is_loopback()),
        Listen::Socket(_) => (address.to_string(), true),
    });
    let mut addresses: Vec<(String, bool)> = addresses.collect();
    if addresses.is_empty() {
        addresses.push(("loopback".into(), true));
    }
    for (address, is_loopback) in addresses {
        if let Err(error) = config.server.authentication(is_loopback, anybody) {
            findings.problem(
                format!("the server cannot listen on {address}: `server.auth` {error}"),
                "create a token with `corbie tokens create`, set `MCP_API_KEY`, or listen on loopback only",
            );
        }
    }
    if findings.0.is_empty() {
        let known = match tokens {
            0 if anybody => "authentication is configured in the settings".to_owned(),
            0 => "no tokens, and none is required".to_owned(),
            1 => "1 token".to_owned(),
            many => format!("{many} tokens"),
        };
        findings.ok(known);
    }
    findings
}
