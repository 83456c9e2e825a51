#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The command line interface: arguments, environment variables, streams, ports, signals and exit codes.

#[path = "cli/access.rs"]
mod access;
#[path = "cli/ask.rs"]
mod ask;
#[path = "cli/classification.rs"]
mod classification;
#[cfg(unix)]
#[path = "cli/colours.rs"]
mod colours;
#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/completions.rs"]
mod completions;
#[path = "cli/connect.rs"]
mod connect;
#[path = "cli/connect_output.rs"]
mod connect_output;
#[path = "cli/console.rs"]
mod console;
#[cfg(unix)]
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/demo_documents.rs"]
mod demo_documents;
#[cfg(unix)]
#[path = "cli/docs/mod.rs"]
mod docs;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/eval_search.rs"]
mod eval_search;
#[path = "cli/exit_codes.rs"]
mod exit_codes;
#[path = "cli/health.rs"]
mod health;
#[path = "cli/help.rs"]
mod help;
#[cfg(unix)]
#[path = "cli/hostile_folder.rs"]
mod hostile_folder;
#[path = "cli/http.rs"]
mod http;
#[path = "cli/init.rs"]
mod init;
#[cfg(unix)]
#[path = "cli/isolation.rs"]
mod isolation;
#[path = "cli/knowledge.rs"]
mod knowledge;
#[path = "cli/knowledge_add.rs"]
mod knowledge_add;
#[path = "cli/knowledge_drill.rs"]
mod knowledge_drill;
#[path = "cli/knowledge_errors.rs"]
mod knowledge_errors;
#[path = "cli/knowledge_health.rs"]
mod knowledge_health;
#[path = "cli/knowledge_maintenance.rs"]
mod knowledge_maintenance;
#[path = "cli/knowledge_search.rs"]
mod knowledge_search;
#[path = "cli/knowledge_show.rs"]
mod knowledge_show;
#[path = "cli/licenses.rs"]
mod licenses;
#[cfg(unix)]
#[path = "cli/lifecycle.rs"]
mod lifecycle;
#[path = "cli/listen_ports.rs"]
mod listen_ports;
#[path = "cli/logging.rs"]
mod logging;
#[path = "cli/models.rs"]
mod models;
#[cfg(unix)]
#[path = "cli/packaging.rs"]
mod packaging;
#[path = "cli/process.rs"]
mod process;
#[path = "cli/providers.rs"]
mod providers;
#[path = "cli/readme_and_agents.rs"]
mod readme_and_agents;
#[path = "cli/reference/mod.rs"]
mod reference;
#[path = "cli/requirement_ids.rs"]
mod requirement_ids;
#[path = "cli/running_server.rs"]
mod running_server;
#[path = "cli/settings.rs"]
mod settings;
#[path = "cli/snapshots.rs"]
mod snapshots;
#[path = "cli/spec_examples.rs"]
mod spec_examples;
#[cfg(unix)]
#[path = "cli/storage_access.rs"]
mod storage_access;
#[path = "cli/taxonomy.rs"]
mod taxonomy;
#[cfg(unix)]
#[path = "cli/terminal.rs"]
mod terminal;
#[cfg(unix)]
#[path = "cli/terminal_escapes.rs"]
mod terminal_escapes;
#[cfg(unix)]
#[path = "cli/terminal_width.rs"]
mod terminal_width;
#[path = "cli/tool_selection/mod.rs"]
mod tool_selection;
#[path = "cli/upstream.rs"]
mod upstream;
#[path = "cli/websocket.rs"]
mod websocket;

use corbie_test_support::archive;
use corbie_test_support::onnx_model as small_model;
use corbie_test_support::page;
use corbie_test_support::pdf_builder;
