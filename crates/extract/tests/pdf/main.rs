//! PDF reader tests with minimal files.

mod blocks;
mod file;
mod images;
mod layout;
mod scan;

use corbie_extract::{Document, Format, Options, Page, document};
use corbie_test_support::pdf_builder::{self, Builder};

fn read(builder: Builder) -> Document {
    document(&builder.build(), Format::Pdf, &Options::default()).expect("the file can be read")
}

fn page(content: &str) -> Page {
    let mut builder = Builder::new();
    builder.page(content);
    read(builder).pages.remove(0)
}

#[track_caller]
fn check(content: &str, expected: &[&str]) {
    let page = page(content);
    let texts: Vec<&str> = page.blocks.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(texts, expected);
}
