//! Document type of an SVG, which is removed before parsing.
//!
//! Many files start with the SVG 1.1 document type, which has no effect. Files from Illustrator define namespace URIs
//! as entities, so short plain entities are expanded. Other entities are not: neither nested ones, which could grow
//! exponentially, nor external ones.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::{Error, Limits};

/// Maximum number of entities, and maximum bytes of one. Illustrator defines a dozen URIs.
const MAX_ENTITIES: usize = 64;
const MAX_ENTITY_BYTES: usize = 256;

/// Removes the document type and expands its entities.
pub(super) fn resolve<'a>(text: &'a str, limits: &Limits) -> Result<Cow<'a, str>, Error> {
    let Some(start) = text.find("<!DOCTYPE") else { return Ok(text.into()) };
    let (entities, length) = entities(&text[start..]);
    let mut out = text[..start].to_owned();
    let mut pieces = text[start + length..].split('&');
    out.extend(pieces.next());
    let mut added = 0;
    for piece in pieces {
        let named = piece.split_once(';').and_then(|(name, after)| Some((entities.get(name)?, after)));
        let Some((value, after)) = named else {
            out.push('&');
            out.push_str(piece);
            continue;
        };
        added += value.len() as u64;
        if added > limits.characters {
            return Err(Error::TooMuch { what: "characters", most: limits.characters });
        }
        out.push_str(value);
        out.push_str(after);
    }
    Ok(out.into())
}

/// The entities of a document type, and its length.
fn entities(declaration: &str) -> (HashMap<&str, String>, usize) {
    let mut entities = HashMap::new();
    let whole = declaration.len();
    let Some(mut at) = unquoted(declaration, &['[', '>']).map(|open| open + 1) else { return (entities, whole) };
    if declaration[..at].ends_with('>') {
        return (entities, at);
    }
    while let Some(found) = declaration[at..].find(['<', ']']) {
        at += found;
        let rest = &declaration[at..];
        let end = if rest.starts_with(']') {
            return (entities, rest.find('>').map_or(whole, |end| at + end + 1));
        } else if rest.starts_with("<!--") {
            rest.find("-->").map(|end| end + 3)
        } else if rest.starts_with("<?") {
            rest.find("?>").map(|end| end + 2)
        } else {
            unquoted(rest, &['>']).map(|end| end + 1)
        };
        let Some(end) = end else { break };
        if let Some((name, value)) = entity(&rest[..end]).filter(|_| entities.len() < MAX_ENTITIES) {
            entities.entry(name).or_insert(value);
        }
        at += end;
    }
    (entities, whole)
}

/// Name and value of an entity that is short and refers to no other.
fn entity(declaration: &str) -> Option<(&str, String)> {
    let (name, rest) = declaration.strip_prefix("<!ENTITY")?.trim_start().split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|letter| matches!(letter, '"' | '\''))?;
    let value = rest[1..].split(quote).next()?;
    let is_plain = value.len() <= MAX_ENTITY_BYTES && !value.contains(['&', '<', '%']);
    is_plain.then(|| (name, value.replace('"', "&quot;").replace('\'', "&apos;").replace('>', "&gt;")))
}

fn unquoted(text: &str, wanted: &[char]) -> Option<usize> {
    let mut quote = None;
    text.find(|letter: char| match quote {
        Some(open) => {
            quote = quote.filter(|_| letter != open);
            false
        }
        None if matches!(letter, '"' | '\'') => {
            quote = Some(letter);
            false
        }
        None => wanted.contains(&letter),
    })
}
