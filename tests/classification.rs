#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Classification through the regular tool dispatch: listings, results, methods, reloads, hostile input.

#[path = "classification/evaluation.rs"]
mod evaluation;
#[path = "classification/fixture.rs"]
mod fixture;
#[path = "classification/health.rs"]
mod health;
#[path = "classification/hostile.rs"]
mod hostile;
#[path = "classification/listing.rs"]
mod listing;
#[path = "classification/methods.rs"]
mod methods;
#[path = "classification/properties.rs"]
mod properties;
#[path = "classification/reasons.rs"]
mod reasons;
#[path = "classification/reload.rs"]
mod reload;
#[path = "../crates/infer/tests/support/mod.rs"]
mod small_model;
#[path = "classification/speed.rs"]
mod speed;
#[path = "classification/taxonomy.rs"]
mod taxonomy;
#[path = "classification/verdicts.rs"]
mod verdicts;
