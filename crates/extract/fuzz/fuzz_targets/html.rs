//! Fuzzes the HTML reader.
#![no_main]

#[path = "../invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check_invariants("html", bytes));
