//! What a provider answers, whole or in pieces.
#![no_main]

#[path = "../promises/mod.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("answers", bytes));
