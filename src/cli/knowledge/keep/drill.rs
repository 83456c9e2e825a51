//! `corbie knowledge drill`: restores a backup into a temporary folder to verify that it is complete.
//!
//! The knowledge base is not changed, and all temporary files are deleted.

mod folder;
mod outcome;

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use corbie_index::Filter;

use super::{Format, is_there, storage};
use crate::app;
use crate::cli::knowledge::failure::Failure;
use crate::cli::progress::Progress;
use crate::cli::{End, one_line};
use crate::config::{Config, Loaded};
use crate::knowledge::Knowledge;
use crate::knowledge::document::FoundChunk;
use crate::knowledge::search::Question;
use crate::knowledge::store::sqlite::{Contents, Store};
use crate::knowledge::store::{self, Options};
use folder::Folder;
use outcome::Outcome;

#[derive(Debug, Args)]
pub(in crate::cli) struct Drill {
    /// Verify this backup, instead of a new one
    #[arg(long, value_name = "PLACE")]
    from: Option<PathBuf>,
    /// Folder for temporary files, instead of the folder of the knowledge base
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// Number of passages to search for; each must be found.
const SAMPLES: u64 = 5;
/// Maximum length of a query in characters, and the number of results that must contain its passage.
const ASKED: usize = 300;
const TOP: usize = 10;
/// Timeout for closing the restored knowledge base.
const ENDING: Duration = Duration::from_secs(5);
/// The index is at most this fraction (1/n) of the size of its knowledge base.
const INDEX_SHARE: u64 = 2;

pub(super) async fn run(drill: &Drill, loaded: &Loaded, out: &mut dyn Write) -> End {
    let storage = storage(loaded)?;
    match &drill.from {
        Some(file) if !file.exists() => return Err(Failure::NoBackup(one_line(&file.display().to_string())).into()),
        None if !is_there(&storage) => {
            return Err(Failure::NothingYet(one_line(&storage.display().to_string())).into());
        }
        _ => {}
    }
    let needed = needed(drill, &storage)?;
    // The knowledge base's own folder if it exists: a restore needs space on that disk, and the measured time is that
    // of the disk.
    let within = match &drill.into {
        Some(folder) => folder.clone(),
        None if is_there(&storage) => storage.clone(),
        None => std::env::temp_dir(),
    };
    folder::sweep(&within);
    folder::has_room(&within, needed)?;
    let folder = Folder::new(&within)?;
    let tried = try_out(drill, loaded, storage, folder.path()).await;
    folder.remove()?;
    let outcome = match tried {
        Ok(outcome) => outcome,
        // An unreadable database is the result of the drill, not an error of the command.
        Err(error) => match error.downcast_ref::<store::Error>() {
            Some(store::Error::Corrupt(_)) => Outcome { problems: vec![error.to_string()], ..Outcome::default() },
            _ => return Err(error),
        },
    };
    match drill.format.json {
        true => writeln!(out, "{}", outcome.reply())?,
        false => outcome.write(out)?,
    }
    Ok(if outcome.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Number of bytes that a drill writes: the backup, unless one is given, the restored knowledge base and its index.
fn needed(drill: &Drill, storage: &Path) -> std::io::Result<u64> {
    let (copies, size) = match &drill.from {
        Some(file) => (1, std::fs::metadata(file)?.len()),
        None => (2, Store::size_in(storage)),
    };
    Ok(size.saturating_mul(copies).saturating_add(size / INDEX_SHARE))
}

/// Creates a backup, restores it into a folder, and verifies the result.
async fn try_out(drill: &Drill, loaded: &Loaded, storage: PathBuf, folder: &Path) -> Result<Outcome, Box<dyn Error>> {
    let mut outcome = Outcome::default();
    let progress = Progress::new();
    let (backup, contents) = match &drill.from {
        Some(file) => {
            progress.tell("reading the backup …");
            let from = file.clone();
            (file.clone(), tokio::task::spawn_blocking(move || Store::contents_of(&from)).await??)
        }
        None => {
            progress.tell("copying …");
            let (file, begun) = (folder.join(folder::BACKUP), Instant::now());
            let to = file.clone();
            let contents = tokio::task::spawn_blocking(move || Store::copy_and_tell(&storage, &to)).await??;
            outcome.backup = Some(begun.elapsed());
            (file, contents)
        }
    };
    outcome.size_bytes = std::fs::metadata(&backup)?.len();
    outcome.digest = contents.digest();

    progress.tell("bringing it back …");
    let restored = folder.join(folder::RESTORED);
    let (into, begun) = (restored.clone(), Instant::now());
    tokio::task::spawn_blocking(move || Store::restore(&into, &backup)).await??;
    outcome.restore = begun.elapsed();

    progress.tell("reading everything, and comparing …");
    let (into, begun) = (restored.clone(), Instant::now());
    let store = tokio::task::spawn_blocking(move || Store::open(&into, Options::default())).await??;
    outcome.look(&store, contents).await?;
    outcome.check = begun.elapsed();

    if outcome.problems.is_empty() {
        progress.tell("making the index, and asking it …");
        outcome.ask(&aside(&loaded.config, restored), &store).await?;
    }
    Ok(outcome)
}

/// Settings of the restored knowledge base: without watched folders and audit log.
fn aside(config: &Config, restored: PathBuf) -> Config {
    let mut aside = config.clone();
    aside.knowledge.storage_path = Some(restored);
    aside.knowledge.vector_db_path = None;
    aside.knowledge.watch.clear();
    aside.audit.file = None;
    aside
}

impl Outcome {
    /// Checks the restored store and compares it with the contents of the backup.
    async fn look(&mut self, store: &Store, contents: Contents) -> Result<(), Box<dyn Error>> {
        self.report = store.check().await?;
        self.problems.extend(self.report.problems.iter().cloned());
        self.problems.extend(store.differences(contents).await?);
        let open = store.unfinished_tasks().await?;
        self.tasks_open = open.running + open.queued;
        Ok(())
    }

    /// Builds the index and searches for passages of the store.
    async fn ask(&mut self, config: &Config, store: &Store) -> Result<(), Box<dyn Error>> {
        let app = app::build(config)?;
        let knowledge = app.knowledge.as_ref().ok_or(Failure::Off)?;
        // Tasks belong to the process that has the original knowledge base open.
        knowledge.leave_tasks();
        let begun = Instant::now();
        knowledge.open().await?;
        self.index = begun.elapsed();
        let samples = store.chunks(&store.samples(SAMPLES).await?).await?;
        // A text without letters cannot be searched for.
        for sample in samples.iter().filter(|sample| sample.text.chars().any(char::is_alphanumeric)) {
            self.asked += 1;
            match is_found(knowledge, sample, self.report.chunks as usize).await? {
                true => self.found += 1,
                false => self.problems.push(format!("a passage of `{}` is not found", sample.filename)),
            }
        }
        knowledge.finish(tokio::time::Instant::now() + ENDING).await;
        Ok(())
    }
}

/// Whether a search for the beginning of a passage finds it. Many passages may have the same beginning and thus the
/// same score. Then the passage must be among all matches that were added at the same time.
async fn is_found(knowledge: &Knowledge, sample: &FoundChunk, chunks: usize) -> Result<bool, Box<dyn Error>> {
    let added = Some(sample.date_added);
    let with_it = Filter { added_from: added, added_to: added, ..Filter::default() };
    for (top, filter) in [(TOP, None), (chunks, Some(with_it))] {
        let query = sample.text.chars().take(ASKED).collect();
        let question = Question { base: sample.base.clone(), query, top, least: 0.0, filter };
        // Another document may contain the same text.
        if knowledge.search(question).await?.iter().any(|passage| passage.chunk.text == sample.text) {
            return Ok(true);
        }
    }
    Ok(false)
}
