//! Measures search latency and recall on synthetic data: `cargo run --release -p corbie-index --example figures --
//! 10000`.
//!
//! Vectors are drawn around cluster centres, so that each has close neighbours. Words follow the frequency
//! distribution of real text. Times are CPU time of one thread, the best of three runs per query.
#![expect(clippy::print_stdout, reason = "printing figures is all it does")]

use corbie_index::{Chunk, Document, Facet, Filter, Index, IndexUpdate, Mode, Query};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const DIMENSION: usize = 384;
const CHUNKS: usize = 20;
/// Words per chunk. With more than 300,000 chunks a fifth of it is used, because building would take minutes.
const WORDS: usize = 150;
const VOCABULARY: usize = 60_000;
const QUERIES: usize = 200;
const BATCH: usize = 100;
/// The fastest run counts, because other processes share the CPU and its caches.
const REPEATS: usize = 3;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    for size in if sizes.is_empty() { vec![10_000, 100_000] } else { sizes } {
        measure(size);
    }
}

fn measure(size: usize) {
    let mut random = Random(size as u64);
    let index = Index::new(DIMENSION);
    let clusters: Vec<Vec<f32>> = (0..(size / 100).max(10)).map(|_| random.vector()).collect();
    let mut exact: Vec<f32> = Vec::with_capacity(size * DIMENSION);
    let mut build = Duration::ZERO;
    let documents = size / CHUNKS;
    let words = if size > 300_000 { WORDS / 5 } else { WORDS };
    for from in (0..documents).step_by(BATCH) {
        let batch = (from..(from + BATCH).min(documents)).map(|key| {
            let chunks = (0..CHUNKS).map(|at| {
                let cluster = random.below(clusters.len());
                let vector = random.near(&clusters[cluster], 1.0);
                exact.extend(&vector);
                let key = (key * CHUNKS + at) as u64;
                Chunk { key, text: random.text(words), context: random.text(6), vectors: vec![vector] }
            });
            let chunks = chunks.collect();
            let facets = vec![
                Facet { key: "kind".into(), value: ["pdf", "html", "docx"][key % 3].into() },
                Facet { key: "rare".into(), value: (key % 100).to_string() },
            ];
            IndexUpdate::Put(Document { key: key as u64, added: key as i64, facets, chunks })
        });
        let batch = batch.collect();
        let (_, took) = timed(|| index.apply(batch));
        build += took;
    }
    let (_, tidy) = timed(|| index.merge_segments());
    let snapshot = index.snapshot();
    println!("{size} chunks of {words} words, {documents} documents");
    println!("  built in {:.1} s, tidied in {:.1} s", build.as_secs_f32(), tidy.as_secs_f32());
    println!(
        "  {:.1} MB, {:.0} bytes a chunk",
        snapshot.memory_bytes() as f32 / 1e6,
        snapshot.memory_bytes() as f32 / size as f32
    );
    let (saved, took) = timed(|| index.save(&Default::default()));
    let bytes: usize = saved.new_segments.iter().map(|(_, bytes)| bytes.len()).sum();
    println!(
        "  {} segments of {:.1} MB saved in {:.2} s",
        saved.new_segments.len(),
        bytes as f32 / 1e6,
        took.as_secs_f32()
    );

    let mut times: Vec<Duration> = (0..41)
        .map(|at| {
            let key = (documents + at) as u64;
            let chunks = (0..CHUNKS as u64).map(|at| {
                let key = key * CHUNKS as u64 + at;
                Chunk { key, text: random.text(words), context: random.text(6), vectors: vec![random.vector()] }
            });
            let document = Document { key, added: 0, facets: Vec::new(), chunks: chunks.collect() };
            timed(|| index.apply(vec![IndexUpdate::Put(document)])).1
        })
        .collect();
    times.sort();
    println!("  one more document is there after {:.2} ms", times[20].as_secs_f32() * 1e3);

    let queries: Vec<(String, Vec<f32>)> = (0..QUERIES)
        .map(|_| {
            let near = random.below(size);
            let words = random.query(4);
            (words, random.near(&exact[near * DIMENSION..][..DIMENSION], 0.7))
        })
        .collect();
    let third = Filter { all: vec![("kind".into(), vec!["pdf".into()])], ..Filter::default() };
    let hundredth = Filter { all: vec![("rare".into(), vec!["7".into()])], ..Filter::default() };
    for (name, mode, filter) in [
        ("words", Mode::Words, None),
        ("vectors", Mode::Vectors, None),
        ("hybrid", Mode::Hybrid, None),
        ("hybrid, a third allowed", Mode::Hybrid, Some(&third)),
        ("hybrid, a hundredth allowed", Mode::Hybrid, Some(&hundredth)),
    ] {
        let mut times: Vec<Duration> = Vec::new();
        for (text, vector) in &queries {
            let query = Query { text, vector: Some(vector), filter, top: 10, mode };
            times.extend((0..REPEATS).map(|_| timed(|| snapshot.search(&query)).1).min());
        }
        times.sort();
        println!(
            "  {name}: median {:.3} ms, 95th {:.3} ms",
            times[QUERIES / 2].as_secs_f32() * 1e3,
            times[QUERIES * 95 / 100].as_secs_f32() * 1e3
        );
    }
    let mut found = 0;
    let (mut gap, mut error) = (0.0, 0.0_f32);
    let asked = if size > 300_000 { 50 } else { QUERIES };
    for (text, vector) in queries.iter().take(asked) {
        let mut wanted: Vec<(f32, u64)> =
            exact.chunks_exact(DIMENSION).map(|other| product(other, vector)).zip(0..).collect();
        wanted.select_nth_unstable_by(100, |a, b| b.0.total_cmp(&a.0));
        wanted.truncate(100);
        wanted.sort_by(|a, b| b.0.total_cmp(&a.0));
        gap += (wanted[9].0 - wanted[10].0) / asked as f32;
        let query = Query { text, vector: Some(vector), filter: None, top: 10, mode: Mode::Vectors };
        for hit in snapshot.search(&query) {
            found += usize::from(wanted[..10].iter().any(|(_, key)| *key == hit.chunk));
            let truth = product(&exact[hit.chunk as usize * DIMENSION..][..DIMENSION], vector);
            error = error.max((hit.similarity - truth).abs());
        }
    }
    println!(
        "  recall@10 {:.4}; cosines are off by at most {error:.5}, the tenth and eleventh differ by {gap:.5}",
        found as f32 / (10 * asked) as f32
    );
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    for (a, b) in a.chunks_exact(16).zip(b.chunks_exact(16)) {
        for at in 0..16 {
            sums[at] += a[at] * b[at];
        }
    }
    sums.iter().sum()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let clock = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let before = clock();
    let result = work();
    (result, clock() - before)
}

