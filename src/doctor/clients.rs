//! Checks which MCP clients have an entry for corbie, and whether the entry is still valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;

use super::client_url::{self, Found};
use super::health::PROGRAM;
use super::{Check, Findings, Subject};
use crate::connect::{self, Client, Place, entry};

/// Usual name of the entry.
const NAME: &str = "corbie";

pub(super) async fn check(subject: Arc<Subject>) -> Option<Check> {
    let places = subject.places.as_ref()?;
    let mut findings = Findings::default();
    let mut entries = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| client.seems_installed(places)) {
        let title = client.title();
        match connect::found(&Place { client, file: client.file(places), name: NAME.to_owned() }) {
            Ok(None) => {}
            Ok(Some(entry)) => entries.push((client, entry)),
            Err(error) => findings.problem(format!("{title} cannot read its servers: {error}"), "correct that file"),
        }
    }
    let asked = ask(&entries).await;
    let mut connected = Vec::new();
    for (client, entry) in &entries {
        let (id, title) = (client.id(), client.title());
        if let Some(program) = entry::missing_program(entry) {
            let advice = format!("run `corbie connect {id} --write`");
            findings.problem(format!("{title} starts `{program}`, which is not there"), advice);
            continue;
        }
        if entry::says_nothing(entry) {
            let advice = format!("run `corbie connect {id} --write`");
            findings.problem(format!("{title} has an entry with neither `command` nor `url`"), advice);
            continue;
        }
        let url = url_of(entry);
        let shown = url.map(client_url::shown).unwrap_or_default();
        let advice = || format!("start `corbie serve` there, or run `corbie connect {id} --write` to have it started");
        match url.and_then(|url| asked.get(url)) {
            None => connected.push(title.to_owned()),
            Some(Found::Corbie) => connected.push(format!("{title} at {shown}")),
            Some(Found::NotAsked) => connected.push(format!("{title} at {shown} (not asked)")),
            Some(Found::WrongPath) => {
                let advice = "end its URL with `/mcp`, which is where corbie speaks MCP";
                findings.problem(format!("{title} calls {shown}, and corbie has no MCP at that path"), advice);
            }
            Some(Found::Nobody) => {
                findings.problem(format!("{title} calls {shown}, where nobody answers"), advice());
            }
            Some(Found::Other(Some((id, name)))) if name == PROGRAM => {
                let found = format!("{title} calls {shown}, where corbie (process {id}) does not tell how it is");
                findings.problem(found, "look at its log, or start it again");
            }
            Some(Found::Other(process)) => {
                let who = process
                    .as_ref()
                    .map_or_else(|| "another program".to_owned(), |(id, name)| format!("`{name}` (process {id})"));
                findings.problem(format!("{title} calls {shown}, where {who} is and no corbie"), advice());
            }
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

/// Probes all URLs concurrently.
async fn ask(entries: &[(Client, Value)]) -> BTreeMap<String, Found> {
    let mut urls: Vec<String> = entries.iter().filter_map(|(_, entry)| url_of(entry)).map(str::to_owned).collect();
    urls.sort_unstable();
    urls.dedup();
    let asking = urls.into_iter().map(|url| async {
        let asked = url.clone();
        // A probe that panics counts as not done.
        let found = tokio::task::spawn_blocking(move || client_url::look(&asked)).await.unwrap_or(Found::NotAsked);
        (url, found)
    });
    join_all(asking).await.into_iter().collect()
}

fn url_of(entry: &Value) -> Option<&str> {
    entry.get("url").and_then(Value::as_str)
}
