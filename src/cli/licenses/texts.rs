//! License texts, compressed because most are nearly identical.

use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::read::GzDecoder;

/// Texts by name, which is a prefix of their hash.
pub(super) type Texts = BTreeMap<String, String>;

const PACKED: &[u8] = include_bytes!("texts.json.gz");

pub(super) fn texts() -> io::Result<Texts> {
    let mut text = String::new();
    GzDecoder::new(PACKED).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}
