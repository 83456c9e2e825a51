//! Fuzz target: a saved segment with altered content and a valid checksum.
#![no_main]

#[path = "../invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check_invariants("segment", bytes));
