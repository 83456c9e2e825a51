//! Guard against elements with too many attributes.
//!
//! The HTML and XML parsers compare each attribute of an element with all earlier ones, so 300,000 attributes take a
//! minute. This pre-scan cannot determine exactly where tags start, because comments, scripts and similar constructs
//! hide tags, each with different rules. It therefore treats every `<` as a possible tag start and tracks all
//! candidates in parallel. Candidates in the same state have the same future, so only the one with the most attributes
//! matters.

use crate::Error;

/// Maximum attributes of an element. This many take a tenth of a second.
const MAX_ATTRIBUTES: usize = 20_000;
/// A smaller page cannot contain that many attributes.
const MAX_UNCHECKED_BYTES: usize = 4 * MAX_ATTRIBUTES;

/// States of the tag scanner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagState {
    Name,
    /// Where the next attribute may start.
    Between,
    Attribute,
    AfterAttribute,
    /// After the `=`.
    BeforeValue,
    Value,
    DoubleQuoted,
    SingleQuoted,
}

const TAG_STATES: [TagState; 8] = [
    TagState::Name,
    TagState::Between,
    TagState::Attribute,
    TagState::AfterAttribute,
    TagState::BeforeValue,
    TagState::Value,
    TagState::DoubleQuoted,
    TagState::SingleQuoted,
];

pub(crate) fn check(text: &str) -> Result<(), Error> {
    if text.len() <= MAX_UNCHECKED_BYTES {
        return Ok(());
    }
    // For each state, the highest attribute count of all candidates in that state.
    let mut tags = [None; TAG_STATES.len()];
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if tags.iter().all(Option::is_none) {
            let Some(start) = memchr::memchr(b'<', &bytes[at..]) else { break };
            at += start;
        }
        let mut next = [None; TAG_STATES.len()];
        for (place, count) in TAG_STATES.into_iter().zip(tags) {
            if let (Some(count), Some(after)) = (count, place.next(bytes[at])) {
                let begins = after == TagState::Attribute && place != TagState::Attribute;
                next[after as usize] = next[after as usize].max(Some(count + usize::from(begins)));
            }
        }
        if bytes[at] == b'<' && bytes.get(at + 1).is_some_and(|byte| can_begin(*byte)) {
            next[TagState::Name as usize] = next[TagState::Name as usize].max(Some(0));
        }
        tags = next;
        if tags[TagState::Attribute as usize] > Some(MAX_ATTRIBUTES) {
            return Err(Error::TooMuch { what: "attributes on one element", most: MAX_ATTRIBUTES as u64 });
        }
        at += 1;
    }
    Ok(())
}

/// Whether an element name can start with this byte, in HTML or XML. End tags may have attributes too.
fn can_begin(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'_' | b':' | 0x80..)
}

impl TagState {
    /// The state after the next byte; `None` if the tag has ended.
    fn next(self, byte: u8) -> Option<TagState> {
        let is_space = matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0c');
        let place = match (self, byte) {
            (TagState::DoubleQuoted, b'"') | (TagState::SingleQuoted, b'\'') => TagState::Between,
            (TagState::DoubleQuoted | TagState::SingleQuoted, _) => self,
            (_, b'>') => return None,
            (TagState::BeforeValue, b'"') => TagState::DoubleQuoted,
            (TagState::BeforeValue, b'\'') => TagState::SingleQuoted,
            (TagState::BeforeValue | TagState::AfterAttribute, _) if is_space => self,
            (TagState::Attribute, _) if is_space => TagState::AfterAttribute,
            _ if is_space => TagState::Between,
            (TagState::BeforeValue | TagState::Value, _) => TagState::Value,
            (TagState::Attribute | TagState::AfterAttribute, b'=') => TagState::BeforeValue,
            (_, b'/') => TagState::Between,
            (TagState::Name, _) => TagState::Name,
            (TagState::Between | TagState::Attribute | TagState::AfterAttribute, _) => TagState::Attribute,
        };
        Some(place)
    }
}
