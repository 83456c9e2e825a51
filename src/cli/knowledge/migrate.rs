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
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::keep::{self, Format};
use crate::cli::ending::INTERRUPTED;
use crate::cli::progress::{self, Progress};
use crate::cli::{End, one_line};
use crate::config::Loaded;
use crate::knowledge::store::moved::{Moved, Side, Step, migrate};
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
    format: Format,
}

/// Location of a knowledge base.
enum At {
    Folder(PathBuf),
    Database(Box<postgres::Address>),
}

/// Advice if source and target differ.
const NEXT: &str = "do not use the new one yet: clear it, and move again with nobody using either";
/// Interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

pub(super) async fn run(command: &Migrate, loaded: &Loaded, out: &mut dyn Write) -> End {
    let from = At::read("from", &command.from, loaded)?;
    let to = At::read("to", &command.to, loaded)?;
    if let At::Folder(folder) = &from
        && !sqlite::Store::exists(folder)
    {
        return Err(Failure::NothingYet(one_line(&folder.display().to_string())).into());
    }
    if let (At::Folder(one), At::Folder(other)) = (&from, &to)
        && is_same(one, other)
    {
        return Err(Failure::argument("to", "`--from` and `--to` name the same folder; name two").into());
    }
    // From here on an interruption is handled gracefully.
    let interrupt = Interrupt::watch();
    let mut shown = Shown::new();
    let stop = CancellationToken::new();
    let moved = {
        let (from, to) = (from.open().await?, to.open().await?);
        let stopping = stop.clone();
        let _stopping = AbortOnDropHandle::new(tokio::spawn(async move {
            interrupt.asked().await;
            stopping.cancel();
        }));
        migrate(&from, &to, &stop, |step| shown.tell(step)).await.map_err(Failure::Move)?
    };
    drop(shown);
    tell(&moved, command.format.json, out)
}

impl At {
    /// Parses an argument. Errors do not repeat it, because it may contain a password.
    fn read(parameter: &'static str, text: &str, loaded: &Loaded) -> Result<At, Failure> {
        let wrong = |message: String| Failure::argument(parameter, format!("`--{parameter}`: {message}"));
        let named = match text.strip_prefix("env:") {
            Some(name) => Some(std::env::var(name).map_err(|_| wrong(format!("the variable `{name}` is not set")))?),
            None => None,
        };
        let text = named.as_deref().unwrap_or(text);
        match text.strip_prefix("sqlite:") {
            Some("") => keep::storage(loaded).map(At::Folder),
            Some(folder) => Ok(At::Folder(folder.into())),
            None if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                postgres::Address::parse(text).map(|address| At::Database(Box::new(address))).map_err(wrong)
            }
            None => Err(wrong("this is no address; write `sqlite:FOLDER`, `postgres://…` or `env:NAME`".to_owned())),
        }
    }

    async fn open(self) -> Result<Store, Box<dyn std::error::Error>> {
        Ok(match self {
            At::Folder(folder) => {
                let opening = move || sqlite::Store::open_alone(&folder, Options::default());
                tokio::task::spawn_blocking(opening).await??.into()
            }
            At::Database(address) => postgres::Store::connect(&address, &[], Options::default()).await?.into(),
        })
    }
}

/// Compares canonical paths. A folder that does not exist yet equals no other.
fn is_same(one: &PathBuf, other: &PathBuf) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn tell(moved: &Moved, json: bool, out: &mut dyn Write) -> End {
    let done = moved.written + moved.passed_over;
    if moved.stopped {
        let message = format!("stopped with {} in place; the same command goes on", counted(done, "document"));
        match json {
            true => writeln!(
                out,
                "{}",
                json!({ "success": false, "error": "interrupted", "message": message, "documents_done": done })
            )?,
            false => writeln!(io::stderr(), "corbie: {message}")?,
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    match json {
        true => writeln!(out, "{}", reply(moved))?,
        false => write(moved, out)?,
    }
    Ok(if moved.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn reply(moved: &Moved) -> Value {
    let side = |side: &Side| {
        let Side { documents, pages, chunks, vectors, tasks, watched, sha256 } = side;
        json!({
            "documents": documents, "pages": pages, "chunks": chunks, "vectors": vectors, "tasks": tasks,
            "watched_files": watched, "sha256": sha256,
        })
    };
    let mut reply = json!({
        "success": moved.problems.is_empty(),
        "documents_written": moved.written,
        "documents_passed_over": moved.passed_over,
        "from": side(&moved.from),
        "to": side(&moved.to),
        "problems": moved.problems,
    });
    if !moved.problems.is_empty() {
        reply["error"] = "migration_failed".into();
        reply["message"] = NEXT.into();
    }
    reply
}

fn write(moved: &Moved, out: &mut dyn Write) -> io::Result<()> {
    let side = |side: &Side| {
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
    keep::write_problems(&moved.problems, out)?;
    writeln!(out, "moved {}, and {} were there already", counted(moved.written, "document"), moved.passed_over)?;
    writeln!(out, "from: {}", side(&moved.from))?;
    writeln!(out, "to:   {}", side(&moved.to))?;
    match moved.problems.is_empty() {
        true => writeln!(out, "both are the same"),
        false => writeln!(out, "{NEXT}"),
    }
}

/// Progress: one updated line on a terminal, otherwise a line at intervals.
struct Shown {
    progress: Progress,
    lines: bool,
    last: Instant,
}

impl Shown {
    fn new() -> Shown {
        Shown {
            progress: Progress::of("opening both …"),
            lines: !io::stderr().is_terminal() && !progress::is_silent(),
            last: Instant::now(),
        }
    }

    fn tell(&mut self, step: Step) {
        let line = match step {
            Step::Checking => "checking both …".to_owned(),
            Step::Documents { done, of } => format!("moving: {done} of {}", counted(of, "document")),
            Step::Rest => "moving tasks and what is known of watched folders …".to_owned(),
            Step::Comparing => "reading everything, and comparing …".to_owned(),
            Step::Indexing => "making the index over vectors …".to_owned(),
        };
        self.progress.tell(&line);
        if self.lines && self.last.elapsed() >= LINE_EVERY {
            self.last = Instant::now();
            // A failed write to stderr cannot be reported.
            let _ = writeln!(io::stderr(), "corbie: {line}");
        }
    }
}
