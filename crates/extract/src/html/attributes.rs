//! A look ahead for elements with more attributes than any page has.
//!
//! The parsers of HTML and XML compare each attribute of an element with all before it, so 300,000 of them take a minute.
//! Where a tag begins they know better than what looks ahead: comments, scripts and the like hide tags, each in its own
//! way. So every `<` is followed as if a tag began there, all of them at once: two that are at the same place within
//! their tags have the same future, and only the one with more attributes matters.

use crate::Error;

/// As many take a tenth of a second.
const MOST: usize = 20_000;
/// A smaller page has no room for them.
const SMALL: usize = 4 * MOST;

/// Places within a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Name,
    /// Where the next attribute may begin.
    Between,
    Attribute,
    AfterAttribute,
    /// Behind the `=`.
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
    // For each place, the attributes of the tag that has most of those that are there.
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

/// Whether a name begins so, in HTML or XML. End tags may have attributes too.
fn can_begin(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'_' | b':' | 0x80..)
}

impl Place {
    /// The place behind the next byte; none where the tag has ended.
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
