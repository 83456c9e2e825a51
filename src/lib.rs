//! corbie: MCP server, text classifier, LLM router and knowledge base in one program.
//!
//! The library exists for tests. The product is the binary.

pub mod access;
pub mod app;
pub mod audit_log;
pub mod cli;
pub mod colour;
pub mod connect;
pub mod console;
pub mod doctor;
pub mod file_sync;
pub mod reload;
pub mod running_servers;
pub mod telemetry;

pub use corbie_classify::{self as classify, evaluate, external_classifier, inference};
pub use corbie_config as config;
pub use corbie_knowledge::{self as knowledge, workers};
pub use corbie_llm as providers;
pub use corbie_router::{self as route, openai_api};
pub use corbie_util::{self as util, supervisor};
