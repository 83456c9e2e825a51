//! Retrieval quality by chunk size: passages of a retrieval set are joined into long documents, these are chunked, and
//! each query is compared with the vectors of all chunks.
//!
//! A set is a folder with `corpus.jsonl` and `queries.jsonl` (`{"_id", "text"}`) and `qrels.tsv` (query, passage,
//! score).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use corbie_extract::chunk::{self, Chunk, DocumentText, Settings};
use corbie_extract::{Block, Page};
use corbie_infer::{Embedder, Purpose};
use serde_json::{Value, json};

/// Folder and passages per document: the articles of one set have five, abstracts are short.
const SETS: [(&str, usize); 2] = [("xquad-en", 5), ("vaswani", 20)];

/// The first size is the context of the model, less the two special tokens.
const CHUNK_SIZES: [usize; 2] = [254, 500];
const WINDOW_TOKENS: usize = 254;

/// Token budget of a reader, independent of the chunk size.
const READING_BUDGET_TOKENS: usize = 2500;

/// Comparison of a chunk that exceeds the context of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowPooling {
    /// Mean of its windows' vectors, weighted by tokens.
    Mean,
    /// The nearest window.
    Best,
    /// Only its first window.
    First,
}

/// A long document: its chunks, and the ranges of the passages in it.
struct LongDocument {
    passages: Vec<(String, Range<usize>)>,
    chunks: Vec<ChunkVectors>,
}

struct ChunkVectors {
    chunk: Chunk,
    /// The vector of each window with its token count.
    windows: Vec<(Vec<f32>, f32)>,
    mean: Vec<f32>,
}

#[derive(Default)]
struct RetrievalMetrics {
    ndcg: f64,
    recall: f64,
    passages_in_ten: f64,
    passages_read: f64,
}

pub(crate) fn measure(folder: &Path) -> Result<Value> {
    let embedder = Embedder::builtin(std::thread::available_parallelism()?.get())?;
    let mut rows = Vec::new();
    for (name, together) in SETS {
        let corpus = lines(&folder.join(name).join("corpus.jsonl"))?;
        let relevant = relevant(&folder.join(name).join("qrels.tsv"))?;
        let mut queries = lines(&folder.join(name).join("queries.jsonl"))?;
        queries.retain(|(id, _)| relevant.contains_key(id));
        let texts: Vec<&str> = queries.iter().map(|(_, text)| text.as_str()).collect();
        let asked = embedder.embed_many(&texts, Purpose::Query)?;
        for size in CHUNK_SIZES {
            let longs: Vec<LongDocument> = corpus
                .chunks(together)
                .map(|passages| build_document(&embedder, passages, size))
                .collect::<Result<_>>()?;
            let ways: &[WindowPooling] = if size > WINDOW_TOKENS {
                &[WindowPooling::Mean, WindowPooling::Best, WindowPooling::First]
            } else {
                &[WindowPooling::Mean]
            };
            for &way in ways {
                let mut total = RetrievalMetrics::default();
                for ((id, _), query) in queries.iter().zip(&asked) {
                    total.add(&score(&longs, way, &query.vector, &relevant[id]));
                }
                let queries = queries.len() as f64;
                rows.push(json!({
                    "set": name,
                    "size": size,
                    "way": way.name(size),
                    "documents": longs.len(),
                    "chunks": longs.iter().map(|long| long.chunks.len()).sum::<usize>(),
                    "ndcg": total.ndcg / queries,
                    "recall": total.recall / queries,
                    "passages_in_ten": total.passages_in_ten / queries,
                    "passages_read": total.passages_read / queries,
                }));
            }
        }
    }
    Ok(rows.into())
}

/// The texts of all sets.
pub(crate) fn passages(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for (name, _) in SETS {
        texts.extend(lines(&folder.join(name).join("corpus.jsonl"))?.into_iter().map(|(_, text)| text));
    }
    Ok(texts)
}

fn build_document(embedder: &Embedder, passages: &[(String, String)], size: usize) -> Result<LongDocument> {
    let blocks = passages.iter().map(|(_, text)| Block::paragraph(text.as_str())).collect();
    let pages = [Page { number: 1, blocks, ..Page::default() }];
    let text = DocumentText::of(&pages);
    let settings = Settings { size, overlap: size / 10 };
    let chunks = chunk::pack(&text, &embedder.offsets(text.as_str())?, settings);
    let mut at = 0;
    let places = passages.iter().map(|(id, passage)| {
        let place = at..at + passage.len();
        at = place.end + 2;
        (id.clone(), place)
    });
    let passages = places.collect();
    let chunks = chunks.into_iter().map(|chunk| embed_chunk(embedder, chunk)).collect::<Result<_>>()?;
    Ok(LongDocument { passages, chunks })
}

