//! The program itself: files become searchable through its tools, and are searched over HTTP.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::{self, Client};
use crate::process::{Process, pause};
use crate::tree;
use crate::workload::Era;

/// The program with a knowledge base of its own.
pub(super) struct Served {
    process: Process,
    client: Client,
}

/// Files that became searchable.
#[derive(Debug, Serialize)]
pub(super) struct Ingested {
    pub(super) chunks: u64,
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    pub(super) rss_mb: f64,
}

/// Searches over one connection, one after the other.
#[derive(Debug, Serialize)]
pub(super) struct Searched {
    pub(super) chunks: u64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) cpu_ms: f64,
    pub(super) rss_mb: f64,
    /// From the start of the program to the first answer.
    pub(super) start_s: f64,
}

const CORBIE: &str = ".tools/bench/target/release/corbie";
const LOG: &str = ".tools/bench/logs/knowledge.log";
/// Files take so long at most.
const PATIENCE: Duration = Duration::from_secs(900);

impl Served {
    pub(super) fn start(store: &Path) -> Result<Served> {
        let port = http::free_port()?;
        let mut command = Command::new(CORBIE);
        // As it comes: no setting of this machine or of the person who runs the bench.
        command.env_clear().env("CORBIE_KNOWLEDGE__STORAGE_PATH", std::path::absolute(store)?);
        command.env("CORBIE_TRUST__ALL", "trusted").args(["serve", "--port", &port.to_string()]);
        let mut process = Process::without_pipes(command, LOG)?;
        let client = Client::first(&mut process, port, Era::Legacy)?;
        Ok(Served { process, client })
    }

    /// Adds all files of a folder, and waits until they are searchable.
    pub(super) fn import(&mut self, folder: &Path) -> Result<Ingested> {
        let (began, before) = (Instant::now(), self.cpu_seconds()?);
        let paths = [std::path::absolute(folder)?.display().to_string()];
        let told = self.client.tool("knowledge-import", json!({ "paths": paths, "recursive": true }))?;
        let task = told["task_id"].as_str().with_context(|| format!("an import has a task: {told}"))?.to_owned();
        loop {
            let told = self.client.tool("knowledge-task-status", json!({ "task_id": task }))?;
            match told["status"].as_str() {
                Some("completed" | "partial") => break,
                Some("failed" | "cancelled") => bail!("the import ended with {told}"),
                _ if began.elapsed() > PATIENCE => bail!("the import has not ended after {PATIENCE:?}: {told}"),
                _ => pause(Duration::from_millis(50)),
            }
        }
        let (wall_s, cpu_s) = (began.elapsed().as_secs_f64(), self.cpu_seconds()? - before);
        let chunks = self.chunks()?;
        ensure!(chunks > 0, "no chunk was made of {}", folder.display());
        Ok(Ingested { chunks, cpu_s, wall_s, rss_mb: self.resident_mb()? })
    }

    /// Asks each question; the first ones only warm up.
    pub(super) fn search(&mut self, questions: &[String], first_answer: Duration) -> Result<Searched> {
        let mut times = Vec::with_capacity(questions.len());
        let mut before = self.cpu_seconds()?;
        for (at, question) in questions.iter().enumerate() {
            if at == WARM_UP {
                before = self.cpu_seconds()?;
            }
            let asked = Instant::now();
            let told = self.client.tool("knowledge-search", json!({ "query": question }))?;
            if at >= WARM_UP {
                times.push(asked.elapsed().as_secs_f64() * 1e3);
            }
            ensure!(told["success"] == true, "a search was answered with {told}");
        }
        let cpu_ms = (self.cpu_seconds()? - before) * 1e3 / times.len() as f64;
        times.sort_by(f64::total_cmp);
        Ok(Searched {
            chunks: self.chunks()?,
            p50_ms: times[times.len() / 2],
            p99_ms: times[times.len() * 99 / 100],
            cpu_ms,
            rss_mb: self.resident_mb()?,
            start_s: first_answer.as_secs_f64(),
        })
    }

    /// Asks once, and tells how long that is after the start.
    pub(super) fn first_answer(&mut self, question: &str) -> Result<Duration> {
        let told = self.client.tool("knowledge-search", json!({ "query": question }))?;
        ensure!(told["success"] == true, "the first search was answered with {told}");
        Ok(self.process.started.elapsed())
    }

    pub(super) fn stop(mut self) -> Result<()> {
        self.process.stop(Duration::from_secs(30))?;
        Ok(())
    }

    fn chunks(&mut self) -> Result<u64> {
        let told = self.client.tool("knowledge-status", json!({}))?;
        find_number(&told, &["total_chunks", "chunk_count", "chunks"]).with_context(|| format!("no chunks in {told}"))
    }

    pub(super) fn resident_mb(&self) -> Result<f64> {
        Ok(tree::resident(self.process.id())? as f64 / 1e6)
    }

    /// Of the program, its workers, and those of them that have ended.
    fn cpu_seconds(&self) -> Result<f64> {
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let mut ticks = 0;
        for process in tree::processes(self.process.id())? {
            let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
            let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
            // utime, stime (14th, 15th), and the same of children that were waited for.
            let times = after_name.split_ascii_whitespace().skip(11).take(4);
            ticks += times.filter_map(|time| time.parse::<u64>().ok()).sum::<u64>();
        }
        Ok(ticks as f64 / per_second)
    }
}

const WARM_UP: usize = 20;

/// The first of some members that is a number, wherever it stands.
fn find_number(value: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| value[*name].as_u64()).or_else(|| {
        let inner = value.as_object()?.values().filter(|inner| inner.is_object());
        inner.into_iter().find_map(|inner| find_number(inner, names))
    })
}

/// A folder that is made anew.
pub(super) fn fresh(folder: &str) -> Result<PathBuf> {
    let folder = PathBuf::from(folder);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
