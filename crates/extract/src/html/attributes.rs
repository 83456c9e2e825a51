//! Guard against elements with too many attributes.
//!
//! The HTML and XML parsers compare each attribute of an element with all earlier ones, so 300,000 attributes take a
//! minute. This pre-scan cannot determine exactly where tags start, because comments, scripts and similar constructs
//! hide tags, each with different rules. It therefore treats every `<` as a possible tag start and tracks all
//! candidates in parallel. Candidates in the same state have the same future, so only the one with the most attributes
//! matters.

use crate::Error;

/// Maximum attributes of an element. This many take a tenth of a second.
const MOST: usize = 20_000;
/// A smaller page cannot contain that many attributes.
const SMALL: usize = 4 * MOST;

/// States of the tag scanner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
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

const PLACES: [Place; 8] = [
    Place::Name,
    Place::Between,
    Place::Attribute,
    Place::AfterAttribute,
    Place::BeforeValue,
    Place::Value,
    Place::DoubleQuoted,
    Place::SingleQuoted,
];

pub(crate) fn check(text: &str) -> Result<(), Error> {
    if text.len() <= SMALL {
        return Ok(());
    }
    // For each state, the highest attribute count of all candidates in that state.
    let mut tags = [None; PLACES.len()];
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if tags.iter().all(Option::is_none) {
            let Some(start) = memchr::memchr(b'<', &bytes[at..]) else { break };
            at += start;
        }
        let mut next = [None; PLACES.len()];
        for (place, count) in PLACES.into_iter().zip(tags) {
            if let (Some(count), Some(after)) = (count, place.after(bytes[at])) {
                let begins = after == Place::Attribute && place != Place::Attribute;
                next[after as usize] = next[after as usize].max(Some(count + usize::from(begins)));
            }
        }
        if bytes[at] == b'<' && bytes.get(at + 1).is_some_and(|byte| can_begin(*byte)) {
            next[Place::Name as usize] = next[Place::Name as usize].max(Some(0));
        }
        tags = next;
        if tags[Place::Attribute as usize] > Some(MOST) {
            return Err(Error::TooMuch { what: "attributes on one element", most: MOST as u64 });
        }
        at += 1;
    }
    Ok(())
}

/// Whether an element name can start with this byte, in HTML or XML. End tags may have attributes too.
fn can_begin(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'_' | b':' | 0x80..)
}

impl Place {
    /// The state after the next byte; `None` if the tag has ended.
    fn after(self, byte: u8) -> Option<Place> {
        let is_space = matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0c');
        let place = match (self, byte) {
            (Place::DoubleQuoted, b'"') | (Place::SingleQuoted, b'\'') => Place::Between,
            (Place::DoubleQuoted | Place::SingleQuoted, _) => self,
            (_, b'>') => return None,
            (Place::BeforeValue, b'"') => Place::DoubleQuoted,
            (Place::BeforeValue, b'\'') => Place::SingleQuoted,
            (Place::BeforeValue | Place::AfterAttribute, _) if is_space => self,
            (Place::Attribute, _) if is_space => Place::AfterAttribute,
            _ if is_space => Place::Between,
            (Place::BeforeValue | Place::Value, _) => Place::Value,
            (Place::Attribute | Place::AfterAttribute, b'=') => Place::BeforeValue,
            (_, b'/') => Place::Between,
            (Place::Name, _) => Place::Name,
            (Place::Between | Place::Attribute | Place::AfterAttribute, _) => Place::Attribute,
        };
        Some(place)
    }
}
