//! Fuzz target: a saved segment with altered content and a valid checksum.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("segment", bytes));
