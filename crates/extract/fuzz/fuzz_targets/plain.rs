//! Fuzzes the Markdown, plain text and CSV readers.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("plain", bytes));
