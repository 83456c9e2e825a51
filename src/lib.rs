//! corbie: MCP server, text classifier, LLM router and knowledge base in one program.
//!
//! The library exists for tests. The product is the binary.

pub mod access;
pub mod app;
pub mod audit_file;
mod changes;
pub mod classify;
pub mod cli;
pub mod colour;
pub mod config;
pub mod connect;
pub mod console;
pub mod describe;
pub mod destinations;
pub mod doctor;
pub mod evaluate;
mod folder_access;
mod free_space;
mod gauges;
pub mod harmless;
pub mod inference;
pub mod knowledge;
mod locked;
pub mod openai_api;
mod owner;
mod private_folder;
pub mod providers;
mod put_aside;
pub mod reload;
mod replaceable;
pub mod route;
pub mod shared_files;
mod shell;
mod supervised;
pub mod telemetry;
pub mod upstream;
mod whole_file;
pub mod workers;
