//! Chunks for all contestants of `knowledge`: generated once and deterministically.
//!
//! Vectors of real texts, each scattered slightly into many, cluster by topic like those of a large base. The words of
//! a chunk are those of the real text and some of different texts.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Lines, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use corbie_infer::{Embedder, Purpose};
use serde_json::{Value, json};

pub(crate) const DIMENSION: usize = 384;
pub(crate) const CHUNKS_PER_DOCUMENT: usize = 10;
const QUERIES: usize = 200;

/// Scatter of a vector: the cosine to the real one is about 0.8.
const SCATTER: f32 = 0.75;
const TAGS: usize = 10;
/// Maximum number of real texts to embed.
const MAX_TEXTS: usize = 4000;
const EXTRA_WORDS: usize = 24;

/// Iterator over the chunks.
pub(crate) struct ChunkReader {
    texts: Lines<BufReader<File>>,
    vectors: BufReader<File>,
}

/// A small random number generator (splitmix64), so that no version of a crate changes the measured data.
struct SplitMix64(u64);

pub(crate) fn generate(folder: &Path, count: usize, sets: Option<&Path>) -> Result<Value> {
    let source = match sets {
        Some(sets) => passages(sets)?,
        None => serde_json::from_str(include_str!("../../../crates/infer/tests/data/texts.json"))?,
    };
    let made_from =
        format!("{count} of {} texts, {} bytes", source.len(), source.iter().map(String::len).sum::<usize>());
    if fs::read_to_string(folder.join("made-from")).is_ok_and(|before| before == made_from) {
        return Ok(json!({ "made": false }));
    }
    fs::create_dir_all(folder)?;
    let embedder = Embedder::builtin(std::thread::available_parallelism()?.get())?;
    ensure!(embedder.dimension() == DIMENSION, "the model has another dimension");
    let real: Vec<Vec<f32>> =
        embedder.embed_many(&source, Purpose::Passage)?.into_iter().map(|embedding| embedding.vector).collect();
    let words: Vec<&str> = source.iter().flat_map(|text| text.split_whitespace()).collect();
    let mut random = SplitMix64(1);
    let mut chunks = BufWriter::new(File::create(folder.join("chunks.jsonl"))?);
    let mut vectors = BufWriter::new(File::create(folder.join("vectors.f32"))?);
    for chunk in 0..count {
        let at = chunk % source.len();
        let others: Vec<&str> = (0..EXTRA_WORDS).map(|_| words[random.below(words.len())]).collect();
        let text = format!("{} {}", source[at], others.join(" "));
        writeln!(chunks, "{}", json!({ "text": text, "tag": tag(chunk) }))?;
        write(&mut vectors, &random.scatter(&real[at]))?;
    }
    let mut queries = BufWriter::new(File::create(folder.join("queries.jsonl"))?);
    let mut asked = BufWriter::new(File::create(folder.join("queries.f32"))?);
    for _ in 0..QUERIES {
        let at = random.below(source.len());
        let own: Vec<&str> = source[at].split_whitespace().collect();
        let text: Vec<&str> = (0..7).map(|_| own[random.below(own.len())]).collect();
        writeln!(queries, "{}", json!({ "text": text.join(" ") }))?;
        write(&mut asked, &random.scatter(&real[at]))?;
    }
    for mut file in [chunks, vectors, queries, asked] {
        file.flush()?;
    }
    fs::write(folder.join("made-from"), made_from)?;
    Ok(json!({ "made": true }))
}

/// A tenth of all documents has the same tag.
pub(crate) fn tag(chunk: usize) -> String {
    format!("t{}", chunk / CHUNKS_PER_DOCUMENT % TAGS)
}

/// The keys of a document's chunks; the last document may have fewer.
pub(crate) fn keys(document: usize, count: usize) -> std::ops::Range<u64> {
    let first = document * CHUNKS_PER_DOCUMENT;
    first as u64..(first + CHUNKS_PER_DOCUMENT).min(count) as u64
}

/// Texts and vectors of the queries.
pub(crate) fn queries(folder: &Path) -> Result<(Vec<String>, Vec<Vec<f32>>)> {
    let mut vectors = BufReader::new(File::open(folder.join("queries.f32"))?);
    let file = BufReader::new(File::open(folder.join("queries.jsonl"))?);
    let texts = file.lines().map(|line| text_of(&line?)).collect::<Result<Vec<_>>>()?;
    ensure!(texts.len() == QUERIES, "{} of {QUERIES} queries are there", texts.len());
    let vectors = texts.iter().map(|_| read(&mut vectors)).collect::<Result<_>>()?;
    Ok((texts, vectors))
}

impl ChunkReader {
    pub(crate) fn open(folder: &Path) -> Result<ChunkReader> {
        let open = |name: &str| File::open(folder.join(name)).with_context(|| format!("{name}: run `make` first"));
        let texts = BufReader::new(open("chunks.jsonl")?).lines();
        Ok(ChunkReader { texts, vectors: BufReader::with_capacity(1 << 20, open("vectors.f32")?) })
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        text_of(&self.texts.next().context("more chunks are wanted than were made")??)
    }

    pub(crate) fn vector(&mut self) -> Result<Vec<f32>> {
        read(&mut self.vectors)
    }
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Approximately normal: the sum of four uniform values.
    fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum: f32 = (0..4).map(|part| ((bits >> (16 * part)) & 0xffff) as f32 / 65536.0 - 0.5).sum();
        sum * 3_f32.sqrt()
    }

    fn scatter(&mut self, vector: &[f32]) -> Vec<f32> {
        let each = SCATTER / (DIMENSION as f32).sqrt();
        let mut moved: Vec<f32> = vector.iter().map(|value| value + each * self.normal()).collect();
        let length = moved.iter().map(|value| value * value).sum::<f32>().sqrt();
        moved.iter_mut().for_each(|value| *value /= length);
        moved
    }
}

/// The passages of all retrieval sets in a folder.
fn passages(sets: &Path) -> Result<Vec<String>> {
    let mut folders: Vec<_> = fs::read_dir(sets)?.collect::<std::io::Result<Vec<_>>>()?;
    folders.sort_by_key(|folder| folder.path());
    let mut texts = Vec::new();
    for folder in folders {
        let file = folder.path().join("corpus.jsonl");
        if file.exists() {
            let lines = BufReader::new(File::open(file)?).lines();
            texts.extend(lines.map(|line| text_of(&line?)).collect::<Result<Vec<_>>>()?);
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    ensure!(!texts.is_empty(), "{} has no folder with `corpus.jsonl`", sets.display());
    // Sampled evenly.
    let step = texts.len().div_ceil(MAX_TEXTS);
    Ok(texts.into_iter().step_by(step).collect())
}

fn text_of(line: &str) -> Result<String> {
    let value: Value = serde_json::from_str(line)?;
    Ok(value["text"].as_str().context("a line has a text")?.to_owned())
}

fn write(file: &mut impl Write, vector: &[f32]) -> Result<()> {
    vector.iter().try_for_each(|value| file.write_all(&value.to_le_bytes()))?;
    Ok(())
}

fn read(file: &mut impl Read) -> Result<Vec<f32>> {
    let mut bytes = [0; DIMENSION * 4];
    file.read_exact(&mut bytes).context("more vectors are wanted than were made")?;
    let values = bytes.as_chunks::<4>().0.iter();
    Ok(values.map(|bytes| f32::from_le_bytes(*bytes)).collect())
}
