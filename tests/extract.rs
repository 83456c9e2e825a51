#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! `corbie extract`: files of every format, broken files and malicious files.

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
#[allow(dead_code, reason = "shared with the tests of the knowledge base, which use more of it")]
#[path = "extract/sample_files.rs"]
mod sample_files;

use corbie_test_support::archive;
use corbie_test_support::page;
use corbie_test_support::pdf_builder;
