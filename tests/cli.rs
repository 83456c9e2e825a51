#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The program as its users meet it: a process with arguments, variables, streams, ports, signals and an exit code.

#[path = "cli/access.rs"]
mod access;
#[path = "cli/ask.rs"]
mod ask;
#[path = "cli/classification.rs"]
mod classification;
#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/documents.rs"]
mod documents;
#[path = "cli/http.rs"]
mod http;
#[cfg(unix)]
#[path = "cli/lifecycle.rs"]
mod lifecycle;
#[path = "cli/listening.rs"]
mod listening;
#[path = "cli/logging.rs"]
mod logging;
#[path = "cli/models.rs"]
mod models;
#[path = "cli/process.rs"]
mod process;
#[path = "cli/providers.rs"]
mod providers;
#[path = "cli/settings.rs"]
mod settings;
#[path = "../crates/infer/tests/support/mod.rs"]
mod small_model;
#[path = "cli/spec_examples.rs"]
mod spec_examples;
#[path = "cli/taxonomy.rs"]
mod taxonomy;
#[cfg(unix)]
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/upstream.rs"]
mod upstream;
#[path = "cli/websocket.rs"]
mod websocket;
