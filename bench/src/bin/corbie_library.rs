//! Latency of library functions, for the targets about functions: prints one JSON object with the 99th percentile and
//! the maximum of each, in seconds. Run by `bench/run slo`, which has the targets.
//!
//! Measured in CPU time of this thread: none of these functions waits, and this excludes the load of other programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use corbie_mcp::{Module, RegistrationError, RegistrationOutcome, Server, Tool, ToolCall};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Tools in the measured registry; more than any program here will have.
const TOOLS: usize = 100;
const MODULES: usize = 10;
const REPEATS: usize = 2000;

fn main() -> Result<()> {
    let mut all = registry()?;
    all.extend(discovery()?);
    all.push(("validate", validation()?));
    let all: serde_json::Map<String, Value> = all.into_iter().map(|(name, took)| (name.into(), json!(took))).collect();
    println!("{}", Value::Object(all));
    Ok(())
}

/// N-01, N-02, N-03: in a server that already has many tools.
fn registry() -> Result<Vec<(&'static str, [f64; 2])>> {
    let servers = (0..REPEATS / TOOLS).map(|_| Server::builder("slo", "1.0.0").build());
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let registered = times(REPEATS, |number| {
        let server = &servers[number / TOOLS];
        ensure!(
            server.register(tool(&format!("tool_{}", number % TOOLS))?)? == RegistrationOutcome::Added,
            "the tool is new"
        );
        Ok(())
    })?;
    let registry = servers[0].registry();
    let listed = times(REPEATS / 10, |_| {
        ensure!(registry.list_registered_tools().len() == TOOLS, "all tools are listed");
        Ok(())
    })?;
    let shown = times(REPEATS, |number| {
        let schema = registry.get_tool_schema(&format!("tool_{}", number % TOOLS))?;
        ensure!(schema["properties"]["query"].is_object(), "the schema is shown");
        Ok(())
    })?;
    Ok(vec![("register", registered), ("list", listed), ("schema", shown)])
}

/// N-06: a scan of all modules, and none while the last one is fresh.
fn discovery() -> Result<Vec<(&'static str, [f64; 2])>> {
    let loads = Arc::new(AtomicUsize::new(0));
    let mut builder = Server::builder("slo", "1.0.0");
    for module in 0..MODULES {
        let loads = loads.clone();
        builder = builder.module(Module::new(format!("module_{module}"), move || {
            loads.fetch_add(1, Ordering::Relaxed);
            (0..TOOLS / MODULES).map(|number| tool(&format!("tool_{module}_{number}"))).collect()
        }));
    }
    let server = builder.build()?;
    ensure!(server.registry().len() == TOOLS, "the scan finds all tools");
    let scanned = times(10, |_| {
        server.discover(true);
        Ok(())
    })?;
    let before = loads.load(Ordering::Relaxed);
    let fresh = times(REPEATS, |_| {
        server.discover(false);
        Ok(())
    })?;
    ensure!(loads.load(Ordering::Relaxed) == before, "a fresh scan is used again");
    Ok(vec![("discover", scanned), ("discover_fresh", fresh)])
}

/// N-07: a message of a kilobyte.
fn validation() -> Result<[f64; 2]> {
    let arguments =
        json!({ "query": "x".repeat(500), "top_k": 5, "tags": ["one", "two"], "filters": { "a": { "b": 1 } } });
    let params = json!({ "name": "search", "arguments": arguments, "_meta": { "progressToken": "y".repeat(200) } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    times(REPEATS, |_| {
        let call = ToolCall::from_json(&message)?;
        ensure!(call.arguments.len() == 4, "the message is read");
        Ok(())
    })
}

/// A typical tool: a few typed arguments, some with bounds.
fn tool(name: &str) -> Result<Tool, RegistrationError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "minLength": 1, "maxLength": 1000, "description": "What to look for" },
            "top_k": { "type": "integer", "minimum": 1, "maximum": 50, "default": 5 },
            "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 20 },
        },
        "required": ["query"],
    });
    Tool::builder(name).description("Look for something.").input_schema(schema).run(async |_, _| "found")
}

/// The 99th percentile and the maximum of the seconds that `work` takes.
fn times(count: usize, mut work: impl FnMut(usize) -> Result<()>) -> Result<[f64; 2]> {
    let mut took = Vec::with_capacity(count);
    for number in 0..count {
        let started = thread_seconds();
        work(number)?;
        took.push(thread_seconds() - started);
    }
    took.sort_by(f64::total_cmp);
    let p99 = took.get(count * 99 / 100).copied().context("at least one measurement")?;
    Ok([p99, took[count - 1]])
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
