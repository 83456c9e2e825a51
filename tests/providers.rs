#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Other companies' models, as far as translation goes.

#[path = "providers/known_models.rs"]
mod known_models;
