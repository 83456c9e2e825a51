//! Tests of the PDFium bindings against a stub that aborts on invalid calls (`pdfium_library/`). `tests/valgrind` runs
//! them with the feature `pdfium` and detects every invalid read, write or close.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use corbie_extract::{Error, MissingPdfium, Pdfium};

/// The stub library, built with the system C compiler.
fn library() -> &'static Path {
    static BUILT: OnceLock<std::path::PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pdfium_library/library.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("library-{}.so", std::process::id()));
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-g", "-o"]).arg(&library).arg(source).status();
        assert!(built.is_ok_and(|status| status.success()), "`cc` builds a library");
        library
    })
}

fn pdfium() -> Pdfium {
    Pdfium::from_file(&library().to_string_lossy()).expect("a library")
}

#[test]
fn pages_are_read_to_their_last_character_and_closed_in_order() {
    let pages = pdfium().pages(b"Pac-z").expect("a document");
    assert_eq!(pages, ["a\u{1f600}", "ccc\u{1f600}", "", &format!("{}\u{1f600}", "z".repeat(26))]);
}

#[test]
fn a_document_without_pages_has_none_and_one_with_a_password_is_told_apart() {
    let pdfium = pdfium();
    assert!(pdfium.pages(b"P").expect("a document").is_empty());
    assert_eq!(pdfium.pages(b"").unwrap_err(), Error::PasswordProtected);
}

#[test]
fn threads_take_turns() {
    let pdfium = pdfium();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| assert_eq!(pdfium.pages(b"Pbb").expect("a document").len(), 2)));
        }
    });
}

#[test]
fn another_library_is_refused() {
    assert!(matches!(Pdfium::from_file("libnothing.so"), Err(MissingPdfium::Unusable { .. })));
    assert!(matches!(Pdfium::from_file("libc.so.6"), Err(MissingPdfium::Unusable { .. })));
}
