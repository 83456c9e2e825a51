//! Invariants of extraction that hold for arbitrary bytes. The fuzzer searches for a counterexample; a test replays the
//! corpus.

use std::ops::Range;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use corbie_extract::chunk::{self, DocumentText, Settings, SpanRole};
use corbie_extract::{
    Block, BlockKind, Document, Error, Format, Image, Limits, Options, Page, PdfPages, Raster, Sink, Summary, Table,
    decode_embedded, decode_image, markdown, read, resolve, sniff, svg_raster,
};
use corbie_test_support::archive::Archive;

/// Small limits, so that small inputs reach all of them.
fn limits() -> Limits {
    Limits {
        pages: 20,
        characters: 5_000,
        inflated_bytes: 16 << 20,
        part_bytes: 8 << 20,
        entries: 50,
        depth: 64,
        cells: 1_000,
        pixels: 1_000_000,
        images: 3,
        ..Limits::default()
    }
}

/// Asserts the invariants for one input of the given fuzz target.
pub(crate) fn check_invariants(target: &str, bytes: &[u8]) {
    match target {
        "pdf" => pdf(bytes),
        "ooxml" => ooxml(bytes),
        "ooxml_parts" => ooxml(&package(bytes)),
        "html" => html(bytes),
        "svg" => svg(bytes),
        "picture" => picture(bytes),
        "plain" => plain(bytes),
        "chunk" => chunks(bytes),
        other => panic!("there is no target `{other}`"),
    }
}

// === targets ===

fn pdf(bytes: &[u8]) {
    without_our_own_panics(|| {
        let pages = document(bytes, Format::Pdf, true);
        let Ok(mut file) = PdfPages::open(bytes.to_vec()) else { return };
        drawn(file.raster(1, 20.0, &limits()));
        for page in &pages {
            let _ = file.pictures(page, &limits(), &mut |index, raster| {
                assert!(index < page.images.len());
                drawn(raster);
            });
        }
    });
}

fn ooxml(bytes: &[u8]) {
    for format in [Format::Docx, Format::Pptx, Format::Xlsx] {
        document(bytes, format, true);
    }
}

/// Builds an archive from parts separated by a zero byte: a line with the part name, then its content. Mutated bytes
/// therefore become mutated markup instead of an archive that cannot be opened.
fn package(bytes: &[u8]) -> Vec<u8> {
    let mut archive = Archive::default();
    for part in bytes.split(|&byte| byte == 0).take(100) {
        let end = part.iter().position(|&byte| byte == b'\n').unwrap_or(part.len()).min(200);
        let (name, content) = part.split_at(end);
        archive = archive.stored(&String::from_utf8_lossy(name), content.get(1..).unwrap_or_default());
    }
    archive.bytes()
}

fn html(bytes: &[u8]) {
    document(bytes, Format::Html, true);
    document(bytes, Format::Html, false);
}

fn svg(bytes: &[u8]) {
    document(bytes, Format::Svg, true);
    drawn(svg_raster(bytes, &limits()));
}

fn picture(bytes: &[u8]) {
    for format in [Format::Jpg, Format::Png] {
        document(bytes, format, true);
        drawn(decode_image(bytes, format, &limits()));
    }
    drawn(decode_embedded(&Image { bytes: bytes.to_vec(), ..Image::default() }, &limits()));
}

/// The first byte selects the format.
fn plain(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let format = [Format::Markdown, Format::Text, Format::Csv][usize::from(first % 3)];
    document(bytes, format, true);
}

/// The first bytes select the chunk size, the overlap and the token positions. The rest is a document with one block
/// per line.
fn chunks(bytes: &[u8]) {
    let Some(([size, overlap, chance @ ..], bytes)) = bytes.split_first_chunk::<10>() else { return };
    let text = String::from_utf8_lossy(bytes);
    let pages: Vec<Page> = (1..)
        .zip(text.split('\x0c'))
        .map(|(number, page)| {
            let name = page.starts_with('=').then(|| "Sheet".to_owned());
            Page { number, name, blocks: page.split('\n').map(block).collect(), ..Page::default() }
        })
        .collect();
    let settings = Settings { size: usize::from(*size), overlap: usize::from(*overlap) };
    cover(&pages, chance, settings);
}

