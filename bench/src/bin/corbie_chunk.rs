//! The corbie part of `bench/run chunk`.
//!
//! `speed` chunks the same text with corbie and with text-splitter, both with the embedding model's tokenizer, and
//! prints megabytes per second of CPU time; with `speed FOLDER` the text is that of a retrieval set, which is less
//! repetitive. `quality FOLDER` searches for the passages of a retrieval set by vectors of chunks.

#[path = "../chunk/retrieval.rs"]
mod retrieval;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use corbie_extract::chunk::{self, DocumentText, Settings};
use corbie_extract::{Block, Page};
use corbie_infer::Embedder;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use text_splitter::{ChunkConfig, ChunkSizer, TextSplitter};
use tokenizers::Tokenizer;

/// The allocator of the product; see `src/main.rs` for the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOKENIZER: &[u8] = include_bytes!("../../../crates/infer/models/all-MiniLM-L6-v2/tokenizer.json");
const TEXTS: &str = include_str!("../../../crates/infer/tests/data/texts.json");

/// Enough for corbie, and an amount that a splitter with repeated tokenization processes in a few seconds.
const CORBIE_BYTES: usize = 2_000_000;
const PEER_BYTES: usize = 500_000;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let told = match (words.next().as_deref(), words.next()) {
        (Some("speed"), None) => speed(&serde_json::from_str::<Vec<String>>(TEXTS)?)?,
        (Some("speed"), Some(folder)) => speed(&retrieval::passages(Path::new(&folder))?)?,
        (Some("quality"), Some(folder)) => retrieval::measure(Path::new(&folder))?,
        _ => bail!("use `speed`, `speed FOLDER` or `quality FOLDER`"),
    };
    println!("{told}");
    Ok(())
}

fn speed(texts: &[String]) -> Result<Value> {
    let embedder = Embedder::builtin(1)?;
    let settings = Settings::default();
    let pages = pages(texts, CORBIE_BYTES);
    let megabytes = |pages: &[Page]| DocumentText::of(pages).as_str().len() as f64 / 1e6;

    let (started, clock) = (cpu_seconds(), Instant::now());
    let text = DocumentText::of(&pages);
    let tokens = embedder.offsets(text.as_str())?;
    let tokenized = cpu_seconds();
    let chunks = chunk::pack(&text, &tokens, settings);
    let (packed, elapsed) = (cpu_seconds(), clock.elapsed().as_secs_f64());

    let few = self::pages(texts, PEER_BYTES);
    let few_text = DocumentText::of(&few);
    let tokenizer = Tokenizer::from_bytes(TOKENIZER).map_err(|error| anyhow::anyhow!("{error}"))?;
    let config = ChunkConfig::new(settings.size).with_sizer(TokenCounter(tokenizer)).with_overlap(settings.overlap)?;
    let peer_started = cpu_seconds();
    let peer_chunks = TextSplitter::new(config).chunks(few_text.as_str()).count();
    let peer = cpu_seconds() - peer_started;

    let per_second = |megabytes: f64, seconds: f64| megabytes / seconds.max(1e-9);
    Ok(json!({
        "bytes": text.as_str().len(),
        "tokens": tokens.len(),
        "chunks": chunks.len(),
        "corbie": per_second(megabytes(&pages), packed - started),
        "cpu_s": packed - started,
        "wall_s": elapsed,
        "corbie_packing_alone": per_second(megabytes(&pages), packed - tokenized),
        "text_splitter": per_second(megabytes(&few), peer),
        "text_splitter_chunks": peer_chunks,
    }))
}

/// Queries only the token count, which is faster than text-splitter's own integration.
struct TokenCounter(Tokenizer);

impl ChunkSizer for TokenCounter {
    fn size(&self, chunk: &str) -> usize {
        self.0.encode_fast(chunk, false).map_or(0, |encoding| encoding.len())
    }
}

/// Prose of this many bytes, in paragraphs on pages; the texts repeat if there are too few.
fn pages(texts: &[String], bytes: usize) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    let (mut written, mut page) = (0, Page { number: 1, ..Page::default() });
    for texts in texts.chunks(4).cycle() {
        if written >= bytes {
            break;
        }
        let paragraph = texts.join(" ");
        written += paragraph.len();
        page.blocks.push(Block::paragraph(paragraph));
        if page.blocks.len() == 8 {
            let number = page.number + 1;
            pages.push(std::mem::replace(&mut page, Page { number, ..Page::default() }));
        }
    }
    pages.push(page);
    pages
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
