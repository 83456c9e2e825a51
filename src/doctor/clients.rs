//! Which MCP clients know this program, and whether what they know still holds.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{Check, Findings, Subject};
use crate::connect::{self, Client, Place};

/// What its entry is usually called.
const NAME: &str = "corbie";

pub(super) async fn check(subject: Arc<Subject>) -> Option<Check> {
    let places = subject.places.as_ref()?;
    let mut findings = Findings::default();
    let mut connected = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| client.seems_installed(places)) {
        let (id, title) = (client.id(), client.title());
        match connect::found(&Place { client, file: client.file(places), name: NAME.to_owned() }) {
            Ok(None) => {}
            Ok(Some(entry)) => match entry["command"].as_str().filter(|command| is_gone(command)) {
                Some(command) => findings.problem(
                    format!("{title} starts `{command}`, which is not there"),
                    format!("run `corbie connect {id} --write`"),
                ),
                None => connected.push(format!("{title}{}", by_url(&entry))),
            },
            Err(error) => findings.problem(format!("{title} cannot read its servers: {error}"), "correct that file"),
        }
    }
    if !connected.is_empty() {
        findings.ok(format!("connected: {}", connected.join(", ")));
    } else if findings.0.is_empty() {
        findings
            .note("no MCP client is connected", "run `corbie connect` to see which there are, if you want to use one");
    }
    findings.check("clients")
}

/// A program that is named by its path, and is not there.
fn is_gone(command: &str) -> bool {
    let path = Path::new(command);
    path.is_absolute() && !path.exists()
}

fn by_url(entry: &Value) -> String {
    entry["url"].as_str().map(|url| format!(" at {url}")).unwrap_or_default()
}
