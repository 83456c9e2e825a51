//! `corbie knowledge drill`: restores a backup into a temporary folder to verify that it is complete.
//!
//! The knowledge base is not changed, and all temporary files are deleted.

mod report;
mod workdir;

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use corbie_index::Filter;

use super::{JsonOutput, storage_dir, store_exists};
use crate::app;
use crate::cli::knowledge::error::KnowledgeError;
use crate::cli::progress::Progress;
use crate::cli::{CommandResult, json_output, sanitize_line};
use crate::config::{Config, LoadedConfig};
use crate::knowledge::Knowledge;
use crate::knowledge::document::FoundChunk;
use crate::knowledge::search::SearchRequest;
use crate::knowledge::store::sqlite::{ContentDigest, Store};
use crate::knowledge::store::{self, Options};
use report::DrillReport;
use workdir::DrillDir;

#[derive(Debug, Args)]
pub(in crate::cli) struct Drill {
    /// Verify this backup, instead of a new one
    #[arg(long, value_name = "PLACE")]
    from: Option<PathBuf>,
    /// Folder for temporary files, instead of the folder of the knowledge base
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    #[command(flatten)]
    format: JsonOutput,
}

/// Number of passages to search for; each must be found.
const SAMPLE_COUNT: u64 = 5;
/// Maximum length of a query in characters, and the number of results that must contain its passage.
const MAX_QUERY_CHARS: usize = 300;
const MAX_RANK: usize = 10;
/// Timeout for closing the restored knowledge base.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The index is at most this fraction (1/n) of the size of its knowledge base.
const INDEX_SIZE_DIVISOR: u64 = 2;

