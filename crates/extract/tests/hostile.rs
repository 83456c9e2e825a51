//! Corrupted files of every format: each gives text or a typed error, never a panic.

use corbie_extract::{Error, Format, Limits, Options, decode_image, document, markdown, resolve, svg_raster};

/// A small file per format that covers the features of its reader.
fn seeds() -> Vec<(Format, Vec<u8>)> {
    let html = "<html lang=en><head><title>T</title><meta charset=utf-8><script type='application/ld+json'>{\"@type\":\"Article\"}\
        </script></head><body><h1>One</h1><p>Two, <a href=x>three</a><br><br>four<ul><li>a<ul><li>b</ul></ul><table><caption>c\
        </caption><tr><th>d<th rowspan=2>e<tr><td colspan=3>f</table><pre>g\n h</pre><figure><img alt=i><figcaption>j\
        </figure><select><option>k</select><svg><text>l</text></svg>";
    let svg = "<?xml version='1.0'?><!DOCTYPE svg><svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><title>a</title>\
        <g transform='scale(2)'><text x='1'>b<tspan dy='1'>c</tspan></text><path d='M0 0L9 9' stroke='red'/></g></svg>";
    let markdown =
        "---\ntitle: a\n---\n# b\n\n- c\n  - d\n\n| e | f |\n|---|---|\n| g | h |\n\n```\ni\n```\n\n[^1]: j\n";
    // One black pixel.
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDATx\x9cc`\0\0\0\x02\0\x01\
        \x48\xaf\xa4\x71\0\0\0\0IEND\xaeB`\x82";
    vec![
        (Format::Html, html.into()),
        (Format::Svg, svg.into()),
        (Format::Markdown, markdown.into()),
        (Format::Text, "one\n\ntwo\x0cthree".into()),
        (Format::Csv, "a;b\n\"c;\n\";d\n".into()),
        (Format::Png, png.to_vec()),
    ]
}

/// Reads it with all options.
fn read(format: Format, bytes: &[u8]) {
    let _ = resolve(Some(format), bytes);
    for full in [true, false] {
        if let Ok(document) = document(bytes, format, &Options { full, ..Options::default() }) {
            let _ = markdown(&document);
        }
    }
    let limits = Limits { pixels: 10_000, ..Limits::default() };
    let _ = match format {
        Format::Svg => svg_raster(bytes, &limits),
        format => decode_image(bytes, format, &limits),
    };
}

#[test]
fn the_files_themselves_can_be_read() {
    for (format, bytes) in seeds() {
        assert_eq!(resolve(Some(format), &bytes), Ok((format, None)), "{format}");
        assert!(document(&bytes, format, &Options::default()).is_ok(), "{format}");
    }
}

#[test]
fn files_cut_anywhere_do_no_harm() {
    for (format, bytes) in seeds() {
        (0..bytes.len()).for_each(|end| read(format, &bytes[..end]));
    }
}

#[test]
fn files_changed_anywhere_do_no_harm() {
    // Deterministic xorshift generator, so that failures are reproducible.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for (format, seed) in seeds() {
        for _ in 0..300 {
            let mut bytes = seed.clone();
            for _ in 0..=next(6) {
                let at = next(bytes.len());
                let end = (at + next(20)).min(bytes.len());
                match next(3) {
                    0 => bytes[at] = next(256) as u8,
                    1 => bytes.copy_within(at..end, 0),
                    _ => {
                        let piece = bytes[at..end].to_vec();
                        bytes.splice(at..at, piece);
                    }
                }
            }
            read(format, &bytes);
        }
    }
}

#[test]
fn no_format_is_parted_into_more_blocks_than_allowed() {
    let options = Options { limits: Limits { blocks: 5, ..Limits::default() }, full: true, ..Options::default() };
    let files = [
        (Format::Text, "a\n\n".repeat(7)),
        (Format::Text, "a\x0c".repeat(7)),
        (Format::Markdown, "- a\n".repeat(7)),
        (Format::Html, "<p>a<img alt=b>".repeat(4)),
        (Format::Svg, format!("<svg>{}</svg>", "<text>a</text>".repeat(7))),
    ];
    for (format, text) in files {
        let refused = Err(Error::TooMuch { what: "paragraphs and tables", most: 5 });
        assert_eq!(document(text.as_bytes(), format, &options), refused, "{format}");
    }
}

#[test]
fn a_file_is_not_read_as_a_format_it_does_not_have() {
    for (format, bytes) in seeds() {
        for other in [Format::Html, Format::Svg, Format::Png, Format::Jpg, Format::Markdown, Format::Text, Format::Csv]
        {
            if other != format {
                read(other, &bytes);
            }
        }
    }
}
