//! Text of a stranger, read as Markdown, as text or as CSV.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("plain", bytes));
