//! Fuzz target: arbitrary bytes for the decoder.
#![no_main]

#[path = "../promises/mod.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("decode", bytes));
