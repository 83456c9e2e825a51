#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The knowledge tools of the real program over stdio, JSON-RPC and REST. One file per tool (V-01).
//!
//! On PostgreSQL with `CORBIE_TEST_STORE=postgres tests/postgres/server -- cargo nextest run --test knowledge`. Modules
//! named `embedded` are specific to the embedded store and excluded by name there.

#[path = "postgres/database.rs"]
mod database;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[allow(dead_code, reason = "shared with the tests of `corbie extract`, which use more of it")]
#[path = "extract/ocr/sample_images.rs"]
mod pictures;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[allow(dead_code, reason = "shared with the tests of `corbie extract`, which use more of it")]
#[path = "extract/sample_files.rs"]
mod sample_files;
#[path = "cli/websocket.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod websocket;

#[path = "knowledge/add.rs"]
mod add;
#[path = "knowledge/ask.rs"]
mod ask;
#[path = "knowledge/cancel.rs"]
mod cancel;
#[path = "knowledge/clear.rs"]
mod clear;
#[path = "knowledge/concurrent_processes.rs"]
mod concurrent_processes;
#[path = "knowledge/database_outage.rs"]
mod database_outage;
#[path = "knowledge/decision_log.rs"]
mod decision_log;
#[path = "knowledge/doctor.rs"]
mod doctor;
#[path = "knowledge/every_tool.rs"]
mod every_tool;
#[path = "knowledge/file_sync.rs"]
mod file_sync;
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
#[path = "knowledge/model_sync.rs"]
mod model_sync;
#[path = "knowledge/output_schemas.rs"]
mod output_schemas;
#[path = "knowledge/page_numbers.rs"]
mod page_numbers;
#[path = "knowledge/processing.rs"]
mod processing;
#[path = "knowledge/progress.rs"]
mod progress;
#[path = "knowledge/remove.rs"]
mod remove;
#[path = "knowledge/resources.rs"]
mod resources;
#[path = "knowledge/restart.rs"]
mod restart;
#[path = "knowledge/search.rs"]
mod search;
#[path = "knowledge/shared_cache_invalidation.rs"]
mod shared_cache_invalidation;
#[path = "knowledge/shared_rate_limit.rs"]
mod shared_rate_limit;
#[path = "knowledge/show.rs"]
mod show;
#[path = "knowledge/status.rs"]
mod status;
#[path = "knowledge/store_busy.rs"]
mod store_busy;
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
#[path = "knowledge/watcher.rs"]
mod watcher;
#[path = "knowledge/watcher_state.rs"]
mod watcher_state;

use corbie_test_support::archive;
use corbie_test_support::page;
use corbie_test_support::pdf_builder;
