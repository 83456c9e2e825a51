//! Shared string table.

use std::borrow::Cow;

use crate::Error;
use crate::ooxml::Xml;

/// All strings concatenated: a million short strings would need more memory for headers than for letters.
#[derive(Debug, Default)]
pub(super) struct Strings {
    text: String,
    ends: Vec<u32>,
}

// === impl ===

impl Strings {
    pub(super) fn read(xml: &mut Xml<'_>, most: u64) -> Result<Strings, Error> {
        let mut strings = Strings::default();
        xml.child()?;
        while let Some(tag) = xml.child()? {
            if tag.name() != "si" {
                xml.skip()?;
                continue;
            }
            item(xml, &mut strings.text)?;
            let end = u32::try_from(strings.text.len()).ok().filter(|_| (strings.ends.len() as u64) < most);
            strings.ends.push(end.ok_or(Error::TooMuch { what: "shared strings", most })?);
        }
        Ok(strings)
    }

    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.text.get(start..end)
    }
}

/// The text of an item: all its runs, without phonetic readings (furigana).
pub(super) fn item(xml: &mut Xml<'_>, text: &mut String) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "t" => xml.append(text)?,
            "r" => item(xml, text)?,
            _ => xml.skip()?,
        }
    }
    Ok(())
}

/// Unescapes `_x000D_` sequences for characters that XML does not allow; control characters become a space.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains("_x") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_x") {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let code = rest.get(2..6).filter(|_| rest.as_bytes().get(6) == Some(&b'_'));
        match code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32) {
            Some(letter) => {
                plain.push(if letter.is_control() { ' ' } else { letter });
                rest = &rest[7..];
            }
            None => {
                plain.push_str("_x");
                rest = &rest[2..];
            }
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}
