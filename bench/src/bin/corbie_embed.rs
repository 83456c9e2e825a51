//! The corbie contestant of `bench/run embed`: the built-in model on one thread.
//!
//! `--portable` uses rten. `--texts` prints the texts that all contestants embed. Otherwise each line of stdin is an
//! order and each line of stdout its result; see `embed.rs`.

use std::io::{BufRead, Write};
use std::time::Instant;

use anyhow::{Context, Result};
use corbie_infer::{Embedder, Purpose};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// The allocator of the product; see `src/main.rs` for the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOKEN_COUNTS: [usize; 4] = [15, 16, 128, 256];
const TEXTS_PER_LENGTH: usize = 64;

fn main() -> Result<()> {
    let has = |option: &str| std::env::args().any(|word| word == option);
    let embedder = if has("--portable") { Embedder::builtin_portable(1)? } else { Embedder::builtin(1)? };
    let mut out = std::io::stdout().lock();
    if has("--texts") {
        let sets: serde_json::Map<_, _> = TOKEN_COUNTS
            .iter()
            .map(|tokens| Ok((tokens.to_string(), texts(&embedder, *tokens)?.into())))
            .collect::<Result<_>>()?;
        writeln!(out, "{}", Value::Object(sets))?;
        return Ok(());
    }
    embedder.embed("ready", Purpose::Passage)?;
    writeln!(out, "{}", json!({ "ready": true }))?;
    for line in std::io::stdin().lock().lines() {
        let order: Value = serde_json::from_str(&line?)?;
        let texts: Vec<&str> = order["texts"].as_array().context("texts")?.iter().filter_map(Value::as_str).collect();
        let (seconds, batch) =
            (order["seconds"].as_f64().context("seconds")?, order["batch"].as_u64().context("batch")?);
        let (started, cpu) = (Instant::now(), cpu_seconds());
        let (mut embeds, mut times) = (0, Vec::new());
        while started.elapsed().as_secs_f64() < seconds {
            for texts in texts.chunks(batch as usize) {
                let began = Instant::now();
                embedder.embed_many(texts, Purpose::Passage)?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
                embeds += texts.len();
                if started.elapsed().as_secs_f64() >= seconds {
                    break;
                }
            }
        }
        let cpu = cpu_seconds() - cpu;
        times.sort_by(f64::total_cmp);
        let first = embedder.embed(texts[0], Purpose::Passage)?.vector;
        let p50 = times[times.len() / 2];
        writeln!(out, "{}", json!({ "embeds": embeds, "cpu_s": cpu, "p50_ms": p50, "vector": first }))?;
        out.flush()?;
    }
    Ok(())
}

/// Texts of exactly this many tokens, taken from the test texts.
fn texts(embedder: &Embedder, tokens: usize) -> Result<Vec<String>> {
    let source: Vec<String> = serde_json::from_str(include_str!("../../../crates/infer/tests/data/texts.json"))?;
    let words: Vec<&str> =
        source.iter().flat_map(|text| text.split_ascii_whitespace()).filter(|word| word.is_ascii()).collect();
    let count =
        |words: &[&str]| -> Result<usize> { Ok(embedder.tokenize(&words.join(" "), Purpose::Passage, 0)?.ids.len()) };
    let mut texts = Vec::new();
    for start in 0..TEXTS_PER_LENGTH {
        let mut chosen: Vec<&str> = Vec::new();
        for word in words.iter().cycle().skip(start * 37) {
            chosen.push(word);
            let now = count(&chosen)?;
            // A multi-token word that would exceed the limit is replaced by single-token words.
            if now > tokens || (now == tokens && embedder.tokenize(&chosen.join(" "), Purpose::Passage, 0)?.truncated) {
                *chosen.last_mut().context("a word was pushed")? = "the";
            }
            if count(&chosen)? >= tokens {
                break;
            }
        }
        texts.push(chosen.join(" "));
    }
    Ok(texts)
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
