//! Image metadata from cameras and programs.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use image::ImageFormat;

use super::{drawn, with_segment, with_text};
use crate::{Format, Metadata, Options, document};

/// EXIF value types used here.
const TYPE_BYTE: u16 = 1;
const TYPE_ASCII: u16 = 2;
const TYPE_LONG: u16 = 4;
const TYPE_RATIONAL: u16 = 5;

const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
const PACKET: &str = r#"<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:xmpMM="m"><xmpMM:History><rdf:Seq><rdf:li>saved</rdf:li></rdf:Seq></xmpMM:History>
    <dc:title><rdf:Alt><rdf:li xml:lang="x-default">First boats</rdf:li><rdf:li xml:lang="de">Boote</rdf:li></rdf:Alt></dc:title>
    <dc:description><rdf:Alt><rdf:li>Before &amp; after dawn</rdf:li></rdf:Alt></dc:description>
    <dc:creator><rdf:Seq><rdf:li>Ann Lee</rdf:li><rdf:li>Bo Ek</rdf:li></rdf:Seq></dc:creator>
    <dc:subject><rdf:Bag><rdf:li>sea</rdf:li><rdf:li>boats</rdf:li></rdf:Bag></dc:subject>
    <dc:rights><rdf:Alt><rdf:li>Free to use</rdf:li></rdf:Alt></dc:rights>
    </rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>"#;

type TiffEntry = (u16, u16, Vec<u8>);

/// An IFD at this file offset, followed by its values.
fn directory(at: usize, entries: &[TiffEntry]) -> Vec<u8> {
    let size = |kind: u16| [0, 1, 1, 2, 4, 8][usize::from(kind)];
    let mut head = (entries.len() as u16).to_be_bytes().to_vec();
    let mut values: Vec<u8> = Vec::new();
    for (tag, kind, value) in entries {
        head.extend(tag.to_be_bytes());
        head.extend(kind.to_be_bytes());
        head.extend(((value.len() / size(*kind)) as u32).to_be_bytes());
        let mut field = value.clone();
        if value.len() > 4 {
            field = ((at + 6 + 12 * entries.len() + values.len()) as u32).to_be_bytes().to_vec();
            values.extend(value);
        }
        field.resize(4, 0);
        head.extend(field);
    }
    head.extend([0; 4]);
    head.extend(values);
    head
}

/// A JPEG with these EXIF entries and GPS entries.
fn photograph(mut entries: Vec<TiffEntry>, place: &[TiffEntry]) -> Vec<u8> {
    entries.push((0x8825, TYPE_LONG, 0_u32.to_be_bytes().to_vec()));
    let behind = 8 + directory(8, &entries).len();
    if let Some(pointer) = entries.last_mut() {
        pointer.2 = (behind as u32).to_be_bytes().to_vec();
    }
    let segment = [b"Exif\0\0MM\0\x2a\0\0\0\x08".to_vec(), directory(8, &entries), directory(behind, place)].concat();
    with_segment(&segment)
}

fn text(tag: u16, text: &str) -> TiffEntry {
    (tag, TYPE_ASCII, format!("{text}\0").into_bytes())
}

fn degrees(tag: u16, parts: [(u32, u32); 3]) -> TiffEntry {
    (
        tag,
        TYPE_RATIONAL,
        parts.iter().flat_map(|(over, under)| [over.to_be_bytes(), under.to_be_bytes()].concat()).collect(),
    )
}

fn metadata_of(bytes: &[u8], format: Format) -> Metadata {
    document(bytes, format, &Options::default()).expect("a picture").metadata
}

#[test]
fn a_camera_says_what_it_is_and_where_it_was() {
    let utf_16: Vec<u8> = "sea; Größe;;".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let entries = vec![
        text(0x10f, "Canon"),
        text(0x110, "Canon EOS R5"),
        text(0x8298, "Ann Lee 2024"),
        (0x9c9e, TYPE_BYTE, utf_16),
    ];
    let north = [text(1, "N"), degrees(2, [(48, 1), (51, 1), (3024, 100)])];
    let west = [text(3, "W"), degrees(4, [(2, 1), (17, 1), (402, 10)])];
    let metadata = metadata_of(&photograph(entries, &[north, west].concat()), Format::Jpg);
    assert_eq!(metadata.device.as_deref(), Some("Canon EOS R5"));
    assert_eq!(metadata.place.as_deref(), Some("48.8584, -2.2945"));
    assert_eq!(metadata.keywords, ["sea", "Größe"]);
    assert_eq!(metadata.copyright.as_deref(), Some("Ann Lee 2024"));
}

