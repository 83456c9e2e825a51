//! Unicode mapping of glyphs.
//!
//! A font defines it with a ToUnicode table, with glyph names or with a standard encoding. Otherwise the embedded font
//! program may have the character of a glyph.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use hayro_interpret::font::{Glyph, GlyphIdentifier, OutlineGlyph, PositionedGlyph};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::Pdf;
use icu_normalizer::ComposingNormalizerBorrowed;
use skrifa::{FontRef, MetadataProvider};

use super::cid_collections::CidCollections;

/// Unicode mappings of the fonts of a file.
pub(super) struct GlyphDecoder<'p> {
    pdf: &'p Pdf,
    collections: CidCollections,
    /// By font key: the character of each glyph.
    programs: HashMap<u128, HashMap<u32, char>>,
    /// By glyph of a font.
    mono: HashMap<GlyphIdentifier, bool, FixedState>,
}

impl<'p> GlyphDecoder<'p> {
    pub(super) fn new(pdf: &'p Pdf) -> GlyphDecoder<'p> {
        GlyphDecoder { pdf, collections: CidCollections::default(), programs: HashMap::new(), mono: HashMap::default() }
    }

    /// Appends the text of a glyph.
    pub(super) fn push(&mut self, glyph: &Glyph<'_>, text: &mut String) {
        match glyph.as_unicode() {
            Some(BfString::Char(letter)) => push_clean(letter, text),
            Some(BfString::String(letters)) => letters.chars().for_each(|letter| push_clean(letter, text)),
            None => {
                if let Some(letter) = self.by_program(glyph) {
                    push_clean(letter, text);
                }
            }
        }
    }

    /// Whether its font is monospaced.
    pub(super) fn is_mono(&mut self, glyph: &Glyph<'_>) -> bool {
        let Glyph::Outline(outline) = glyph else { return false };
        let advance = |outline: &OutlineGlyph| outline.font_data().is_some_and(|font| font.is_monospace);
        *self.mono.entry(outline.identifier()).or_insert_with(|| advance(outline))
    }

    fn by_program(&mut self, glyph: &Glyph<'_>) -> Option<char> {
        let code = char::from_u32(glyph.char_code()).filter(|letter| letter.is_ascii_graphic() || *letter == ' ');
        let Glyph::Outline(outline) = glyph else { return code };
        let Some(font) = outline.font_data() else { return code };
        let known = self.programs.entry(font.cache_key).or_insert_with(|| {
            let bytes: &[u8] = (*font.data).as_ref();
            characters(bytes).unwrap_or_default()
        });
        if let Some(letter) = known.get(&outline.glyph_id().to_u32()) {
            return Some(*letter);
        }
        let name = font.postscript_name.unwrap_or_default();
        // The codes of composite fonts are glyph numbers, not characters.
        self.collections.letter(self.pdf, &name, glyph.char_code()).unwrap_or(code)
    }

    /// The characters of a run whose codes are halves of two-byte characters: the first half has the character, the
    /// second none.
    pub(super) fn of_two_bytes(&mut self, run: &[PositionedGlyph<'_>]) -> Option<Vec<Option<char>>> {
        let is_half = |code: u32| (0x81..=0xFE).contains(&code);
        if run.len() < 2 || !run.iter().take(2).all(|glyph| is_half(glyph.char_code())) {
            return None;
        }
        let Glyph::Outline(first) = &**run.first()? else { return None };
        if first.font_data().is_some() {
            return None;
        }
        let mut letters = Vec::with_capacity(run.len());
        let mut codes = run.iter().map(|glyph| glyph.char_code());
        while let Some(code) = codes.next() {
            if is_half(code) {
                let code = code << 8 | codes.next()?;
                letters.extend([Some(self.collections.of_two_bytes(self.pdf, code)?), None]);
            } else {
                letters.push(char::from_u32(code));
            }
        }
        Some(letters)
    }
}

/// The character map of a font program, by glyph.
fn characters(program: &[u8]) -> Option<HashMap<u32, char>> {
    let font = FontRef::new(program).ok()?;
    let mut known = HashMap::new();
    for (code, glyph) in font.charmap().mappings() {
        // Symbol fonts map one-byte codes to the private use area.
        let code = if (0xF020..=0xF07E).contains(&code) { code - 0xF000 } else { code };
        if let Some(letter) = char::from_u32(code) {
            known.entry(glyph.to_u32()).or_insert(letter);
        }
    }
    Some(known)
}

/// Removes control and private use characters; expands ligatures and presentation forms.
pub(super) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    text.chars().for_each(|letter| push_clean(letter, &mut clean));
    clean
}

pub(super) fn push_clean(letter: char, text: &mut String) {
    match letter {
        ' '..='~' => text.push(letter),
        '\t' | '\n' | '\r' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            text.push(' ')
        }
        '\0'..='\u{9f}' => {}
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {}
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'.. | '\u{feff}' | '\u{fff0}'..='\u{ffff}' => {}
        '\u{fb00}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => {
            let mut bytes = [0; 4];
            text.push_str(&ComposingNormalizerBorrowed::new_nfkc().normalize(letter.encode_utf8(&mut bytes)));
        }
        _ => text.push(letter),
    }
}

impl std::fmt::Debug for GlyphDecoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Letters").field("programs", &self.programs.len()).finish_non_exhaustive()
    }
}
