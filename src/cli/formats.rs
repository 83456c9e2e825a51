//! The formats that are read, in words. The reader of documents has the one list of them.

use corbie_extract::Format;

use crate::knowledge::{Error, more_formats};

/// `PDF, DOCX, … or CSV`.
pub(super) fn all() -> String {
    listed(&Format::ALL.map(Format::as_str), "or")
}

/// What is said of a file of another format: the contract's sentence (K-27), which names those that the specification
/// does, and the rest.
pub(super) fn unsupported(extension: &str) -> String {
    with_the_rest(&Error::UnsupportedFormat { extension: extension.to_lowercase() }.to_string())
}

/// The contract's sentence, as a tool has said it, and what else is read.
pub(super) fn with_the_rest(sentence: &str) -> String {
    format!("{sentence}; {} work too", listed(&more_formats().collect::<Vec<_>>(), "and"))
}

fn listed(formats: &[&str], before_the_last: &str) -> String {
    let names: Vec<String> = formats.iter().map(|format| format.to_uppercase()).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {before_the_last} {last}", others.join(", ")),
        None => String::new(),
    }
}
