//! The corbie part of `bench/run knowledge`, for the index alone.
//!
//! `make FOLDER COUNT [SETS]` writes the chunks for all contestants: vectors scattered around those of real texts, and
//! queries of the same kind. `measure FOLDER COUNT SEGMENTS` indexes the first COUNT of them and runs the queries;
//! `start FOLDER COUNT SEGMENTS` loads the segments saved by `measure`. `words FOLDER COUNT` indexes and searches words
//! only. Each prints one line of JSON.

#[path = "../knowledge/chunks.rs"]
mod chunks;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use corbie_index::{Chunk, Document, Facet, Filter, Index, IndexUpdate, LiveDocument, Mode, Query, Snapshot};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use chunks::{CHUNKS_PER_DOCUMENT, ChunkReader, DIMENSION};

/// The allocator of the product; see `src/main.rs` for the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOP_K: usize = 10;
/// Documents that become visible together, as in a task of many files.
const ADD_BATCH_SIZE: usize = 200;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let told = match words[..] {
        ["make", folder, count] => chunks::generate(Path::new(folder), count.parse()?, None)?,
        ["make", folder, count, sets] => chunks::generate(Path::new(folder), count.parse()?, Some(Path::new(sets)))?,
        ["measure", folder, count, segments] => measure(Path::new(folder), count.parse()?, Path::new(segments))?,
        ["start", folder, count, segments] => start(Path::new(folder), count.parse()?, Path::new(segments))?,
        ["words", folder, count] => measure_lexical(Path::new(folder), count.parse()?)?,
        _ => bail!(
            "use `make FOLDER COUNT [SETS]`, `measure FOLDER COUNT SEGMENTS`, `start FOLDER COUNT SEGMENTS` or \
             `words FOLDER COUNT`"
        ),
    };
    println!("{told}");
    Ok(())
}

fn measure(folder: &Path, count: usize, segments: &Path) -> Result<Value> {
    let (index, add_cpu_s) = fill(folder, count, |document| document)?;
    let snapshot = index.snapshot();
    ensure!(snapshot.chunks() == count, "{} of {count} chunks are in the index", snapshot.chunks());
    let rss_mb = resident_mb()?;
    let saved = index.save(&HashSet::new());
    fs::create_dir_all(segments)?;
    let mut bytes = 0;
    for (at, (_, segment)) in saved.new_segments.iter().enumerate() {
        fs::write(segments.join(at.to_string()), segment)?;
        bytes += segment.len();
    }
    drop(saved);
    let (texts, vectors) = chunks::queries(folder)?;
    let filter = tenth_filter();
    let plain = time_queries(&snapshot, &texts, &vectors, None, Mode::Hybrid);
    let filtered = time_queries(&snapshot, &texts, &vectors, Some(&filter), Mode::Hybrid);
    let (exact, exact_filtered) = exact_neighbours(folder, count, &vectors)?;
    Ok(json!({
        "add_cpu_s": add_cpu_s,
        "rss_mb": rss_mb,
        "memory_mb": snapshot.memory_bytes() as f64 / 1e6,
        "disk_mb": bytes as f64 / 1e6,
        "plain": { "cpu_ms": plain.0, "p50_ms": plain.1, "recall": recall(&snapshot, &vectors, None, &exact) },
        "filtered": {
            "cpu_ms": filtered.0,
            "p50_ms": filtered.1,
            "recall": recall(&snapshot, &vectors, Some(&filter), &exact_filtered),
        },
    }))
}

/// The same chunks without their vectors.
fn measure_lexical(folder: &Path, count: usize) -> Result<Value> {
    let (index, add_cpu_s) = fill(folder, count, |mut document| {
        document.chunks.iter_mut().for_each(|chunk| chunk.vectors.clear());
        document
    })?;
    let (texts, vectors) = chunks::queries(folder)?;
    let snapshot = index.snapshot();
    let (filter, asked) = (tenth_filter(), |(cpu_ms, p50_ms)| json!({ "cpu_ms": cpu_ms, "p50_ms": p50_ms }));
    Ok(json!({
        "add_cpu_s": add_cpu_s,
        "plain": asked(time_queries(&snapshot, &texts, &vectors, None, Mode::Words)),
        "filtered": asked(time_queries(&snapshot, &texts, &vectors, Some(&filter), Mode::Words)),
    }))
}

/// An index of the first chunks, and the CPU time to build it.
fn fill(folder: &Path, count: usize, change: impl Fn(Document) -> Document) -> Result<(Index, f64)> {
    let index = Index::new(DIMENSION);
    let began = cpu_seconds();
    let mut feed = ChunkReader::open(folder)?;
    let mut batch = Vec::new();
    for document in 0..count.div_ceil(CHUNKS_PER_DOCUMENT) {
        batch.push(IndexUpdate::Put(change(feed.document(document, count)?)));
        if batch.len() == ADD_BATCH_SIZE {
            index.apply(std::mem::take(&mut batch));
        }
    }
    index.apply(batch);
    index.merge_segments();
    Ok((index, cpu_seconds() - began))
}

