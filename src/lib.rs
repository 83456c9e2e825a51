//! corbie: one program that is an MCP server, and will be a classifier, a router and a knowledge base on top of it.
//!
//! The library exists so that tests can reach in; the product is the binary.

pub mod app;
pub mod cli;
pub mod config;
pub mod evaluate;
pub mod inference;
pub mod telemetry;
