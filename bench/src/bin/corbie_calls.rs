//! Cost of a tool call in the library, from the request to its result, including validation, trust gate, metrics and
//! audit: prints microseconds of thread CPU time. Run by `bench/run protocol`, which also builds it with a library
//! without metrics and audit.

use anyhow::{Context, Result, ensure};
use corbie_mcp::{Server, TrustLevel, mcp_tool};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// The allocator of the product; see `src/main.rs` for the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Batches of calls; the result is the median of their means.
const SAMPLES: usize = 15;
const CALLS_PER_SAMPLE: usize = 2000;
/// Warm-up calls: they fill the audit log, which then evicts one entry for each new one.
const WARM_UP_CALLS: usize = 12_000;

/// Say the text back.
#[mcp_tool]
async fn echo(
    /** What to say */
    text: String,
) -> String {
    text
}

fn main() -> Result<()> {
    let server = Server::builder("bench", "1.0.0").tool(echo_tool()).build()?;
    let params = json!({ "name": "echo", "arguments": { "text": "x".repeat(100) } });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{}", runtime.block_on(measure(&server, &params))?);
    Ok(())
}

/// Microseconds per call.
async fn measure(server: &Server, params: &Value) -> Result<f64> {
    call(server, params, WARM_UP_CALLS).await?;
    let mut means = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let started = thread_seconds();
        call(server, params, CALLS_PER_SAMPLE).await?;
        means.push((thread_seconds() - started) * 1e6 / CALLS_PER_SAMPLE as f64);
    }
    means.sort_by(f64::total_cmp);
    means.get(SAMPLES / 2).copied().context("there are stretches")
}

async fn call(server: &Server, params: &Value, count: usize) -> Result<()> {
    for _ in 0..count {
        let result = server.request(TrustLevel::Trusted, "tools/call", params).await?;
        ensure!(result["content"][0]["text"].is_string(), "the text is said back");
    }
    Ok(())
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
