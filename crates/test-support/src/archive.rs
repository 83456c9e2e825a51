//! ZIP writer for test documents and malformed archives.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// An archive under construction.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    table: Vec<u8>,
    parts: u16,
}

pub const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#;
const TRANSITIONAL: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

impl Archive {
    /// An archive with the relationship to its main part.
    pub fn of(main: &str) -> Archive {
        Archive::default().relations("_rels/.rels", &[("rId1", "officeDocument", main)])
    }

    pub fn part(mut self, name: &str, content: impl AsRef<[u8]>) -> Archive {
        let content = content.as_ref();
        let mut deflater = DeflateEncoder::new(Vec::new(), Compression::new(9));
        deflater.write_all(content).expect("memory takes everything");
        let packed = deflater.finish().expect("memory takes everything");
        self.put(name, 8, &packed, content.len() as u32, check_sum(content));
        self
    }

    pub fn stored(mut self, name: &str, content: impl AsRef<[u8]>) -> Archive {
        let content = content.as_ref();
        self.put(name, 0, content, content.len() as u32, check_sum(content));
        self
    }

    /// A compressed part with arbitrary declared values.
    pub fn packed(mut self, name: &str, packed: &[u8], stated: u32) -> Archive {
        self.put(name, 8, packed, stated, 0);
        self
    }

    pub fn relations(self, name: &str, relations: &[(&str, &str, &str)]) -> Archive {
        let mut markup =
            format!(r#"{HEAD}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">"#);
        for (id, kind, target) in relations {
            markup += &format!(r#"<Relationship Id="{id}" Type="{TRANSITIONAL}/{kind}" Target="{target}"/>"#);
        }
        markup += "</Relationships>";
        self.part(name, markup)
    }

    pub fn bytes(mut self) -> Vec<u8> {
        let start = self.bytes.len() as u32;
        let size = self.table.len() as u32;
        self.bytes.extend(&self.table);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(self.parts.to_le_bytes());
        self.bytes.extend(self.parts.to_le_bytes());
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend(start.to_le_bytes());
        self.bytes.extend([0, 0]);
        self.bytes
    }

    fn put(&mut self, name: &str, method: u16, packed: &[u8], stated: u32, check_sum: u32) {
        let at = self.bytes.len() as u32;
        let mut common = Vec::new();
        common.extend([20, 0, 0, 0]);
        common.extend(method.to_le_bytes());
        // 1 January 1980, midnight.
        common.extend([0, 0, 0x21, 0]);
        common.extend(check_sum.to_le_bytes());
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend(stated.to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(packed);
        self.table.extend(b"PK\x01\x02\x14\0");
        self.table.extend(&common);
        self.table.extend([0; 10]);
        self.table.extend(at.to_le_bytes());
        self.table.extend(name.as_bytes());
        self.parts = self.parts.wrapping_add(1);
    }
}

fn check_sum(content: &[u8]) -> u32 {
    let mut sum = Crc::new();
    sum.update(content);
    sum.sum()
}
