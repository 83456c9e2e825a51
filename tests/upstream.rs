#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The router's client for external classification servers: against corbie itself, and against hand-written servers
//! that are slow, down, wrong or require authentication.

#[path = "upstream/answers.rs"]
mod answers;
#[path = "upstream/bounds.rs"]
mod bounds;
#[path = "upstream/corbie.rs"]
mod corbie_itself;
#[path = "upstream/fake.rs"]
mod fake;
#[path = "upstream/recovery.rs"]
mod recovery;
#[path = "upstream/start.rs"]
mod start;

use std::time::Duration;

use corbie::config::{Config, Sources};
use corbie::providers::client::Client;
use corbie::upstream::{RemoteClassifier, Settings, State};

/// Test timeout; far longer than any operation needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client with this configuration.
#[track_caller]
fn client(yaml: &str, variables: &[(&str, &str)]) -> RemoteClassifier {
    RemoteClassifier::new(settings(yaml, variables), Client::new())
}

#[track_caller]
fn settings(yaml: &str, variables: &[(&str, &str)]) -> Settings {
    // Programs run in the folder of the file, so the folder outlives it.
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = tempfile::Builder::new().suffix(".yaml").tempfile_in(folder).unwrap();
    std::fs::write(&file, yaml).unwrap();
    let sources = Sources {
        file: Some(file.path().into()),
        folder: folder.into(),
        system: folder.join("etc"),
        variables: variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..Sources::default()
    };
    let config = Config::load(sources).expect("a good configuration").config;
    config.external_classifier().expect("settings that fit together").expect("a server")
}

/// A client of the server at this URL, with more keys of `mcp_server`.
#[track_caller]
fn client_of(url: &str, more: &str) -> RemoteClassifier {
    client(&format!("classification: {{type: mcp, mcp_server: {{url: '{url}', {more}}}}}"), &[])
}

/// Settings of the server at this URL.
#[track_caller]
fn settings_of(url: &str) -> Settings {
    settings(&format!("classification: {{type: mcp, mcp_server: {{url: '{url}'}}}}"), &[])
}

/// Waits for a state.
async fn reached(remote: &RemoteClassifier, wanted: impl Fn(&State) -> bool) -> State {
    let mut changes = remote.changes();
    let state = tokio::time::timeout(PATIENCE, changes.wait_for(wanted)).await.expect("the state in time");
    state.expect("a client that lives").clone()
}

/// Advances the clock without waiting.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
