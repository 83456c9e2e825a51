//! Routing of prompts to models and providers.

mod bring;
pub mod budget;
pub mod candidates;
pub mod classifier;
pub mod decide;
mod decisions;
mod error;
mod follow;
pub mod ground;
mod journey;
pub mod methods;
mod metrics;
mod near;
pub mod prompt;
pub mod record;
pub mod records;
pub mod router;
mod shared_models;
mod shared_records;
mod stream;
pub mod tools;
mod wish;

pub use decide::{Decision, Policy, Seen, Why, decide};
pub use error::Error;
pub use follow::follow;
pub use ground::Documents;
pub use record::Record;
pub use router::{Ask, Plan, Routed, Router};
pub use shared_records::share;
pub use stream::Answering;
pub use wish::AUTO;
