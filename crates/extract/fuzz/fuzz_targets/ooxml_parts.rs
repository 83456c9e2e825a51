//! Fuzzes the OOXML readers with arbitrary parts inside a valid archive.
#![no_main]

#[path = "../invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check_invariants("ooxml_parts", bytes));
