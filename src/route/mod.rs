//! Sends each prompt to the model that suits it.

pub mod decide;

pub use decide::{Decision, Policy, Seen, Why, decide};
