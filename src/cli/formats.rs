//! Lists of supported formats for messages. The formats are defined in `corbie_extract`.

use corbie_extract::Format;

use crate::knowledge::{Error, more_formats};

/// `PDF, DOCX, … or CSV`.
pub(super) fn all() -> String {
    join_names(&Format::ALL.map(Format::as_str), "or")
}

/// Error for an unsupported format: the sentence of the contract (K-27), which names the formats of the specification,
/// followed by the additional ones.
pub(super) fn unsupported(extension: &str) -> String {
    with_other_formats(&Error::UnsupportedFormat { extension: extension.to_lowercase() }.to_string())
}

/// Appends the additional formats to the contract's sentence from a tool.
pub(super) fn with_other_formats(sentence: &str) -> String {
    format!("{sentence}; {} are also supported", join_names(&more_formats().collect::<Vec<_>>(), "and"))
}

fn join_names(formats: &[&str], before_the_last: &str) -> String {
    let names: Vec<String> = formats.iter().map(|format| format.to_uppercase()).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {before_the_last} {last}", others.join(", ")),
        None => String::new(),
    }
}
