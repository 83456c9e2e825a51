//! Leaves filters out of a drawing that is rasterised to be read.
//!
//! A filter computes every pixel anew, with blurs and noise as costly as the file says, once for every element that uses it:
//! 6 kB of nested filters keep a processor busy for minutes. Letters are as legible without them.
//!
//! A reference to a filter that is missing hides its element, so the references are removed and not the filters. There are
//! three: the attribute `filter`, and the property of that name in a `style` attribute or a style sheet. What is removed is
//! overwritten in place, so that all other positions stay. A reference that is written so that it is missed here, such as
//! with character references, is noticed in what the renderer made of it.

use std::borrow::Cow;
use std::ops::Range;

use roxmltree::{Document, Node};

/// The text of the document without references to filters.
pub(super) fn remove<'input>(document: &Document<'input>) -> Cow<'input, str> {
    let text = document.input_text();
    let mut bytes = Vec::new();
    let mut overwrite = |range: Range<usize>, with: u8| {
        if bytes.is_empty() {
            bytes = text.as_bytes().to_vec();
        }
        bytes[range].fill(with);
    };
    for node in document.descendants().filter(Node::is_element) {
        for attribute in node.attributes().filter(|attribute| attribute.namespace().is_none()) {
            match attribute.name() {
                "filter" => overwrite(attribute.range(), b' '),
                "style" => properties(text, attribute.range_value()).for_each(|at| overwrite(at..at + 1, b'x')),
                _ => {}
            }
        }
        if node.tag_name().name() == "style" {
            for sheet in node.children().filter(Node::is_text) {
                properties(text, sheet.range()).for_each(|at| overwrite(at..at + 1, b'x'));
            }
        }
    }
    // Whole attributes and single letters of ASCII are overwritten, so it is still UTF-8.
    match bytes.is_empty() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Where properties called `filter` begin in a style sheet. A name that ends so, such as `backdrop-filter`, is another one.
fn properties(text: &str, range: Range<usize>) -> impl Iterator<Item = usize> {
    const NAME: &str = "filter";
    let css = text.get(range.clone()).unwrap_or_default();
    let found = css.match_indices(NAME).filter(|(at, _)| {
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
        let begins = !css[..*at].chars().next_back().is_some_and(is_name);
        // A comment may stand before the colon.
        begins && css[at + NAME.len()..].trim_start().starts_with([':', '/'])
    });
    let places: Vec<usize> = found.map(|(at, _)| range.start + at).collect();
    places.into_iter()
}
