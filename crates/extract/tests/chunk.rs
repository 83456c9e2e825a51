//! Chunking examples. Tokens are words, so that counts are easy to verify.

use std::ops::Range;

use corbie_extract::chunk::{self, Chunk, DocumentText, Settings, SpanRole};
use corbie_extract::{Block, BlockKind, Document, ExtractionMethod, Format, Metadata, Page, Table};

fn page(number: u32, blocks: Vec<Block>) -> Page {
    Page { number, blocks, ..Page::default() }
}

/// One token per run without white space.
fn words(text: &str) -> Vec<Range<usize>> {
    let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_whitespace().map(|word| start(word)..start(word) + word.len()).collect()
}

fn check(pages: &[Page], size: usize, overlap: usize, expected: &[&str]) -> Vec<Chunk> {
    let text = DocumentText::of(pages);
    let chunks = chunk::pack(&text, &words(text.as_str()), Settings { size, overlap });
    let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    assert_eq!(texts, expected);
    for chunk in &chunks {
        assert_eq!(chunk.tokens, words(&chunk.text).len(), "{chunk:?}");
    }
    chunks
}

#[test]
fn the_text_is_the_documents() {
    let pages = vec![
        page(1, vec![Block::paragraph("one"), Block::paragraph(""), Block::paragraph("two")]),
        page(2, vec![]),
        page(3, vec![Block::new(BlockKind::Furniture, "3"), Block::paragraph("three")]),
    ];
    let text = DocumentText::of(&pages).as_str().to_owned();
    let (format, metadata, method) = (Format::Text, Metadata::default(), ExtractionMethod::default());
    assert_eq!(text, Document { format, pages, metadata, method, warnings: vec![] }.text());
}

#[test]
fn k40_a_chunk_ends_with_a_sentence_and_the_next_repeats_it() {
    let pages = [page(1, vec![Block::paragraph("One two three. Four five. Six seven eight. Nine ten.")])];
    let expected = ["One two three. Four five.", "Four five. Six seven eight.", "seven eight. Nine ten."];
    let chunks = check(&pages, 6, 2, &expected);
    let roles: Vec<SpanRole> = chunks[1].spans.iter().map(|span| span.role).collect();
    assert_eq!(roles, [SpanRole::Overlap, SpanRole::New]);
}

#[test]
fn a_paragraph_is_a_better_end_than_a_sentence() {
    let pages = [page(1, vec![Block::paragraph("One two three."), Block::paragraph("Four five. Six seven.")])];
    check(&pages, 6, 0, &["One two three.", "Four five. Six seven."]);
}

#[test]
fn a_heading_stays_with_what_follows_it() {
    let under = Block { path: vec!["Title".into()], ..Block::paragraph("Four five.") };
    let pages = [page(1, vec![Block::paragraph("One two three."), Block::heading(1, "Title"), under])];
    let chunks = check(&pages, 5, 2, &["One two three.", "Title\n\nFour five."]);
    assert_eq!(chunks[1].path, ["Title"]);
}

#[test]
fn what_is_too_long_is_cut_between_words_and_goes_on_with_the_last_ones() {
    let pages = [page(1, vec![Block::paragraph("a b c d e f g h i")])];
    check(&pages, 4, 1, &["a b c d", "d e f g", "g h i"]);
}

#[test]
fn rows_stay_whole_and_the_header_comes_again() {
    let rows = ["k v", "a 1 2 3", "b 4 5 6", "c 7 8 9"].map(|row| row.split(' ').map(str::to_owned).collect());
    let table = Block::table(Table { rows: rows.into(), header_rows: 1 });
    let pages = [page(1, vec![Block::heading(2, "Title"), table, Block::paragraph("After it.")])];
    let expected = ["Title\n\nk\tv\na\t1\t2\t3", "k\tv\nb\t4\t5\t6", "k\tv\nc\t7\t8\t9\n\nAfter it."];
    let chunks = check(&pages, 8, 4, &expected);
    assert_eq!(chunks[1].spans[0].role, SpanRole::Header);
    assert_eq!(chunks[1].spans[0].in_page, 7..10);
    // A row that fits only without the header is not given one.
    check(&pages, 5, 0, &["Title\n\nk\tv", "a\t1\t2\t3", "b\t4\t5\t6", "c\t7\t8\t9", "After it."]);
}

