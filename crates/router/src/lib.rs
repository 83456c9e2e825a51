//! Routing of prompts to models and providers.

pub mod budget;
pub mod candidates;
mod chat_model;
pub mod classifier;
pub mod decide;
pub mod decision_log;
mod decision_log_sync;
pub mod decision_record;
mod decision_resources;
mod error;
pub mod grounding;
pub mod methods;
mod metrics;
mod model_selector;
mod model_sync;
pub mod openai_api;
pub mod prompt;
mod refresh;
mod response_mode;
mod routed_request;
pub mod router;
mod stream;
mod stream_usage;
mod suggest_model;
pub mod tools;

pub use decide::{ChoiceReason, ClassifierOutput, Decision, DecisionPolicy, decide};
pub use decision_log_sync::sync_decision_log;
pub use decision_record::DecisionRecord;
pub use error::Error;
pub use grounding::DocumentAccess;
pub use model_selector::AUTO;
pub use refresh::run_refresh;
pub use router::{Plan, RouteRequest, RoutedCompletion, Router};
pub use stream::RoutedStream;
