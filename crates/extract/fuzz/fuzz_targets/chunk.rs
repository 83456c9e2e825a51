//! A document of any shape, cut into chunks of any size.
#![no_main]

#[path = "../promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::hold("chunk", bytes));
