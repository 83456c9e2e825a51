//! `corbie knowledge migrate`: moves a knowledge base to PostgreSQL, or back to SQLite.
//!
//! The migration is implemented in `knowledge::store::moved`; this file parses the arguments and prints the report.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::counted;
use super::error::KnowledgeError;
use super::interrupt::Interrupt;
use super::maintenance::{self, JsonOutput};
use crate::cli::exit::INTERRUPTED;
use crate::cli::progress::{self, Progress};
use crate::cli::{CommandResult, json_output, sanitize_line};
use crate::config::LoadedConfig;
use crate::knowledge::store::migration::{MigrationReport, MigrationStep, StoreSummary, migrate};
use crate::knowledge::store::{Options, Store, postgres, sqlite};

#[derive(Debug, Args)]
pub(in crate::cli) struct Migrate {
    /// Source: `sqlite:FOLDER` (`sqlite:` for the folder in the settings), `postgres://…`, or `env:NAME` for a URL in a
    /// variable, which hides it from other users of this machine
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Target, in the same form; must be empty, or contain a part of the same knowledge base
    #[arg(long, value_name = "PLACE")]
    to: String,
    #[command(flatten)]
    format: JsonOutput,
}

/// Location of a knowledge base.
enum MigrationEndpoint {
    Folder(PathBuf),
    Database(Box<postgres::Address>),
}

/// Advice if source and target differ.
const MISMATCH_ADVICE: &str =
    "do not use the target: clear it, and migrate again while no server uses source or target";
/// Interval of progress lines without a terminal.
const PROGRESS_LINE_INTERVAL: Duration = Duration::from_secs(10);

pub(super) async fn run(command: &Migrate, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let from = MigrationEndpoint::parse("from", &command.from, loaded)?;
    let to = MigrationEndpoint::parse("to", &command.to, loaded)?;
    if let MigrationEndpoint::Folder(folder) = &from
        && !sqlite::Store::exists(folder)
    {
        return Err(KnowledgeError::NoKnowledgeBase(sanitize_line(&folder.display().to_string())).into());
    }
    if let (MigrationEndpoint::Folder(one), MigrationEndpoint::Folder(other)) = (&from, &to)
        && is_same(one, other)
    {
        return Err(KnowledgeError::argument("to", "`--from` and `--to` name the same folder").into());
    }
    // From here on an interruption is handled gracefully.
    let interrupt = Interrupt::watch();
    let mut shown = MigrationProgress::new();
    let stop = CancellationToken::new();
    let moved = {
        let (from, to) = (from.open().await?, to.open().await?);
        let stopping = stop.clone();
        let _stopping = AbortOnDropHandle::new(tokio::spawn(async move {
            interrupt.requested().await;
            stopping.cancel();
        }));
        migrate(&from, &to, &stop, |step| shown.update(step)).await.map_err(KnowledgeError::Migration)?
    };
    drop(shown);
    print_result(&moved, command.format.json, out)
}

impl MigrationEndpoint {
    /// Parses an argument. Errors do not repeat it, because it may contain a password.
    fn parse(parameter: &'static str, text: &str, loaded: &LoadedConfig) -> Result<MigrationEndpoint, KnowledgeError> {
        let wrong = |message: String| KnowledgeError::argument(parameter, format!("`--{parameter}`: {message}"));
        let named = match text.strip_prefix("env:") {
            Some(name) => Some(std::env::var(name).map_err(|_| wrong(format!("the variable `{name}` is not set")))?),
            None => None,
        };
        let text = named.as_deref().unwrap_or(text);
        match text.strip_prefix("sqlite:") {
            Some("") => maintenance::storage_dir(loaded).map(MigrationEndpoint::Folder),
            Some(folder) => Ok(MigrationEndpoint::Folder(folder.into())),
            None if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                postgres::Address::parse(text)
                    .map(|address| MigrationEndpoint::Database(Box::new(address)))
                    .map_err(wrong)
            }
            None => Err(wrong("not an address; use `sqlite:FOLDER`, `postgres://…` or `env:NAME`".to_owned())),
        }
    }

    async fn open(self) -> Result<Store, Box<dyn std::error::Error>> {
        Ok(match self {
            MigrationEndpoint::Folder(folder) => {
                let opening = move || sqlite::Store::open_exclusive(&folder, Options::default());
                tokio::task::spawn_blocking(opening).await??.into()
            }
            MigrationEndpoint::Database(address) => {
                postgres::Store::connect(&address, &[], Options::default()).await?.into()
            }
        })
    }
}

