//! Generates the binary sample documents of `corbie demo`, byte for byte.
//!
//! `CORBIE_BLESS=1 cargo nextest run -p corbie --test cli demo_documents` writes them, and the list with their hashes.

#[path = "demo_documents/handbook.rs"]
mod handbook;
#[path = "demo_documents/notice.rs"]
mod notice;
#[path = "demo_documents/office.rs"]
mod office;

use std::fmt::Write as _;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// Maximum growth of the binary.
const MAX_BYTES: usize = 200 * 1024;

/// The documents written by hand.
const HANDWRITTEN_FILES: [&str; 3] = ["history.html", "rota.csv", "school-tour.md"];

const HASHES_HEADER: &str = "\
# The documents of `corbie demo`

Papers of a lighthouse museum that does not exist. They are inside the program, and `corbie demo` adds them to a knowledge base
of its own.

They were written for this project and have its licence, Apache-2.0. The pages, the web page and the list are written by hand;
the PDF, the Word document, the workbook and the picture are made by `tests/cli/demo_documents.rs`, whose test fails when they
are not what it makes. The letters of the picture are drawn with DejaVu Sans. To make them again:

```sh
CORBIE_BLESS=1 cargo nextest run -p corbie --test cli demo_documents
```

| file | bytes | sha256 |
|---|---:|---|
";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/cli/demo/documents")
}

#[test]
fn the_sample_documents_are_what_this_makes() {
    let mut files: Vec<(&str, Vec<u8>)> = vec![
        ("handbook.pdf", handbook::pdf()),
        ("loans.docx", office::loans()),
        ("notice.png", notice::png()),
        ("visitors.xlsx", office::visitors()),
    ];
    files.extend(HANDWRITTEN_FILES.map(|name| (name, std::fs::read(folder().join(name)).unwrap())));
    files.sort_unstable();
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < MAX_BYTES, "{bytes} bytes are too many for every copy of the program");

    let mut about = HASHES_HEADER.to_owned();
    for (name, bytes) in &files {
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(about, "| `{name}` | {} | `{hash}` |", bytes.len()).unwrap();
    }
    files.push(("README.md", about.into_bytes()));
    for (name, made) in files {
        let path = folder().join(name);
        if std::env::var_os("CORBIE_BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(kept == made, "{name} is not what is made; run this test with CORBIE_BLESS=1");
    }
}
