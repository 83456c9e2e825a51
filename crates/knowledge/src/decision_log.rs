//! Routing log shared by all instances of a database.
//!
//! The router writes and interprets the records. Here a record is opaque text with an ID, a time and an owner.

use std::sync::Arc;

/// A stored routing decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDecision {
    pub id: u64,
    pub at_ms: u64,
    /// The caller. `None` makes the decision visible only to callers who may see all decisions.
    pub caller: Option<Arc<str>>,
    /// JSON.
    pub record: String,
}

/// Whose decisions are queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionScope<'a> {
    All,
    Caller(&'a str),
}