fn block(line: &str) -> Block {
    let mut letters = line.chars();
    let kind = letters.next();
    let rest = letters.as_str();
    match kind {
        Some('#') => Block::heading(rest.len() as u8, rest),
        Some('-') => Block::new(BlockKind::ListItem { depth: 0 }, rest),
        Some('`') => Block::new(BlockKind::Code, rest.replace('\\', "\n")),
        Some('~') => Block::new(BlockKind::Furniture, rest),
        Some('|') => {
            let rows = rest.split('\\').map(|row| row.split('|').map(str::to_owned).collect()).collect();
            Block::table(Table { rows, header_rows: rest.len() % 3 })
        }
        _ => Block::paragraph(line),
    }
}

// === invariants ===

/// Collects the pages and checks that they arrive in order.
#[derive(Default)]
struct Pages {
    told: Option<u32>,
    pages: Vec<Page>,
}

impl Sink for Pages {
    fn pages(&mut self, count: u32) {
        assert!(
            self.told.replace(count).is_none() && self.pages.is_empty(),
            "the count is told once, before all pages"
        );
    }

    fn page(&mut self, page: Page) {
        self.pages.push(page);
        assert_eq!(self.pages.len(), self.pages[self.pages.len() - 1].number as usize, "pages come in order");
    }
}

/// Asserts that reading returns well-formed pages within the limits, or an error.
fn document(bytes: &[u8], format: Format, full: bool) -> Vec<Page> {
    let _ = (sniff(bytes), resolve(Some(format), bytes), resolve(None, bytes));
    let limits = limits();
    let mut sink = Pages::default();
    let outcome = read(bytes, format, &Options { limits: limits.clone(), full, pictures: true }, &mut sink);
    let Pages { told, pages } = sink;
    assert!(pages.len() <= limits.pages as usize);
    assert!(pages.iter().map(|page| page.images.len()).sum::<usize>() <= limits.images);
    assert!(pages.iter().all(|page| page.images.iter().all(|image| image.after <= page.blocks.len())));
    let blocks = || pages.iter().flat_map(|page| &page.blocks);
    blocks().for_each(well_formed);
    assert!(blocks().map(characters).sum::<usize>() as u64 <= limits.characters);
    assert!(blocks().map(cells).sum::<usize>() as u64 <= limits.cells);
    match outcome {
        Ok(Summary { metadata, method, warnings }) => {
            assert_eq!(told, Some(pages.len() as u32), "there are as many pages as were told");
            assert!(warnings.iter().all(|warning| warning.page.is_none_or(|page| page as usize <= pages.len())));
            let document = Document { format, pages, metadata, method, warnings };
            let written = markdown(&document);
            assert!(written.is_empty() || written.ends_with('\n') && !written.ends_with("\n\n"));
            assert_eq!(DocumentText::of(&document.pages).as_str(), document.text());
            cover(&document.pages, &[1, 4, 0], Settings { size: 20, overlap: 5 });
            document.pages
        }
        Err(error) => {
            assert_ne!(error, Error::Unsupported { format });
            Vec::new()
        }
    }
}

/// Asserts that this crate does not panic. The PDF reader catches panics of the PDF parser and drops the page; panics
/// in this crate must not go unnoticed for that reason.
fn without_our_own_panics(work: impl FnOnce()) {
    static WATCHED: Once = Once::new();
    static PANICKED: AtomicBool = AtomicBool::new(false);
    WATCHED.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.location().is_some_and(|at| at.file().contains("registry/src/")) {
                PANICKED.store(true, Ordering::Relaxed);
                tell(panic);
            }
        }));
    });
    work();
    assert!(!PANICKED.load(Ordering::Relaxed), "a panic of ours was caught");
}

