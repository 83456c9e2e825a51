//! The program itself: ingestion through its tools, and search over HTTP.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::{self, LoadClient};
use crate::process::{Process, sleep};
use crate::process_tree;
use crate::workload::Era;

/// The program with its own knowledge base.
pub(crate) struct CorbieServer {
    process: Process,
    client: LoadClient,
}

/// Storage backend of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StorageLocation<'a> {
    Folder(&'a Path),
    /// A database, and a folder for local files.
    Database {
        address: &'a str,
        folder: &'a Path,
    },
}

/// Results of an ingestion.
#[derive(Debug, Serialize)]
pub(crate) struct IngestStats {
    pub(crate) chunks: u64,
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) rss_mb: f64,
}

/// Results of sequential searches over one connection.
#[derive(Debug, Serialize)]
pub(crate) struct SearchStats {
    pub(crate) chunks: u64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) rss_mb: f64,
    /// From the start of the program to the first reply.
    pub(crate) start_s: f64,
}

const CORBIE: &str = ".tools/bench/target/dist/corbie";
const LOG: &str = ".tools/bench/logs/knowledge.log";
/// Timeout of an ingestion.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(900);

impl CorbieServer {
    pub(crate) fn start(store: &Path) -> Result<CorbieServer> {
        CorbieServer::start_at(&StorageLocation::Folder(store), LOG)
    }

    pub(crate) fn start_at(place: &StorageLocation<'_>, log: &str) -> Result<CorbieServer> {
        let port = http::free_port()?;
        let mut command = Command::new(CORBIE);
        // Default configuration: no settings of this machine or user.
        command.env_clear();
        let folder = match place {
            StorageLocation::Folder(folder) => folder,
            StorageLocation::Database { address, folder } => {
                command.env("CORBIE_KNOWLEDGE__STORE", address);
                folder
            }
        };
        command.env("CORBIE_KNOWLEDGE__STORAGE_PATH", std::path::absolute(folder)?);
        command.env("CORBIE_TRUST__ALL", "trusted").args(["serve", "--port", &port.to_string()]);
        let mut process = Process::without_pipes(command, log)?;
        let client = LoadClient::connect_first(&mut process, port, Era::Legacy)?;
        Ok(CorbieServer { process, client })
    }

    /// Adds all files of a folder and waits until they are searchable.
    pub(crate) fn import(&mut self, folder: &Path) -> Result<IngestStats> {
        let (began, before) = (Instant::now(), self.cpu_seconds()?);
        let task = self.begin_import(folder, None)?;
        self.wait_for_task(&task)?;
        let (wall_s, cpu_s) = (began.elapsed().as_secs_f64(), self.cpu_seconds()? - before);
        let chunks = self.chunks()?;
        ensure!(chunks > 0, "no chunk was made of {}", folder.display());
        Ok(IngestStats { chunks, cpu_s, wall_s, rss_mb: self.resident_mb()? })
    }

    /// Adds all files of a folder to a base and returns the task.
    pub(crate) fn begin_import(&mut self, folder: &Path, base: Option<&str>) -> Result<String> {
        let paths = [std::path::absolute(folder)?.display().to_string()];
        let mut arguments = json!({ "paths": paths, "recursive": true });
        if let Some(base) = base {
            arguments["knowledge_base"] = base.into();
        }
        let told = self.client.call_tool("knowledge-import", arguments)?;
        Ok(told["task_id"].as_str().with_context(|| format!("an import has a task: {told}"))?.to_owned())
    }

    pub(crate) fn wait_for_task(&mut self, task: &str) -> Result<()> {
        let began = Instant::now();
        loop {
            let told = self.client.call_tool("knowledge-task-status", json!({ "task_id": task }))?;
            match told["status"].as_str() {
                Some("completed" | "partial") => return Ok(()),
                Some("failed" | "cancelled") => bail!("the import ended with {told}"),
                _ if began.elapsed() > IMPORT_TIMEOUT => {
                    bail!("the import has not ended after {IMPORT_TIMEOUT:?}: {told}")
                }
                _ => sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Another client.
    pub(crate) fn new_client(&self) -> Result<LoadClient> {
        self.client.new_client()
    }

    /// Runs each query; the first ones are a warm-up.
    pub(crate) fn search(&mut self, questions: &[String], first_answer: Duration) -> Result<SearchStats> {
        let mut times = Vec::with_capacity(questions.len());
        let mut before = self.cpu_seconds()?;
        for (at, question) in questions.iter().enumerate() {
            if at == WARM_UP {
                before = self.cpu_seconds()?;
            }
            let asked = Instant::now();
            let told = self.client.call_tool("knowledge-search", json!({ "query": question }))?;
            if at >= WARM_UP {
                times.push(asked.elapsed().as_secs_f64() * 1e3);
            }
            ensure!(told["success"] == true, "a search was answered with {told}");
        }
        let cpu_ms = (self.cpu_seconds()? - before) * 1e3 / times.len() as f64;
        times.sort_by(f64::total_cmp);
        Ok(SearchStats {
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
        let told = self.client.call_tool("knowledge-search", json!({ "query": question }))?;
        ensure!(told["success"] == true, "the first search was answered with {told}");
        Ok(self.process.started.elapsed())
    }

    pub(crate) fn stop(mut self) -> Result<()> {
        self.process.stop(Duration::from_secs(30))?;
        Ok(())
    }

    pub(crate) fn chunks(&mut self) -> Result<u64> {
        let told = self.client.call_tool("knowledge-status", json!({}))?;
        find_number(&told, &["total_chunks", "chunk_count", "chunks"]).with_context(|| format!("no chunks in {told}"))
    }

    pub(crate) fn resident_mb(&self) -> Result<f64> {
        Ok(process_tree::resident(self.process.id())? as f64 / 1e6)
    }

    /// CPU time of the program and its workers, including ended ones.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        process_tree::cpu_seconds(self.process.id())
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
pub(crate) fn empty_folder(folder: &str) -> Result<PathBuf> {
    let folder = PathBuf::from(folder);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
