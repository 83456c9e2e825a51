//! `corbie knowledge drill`: a backup is worth what comes back from it, so one is made and brought back, aside.
//!
//! Nothing of the knowledge base is changed, and nothing stays behind.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::{Format, counted, is_there, open, storage, write_problems};
use crate::app;
use crate::cli::demo::place;
use crate::cli::interrupt::Unfinished;
use crate::cli::knowledge::failure::Failure;
use crate::cli::knowledge::size;
use crate::cli::progress::Progress;
use crate::cli::{End, one_line};
use crate::config::{Config, Loaded};
use crate::knowledge::search::Question;
use crate::knowledge::store::{self, Contents, Options, Report, Store};

#[derive(Debug, Args)]
pub(in crate::cli) struct Drill {
    /// Try this backup, instead of one that is made now
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// What was done, and what came of it.
#[derive(Debug, Default)]
struct Outcome {
    size_bytes: u64,
    /// None where the backup was there before.
    backup: Option<Duration>,
    restore: Duration,
    check: Duration,
    index: Duration,
    report: Report,
    digest: String,
    tasks_open: u64,
    asked: usize,
    found: usize,
    /// A sentence for each thing that is not as it was.
    problems: Vec<String>,
}

/// So many passages are asked for; each must be found again.
const SAMPLES: u64 = 5;
/// How much of a passage is asked for, in characters, and among how many it must be.
const ASKED: usize = 300;
const TOP: usize = 10;
/// How long the knowledge base that was brought back may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// What to do about a backup that does not come back whole.
const NEXT: &str = "do not rely on this backup: run `corbie knowledge check`, make another one, and try that";

pub(super) async fn run(drill: &Drill, loaded: &Loaded, out: &mut dyn Write) -> End {
    let storage = storage(loaded)?;
    match &drill.from {
        Some(file) if !file.exists() => return Err(Failure::NoBackup(one_line(&file.display().to_string())).into()),
        None if !is_there(&storage) => {
            return Err(Failure::NothingYet(one_line(&storage.display().to_string())).into());
        }
        _ => {}
    }
    // Beside the knowledge base where there is one: a restore needs room on that disk, and takes as long as that disk does.
    let within = if is_there(&storage) { storage } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("corbie-drill-").tempdir_in(within)?;
    let unfinished = Unfinished::folder(folder.path());
    let tried = try_out(drill, loaded, folder.path()).await;
    place::remove(folder.path())?;
    drop((unfinished, folder));
    let outcome = match tried {
        Ok(outcome) => outcome,
        // What cannot be read has been tried enough.
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

/// Makes a backup, brings it back into a folder, and looks at everything there.
async fn try_out(drill: &Drill, loaded: &Loaded, folder: &Path) -> Result<Outcome, Box<dyn Error>> {
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
            let (store, file) = (open(loaded).await?, folder.join("backup.db"));
            let begun = Instant::now();
            let contents = store.backup_and_tell(&file).await?;
            outcome.backup = Some(begun.elapsed());
            (file, contents)
        }
    };
    outcome.size_bytes = std::fs::metadata(&backup)?.len();
    outcome.digest = contents.digest();

    progress.tell("bringing it back …");
    let restored = folder.join("knowledge");
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

/// Settings for the knowledge base that was brought back: it follows no folders, and tells nobody.
fn aside(config: &Config, restored: PathBuf) -> Config {
    let mut aside = config.clone();
    aside.knowledge.storage_path = Some(restored);
    aside.knowledge.vector_db_path = None;
    aside.knowledge.watch.clear();
    aside.audit.file = None;
    aside
}

impl Outcome {
    /// Reads everything, and compares it with what was copied.
    async fn look(&mut self, store: &Store, contents: Contents) -> Result<(), Box<dyn Error>> {
        self.report = store.check().await?;
        self.problems.extend(self.report.problems.iter().cloned());
        self.problems.extend(store.differences(contents).await?);
        let open = store.unfinished_tasks().await?;
        self.tasks_open = open.running + open.queued;
        Ok(())
    }

    /// Makes the index, and looks for passages that are known to be there.
    async fn ask(&mut self, config: &Config, store: &Store) -> Result<(), Box<dyn Error>> {
        let app = app::build(config)?;
        let Some(knowledge) = &app.knowledge else { return Ok(()) };
        // They are for whoever has the knowledge base itself open.
        knowledge.leave_tasks();
        let begun = Instant::now();
        knowledge.open().await?;
        self.index = begun.elapsed();
        let samples = store.chunks(&store.samples(SAMPLES).await?).await?;
        // What has no letters cannot be asked for.
        for sample in samples.iter().filter(|sample| sample.text.chars().any(char::is_alphanumeric)) {
            self.asked += 1;
            let query = sample.text.chars().take(ASKED).collect();
            let question = Question { base: sample.base.clone(), query, top: TOP, least: 0.0, filter: None };
            let passages = knowledge.search(question).await?;
            // Another document may say the same.
            match passages.iter().any(|passage| passage.chunk.text == sample.text) {
                true => self.found += 1,
                false => self.problems.push(format!("a passage of `{}` is not found", sample.filename)),
            }
        }
        knowledge.finish(tokio::time::Instant::now() + ENDING).await;
        Ok(())
    }

    fn reply(&self) -> serde_json::Value {
        let Report { documents, pages, chunks, vectors, tasks, .. } = self.report;
        let mut reply = json!({
            "success": self.problems.is_empty(),
            "size_bytes": self.size_bytes,
            "sha256": self.digest,
            "documents": documents,
            "pages": pages,
            "chunks": chunks,
            "vectors": vectors,
            "tasks_ended": tasks.saturating_sub(self.tasks_open),
            "tasks_open": self.tasks_open,
            "passages_asked": self.asked,
            "passages_found": self.found,
            "seconds": {
                "backup": self.backup.map(|took| took.as_secs_f64()),
                "restore": self.restore.as_secs_f64(),
                "check": self.check.as_secs_f64(),
                "index": self.index.as_secs_f64(),
            },
            "problems": self.problems,
        });
        if !self.problems.is_empty() {
            reply["error"] = "drill_failed".into();
            reply["message"] = NEXT.into();
        }
        reply
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let seconds = |took: Duration| format!("{:.2} s", took.as_secs_f64());
        write_problems(&self.problems, out)?;
        if !self.problems.is_empty() {
            return writeln!(out, "{NEXT}");
        }
        let Report { documents, chunks, tasks, .. } = self.report;
        match self.backup {
            Some(took) => writeln!(out, "copied {} in {}", size(self.size_bytes), seconds(took))?,
            None => writeln!(out, "read a backup of {}", size(self.size_bytes))?,
        }
        writeln!(out, "brought it back in {}, as long as a restore takes", seconds(self.restore))?;
        let (documents, chunks) = (counted(documents, "document"), counted(chunks, "chunk"));
        let (tasks, took) = (counted(tasks, "task"), seconds(self.check));
        writeln!(out, "compared {documents}, {chunks} and {tasks} in {took}: all are the same")?;
        let asked = counted(self.asked as u64, "passage");
        writeln!(out, "made the index in {}, and found {asked} of {}", seconds(self.index), self.asked)?;
        writeln!(out, "nothing is wrong, and nothing was changed")
    }
}