fn well_formed(block: &Block) {
    assert!(block.path.len() <= 6, "as many headings are open as there are levels");
    assert!(block.path.iter().all(|heading| heading.chars().count() <= 200), "every block repeats them");
    match &block.kind {
        BlockKind::Heading { level } => assert!((1..=6).contains(level) && block.path.len() < usize::from(*level)),
        BlockKind::Table(table) => {
            assert!(table.header_rows <= table.rows.len());
            assert_eq!(block.text, table.text());
        }
        _ => {}
    }
}

fn cells(block: &Block) -> usize {
    let BlockKind::Table(table) = &block.kind else { return 0 };
    table.rows.iter().map(Vec::len).sum()
}

/// Counts non-whitespace characters: the readers insert whitespace and cell separators.
fn characters(block: &Block) -> usize {
    block.text.chars().filter(|letter| !letter.is_whitespace()).count()
}

fn drawn(raster: Result<Raster, Error>) {
    let Ok(Raster { width, height, rgb }) = raster else { return };
    assert_eq!(rgb.len() as u64, 3 * u64::from(width) * u64::from(height));
    assert!(u64::from(width) * u64::from(height) <= limits().pixels);
}

/// Asserts that the new spans of all chunks cover all text except furniture, each byte once, and that every span's
/// offsets refer to the same text in the page and in the document.
fn cover(pages: &[Page], chance: &[u8], settings: Settings) {
    let text = DocumentText::of(pages);
    let tokens = tokens(text.as_str(), chance);
    let chunks = chunk::pack(&text, &tokens, settings);
    let mut expected = places(pages);
    if !tokens.iter().any(|token| expected.iter().any(|place| token.start < place.end && place.start < token.end)) {
        assert!(chunks.is_empty(), "without tokens there is nothing to put into chunks");
        return;
    }
    let spans = || chunks.iter().flat_map(|chunk| &chunk.spans);
    for span in spans() {
        let page = pages.iter().find(|page| page.number == span.page).expect("a page of the document");
        assert_eq!(page.text()[span.in_page.clone()], text.as_str()[span.in_document.clone()]);
    }
    let mut new = spans().filter(|span| span.role == SpanRole::New).map(|span| span.in_document.clone());
    let mut rest = new.next();
    for place in &mut expected {
        while place.start < place.end {
            let span = rest.take().expect("no text is left out");
            assert!(span.start <= place.start, "no text is left out");
            place.start = span.end.min(place.end);
            // A span may continue in the next block, after the empty line.
            rest = if span.end > place.end { Some(place.end + 2..span.end) } else { new.next() };
        }
    }
    assert!(rest.is_none(), "nothing is said twice");
}

/// Ranges of the blocks that go into chunks, in the document text.
fn places(pages: &[Page]) -> Vec<Range<usize>> {
    let is_furniture = |block: &Block| block.kind == BlockKind::Furniture;
    let said = |block: &&Block| !block.text.is_empty();
    let only_furniture = pages.iter().flat_map(|page| &page.blocks).filter(said).all(is_furniture);
    let (mut places, mut page_start) = (Vec::new(), 0);
    for page in pages {
        let mut at = page_start;
        for block in page.blocks.iter().filter(said) {
            let end = at + block.text.len();
            if only_furniture || !is_furniture(block) {
                places.push(at..end);
            }
            at = end + 2;
        }
        page_start += page.text().len() + 3;
    }
    places
}

/// Pseudo-random tokens: each character starts a token, continues one, or belongs to none.
fn tokens(text: &str, chance: &[u8]) -> Vec<Range<usize>> {
    let mut tokens: Vec<Range<usize>> = Vec::new();
    for ((at, letter), chance) in text.char_indices().zip(chance.iter().cycle()) {
        let end = at + letter.len_utf8();
        match (chance % 8, tokens.last_mut()) {
            (0, _) => {}
            (1..4, Some(last)) if last.end == at => last.end = end,
            _ => tokens.push(at..end),
        }
    }
    tokens
}
