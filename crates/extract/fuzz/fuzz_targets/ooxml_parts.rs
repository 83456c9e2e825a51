//! Fuzzes the OOXML readers with arbitrary parts inside a valid archive.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("ooxml_parts", bytes));
