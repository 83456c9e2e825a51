//! Helpers for tests of several crates: builders of documents and models, fuzzing corpora, random numbers, memory checks.
//!
//! Only development dependencies point here.

#![allow(missing_debug_implementations, reason = "builders of test data are not printed")]

pub mod archive;
pub mod fuzz_replay;
#[cfg(target_os = "linux")]
pub mod guard_page;
pub mod onnx_model;
pub mod page;
pub mod pdf_builder;
pub mod seeded_rng;