fn embed_chunk(embedder: &Embedder, chunk: Chunk) -> Result<ChunkVectors> {
    let pages = [Page { number: 1, blocks: vec![Block::paragraph(chunk.text.as_str())], ..Page::default() }];
    let text = DocumentText::of(&pages);
    let tokens = embedder.offsets(text.as_str())?;
    let windows = chunk::pack(&text, &tokens, Settings { size: WINDOW_TOKENS, overlap: 0 });
    let texts: Vec<&str> = windows.iter().map(|window| window.text.as_str()).collect();
    let embedded = embedder.embed_many(&texts, Purpose::Passage)?;
    let weights = windows.iter().map(|window| window.tokens as f32);
    let windows: Vec<(Vec<f32>, f32)> = embedded.into_iter().map(|embedding| embedding.vector).zip(weights).collect();
    let mut mean = vec![0.0; embedder.dimension()];
    for (vector, weight) in &windows {
        mean.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value * weight);
    }
    let length = dot(&mean, &mean).sqrt();
    mean.iter_mut().for_each(|value| *value /= length);
    Ok(ChunkVectors { chunk, windows, mean })
}

fn score(longs: &[LongDocument], way: WindowPooling, query: &[f32], relevant: &HashSet<String>) -> RetrievalMetrics {
    let mut ranked: Vec<(f32, &LongDocument, &Chunk)> = Vec::new();
    for long in longs {
        ranked.extend(long.chunks.iter().map(|vectors| (vectors.similarity(way, query), long, &vectors.chunk)));
    }
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    let is_relevant = |long: &LongDocument| long.passages.iter().any(|(id, _)| relevant.contains(id));
    // The score of a document is that of its best chunk.
    let mut seen: Vec<&LongDocument> = Vec::new();
    for (_, long, _) in &ranked {
        if seen.len() < 10 && !seen.iter().any(|other| std::ptr::eq(*other, *long)) {
            seen.push(long);
        }
    }
    let wanted = longs.iter().filter(|long| is_relevant(long)).count();
    let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let found = || seen.iter().enumerate().filter(|(_, long)| is_relevant(long));
    let ideal: f64 = (0..wanted.min(10)).map(gain).sum();
    let mut read = 0;
    let within = ranked.iter().take_while(|(_, _, chunk)| {
        read += chunk.tokens;
        read <= READING_BUDGET_TOKENS
    });
    let passages_read = passage_recall(within, relevant);
    RetrievalMetrics {
        ndcg: found().map(|(rank, _)| gain(rank)).sum::<f64>() / ideal,
        recall: found().count() as f64 / wanted as f64,
        passages_in_ten: passage_recall(ranked.iter().take(10), relevant),
        passages_read,
    }
}

/// The share of relevant passages of which a chunk contains at least half.
fn passage_recall<'a>(
    chunks: impl Iterator<Item = &'a (f32, &'a LongDocument, &'a Chunk)>,
    relevant: &HashSet<String>,
) -> f64 {
    let mut found = HashSet::new();
    for (_, long, chunk) in chunks {
        for (id, place) in long.passages.iter().filter(|(id, _)| relevant.contains(id)) {
            let shared = |span: &Range<usize>| span.end.min(place.end).saturating_sub(span.start.max(place.start));
            let held: usize = chunk.spans.iter().map(|span| shared(&span.in_document)).sum();
            if held * 2 >= place.len() {
                found.insert(id);
            }
        }
    }
    found.len() as f64 / relevant.len() as f64
}

impl ChunkVectors {
    fn similarity(&self, way: WindowPooling, query: &[f32]) -> f32 {
        match way {
            WindowPooling::Mean => dot(&self.mean, query),
            WindowPooling::Best => self.windows.iter().map(|(vector, _)| dot(vector, query)).fold(f32::MIN, f32::max),
            WindowPooling::First => dot(&self.windows[0].0, query),
        }
    }
}

impl WindowPooling {
    fn name(self, size: usize) -> &'static str {
        match self {
            WindowPooling::Mean if size <= WINDOW_TOKENS => "one window",
            WindowPooling::Mean => "mean of windows",
            WindowPooling::Best => "nearest window",
            WindowPooling::First => "first window",
        }
    }
}

impl RetrievalMetrics {
    fn add(&mut self, other: &RetrievalMetrics) {
        self.ndcg += other.ndcg;
        self.recall += other.recall;
        self.passages_in_ten += other.passages_in_ten;
        self.passages_read += other.passages_read;
    }
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn lines(file: &Path) -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let parse = |line: &str| -> Result<(String, String)> {
        let value: Value = serde_json::from_str(line)?;
        let field = |name: &str| value[name].as_str().map(str::to_owned).with_context(|| format!("`{name}` in {line}"));
        Ok((field("_id")?, field("text")?))
    };
    text.lines().map(parse).collect()
}

/// The relevant passages by query.
fn relevant(file: &Path) -> Result<HashMap<String, HashSet<String>>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut relevant: HashMap<String, HashSet<String>> = HashMap::new();
    for line in text.lines().skip(1) {
        let mut fields = line.split('\t');
        if let (Some(query), Some(passage), Some(score)) = (fields.next(), fields.next(), fields.next())
            && score.trim() != "0"
        {
            relevant.entry(query.to_owned()).or_default().insert(passage.to_owned());
        }
    }
    Ok(relevant)
}
