//! Fuzzes chunking: a document of any shape with any chunk size.
#![no_main]

#[path = "../invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check_invariants("chunk", bytes));
