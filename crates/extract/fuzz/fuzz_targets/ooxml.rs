//! Fuzzes the OOXML readers with arbitrary archives, read as each of the three formats.
#![no_main]

#[path = "../invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check_invariants("ooxml", bytes));