#[test]
fn k34_furniture_is_left_out_and_pages_are_told() {
    let furniture = |text: &str| Block::new(BlockKind::Furniture, text);
    let pages = [
        page(7, vec![Block::paragraph("One two"), furniture("page seven")]),
        page(8, vec![furniture("header"), Block::paragraph("three. Four.")]),
    ];
    let chunks = check(&pages, 9, 0, &["One two\n\nthree. Four."]);
    assert_eq!(chunks[0].pages, (7, 8));
    assert_eq!(chunks[0].spans[1].in_page, 8..20);
    check(&[page(1, vec![furniture("nothing else")])], 9, 0, &["nothing else"]);
}

#[test]
fn a_slide_begins_a_section() {
    let slide = |number, text: &str| Page { name: Some("S".into()), ..page(number, vec![Block::paragraph(text)]) };
    check(&[slide(1, "One. Two three."), slide(2, "Four. Five.")], 4, 1, &["One. Two three.", "Four. Five."]);
}

#[test]
fn k34_a_chunk_has_text_of_one_slide_only() {
    let slide = |number, text: &str| page(number, vec![Block::paragraph(text)]);
    let named = |number, text: &str| Page { name: Some("S".into()), ..slide(number, text) };
    let chunks = check(&[named(1, "One."), named(2, "Two."), named(3, "Three.")], 9, 2, &["One.", "Two.", "Three."]);
    assert_eq!(chunks.iter().map(|chunk| chunk.pages).collect::<Vec<_>>(), [(1, 1), (2, 2), (3, 3)]);
    // A slide without a title has no name.
    for (format, expected) in [(Format::Pptx, 3), (Format::Xlsx, 3), (Format::Pdf, 1)] {
        let document = Document {
            format,
            pages: vec![slide(1, "One."), slide(2, "Two."), slide(3, "Three.")],
            metadata: Metadata::default(),
            method: ExtractionMethod::TextExtraction,
            warnings: Vec::new(),
        };
        let text = DocumentText::of_document(&document);
        let chunks = chunk::pack(&text, &words(text.as_str()), Settings { size: 9, overlap: 2 });
        assert_eq!(chunks.len(), expected, "{format:?}");
    }
}

#[test]
fn k34_a_span_tells_where_its_text_is_in_the_chunk() {
    let pages = [page(1, vec![Block::paragraph("One two.")]), page(2, vec![Block::paragraph("Three four. ")])];
    let chunks = check(&pages, 9, 0, &["One two.\n\nThree four."]);
    let texts = chunks[0].spans.iter().map(|span| (span.page, &chunks[0].text[span.in_chunk.clone()]));
    assert_eq!(texts.collect::<Vec<_>>(), [(1, "One two."), (2, "Three four.")]);
}

#[test]
fn no_text_makes_no_chunk() {
    check(&[], 5, 1, &[]);
    check(&[page(1, vec![Block::paragraph(" \n ")])], 5, 1, &[]);
}

#[test]
fn k40_no_chunk_is_larger_than_its_tokens_may_be_whatever_the_text_is_made_of() {
    const SIZE: usize = 20;
    let megabyte = |piece: &str| piece.repeat((1 << 20) / piece.len());
    let strange = [
        megabyte("x"),
        megabyte("漢"),
        format!("a{}", megabyte("\u{301}")),
        format!("a {} b", megabyte("\u{200b}")),
        format!("a {} b", megabyte("👩\u{200d}")),
    ];
    for text in strange {
        for block in [Block::paragraph(text.clone()), Block::heading(1, text.clone())] {
            let pages = [page(1, vec![block])];
            let text = DocumentText::of(&pages);
            // Tokens of a model without the long word and without invisible characters.
            let visible = |word: &Range<usize>| !text.as_str()[word.clone()].starts_with('\u{200b}');
            let tokens = words(text.as_str()).into_iter().filter(visible).collect();
            let tokens = chunk::bound_tokens(text.as_str(), tokens);
            let chunks = chunk::pack(&text, &tokens, Settings { size: SIZE, overlap: 5 });
            let most = SIZE * 2 * chunk::MAX_TOKEN_BYTES;
            for chunk in &chunks {
                let path: usize = chunk.path.iter().map(String::len).sum();
                assert!(chunk.text.len() <= most && path <= 1024, "{} and {path} bytes", chunk.text.len());
            }
            // No text is lost.
            let new = chunks.iter().flat_map(|chunk| &chunk.spans).filter(|span| span.role == SpanRole::New);
            let bytes: usize = new.map(|span| span.in_document.len()).sum();
            assert_eq!(bytes, text.as_str().len());
        }
    }
}
