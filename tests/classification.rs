#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Classification through the regular tool dispatch: listings, results, methods, reloads, hostile input.

#[path = "classification/adversarial.rs"]
mod adversarial;
#[path = "classification/classify_text.rs"]
mod classify_text;
#[path = "classification/evaluation.rs"]
mod evaluation;
#[path = "classification/explanation.rs"]
mod explanation;
#[path = "classification/fixture.rs"]
mod fixture;
#[path = "classification/health.rs"]
mod health;
#[path = "classification/list_categories.rs"]
mod list_categories;
#[path = "classification/methods.rs"]
mod methods;
#[path = "classification/properties.rs"]
mod properties;
#[path = "classification/reload.rs"]
mod reload;
#[path = "classification/speed.rs"]
mod speed;
#[path = "classification/taxonomy.rs"]
mod taxonomy;

use corbie_test_support::onnx_model as small_model;
