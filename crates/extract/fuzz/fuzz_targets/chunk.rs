//! Fuzzes chunking: a document of any shape with any chunk size.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("chunk", bytes));
