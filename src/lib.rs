//! corbie: MCP server, text classifier, LLM router and knowledge base in one program.
//!
//! The library exists for tests. The product is the binary.

pub mod access;
pub mod app;
pub mod audit_log;
pub mod classify;
pub mod cli;
pub mod colour;
pub mod config;
pub mod connect;
pub mod console;
pub mod doctor;
pub mod evaluate;
pub mod external_classifier;
pub mod file_sync;
pub mod inference;
pub mod knowledge;
pub mod openai_api;
pub mod providers;
pub mod reload;
pub mod route;
mod supervisor;
pub mod telemetry;
pub mod util;
pub mod workers;
