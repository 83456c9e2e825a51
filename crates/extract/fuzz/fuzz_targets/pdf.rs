//! Fuzzes the PDF reader.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("pdf", bytes));
