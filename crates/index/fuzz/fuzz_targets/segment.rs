//! A saved segment that somebody has changed, checksum and all.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("segment", bytes));
