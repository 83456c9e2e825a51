//! Checks which MCP clients have an entry for corbie, and whether the entry is still valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;

use super::client_url::{self, UrlTarget};
use super::health_probe::PROCESS_NAME;
use super::{Check, Findings, SetupContext};
use crate::connect::{self, EntryLocation, McpClient, entry};
use crate::running_servers::RunningServer;

/// Usual name of the entry.
const ENTRY_NAME: &str = "corbie";

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let places = subject.client_dirs.as_ref()?;
    let mut findings = Findings::default();
    let mut entries = Vec::new();
    for client in McpClient::ALL.into_iter().filter(|client| client.is_installed(places)) {
        let title = client.title();
        match connect::find_entry(&EntryLocation { client, file: client.file(places), name: ENTRY_NAME.to_owned() }) {
            Ok(None) => {}
            Ok(Some(entry)) => entries.push((client, entry)),
            Err(error) => findings.problem(format!("{title}: {error}"), "correct the file"),
        }
    }
    let asked = probe_urls(&entries).await;
    let mut connected = Vec::new();
    for (client, entry) in &entries {
        let (id, title) = (client.id(), client.title());
        if let Some(program) = entry::missing_program(entry) {
            let advice = format!("run `corbie connect {id} --write`");
            findings.problem(format!("{title} starts `{program}`, which does not exist"), advice);
            continue;
        }
        if entry::has_no_target(entry) {
            let advice = format!("run `corbie connect {id} --write`");
            findings.problem(format!("{title} has an entry with neither `command` nor `url`"), advice);
            continue;
        }
        let url = url_of(entry);
        let shown = url.map(client_url::redacted).unwrap_or_default();
        let elsewhere = subject.servers.iter().find_map(RunningServer::web_url);
        let advice = || match elsewhere {
            Some(url) => format!("corbie is running at {url}; run `corbie connect {id} --url --write`"),
            None => {
                format!("start `corbie serve`, or run `corbie connect {id} --write` so that the client starts corbie")
            }
        };
        match url.and_then(|url| asked.get(url)) {
            None => connected.push(title.to_owned()),
            Some(UrlTarget::Corbie) => connected.push(format!("{title} at {shown}")),
            Some(UrlTarget::NotProbed) => connected.push(format!("{title} at {shown} (not probed)")),
            Some(UrlTarget::WrongPath) => {
                let advice = "use a URL that ends with `/mcp`";
                findings.problem(format!("{title} uses {shown}, where corbie does not serve MCP"), advice);
            }
            Some(UrlTarget::Unreachable) => {
                findings.problem(format!("{title} uses {shown}, where no server responds"), advice());
            }
            Some(UrlTarget::Other(Some((id, name)))) if name == PROCESS_NAME => {
                let found = format!("{title} uses {shown}, where corbie (process {id}) does not report its health");
                findings.problem(found, "check its log, or restart it");
            }
            Some(UrlTarget::Other(process)) => {
                let who = process
                    .as_ref()
                    .map_or_else(|| "another program".to_owned(), |(id, name)| format!("`{name}` (process {id})"));
                findings.problem(format!("{title} uses {shown}, where {who} listens instead of corbie"), advice());
            }
        }
    }
    if !connected.is_empty() {
        findings.ok(format!("set up: {}", connected.join(", ")));
    } else if findings.0.is_empty() {
        findings.note("no MCP client is set up", "run `corbie connect` to list the supported clients");
    }
    findings.check("clients")
}

/// Probes all URLs concurrently.
async fn probe_urls(entries: &[(McpClient, Value)]) -> BTreeMap<String, UrlTarget> {
    let mut urls: Vec<String> = entries.iter().filter_map(|(_, entry)| url_of(entry)).map(str::to_owned).collect();
    urls.sort_unstable();
    urls.dedup();
    let asking = urls.into_iter().map(|url| async {
        let asked = url.clone();
        // A probe that panics counts as not done.
        let found =
            tokio::task::spawn_blocking(move || client_url::probe(&asked)).await.unwrap_or(UrlTarget::NotProbed);
        (url, found)
    });
    join_all(asking).await.into_iter().collect()
}

fn url_of(entry: &Value) -> Option<&str> {
    entry.get("url").and_then(Value::as_str)
}
