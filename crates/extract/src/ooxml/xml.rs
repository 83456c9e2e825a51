//! Pull parser for the XML of a part.
//!
//! Elements are matched by local name: the same names have the same meaning in the transitional and in the strict form,
//! regardless of prefixes. Document types are rejected, so the only entities are the five predefined ones and character
//! references.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::{Error, Limits};

/// XML reader of one part.
pub(crate) struct Xml<'a> {
    reader: Reader<&'a [u8]>,
    /// Part name, for errors.
    part: &'a str,
    depth: usize,
    max_depth: usize,
}

/// An XML event. An empty element is opened and closed like any other.
pub(crate) enum XmlEvent<'a> {
    Open(Tag<'a>),
    Close,
    Text(Cow<'a, str>),
    End,
}

/// A start tag.
pub(crate) struct Tag<'a>(BytesStart<'a>);

/// Decodes a part: UTF-8, or UTF-16 with a byte order mark. Invalid sequences become replacement characters.
pub(crate) fn decode(bytes: Vec<u8>) -> String {
    let units = |read: fn([u8; 2]) -> u16| {
        let pairs = bytes[2..].chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        char::decode_utf16(pairs).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    if bytes.starts_with(b"\xff\xfe") {
        return units(u16::from_le_bytes);
    }
    if bytes.starts_with(b"\xfe\xff") {
        return units(u16::from_be_bytes);
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

// === impl ===

impl<'a> Xml<'a> {
    pub(crate) fn new(text: &'a str, part: &'a str, limits: &Limits) -> Xml<'a> {
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        Xml { reader, part, depth: 0, max_depth: limits.depth }
    }

    pub(crate) fn next(&mut self) -> Result<XmlEvent<'a>, Error> {
        loop {
            return Ok(match self.reader.read_event() {
                Ok(Event::Start(start)) => {
                    self.depth += 1;
                    if self.depth > self.max_depth {
                        return Err(Error::TooMuch { what: "levels of nested elements", most: self.max_depth as u64 });
                    }
                    XmlEvent::Open(Tag(start))
                }
                Ok(Event::End(_)) => {
                    self.depth = self.depth.saturating_sub(1);
                    XmlEvent::Close
                }
                Ok(Event::Text(text)) => XmlEvent::Text(text.into_inner()),
                Ok(Event::CData(text)) => XmlEvent::Text(text.into_inner()),
                Ok(Event::GeneralRef(reference)) => XmlEvent::Text(resolve(&reference.into_inner())),
                Ok(Event::DocType(_)) => {
                    return Err(Error::Corrupted(format!("part `{}` has a DOCTYPE, which is not allowed", self.part)));
                }
                Ok(Event::Eof) if self.depth > 0 => return Err(self.syntax_error()),
                Ok(Event::Eof) => XmlEvent::End,
                Ok(_) => continue,
                Err(_) => return Err(self.syntax_error()),
            });
        }
    }

    /// The next child of the current element; `None` at its end. Skips the element's own text.
    pub(crate) fn child(&mut self) -> Result<Option<Tag<'a>>, Error> {
        loop {
            match self.next()? {
                XmlEvent::Open(tag) => return Ok(Some(tag)),
                XmlEvent::Text(_) => {}
                XmlEvent::Close | XmlEvent::End => return Ok(None),
            }
        }
    }

    /// Skips to the end of the current element.
    pub(crate) fn skip(&mut self) -> Result<(), Error> {
        self.each_text(|_| {})
    }

    /// All text inside the current element; reads to its end.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let mut text = String::new();
        self.append(&mut text)?;
        Ok(text)
    }

    /// Like [`Xml::text`], but appends to a string.
    pub(crate) fn append(&mut self, text: &mut String) -> Result<(), Error> {
        self.each_text(|more| text.push_str(more))
    }

    fn each_text(&mut self, mut take: impl FnMut(&str)) -> Result<(), Error> {
        let mut open = 1;
        while open > 0 {
            match self.next()? {
                XmlEvent::Open(_) => open += 1,
                XmlEvent::Close => open -= 1,
                XmlEvent::Text(more) => take(&more),
                XmlEvent::End => break,
            }
        }
        Ok(())
    }

    fn syntax_error(&self) -> Error {
        let at = self.reader.buffer_position();
        Error::Corrupted(format!("invalid XML in part `{}` at byte {at}", self.part))
    }
}

impl Tag<'_> {
    /// Local name.
    pub(crate) fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// Qualified name.
    pub(crate) fn qualified(&self) -> &str {
        self.0.name().into_inner()
    }

    /// An attribute by local name.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut attributes = self.0.attributes();
        let found = attributes.with_checks(false).flatten().find(|one| one.key.local_name().into_inner() == name)?;
        Some(value(found.value))
    }

    /// A prefixed attribute by local name: the relationship ID, if there is also an unprefixed attribute with this
    /// name.
    pub(crate) fn relationship_id(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut attributes = self.0.attributes();
        let is_it = |key: &str| key.split_once(':').is_some_and(|(_, local)| local == name);
        let found = attributes.with_checks(false).flatten().find(|one| is_it(one.key.into_inner()))?;
        Some(value(found.value))
    }

    /// All attributes by local name.
    pub(crate) fn each(&self, mut take: impl FnMut(&str, Cow<'_, str>)) {
        let mut attributes = self.0.attributes();
        for one in attributes.with_checks(false).flatten() {
            take(one.key.local_name().into_inner(), value(one.value));
        }
    }

    /// The value of a boolean element: its presence alone means true.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.get("val").as_deref(), Some("0" | "false" | "off"))
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.trim().parse().ok()
    }
}

fn value(raw: Cow<'_, str>) -> Cow<'_, str> {
    if !raw.contains('&') {
        return raw;
    }
    match quick_xml::escape::unescape(&raw) {
        Ok(plain) => Cow::Owned(plain.into_owned()),
        Err(_) => raw,
    }
}

/// Resolves a character or entity reference; an undefined entity is kept as written.
fn resolve<'a>(name: &str) -> Cow<'a, str> {
    let number = name.strip_prefix('#').map(|number| match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
        None => number.parse(),
    });
    match (number, name) {
        (Some(number), _) => number.ok().and_then(char::from_u32).map(String::from).unwrap_or_default().into(),
        (None, "amp") => "&".into(),
        (None, "lt") => "<".into(),
        (None, "gt") => ">".into(),
        (None, "quot") => "\"".into(),
        (None, "apos") => "'".into(),
        (None, _) => format!("&{name};").into(),
    }
}