/// Compares canonical paths. A folder that does not exist yet equals no other.
fn is_same(one: &PathBuf, other: &PathBuf) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn print_result(moved: &MigrationReport, json: bool, out: &mut dyn Write) -> CommandResult {
    let done = moved.written + moved.skipped;
    if moved.is_cancelled {
        let message = format!("stopped after {}; run the same command to continue", counted(done, "document"));
        match json {
            true => json_output::write(
                &json!({ "success": false, "error": "interrupted", "message": message, "documents_done": done }),
                out,
            )?,
            false => writeln!(io::stderr(), "corbie: {message}")?,
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    match json {
        true => json_output::write(&reply(moved), out)?,
        false => write(moved, out)?,
    }
    Ok(if moved.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn reply(moved: &MigrationReport) -> Value {
    let side = |side: &StoreSummary| {
        let StoreSummary { documents, pages, chunks, vectors, tasks, watched, sha256 } = side;
        json!({
            "documents": documents, "pages": pages, "chunks": chunks, "vectors": vectors, "tasks": tasks,
            "watched_files": watched, "sha256": sha256,
        })
    };
    let mut reply = json!({
        "success": moved.problems.is_empty(),
        "documents_written": moved.written,
        "documents_passed_over": moved.skipped,
        "from": side(&moved.from),
        "to": side(&moved.to),
        "problems": moved.problems,
    });
    if !moved.problems.is_empty() {
        reply["error"] = "migration_failed".into();
        reply["message"] = MISMATCH_ADVICE.into();
    }
    reply
}

fn write(moved: &MigrationReport, out: &mut dyn Write) -> io::Result<()> {
    let side = |side: &StoreSummary| {
        format!(
            "{}, {}, {}, {}, {}, {}; sha256 {}",
            counted(side.documents, "document"),
            counted(side.pages, "page"),
            counted(side.chunks, "chunk"),
            counted(side.vectors, "vector"),
            counted(side.tasks, "task"),
            counted(side.watched, "watched file"),
            side.sha256
        )
    };
    maintenance::write_problems(&moved.problems, out)?;
    writeln!(out, "Migrated {}; {} already existed", counted(moved.written, "document"), moved.skipped)?;
    writeln!(out, "from: {}", side(&moved.from))?;
    writeln!(out, "to:   {}", side(&moved.to))?;
    match moved.problems.is_empty() {
        true => writeln!(out, "Source and target are identical"),
        false => writeln!(out, "{MISMATCH_ADVICE}"),
    }
}

/// Progress: one updated line on a terminal, otherwise a line at intervals.
struct MigrationProgress {
    progress: Progress,
    lines: bool,
    last: Instant,
}

impl MigrationProgress {
    fn new() -> MigrationProgress {
        MigrationProgress {
            progress: Progress::with_message("opening source and target …"),
            lines: !io::stderr().is_terminal() && !progress::is_silent(),
            last: Instant::now(),
        }
    }

    fn update(&mut self, step: MigrationStep) {
        let line = match step {
            MigrationStep::Checking => "checking source and target …".to_owned(),
            MigrationStep::Documents { done, total: of } => format!("migrating {done} of {}", counted(of, "document")),
            MigrationStep::OtherRecords => "migrating tasks and watched folders …".to_owned(),
            MigrationStep::Comparing => "comparing …".to_owned(),
            MigrationStep::Indexing => "building the vector index …".to_owned(),
        };
        self.progress.update(&line);
        if self.lines && self.last.elapsed() >= PROGRESS_LINE_INTERVAL {
            self.last = Instant::now();
            // A failed write to stderr cannot be reported.
            let _ = writeln!(io::stderr(), "corbie: {line}");
        }
    }
}
