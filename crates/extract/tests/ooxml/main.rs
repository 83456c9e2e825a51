//! OOXML tests with documents built part by part.

mod container;
mod docx;
mod hostile;
mod images;
mod pptx;
mod xlsx;

use corbie_extract::{BlockKind, Document, Error, Format, Options};
use corbie_test_support::archive;

fn read(bytes: &[u8], format: Format) -> Document {
    corbie_extract::document(bytes, format, &Options::default()).expect("the document can be read")
}

fn refused(bytes: &[u8], format: Format) -> Error {
    corbie_extract::document(bytes, format, &Options::default()).expect_err("the document is refused")
}

/// The blocks of all pages, one per line: kind and text.
fn outline(document: &Document) -> Vec<String> {
    let blocks = document.pages.iter().flat_map(|page| &page.blocks);
    blocks
        .map(|block| {
            let kind = match &block.kind {
                BlockKind::Heading { level } => format!("heading {level}"),
                BlockKind::ListItem { depth } => format!("item {depth}"),
                BlockKind::Table(table) => format!("table {}", table.header_rows),
                kind => format!("{kind:?}").to_lowercase(),
            };
            format!("{kind}: {}", block.text.replace('\n', "|").replace('\t', ","))
        })
        .collect()
}
