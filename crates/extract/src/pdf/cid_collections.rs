//! CJK fonts without a Unicode mapping.
//!
//! Such a font names the character collection (CID) of its glyph numbers, and the collections have published tables.
//! Older files name no collection: their font name is in the encoding of the text, two bytes per character.

use std::collections::HashMap;

use hayro_interpret::hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded};
use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object, String as Bytes};

/// Collections of the fonts of a file, loaded lazily.
#[derive(Default)]
pub(super) struct CidCollections {
    fonts: Option<Fonts>,
    tables: HashMap<CidFamily, Option<CMap>>,
    /// Maps two-byte codes to CIDs of the Chinese collection.
    chinese: Option<Option<CMap>>,
}

#[derive(Default)]
struct Fonts {
    /// By font name: its collection, and its mapping from codes to CIDs. `None` for other composite fonts.
    composite: HashMap<String, Option<(CidFamily, Option<CMap>)>>,
    /// Whether any font name is in a two-byte encoding.
    two_bytes: bool,
}

impl CidCollections {
    /// The character of a code in the composite font with this name, if any; outer `None` if there is no such font.
    pub(super) fn letter(&mut self, pdf: &Pdf, font: &str, code: u32) -> Option<Option<char>> {
        let fonts = self.fonts.get_or_insert_with(|| Fonts::of(pdf));
        let collection = fonts.composite.get(font)?.as_ref();
        Some(collection.and_then(|(family, encoding)| {
            let number = match encoding {
                Some(encoding) => (1..=4).find_map(|length| encoding.lookup_cid_code(code, length))?,
                None => code,
            };
            let table = self.tables.entry(family.clone()).or_insert_with(|| table(family.ucs2_cmap()?));
            first(table.as_ref()?.lookup_bf_string(number)?)
        }))
    }

    /// The character of a two-byte code, if the file has fonts in such an encoding.
    pub(super) fn of_two_bytes(&mut self, pdf: &Pdf, code: u32) -> Option<char> {
        if !self.fonts.get_or_insert_with(|| Fonts::of(pdf)).two_bytes {
            return None;
        }
        let chinese = self.chinese.get_or_insert_with(|| table(CMapName::GbkEucH)).as_ref()?;
        let number = chinese.lookup_cid_code(code, 2)?;
        let table = self.tables.entry(CidFamily::AdobeGB1).or_insert_with(|| table(CMapName::AdobeGb1Ucs2));
        first(table.as_ref()?.lookup_bf_string(number)?)
    }
}

impl Fonts {
    fn of(pdf: &Pdf) -> Fonts {
        let mut fonts = Fonts::default();
        let dicts = pdf.objects().into_iter().filter_map(|object| match object {
            Object::Dict(dict) => Some(dict),
            _ => None,
        });
        for font in dicts.filter(|dict| dict.contains_key(b"BaseFont")) {
            let Some(name) = font.get::<Name<'_>>(b"BaseFont") else { continue };
            let Some(descendant) = descendant(&font) else {
                fonts.two_bytes |= !name.is_ascii();
                continue;
            };
            let encoding = font.get::<Name<'_>>(b"Encoding").filter(|name| !name.starts_with(b"Identity"));
            let encoding = encoding.and_then(|name| table(CMapName::from_bytes(&name)));
            let name = name.as_str();
            let plain = name.split_once('+').filter(|(prefix, _)| prefix.len() == 6).map_or(name, |(_, plain)| plain);
            fonts.composite.insert(plain.to_owned(), family(&descendant).map(|family| (family, encoding)));
        }
        fonts
    }
}

fn descendant<'a>(font: &Dict<'a>) -> Option<Dict<'a>> {
    font.get::<Array<'a>>(b"DescendantFonts")?.iter::<Dict<'a>>().next()
}

fn family(descendant: &Dict<'_>) -> Option<CidFamily> {
    let info = descendant.get::<Dict<'_>>(b"CIDSystemInfo")?;
    let (registry, ordering) = (info.get::<Bytes<'_>>(b"Registry")?, info.get::<Bytes<'_>>(b"Ordering")?);
    let family = CidFamily::from_registry_ordering(&registry, &ordering);
    family.ucs2_cmap().is_some().then_some(family)
}

fn table(name: CMapName<'_>) -> Option<CMap> {
    CMap::parse(load_embedded(name)?, load_embedded)
}

fn first(said: BfString) -> Option<char> {
    match said {
        BfString::Char(letter) => Some(letter),
        BfString::String(letters) => letters.chars().next(),
    }
}

impl std::fmt::Debug for CidCollections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collections").finish_non_exhaustive()
    }
}
