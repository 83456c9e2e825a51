//! Merges OCR results into the text of a page.

use corbie_extract::{Block, BlockKind, Page, consists_of_words};

use crate::workers::message::OcrMode;
use crate::workers::ocr_text::{OcrText, TextSource, count_letters};

/// Position of an image on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OcrRegion {
    /// The whole page.
    Page,
    /// The whole page except for text that was extracted: a scan below stamps, or a file that is an image.
    Background,
    /// An image after this number of blocks.
    AfterBlock(usize),
}

/// Inserts OCR results into a page, or replaces its text with them. Returns the origin of the resulting text.
pub(super) fn merge(page: &mut Page, mut read: Vec<(OcrRegion, OcrText)>, ocr: OcrMode) -> TextSource {
    // If OCR is unreliable for much of the page, the extracted text is better.
    let has_text = page_text_blocks(&page.blocks).next().is_some();
    read.retain(|(place, words)| words.has_text() && !(*place == OcrRegion::Page && words.doubtful && has_text));
    read.sort_by_key(|(place, _)| *place);
    let mut origin = TextSource { text: page.blocks.iter().any(Block::has_text), ocr: false };
    // In reverse order, so that earlier positions remain valid.
    for (place, words) in read.into_iter().rev() {
        match place {
            OcrRegion::AfterBlock(place) => insert_block(page, place, &words),
            OcrRegion::Background => {
                page.confidence = Some(words.confidence);
                page.blocks.extend(words.blocks);
            }
            OcrRegion::Page if ocr == OcrMode::Force || is_better(&words, page) => {
                origin.text = false;
                page.confidence = Some(words.confidence);
                replace_blocks(page, words.blocks);
            }
            OcrRegion::Page => continue,
        }
        origin.ocr = true;
    }
    origin
}

/// Whether the OCR result is better than the extracted text, which is short, garbled or only a stamp.
fn is_better(words: &OcrText, page: &Page) -> bool {
    let text: String = page_text_blocks(&page.blocks).map(|block| block.text.as_str()).collect();
    let readable = text.chars().filter(|letter| letter.is_alphanumeric()).count();
    !consists_of_words(&text) || count_letters(&words.blocks) > readable + readable / 5
}

/// Blocks that a rendered page contains as well.
fn page_text_blocks(blocks: &[Block]) -> impl Iterator<Item = &Block> {
    blocks.iter().filter(|block| !is_overlay(block) && block.has_text())
}

fn is_overlay(block: &Block) -> bool {
    matches!(block.kind, BlockKind::Comment | BlockKind::Field)
}

/// Annotations are not part of the rendered page and are retained.
fn replace_blocks(page: &mut Page, blocks: Vec<Block>) {
    page.blocks.retain(is_overlay);
    page.blocks.splice(..0, blocks);
}

/// Inserts a block under the headings of the preceding block.
fn insert_block(page: &mut Page, place: usize, words: &OcrText) {
    let place = place.min(page.blocks.len());
    let before = place.checked_sub(1).and_then(|before| page.blocks.get(before));
    let path = before.map(Block::path_after).unwrap_or_default();
    page.blocks.insert(place, Block { path, ..Block::new(BlockKind::Image, words.text()) });
}

#[cfg(test)]
mod tests {
    use corbie_extract::ExtractionMethod;

    use super::*;

    fn page(blocks: &[Block]) -> Page {
        Page { number: 1, blocks: blocks.to_vec(), ..Page::default() }
    }

    fn words(text: &str) -> OcrText {
        OcrText { blocks: vec![Block::paragraph(text)], confidence: 0.9, ..OcrText::default() }
    }

    /// The texts of the page, and the extraction method.
    fn merged(mut page: Page, read: Vec<(OcrRegion, OcrText)>, ocr: OcrMode) -> (Vec<String>, ExtractionMethod) {
        let origin = merge(&mut page, read, ocr);
        (page.blocks.into_iter().map(|block| block.text).collect(), origin.method())
    }

    #[test]
    fn k33_what_says_more_is_kept() {
        let stamp = page(&[Block::paragraph("Page 1"), Block::new(BlockKind::Comment, "why?")]);
        let (texts, method) = merged(stamp.clone(), vec![(OcrRegion::Page, words("A letter. Page 1"))], OcrMode::Auto);
        assert_eq!((texts, method), (vec!["A letter. Page 1".to_owned(), "why?".into()], ExtractionMethod::Ocr));
        let (texts, method) = merged(stamp.clone(), vec![(OcrRegion::Page, words("Pag"))], OcrMode::Auto);
        assert_eq!((texts, method), (vec!["Page 1".to_owned(), "why?".into()], ExtractionMethod::TextExtraction));
        let odd = page(&[Block::paragraph("\u{e001}\u{e002}\u{e003} a \u{e004}\u{e005}")]);
        assert_eq!(merged(odd, vec![(OcrRegion::Page, words("be"))], OcrMode::Auto).0, ["be"]);
    }

    #[test]
    fn k22_what_was_seen_counts_where_that_is_forced_if_it_is_anything() {
        let long = page(&[Block::paragraph("long text")]);
        let (texts, method) = merged(long.clone(), vec![(OcrRegion::Page, words("text"))], OcrMode::Force);
        assert_eq!((texts, method), (vec!["text".to_owned()], ExtractionMethod::Ocr));
        let (texts, method) = merged(long, vec![(OcrRegion::Page, words(" . "))], OcrMode::Force);
        assert_eq!((texts, method), (vec!["long text".to_owned()], ExtractionMethod::TextExtraction));
    }

    #[test]
    fn k35_words_in_pictures_stand_where_the_pictures_do() {
        let heading = Block { path: vec!["Book".into()], ..Block::heading(2, "Chapter") };
        let mut page = page(&[heading, Block::paragraph("below")]);
        let read = vec![
            (OcrRegion::AfterBlock(9), words("last")),
            (OcrRegion::AfterBlock(1), words("second")),
            (OcrRegion::AfterBlock(0), words("first")),
            (OcrRegion::AfterBlock(1), words("third")),
            (OcrRegion::AfterBlock(1), words("--")),
        ];
        let origin = merge(&mut page, read, OcrMode::Auto);
        let texts: Vec<&str> = page.blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(texts, ["first", "Chapter", "second", "third", "below", "last"]);
        assert_eq!(page.blocks[2].kind, BlockKind::Image);
        assert_eq!(page.blocks[2].path, ["Book", "Chapter"]);
        assert_eq!(origin.method(), ExtractionMethod::Hybrid);
    }

    #[test]
    fn what_was_read_in_part_replaces_no_text() {
        let doubtful =
            || vec![(OcrRegion::Page, OcrText { doubtful: true, ..words("a part of it, and all that could be read") })];
        assert_eq!(merged(page(&[]), doubtful(), OcrMode::Auto).0.len(), 1);
        assert_eq!(merged(page(&[Block::paragraph("text")]), doubtful(), OcrMode::Force).0, ["text"]);
    }

    #[test]
    fn k32_a_page_without_anything_leaves_no_trace() {
        let (texts, method) = merged(page(&[]), vec![(OcrRegion::Page, OcrText::default())], OcrMode::Auto);
        assert_eq!((texts.len(), method), (0, ExtractionMethod::TextExtraction));
    }
}
