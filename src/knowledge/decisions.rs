//! What became of prompts, kept for all instances that share a database.
//!
//! The router makes it and knows what it says. Here it is a text with a number, a time and an owner.

use std::sync::Arc;

/// A decision as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub id: u64,
    pub at_ms: u64,
    /// Who asked; none where nobody is to be told but who may see all.
    pub caller: Option<Arc<str>>,
    /// JSON.
    pub record: String,
}

/// Whose decisions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    Everybodys,
    Of(&'a str),
}