/// Matches a tenth of the documents.
fn tenth_filter() -> Filter {
    Filter { all: vec![("tag".into(), vec![chunks::tag(0)])], ..Filter::default() }
}

/// CPU time and median latency of a query, in milliseconds.
fn time_queries(
    snapshot: &Snapshot,
    texts: &[String],
    vectors: &[Vec<f32>],
    filter: Option<&Filter>,
    mode: Mode,
) -> (f64, f64) {
    let search = |text: &str, vector: &[f32]| {
        let query = Query { text, vector: Some(vector), filter, top: TOP_K, mode };
        std::hint::black_box(snapshot.search(&query));
    };
    texts.iter().zip(vectors).take(5).for_each(|(text, vector)| search(text, vector));
    let mut times = Vec::with_capacity(texts.len());
    let began = cpu_seconds();
    for (text, vector) in texts.iter().zip(vectors) {
        let at = Instant::now();
        search(text, vector);
        times.push(at.elapsed().as_secs_f64() * 1e3);
    }
    let spent = (cpu_seconds() - began) * 1e3 / texts.len() as f64;
    times.sort_by(f64::total_cmp);
    (spent, times[times.len() / 2])
}

/// Exact nearest neighbours at full precision: among all chunks, and among the filtered ones.
#[expect(clippy::type_complexity, reason = "two lists for each query")]
fn exact_neighbours(folder: &Path, count: usize, queries: &[Vec<f32>]) -> Result<(Vec<Vec<u64>>, Vec<Vec<u64>>)> {
    let mut best: Vec<[Vec<(f32, u64)>; 2]> = vec![Default::default(); queries.len()];
    let mut feed = ChunkReader::open(folder)?;
    for chunk in 0..count {
        let vector = feed.vector()?;
        let is_allowed = chunks::tag(chunk) == chunks::tag(0);
        for (query, best) in queries.iter().zip(&mut best) {
            let score = query.iter().zip(&vector).map(|(a, b)| a * b).sum::<f32>();
            for best in best.iter_mut().take(if is_allowed { 2 } else { 1 }) {
                if best.len() < TOP_K || best.last().is_some_and(|last| score > last.0) {
                    let at = best.partition_point(|other| other.0 >= score);
                    best.insert(at, (score, chunk as u64));
                    best.truncate(TOP_K);
                }
            }
        }
    }
    let keys = |list: &[(f32, u64)]| list.iter().map(|(_, chunk)| *chunk).collect();
    Ok(best.iter().map(|[all, allowed]| (keys(all), keys(allowed))).unzip())
}

fn recall(snapshot: &Snapshot, vectors: &[Vec<f32>], filter: Option<&Filter>, exact: &[Vec<u64>]) -> f64 {
    let share = |(vector, exact): (&Vec<f32>, &Vec<u64>)| {
        let query = Query { text: "", vector: Some(vector), filter, top: TOP_K, mode: Mode::Vectors };
        let found = snapshot.search(&query);
        let right = found.iter().filter(|hit| exact.contains(&hit.chunk)).count();
        right as f64 / exact.len().max(1) as f64
    };
    vectors.iter().zip(exact).map(share).sum::<f64>() / vectors.len() as f64
}

/// From files to the first result.
fn start(folder: &Path, count: usize, segments: &Path) -> Result<Value> {
    let (texts, vectors) = chunks::queries(folder)?;
    let document = |number: usize| LiveDocument {
        key: number as u64,
        added: 0,
        facets: vec![Facet { key: "tag".into(), value: chunks::tag(number * CHUNKS_PER_DOCUMENT) }],
        chunks: chunks::keys(number, count).collect(),
    };
    let (began, wall) = (cpu_seconds(), Instant::now());
    let live = (0..count.div_ceil(CHUNKS_PER_DOCUMENT)).map(document).collect();
    let files: Vec<_> = fs::read_dir(segments)?.collect::<std::io::Result<_>>()?;
    let segments = files.iter().map(|file| fs::read(file.path())).collect::<std::io::Result<_>>()?;
    let index = Index::new(DIMENSION);
    let restored = index.restore(segments, live);
    ensure!(restored.missing.is_empty() && restored.rejected.is_empty(), "not all was taken back");
    let query = Query { text: &texts[0], vector: Some(&vectors[0]), filter: None, top: TOP_K, mode: Mode::Hybrid };
    ensure!(!index.snapshot().search(&query).is_empty(), "nothing was found");
    Ok(json!({ "wall_s": wall.elapsed().as_secs_f64(), "cpu_s": cpu_seconds() - began, "rss_mb": resident_mb()? }))
}

impl ChunkReader {
    fn document(&mut self, number: usize, count: usize) -> Result<Document> {
        let chunks = chunks::keys(number, count).map(|key| {
            let (text, vector) = (self.text()?, self.vector()?);
            Ok(Chunk { key, text, context: String::new(), vectors: vec![vector] })
        });
        let chunks: Vec<Chunk> = chunks.collect::<Result<_>>()?;
        let facets = vec![Facet { key: "tag".into(), value: chunks::tag(number * CHUNKS_PER_DOCUMENT) }];
        Ok(Document { key: number as u64, added: 0, facets, chunks })
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn resident_mb() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a live process has VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
}
