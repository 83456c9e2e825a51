//! The reference pages of the book are made from the program itself, committed, and compared here.
//!
//! After a change of a command, a setting, a tool or a metric,
//! `CORBIE_BLESS=1 cargo nextest run -p corbie --test cli reference` writes them anew; look at the difference.

mod command_line;
mod metrics;
mod settings;
mod tools;

use std::path::Path;

/// Stands at the top of every page that is made here.
const NOTICE: &str = "<!-- Made from the program by tests/cli/reference; `CORBIE_BLESS=1 cargo nextest run -p corbie --test cli reference` writes it anew. -->";

/// Compares the page `docs/reference/NAME` with what it should say.
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

/// Text of a doc comment as Markdown: each paragraph one line, and nothing in it taken for HTML.
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

/// Such text in one cell of a table.
fn cell(text: &str) -> String {
    prose(text).replace("\n\n", " ").replace('|', "\\|")
}

/// The name of a heading in links, as GitHub and mdBook make it.
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
