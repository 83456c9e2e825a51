//! File metadata: information dictionary, with XMP as fallback.

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{DateTime, Dict, Stream, String as Bytes};

use super::strings;
use crate::Metadata;

pub(super) fn metadata(pdf: &Pdf) -> Metadata {
    let info = pdf.metadata();
    let text = |bytes: &Option<Box<[u8]>>| filled(&strings::text(bytes.as_deref()?));
    let root = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()).unwrap_or_default();
    let packet = root.get::<Stream<'_>>(b"Metadata").and_then(|stream| stream.decoded_data().ok());
    let packet = packet.map(|packet| String::from_utf8_lossy(&packet).into_owned()).unwrap_or_default();
    let xmp = |name: &str| property(&packet, name);
    Metadata {
        title: text(&info.title).or_else(|| xmp("dc:title")),
        author: text(&info.author).or_else(|| xmp("dc:creator")),
        subject: text(&info.subject).or_else(|| xmp("dc:description")),
        language: root.get::<Bytes<'_>>(b"Lang").and_then(|language| filled(&strings::text(&language))),
        created: info.creation_date.map(date).or_else(|| xmp("xmp:CreateDate")),
        modified: info.modification_date.map(date).or_else(|| xmp("xmp:ModifyDate")),
        ..Metadata::default()
    }
}

fn filled(text: &str) -> Option<String> {
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// As RFC 3339.
fn date(date: DateTime) -> String {
    let DateTime { year, month, day, hour, minute, second, utc_offset_hour, utc_offset_minute } = date;
    let zone = match (utc_offset_hour, utc_offset_minute) {
        (0, 0) => "Z".to_owned(),
        (hours, minutes) => format!("{hours:+03}:{minutes:02}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
}

/// The value of an XMP property: an attribute, an element, or the first item of a list.
fn property(packet: &str, name: &str) -> Option<String> {
    if let Some((_, rest)) = packet.split_once(&format!("{name}=\"")) {
        return filled(&unescaped(rest.split('"').next()?));
    }
    let (_, rest) = packet.split_once(&format!("<{name}"))?;
    let (inside, _) = rest.split_once(&format!("</{name}>"))?;
    // The first text outside tags, after the last `>` before it.
    let text = inside.split('>').skip(1).map(|piece| piece.split('<').next().unwrap_or("")).find_map(filled)?;
    Some(unescaped(&text))
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xmp_properties_are_found_however_they_are_written() {
        let packet = r#"<rdf:Description xmp:CreateDate="2024-01-31T12:00:00Z">
            <dc:title><rdf:Alt><rdf:li xml:lang="x-default">Cats &amp; dogs</rdf:li></rdf:Alt></dc:title>
            <xmp:ModifyDate>2024-02-01</xmp:ModifyDate></rdf:Description>"#;
        assert_eq!(property(packet, "xmp:CreateDate").as_deref(), Some("2024-01-31T12:00:00Z"));
        assert_eq!(property(packet, "dc:title").as_deref(), Some("Cats & dogs"));
        assert_eq!(property(packet, "xmp:ModifyDate").as_deref(), Some("2024-02-01"));
        assert_eq!(property(packet, "dc:creator"), None);
    }

    #[test]
    fn dates_are_written_as_rfc_3339() {
        let noon = DateTime {
            year: 2024,
            month: 1,
            day: 31,
            hour: 12,
            minute: 0,
            second: 0,
            utc_offset_hour: -3,
            utc_offset_minute: 30,
        };
        assert_eq!(date(noon), "2024-01-31T12:00:00-03:30");
        assert_eq!(date(DateTime { utc_offset_hour: 0, utc_offset_minute: 0, ..noon }), "2024-01-31T12:00:00Z");
    }
}
