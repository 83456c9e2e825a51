//! Fuzz target: configuration files.
#![no_main]

#[path = "../invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check_invariants("config", bytes));
