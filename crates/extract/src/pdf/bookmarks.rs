//! Bookmarks: titles and nesting depth.

use std::collections::HashMap;

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Array, Dict, ObjectIdentifier, String as Bytes};

use super::strings;

const MAX_BOOKMARKS: usize = 10_000;
const MAX_LEVEL: u8 = 6;

/// Heading levels by title, normalized by [`key`].
#[derive(Debug, Default)]
pub(super) struct Bookmarks(HashMap<String, Vec<(Option<u32>, u8)>>);

impl Bookmarks {
    pub(super) fn of(pdf: &Pdf) -> Bookmarks {
        let mut outline = Bookmarks::default();
        let root = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
        let Some(bookmarks) = root.and_then(|root| root.get::<Dict<'_>>(b"Outlines")) else { return outline };
        let numbers = pdf.pages().iter().zip(1..);
        let numbers = numbers.filter_map(|(page, number)| Some((page.raw().obj_id()?, number))).collect();
        let mut left = MAX_BOOKMARKS;
        outline.add(&bookmarks, 1, &numbers, &mut left);
        outline
    }

    /// The level of a heading with this text on this page, if a bookmark refers to it.
    pub(super) fn level(&self, text: &str, page: u32) -> Option<u8> {
        if self.0.is_empty() {
            return None;
        }
        let places = self.0.get(&key(text))?;
        places.iter().find(|(number, _)| number.is_none_or(|number| number == page)).map(|(_, level)| *level)
    }

    fn add(&mut self, parent: &Dict<'_>, level: u8, numbers: &HashMap<ObjectIdentifier, u32>, left: &mut usize) {
        let mut next = parent.get::<Dict<'_>>(b"First");
        while let Some(bookmark) = next {
            // Bookmarks of a corrupted file may be cyclic.
            if *left == 0 {
                return;
            }
            *left -= 1;
            if let Some(title) = bookmark.get::<Bytes<'_>>(b"Title") {
                let page = destination(&bookmark).and_then(|page| numbers.get(&page).copied());
                self.0.entry(key(&strings::text(&title))).or_default().push((page, level));
            }
            if level < MAX_LEVEL {
                self.add(&bookmark, level + 1, numbers, left);
            }
            next = bookmark.get::<Dict<'_>>(b"Next");
        }
    }
}

/// The target page of a bookmark; named destinations are not resolved.
fn destination(bookmark: &Dict<'_>) -> Option<ObjectIdentifier> {
    let place = bookmark.get::<Array<'_>>(b"Dest");
    let place = place.or_else(|| bookmark.get::<Dict<'_>>(b"A")?.get::<Array<'_>>(b"D"))?;
    let page = place.raw_iter().next()?.as_obj_ref()?;
    Some(page.into())
}

/// Lowercase letters and digits only: titles differ from headings in spacing and numbering.
fn key(title: &str) -> String {
    let title = title.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == ' ');
    title.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
