//! Merges OCR results into the text of a page.

use corbie_extract::{Block, Kind, Page, is_made_of_words};

use crate::workers::message::Ocr;
use crate::workers::words::{Origin, Words, letters};

/// Position of an image on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The whole page.
    Page,
    /// The whole page except for text that was extracted: a scan below stamps, or a file that is an image.
    Sheet,
    /// An image after this number of blocks.
    After(usize),
}

/// Inserts OCR results into a page, or replaces its text with them. Returns the origin of the resulting text.
pub(super) fn merge(page: &mut Page, mut read: Vec<(Place, Words)>, ocr: Ocr) -> Origin {
    // If OCR is unreliable for much of the page, the extracted text is better.
    let has_text = own(&page.blocks).next().is_some();
    read.retain(|(place, words)| words.says_anything() && !(*place == Place::Page && words.doubtful && has_text));
    read.sort_by_key(|(place, _)| *place);
    let mut origin = Origin { text: page.blocks.iter().any(Block::says_something), sight: false };
    // In reverse order, so that earlier positions remain valid.
    for (place, words) in read.into_iter().rev() {
        match place {
            Place::After(place) => insert(page, place, &words),
            Place::Sheet => {
                page.confidence = Some(words.confidence);
                page.blocks.extend(words.blocks);
            }
            Place::Page if ocr == Ocr::Force || says_more(&words, page) => {
                origin.text = false;
                page.confidence = Some(words.confidence);
                replace(page, words.blocks);
            }
            Place::Page => continue,
        }
        origin.sight = true;
    }
    origin
}

/// Whether the OCR result is better than the extracted text, which is short, garbled or only a stamp.
fn says_more(words: &Words, page: &Page) -> bool {
    let text: String = own(&page.blocks).map(|block| block.text.as_str()).collect();
    let readable = text.chars().filter(|letter| letter.is_alphanumeric()).count();
    !is_made_of_words(&text) || letters(&words.blocks) > readable + readable / 5
}

/// Blocks that a rendered page contains as well.
fn own(blocks: &[Block]) -> impl Iterator<Item = &Block> {
    blocks.iter().filter(|block| !is_laid_over(block) && block.says_something())
}

fn is_laid_over(block: &Block) -> bool {
    matches!(block.kind, Kind::Comment | Kind::Field)
}

/// Annotations are not part of the rendered page and are retained.
fn replace(page: &mut Page, blocks: Vec<Block>) {
    page.blocks.retain(is_laid_over);
    page.blocks.splice(..0, blocks);
}

/// Inserts a block under the headings of the preceding block.
fn insert(page: &mut Page, place: usize, words: &Words) {
    let place = place.min(page.blocks.len());
    let before = place.checked_sub(1).and_then(|before| page.blocks.get(before));
    let path = before.map(Block::path_behind).unwrap_or_default();
    page.blocks.insert(place, Block { path, ..Block::new(Kind::Image, words.text()) });
}

#[cfg(test)]
mod tests {
    use corbie_extract::Method;

    use super::*;

    fn page(blocks: &[Block]) -> Page {
        Page { number: 1, blocks: blocks.to_vec(), ..Page::default() }
    }

    fn words(text: &str) -> Words {
        Words { blocks: vec![Block::paragraph(text)], confidence: 0.9, ..Words::default() }
    }

    /// The texts of the page, and the extraction method.
    fn merged(mut page: Page, read: Vec<(Place, Words)>, ocr: Ocr) -> (Vec<String>, Method) {
        let origin = merge(&mut page, read, ocr);
        (page.blocks.into_iter().map(|block| block.text).collect(), origin.method())
    }

    #[test]
    fn k33_what_says_more_is_kept() {
        let stamp = page(&[Block::paragraph("Page 1"), Block::new(Kind::Comment, "why?")]);
        let (texts, method) = merged(stamp.clone(), vec![(Place::Page, words("A letter. Page 1"))], Ocr::Auto);
        assert_eq!((texts, method), (vec!["A letter. Page 1".to_owned(), "why?".into()], Method::Ocr));
        let (texts, method) = merged(stamp.clone(), vec![(Place::Page, words("Pag"))], Ocr::Auto);
        assert_eq!((texts, method), (vec!["Page 1".to_owned(), "why?".into()], Method::TextExtraction));
        let odd = page(&[Block::paragraph("\u{e001}\u{e002}\u{e003} a \u{e004}\u{e005}")]);
        assert_eq!(merged(odd, vec![(Place::Page, words("be"))], Ocr::Auto).0, ["be"]);
    }

    #[test]
    fn k22_what_was_seen_counts_where_that_is_forced_if_it_is_anything() {
        let long = page(&[Block::paragraph("long text")]);
        let (texts, method) = merged(long.clone(), vec![(Place::Page, words("text"))], Ocr::Force);
        assert_eq!((texts, method), (vec!["text".to_owned()], Method::Ocr));
        let (texts, method) = merged(long, vec![(Place::Page, words(" . "))], Ocr::Force);
        assert_eq!((texts, method), (vec!["long text".to_owned()], Method::TextExtraction));
    }

    #[test]
    fn k35_words_in_pictures_stand_where_the_pictures_do() {
        let heading = Block { path: vec!["Book".into()], ..Block::heading(2, "Chapter") };
        let mut page = page(&[heading, Block::paragraph("below")]);
        let read = vec![
            (Place::After(9), words("last")),
            (Place::After(1), words("second")),
            (Place::After(0), words("first")),
            (Place::After(1), words("third")),
            (Place::After(1), words("--")),
        ];
        let origin = merge(&mut page, read, Ocr::Auto);
        let texts: Vec<&str> = page.blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(texts, ["first", "Chapter", "second", "third", "below", "last"]);
        assert_eq!(page.blocks[2].kind, Kind::Image);
        assert_eq!(page.blocks[2].path, ["Book", "Chapter"]);
        assert_eq!(origin.method(), Method::Hybrid);
    }

    #[test]
    fn what_was_read_in_part_replaces_no_text() {
        let doubtful =
            || vec![(Place::Page, Words { doubtful: true, ..words("a part of it, and all that could be read") })];
        assert_eq!(merged(page(&[]), doubtful(), Ocr::Auto).0.len(), 1);
        assert_eq!(merged(page(&[Block::paragraph("text")]), doubtful(), Ocr::Force).0, ["text"]);
    }

    #[test]
    fn k32_a_page_without_anything_leaves_no_trace() {
        let (texts, method) = merged(page(&[]), vec![(Place::Page, Words::default())], Ocr::Auto);
        assert_eq!((texts.len(), method), (0, Method::TextExtraction));
    }
}
