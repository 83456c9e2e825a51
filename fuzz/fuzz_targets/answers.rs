//! Fuzz target: provider responses, whole or streamed.
#![no_main]

#[path = "../promises/mod.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("answers", bytes));
