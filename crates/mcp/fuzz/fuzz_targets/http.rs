//! Fuzz target: arbitrary bytes for a whole server over HTTP.
#![no_main]

#[path = "../promises/mod.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("http", bytes));
