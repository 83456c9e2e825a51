#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The router's client for external classification servers: against corbie itself, and against hand-written servers
//! that are slow, down, wrong or require authentication.

#[path = "external_classifier/corbie_server.rs"]
mod corbie_server;
#[path = "external_classifier/fake_classifier.rs"]
mod fake_classifier;
#[path = "external_classifier/handshake.rs"]
mod handshake;
#[path = "external_classifier/recovery.rs"]
mod recovery;
#[path = "external_classifier/response_validation.rs"]
mod response_validation;
#[path = "external_classifier/timeouts_and_cache.rs"]
mod timeouts_and_cache;

use std::time::Duration;

use corbie::config::{Config, Sources};
use corbie::external_classifier::{ExternalClassifier, Settings, State};
use corbie::providers::http_client::HttpClient;

/// Test timeout; far longer than any operation needs.
const STATE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client with this configuration.
#[track_caller]
fn client(yaml: &str, variables: &[(&str, &str)]) -> ExternalClassifier {
    ExternalClassifier::new(settings(yaml, variables), HttpClient::default())
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
fn client_of(url: &str, more: &str) -> ExternalClassifier {
    client(&format!("classification: {{type: mcp, mcp_server: {{url: '{url}', {more}}}}}"), &[])
}

/// Settings of the server at this URL.
#[track_caller]
fn settings_of(url: &str) -> Settings {
    settings(&format!("classification: {{type: mcp, mcp_server: {{url: '{url}'}}}}"), &[])
}

/// Waits for a state.
async fn wait_for_state(remote: &ExternalClassifier, wanted: impl Fn(&State) -> bool) -> State {
    let mut changes = remote.subscribe();
    let state = tokio::time::timeout(STATE_TIMEOUT, changes.wait_for(wanted)).await.expect("the state in time");
    state.expect("a client that lives").clone()
}

/// Advances the clock without waiting.
async fn advance_time(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
