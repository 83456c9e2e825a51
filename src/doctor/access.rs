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
            findings.problem(error.to_string(), "put it right, or move it away and make tokens anew");
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
        addresses.push(("this machine".into(), true));
    }
    for (address, is_loopback) in addresses {
        if let Err(error) = config.server.authentication(is_loopback, anybody) {
            findings.problem(
                format!("nothing would be served on {address}: `server.auth` {error}"),
                "make a token with `corbie tokens create`, set `MCP_API_KEY`, or listen on this machine only",
            );
        }
    }
    if findings.0.is_empty() {
        let known = match tokens {
            0 if anybody => "a token is known by the settings".to_owned(),
            0 => "no token is known, and none is needed".to_owned(),
            1 => "one token is known".to_owned(),
            many => format!("{many} tokens are known"),
        };
        findings.ok(known);
    }
    findings
}