#[test]
fn the_maker_is_named_once() {
    let device = |make: &str, model: &str| {
        metadata_of(&photograph(vec![text(0x10f, make), text(0x110, model)], &[]), Format::Jpg).device.unwrap()
    };
    assert_eq!(device("NIKON CORPORATION", "NIKON D90"), "NIKON D90");
    assert_eq!(device("Apple", "iPhone 15"), "Apple iPhone 15");
    assert_eq!(device("Apple", " "), "Apple");
}

#[test]
fn a_place_that_is_none_is_not_told() {
    let place = |north: [(u32, u32); 3], east: [(u32, u32); 3]| {
        metadata_of(&photograph(Vec::new(), &[degrees(2, north), degrees(4, east)]), Format::Jpg).place
    };
    assert_eq!(place([(0, 1); 3], [(0, 1); 3]), None);
    assert_eq!(place([(1, 0); 3], [(0, 0); 3]), None);
    assert_eq!(place([(91, 1); 3], [(1, 1); 3]), None);
    assert_eq!(place([(1, 1), (30, 1), (0, 1)], [(0, 1); 3]).as_deref(), Some("1.5000, 0.0000"));
}

fn check_packet(metadata: &Metadata) {
    assert_eq!(metadata.title.as_deref(), Some("First boats"));
    assert_eq!(metadata.subject.as_deref(), Some("Before & after dawn"));
    assert_eq!(metadata.author.as_deref(), Some("Ann Lee, Bo Ek"));
    assert_eq!(metadata.keywords, ["sea", "boats"]);
    assert_eq!(metadata.copyright.as_deref(), Some("Free to use"));
}

pub(super) fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_packet_of_xml_says_it_in_a_jpeg_and_in_a_png() {
    check_packet(&metadata_of(&with_segment(&[XMP, PACKET.as_bytes()].concat()), Format::Jpg));
    let plain = [b"XML:com.adobe.xmp\0\0\0\0\0".as_slice(), PACKET.as_bytes()].concat();
    check_packet(&metadata_of(&with_text(b"iTXt", &plain), Format::Png));
    let small = [b"XML:com.adobe.xmp\0\x01\0\0\0".to_vec(), packed(PACKET.as_bytes())].concat();
    check_packet(&metadata_of(&with_text(b"iTXt", &small), Format::Png));
}

#[test]
fn a_broken_packet_says_what_comes_before_the_break() {
    let cut = &PACKET[..PACKET.find("<dc:creator>").unwrap()];
    let metadata = metadata_of(&with_segment(&[XMP, cut.as_bytes()].concat()), Format::Jpg);
    assert_eq!((metadata.title.as_deref(), metadata.author), (Some("First boats"), None));
    let declared = format!("<!DOCTYPE x [<!ENTITY e 'boom'>]>{PACKET}");
    assert_eq!(metadata_of(&with_segment(&[XMP, declared.as_bytes()].concat()), Format::Jpg).title, None);
    let deep = format!("{}{PACKET}", "<a>".repeat(1000));
    assert_eq!(metadata_of(&with_segment(&[XMP, deep.as_bytes()].concat()), Format::Jpg).title, None);
}

#[test]
fn texts_of_a_png_may_be_packed_but_not_without_end() {
    let text = |packed: Vec<u8>| with_text(b"zTXt", &[b"Title\0\0".to_vec(), packed].concat());
    assert_eq!(metadata_of(&text(packed(b"A caf\xe9")), Format::Png).title.as_deref(), Some("A café"));
    let bomb = text(packed(&vec![b'a'; 100 << 20]));
    assert!(bomb.len() < 200_000);
    assert_eq!(metadata_of(&bomb, Format::Png).title.map(|title| title.len()), Some(64 << 10));
    // All texts share one limit.
    let mut many = drawn(ImageFormat::Png);
    let chunk = bomb[33..bomb.len() - (many.len() - 33)].to_vec();
    many.splice(33..33, chunk.repeat(3));
    assert_eq!(document(&many, Format::Png, &Options::default()).unwrap().pages[0].blocks.len(), 1);
}
