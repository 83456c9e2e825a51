//! Parts of a stranger, put into an archive that can be opened.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("ooxml_parts", bytes));
