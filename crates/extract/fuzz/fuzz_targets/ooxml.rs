//! Fuzzes the OOXML readers with arbitrary archives, read as each of the three formats.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("ooxml", bytes));
