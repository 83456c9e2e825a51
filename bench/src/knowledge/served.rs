//! The program itself: ingestion through its tools, and search over HTTP.

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

/// The program with its own knowledge base.
pub(crate) struct Served {
    process: Process,
    client: Client,
}

/// Storage backend of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    Folder(&'a Path),
    /// A database, and a folder for local files.
    Database {
        address: &'a str,
        folder: &'a Path,
    },
}

/// Results of an ingestion.
#[derive(Debug, Serialize)]
pub(crate) struct Ingested {
    pub(crate) chunks: u64,
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) rss_mb: f64,
}

/// Results of sequential searches over one connection.
#[derive(Debug, Serialize)]
pub(crate) struct Searched {
    pub(crate) chunks: u64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) rss_mb: f64,
    /// From the start of the program to the first reply.
    pub(crate) start_s: f64,
}

const CORBIE: &str = ".tools/bench/target/release/corbie";
const LOG: &str = ".tools/bench/logs/knowledge.log";
/// Timeout of an ingestion.
const PATIENCE: Duration = Duration::from_secs(900);

impl Served {
    pub(crate) fn start(store: &Path) -> Result<Served> {
        Served::at(&Place::Folder(store), LOG)
    }

    pub(crate) fn at(place: &Place<'_>, log: &str) -> Result<Served> {
        let port = http::free_port()?;
        let mut command = Command::new(CORBIE);
        // Default configuration: no settings of this machine or user.
        command.env_clear();
        let folder = match place {
            Place::Folder(folder) => folder,
            Place::Database { address, folder } => {
                command.env("CORBIE_KNOWLEDGE__STORE", address);
                folder
            }
        };
        command.env("CORBIE_KNOWLEDGE__STORAGE_PATH", std::path::absolute(folder)?);
        command.env("CORBIE_TRUST__ALL", "trusted").args(["serve", "--port", &port.to_string()]);
        let mut process = Process::without_pipes(command, log)?;
        let client = Client::first(&mut process, port, Era::Legacy)?;
        Ok(Served { process, client })
    }

    /// Adds all files of a folder and waits until they are searchable.
    pub(crate) fn import(&mut self, folder: &Path) -> Result<Ingested> {
        let (began, before) = (Instant::now(), self.cpu_seconds()?);
        let task = self.begin_import(folder, None)?;
        self.wait_for(&task)?;
        let (wall_s, cpu_s) = (began.elapsed().as_secs_f64(), self.cpu_seconds()? - before);
        let chunks = self.chunks()?;
        ensure!(chunks > 0, "no chunk was made of {}", folder.display());
        Ok(Ingested { chunks, cpu_s, wall_s, rss_mb: self.resident_mb()? })
    }

    /// Adds all files of a folder to a base and returns the task.
    pub(crate) fn begin_import(&mut self, folder: &Path, base: Option<&str>) -> Result<String> {
        let paths = [std::path::absolute(folder)?.display().to_string()];
        let mut arguments = json!({ "paths": paths, "recursive": true });
        if let Some(base) = base {
            arguments["knowledge_base"] = base.into();
        }
        let told = self.client.tool("knowledge-import", arguments)?;
        Ok(told["task_id"].as_str().with_context(|| format!("an import has a task: {told}"))?.to_owned())
    }

    pub(crate) fn wait_for(&mut self, task: &str) -> Result<()> {
        let began = Instant::now();
        loop {
            let told = self.client.tool("knowledge-task-status", json!({ "task_id": task }))?;
            match told["status"].as_str() {
                Some("completed" | "partial") => return Ok(()),
                Some("failed" | "cancelled") => bail!("the import ended with {told}"),
                _ if began.elapsed() > PATIENCE => bail!("the import has not ended after {PATIENCE:?}: {told}"),
                _ => pause(Duration::from_millis(50)),
            }
        }
    }

    /// Another client.
    pub(crate) fn another(&self) -> Result<Client> {
        self.client.another()
    }

    /// Runs each query; the first ones are a warm-up.
    pub(crate) fn search(&mut self, questions: &[String], first_answer: Duration) -> Result<Searched> {
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

    /// Searches once and returns the time since the start.
    pub(crate) fn first_answer(&mut self, question: &str) -> Result<Duration> {
        let told = self.client.tool("knowledge-search", json!({ "query": question }))?;
        ensure!(told["success"] == true, "the first search was answered with {told}");
        Ok(self.process.started.elapsed())
    }

    pub(crate) fn stop(mut self) -> Result<()> {
        self.process.stop(Duration::from_secs(30))?;
        Ok(())
    }

    pub(crate) fn chunks(&mut self) -> Result<u64> {
        let told = self.client.tool("knowledge-status", json!({}))?;
        find_number(&told, &["total_chunks", "chunk_count", "chunks"]).with_context(|| format!("no chunks in {told}"))
    }

    pub(crate) fn resident_mb(&self) -> Result<f64> {
        Ok(tree::resident(self.process.id())? as f64 / 1e6)
    }

    /// CPU time of the program and its workers, including ended ones.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        tree::cpu_seconds(self.process.id())
    }
}

const WARM_UP: usize = 20;

/// The first numeric member with one of these names, at any depth.
fn find_number(value: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| value[*name].as_u64()).or_else(|| {
        let inner = value.as_object()?.values().filter(|inner| inner.is_object());
        inner.into_iter().find_map(|inner| find_number(inner, names))
    })
}

/// Recreates a folder.
pub(crate) fn fresh(folder: &str) -> Result<PathBuf> {
    let folder = PathBuf::from(folder);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
