#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! `corbie extract`: files of every format, broken files and malicious files.

#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../crates/extract/tests/ooxml/archive.rs"]
mod archive;
#[path = "extract/bombs.rs"]
mod bombs;
#[path = "extract/command.rs"]
mod command;
#[path = "extract/errors.rs"]
mod errors;
#[path = "extract/formats.rs"]
mod formats;
#[path = "extract/limits.rs"]
mod limits;
#[path = "extract/ocr/mod.rs"]
mod ocr;
#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../crates/infer/tests/ocr/page.rs"]
mod page;
#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../crates/extract/tests/pdf_builder/mod.rs"]
mod pdf_builder;
#[path = "extract/sample_files.rs"]
mod sample_files;
