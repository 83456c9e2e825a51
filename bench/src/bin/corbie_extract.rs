//! The corbie contestant of `bench/run extract`. Orders and replies have the format of `peers/extract.py`.
//!
//! Only [`read`] calls the library: to measure the real command instead, start it there.

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::{Context, Result};
use corbie_extract::{Format, Options};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

/// The allocator of the product; see `src/main.rs` for the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Files that took longer, in seconds, are not read again.
const SLOW_FILE_SECONDS: f64 = 1.0;

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", json!({ "ready": true }))?;
    for line in std::io::stdin().lock().lines() {
        let order: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", measure(&order)?)?;
        out.flush()?;
    }
    Ok(())
}

fn measure(order: &Value) -> Result<Value> {
    let path = Path::new(order["path"].as_str().context("path")?);
    let (full, times) = (order["full"] == true, order["times"].as_u64().context("times")?);
    let mut answer = Value::Null;
    let mut fastest = f64::INFINITY;
    for _ in 0..times {
        let started = cpu_seconds()?;
        answer = read(path, full);
        let took = cpu_seconds()? - started;
        fastest = fastest.min(took);
        if took > SLOW_FILE_SECONDS || answer.get("error").is_some() {
            break;
        }
    }
    answer["cpu_s"] = fastest.into();
    Ok(answer)
}

fn read(path: &Path, full: bool) -> Value {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let Some(format) = Format::from_extension(extension) else { return json!({ "error": "unknown_format" }) };
    let Ok(bytes) = std::fs::read(path) else { return json!({ "error": "no_file" }) };
    match corbie_extract::document(&bytes, format, &Options { full, ..Options::default() }) {
        Ok(document) => {
            let pages = document.pages.len();
            match document.plain_text() {
                text if text.trim().is_empty() => json!({ "error": "no_text_extracted" }),
                text => json!({ "text": text, "pages": pages }),
            }
        }
        Err(error) => json!({ "error": error.kind() }),
    }
}

/// Not the process clock: under a CPU time limit Linux updates it only occasionally, so that a file of a millisecond
/// appears to take no time.
fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}
