//! An archive of a stranger, read as every document that is one.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("ooxml", bytes));