pub(super) async fn run(drill: &Drill, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let storage = storage_dir(loaded)?;
    match &drill.from {
        Some(file) if !file.exists() => {
            return Err(KnowledgeError::NoBackup(sanitize_line(&file.display().to_string())).into());
        }
        None if !store_exists(&storage) => {
            return Err(KnowledgeError::NoKnowledgeBase(sanitize_line(&storage.display().to_string())).into());
        }
        _ => {}
    }
    let needed = required_bytes(drill, &storage)?;
    // The knowledge base's own folder if it exists: a restore needs space on that disk, and the measured time is that
    // of the disk.
    let within = match &drill.into {
        Some(folder) => folder.clone(),
        None if store_exists(&storage) => storage.clone(),
        None => std::env::temp_dir(),
    };
    workdir::remove_stale(&within);
    workdir::check_space(&within, needed)?;
    let folder = DrillDir::new(&within)?;
    let tried = restore_and_verify(drill, loaded, storage, folder.path()).await;
    folder.remove()?;
    let outcome = match tried {
        Ok(outcome) => outcome,
        // An unreadable database is the result of the drill, not an error of the command.
        Err(error) => match error.downcast_ref::<store::Error>() {
            Some(store::Error::Corrupt(_)) => {
                DrillReport { problems: vec![error.to_string()], ..DrillReport::default() }
            }
            _ => return Err(error),
        },
    };
    match drill.format.json {
        true => json_output::write(&outcome.reply(), out)?,
        false => outcome.write(out)?,
    }
    Ok(if outcome.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Number of bytes that a drill writes: the backup, unless one is given, the restored knowledge base and its index.
fn required_bytes(drill: &Drill, storage: &Path) -> std::io::Result<u64> {
    let (copies, size) = match &drill.from {
        Some(file) => (1, std::fs::metadata(file)?.len()),
        None => (2, Store::size_in(storage)),
    };
    Ok(size.saturating_mul(copies).saturating_add(size / INDEX_SIZE_DIVISOR))
}

/// Creates a backup, restores it into a folder, and verifies the result.
async fn restore_and_verify(
    drill: &Drill,
    loaded: &LoadedConfig,
    storage: PathBuf,
    folder: &Path,
) -> Result<DrillReport, Box<dyn Error>> {
    let mut outcome = DrillReport::default();
    let progress = Progress::new();
    let (backup, contents) = match &drill.from {
        Some(file) => {
            progress.update("reading the backup …");
            let from = file.clone();
            (file.clone(), tokio::task::spawn_blocking(move || Store::backup_digest(&from)).await??)
        }
        None => {
            progress.update("backing up …");
            let (file, begun) = (folder.join(workdir::BACKUP_FILE), Instant::now());
            let to = file.clone();
            let contents = tokio::task::spawn_blocking(move || Store::backup_with_digest(&storage, &to)).await??;
            outcome.backup = Some(begun.elapsed());
            (file, contents)
        }
    };
    outcome.size_bytes = std::fs::metadata(&backup)?.len();
    outcome.digest = contents.digest();

    progress.update("restoring …");
    let restored = folder.join(workdir::RESTORED_DIR);
    let (into, begun) = (restored.clone(), Instant::now());
    tokio::task::spawn_blocking(move || Store::restore(&into, &backup)).await??;
    outcome.restore = begun.elapsed();

    progress.update("comparing …");
    let (into, begun) = (restored.clone(), Instant::now());
    let store = tokio::task::spawn_blocking(move || Store::open(&into, Options::default())).await??;
    outcome.verify_contents(&store, contents).await?;
    outcome.check = begun.elapsed();

    if outcome.problems.is_empty() {
        progress.update("building and querying the index …");
        outcome.verify_search(&restored_config(&loaded.config, restored), &store).await?;
    }
    Ok(outcome)
}

/// Settings of the restored knowledge base: without watched folders and audit log.
fn restored_config(config: &Config, restored: PathBuf) -> Config {
    let mut aside = config.clone();
    aside.knowledge.storage_path = Some(restored);
    aside.knowledge.vector_db_path = None;
    aside.knowledge.watch.clear();
    aside.audit.file = None;
    aside
}

impl DrillReport {
    /// Checks the restored store and compares it with the contents of the backup.
    async fn verify_contents(&mut self, store: &Store, contents: ContentDigest) -> Result<(), Box<dyn Error>> {
        self.report = store.check().await?;
        self.problems.extend(self.report.problems.iter().cloned());
        self.problems.extend(store.differences(contents).await?);
        let open = store.unfinished_tasks().await?;
        self.tasks_open = open.running + open.queued;
        Ok(())
    }

    /// Builds the index and searches for passages of the store.
    async fn verify_search(&mut self, config: &Config, store: &Store) -> Result<(), Box<dyn Error>> {
        let app = app::build(config)?;
        let knowledge = app.knowledge.as_ref().ok_or(KnowledgeError::Disabled)?;
        // Tasks belong to the process that has the original knowledge base open.
        knowledge.skip_adoption();
        let begun = Instant::now();
        knowledge.open().await?;
        self.index = begun.elapsed();
        let samples = store.chunks(&store.sample_chunk_keys(SAMPLE_COUNT).await?).await?;
        // A text without letters cannot be searched for.
        for sample in samples.iter().filter(|sample| sample.text.chars().any(char::is_alphanumeric)) {
            self.queries += 1;
            match is_found(knowledge, sample, self.report.chunks as usize).await? {
                true => self.found += 1,
                false => self.problems.push(format!("a passage of `{}` was not found", sample.filename)),
            }
        }
        knowledge.shut_down(tokio::time::Instant::now() + SHUTDOWN_TIMEOUT).await;
        Ok(())
    }
}

/// Whether a search for the beginning of a passage finds it. Many passages may have the same beginning and thus the
/// same score. Then the passage must be among all matches that were added at the same time.
async fn is_found(knowledge: &Knowledge, sample: &FoundChunk, chunks: usize) -> Result<bool, Box<dyn Error>> {
    let added = Some(sample.date_added);
    let with_it = Filter { added_from: added, added_to: added, ..Filter::default() };
    for (top, filter) in [(MAX_RANK, None), (chunks, Some(with_it))] {
        let query = sample.text.chars().take(MAX_QUERY_CHARS).collect();
        let question = SearchRequest { base: sample.base.clone(), query, top_k: top, min_relevance: 0.0, filter };
        // Another document may contain the same text.
        if knowledge.search(question).await?.iter().any(|passage| passage.chunk.text == sample.text) {
            return Ok(true);
        }
    }
    Ok(false)
}
