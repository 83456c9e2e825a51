#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The knowledge tools of the real program over stdio, JSON-RPC and REST. One file per tool (V-01).
//!
//! On PostgreSQL with `CORBIE_TEST_STORE=postgres tests/postgres/server -- cargo nextest run --test knowledge`. Modules
//! named `embedded` are specific to the embedded store and excluded by name there.

#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../crates/extract/tests/ooxml/archive.rs"]
mod archive;
#[path = "postgres/database.rs"]
mod database;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[allow(dead_code, reason = "shared with the tests of `corbie extract`, which use more of it")]
#[path = "extract/made.rs"]
mod made;
#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../crates/infer/tests/ocr/page.rs"]
mod page;
#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../crates/extract/tests/pdf_builder/mod.rs"]
mod pdf_builder;
#[allow(dead_code, reason = "shared with the tests of `corbie extract`, which use more of it")]
#[path = "extract/ocr/made.rs"]
mod pictures;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "cli/websocket.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod websocket;

#[path = "knowledge/add.rs"]
mod add;
#[path = "knowledge/ask.rs"]
mod ask;
#[path = "knowledge/away.rs"]
mod away;
#[path = "knowledge/busy.rs"]
mod busy;
#[path = "knowledge/cancel.rs"]
mod cancel;
#[path = "knowledge/clear.rs"]
mod clear;
#[path = "knowledge/decisions.rs"]
mod decisions;
#[path = "knowledge/doctor.rs"]
mod doctor;
#[path = "knowledge/every_tool.rs"]
mod every_tool;
#[path = "knowledge/fixture.rs"]
mod fixture;
#[path = "knowledge/formats.rs"]
mod formats;
#[path = "knowledge/get.rs"]
mod get;
#[path = "knowledge/grounding.rs"]
mod grounding;
#[path = "knowledge/import.rs"]
mod import;
#[path = "knowledge/limits.rs"]
mod limits;
#[path = "knowledge/models.rs"]
mod models;
#[path = "knowledge/processing.rs"]
mod processing;
#[path = "knowledge/progress.rs"]
mod progress;
#[path = "knowledge/rates.rs"]
mod rates;
#[path = "knowledge/remove.rs"]
mod remove;
#[path = "knowledge/resources.rs"]
mod resources;
#[path = "knowledge/restart.rs"]
mod restart;
#[path = "knowledge/search.rs"]
mod search;
#[path = "knowledge/shared_answers.rs"]
mod shared_answers;
#[path = "knowledge/shared_files.rs"]
mod shared_files;
#[path = "knowledge/sharing.rs"]
mod sharing;
#[path = "knowledge/show.rs"]
mod show;
#[path = "knowledge/status.rs"]
mod status;
#[path = "knowledge/task_status.rs"]
mod task_status;
#[path = "knowledge/tasks.rs"]
mod tasks;
#[cfg(target_os = "linux")]
#[path = "knowledge/tenants.rs"]
mod tenants;
#[path = "knowledge/upload.rs"]
mod upload;
#[path = "cli/upstream.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod upstream;
#[path = "knowledge/watched.rs"]
mod watched;
#[path = "knowledge/watched_memory.rs"]
mod watched_memory;