/// Deterministic pseudo-random numbers.
struct Random(u64);

impl Random {
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

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Approximately normal: each component is the sum of eight bytes.
    fn vector(&mut self) -> Vec<f32> {
        let vector = (0..DIMENSION).map(|_| {
            let bits = self.next().to_le_bytes();
            bits.iter().map(|byte| f32::from(*byte) - 127.5).sum()
        });
        length_one(vector.collect())
    }

    /// A direction near `centre`. `spread` is the length of the added noise.
    fn near(&mut self, centre: &[f32], spread: f32) -> Vec<f32> {
        let noise = self.vector();
        length_one(centre.iter().zip(noise).map(|(centre, noise)| centre + spread * noise).collect())
    }

    /// Word ranks follow the frequency distribution of real text.
    fn word(&mut self) -> usize {
        ((VOCABULARY as f32).powf(self.unit()) - 1.0) as usize
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| spell(self.word())).collect::<Vec<_>>().join(" ")
    }

    /// Words as in typical queries: not the most frequent ones.
    fn query(&mut self, words: usize) -> String {
        let asked = (0..words).map(|_| {
            let rank = std::iter::repeat_with(|| self.word()).find(|rank| *rank > 30);
            spell(rank.unwrap_or(31))
        });
        asked.collect::<Vec<_>>().join(" ")
    }
}

fn length_one(mut vector: Vec<f32>) -> Vec<f32> {
    let length = product(&vector, &vector).sqrt();
    vector.iter_mut().for_each(|number| *number /= length);
    vector
}

/// A pronounceable word for each rank.
fn spell(rank: usize) -> String {
    let mut rest = rank + 400;
    let mut word = String::new();
    while rest > 0 {
        word.push(char::from(b"bdfgklmnprtvz"[rest % 13]));
        rest /= 13;
        word.push(char::from(b"aeiou"[rest % 5]));
        rest /= 5;
    }
    word
}
