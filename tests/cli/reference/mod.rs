//! The reference pages of the book: generated from the program, committed, and compared here.
//!
//! After a change of a command, a setting, a tool or a metric,
//! `CORBIE_BLESS=1 cargo nextest run -p corbie --test cli reference` updates them; review the diff.

mod command_line;
mod metrics;
mod settings;
mod tools;

use std::path::Path;

/// First line of every generated page.
const NOTICE: &str = "<!-- Made from the program by tests/cli/reference; `CORBIE_BLESS=1 cargo nextest run -p corbie --test cli reference` writes it anew. -->";

/// Compares the page `docs/reference/NAME` with the generated one.
#[track_caller]
fn check(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(name);
    let generated = format!("{NOTICE}\n\n{}\n", generated.trim_end());
    if std::env::var_os("CORBIE_BLESS").is_some() {
        std::fs::write(&path, &generated).expect("the folder of the reference can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let different = committed.lines().zip(generated.lines()).find(|(committed, generated)| committed != generated);
    assert!(
        committed == generated,
        "docs/reference/{name} is out of date, first at {different:?}; run the tests with CORBIE_BLESS=1"
    );
}

/// Converts a doc comment to Markdown: one line per paragraph, with HTML escaped.
fn prose(text: &str) -> String {
    let paragraphs = text.trim().split("\n\n").map(|paragraph| {
        let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts = line.split('`').enumerate().map(|(place, part)| match place % 2 {
            0 => part.replace('<', "&lt;"),
            _ => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join("`")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// The same for a table cell.
fn cell(text: &str) -> String {
    prose(text).replace("\n\n", " ").replace('|', "\\|")
}

/// The anchor of a heading, as GitHub and mdBook generate it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
        .collect::<String>();
    kept.replace(' ', "-")
}

#[test]
fn doc_comments_become_markdown() {
    assert_eq!(prose("One\ntwo.\n\nSend <token>, as `<token>`."), "One two.\n\nSend &lt;token>, as `<token>`.");
    assert_eq!(cell("a | b\n\nc"), "a \\| b c");
    assert_eq!(anchor("`corbie taxonomy new`"), "corbie-taxonomy-new");
}
