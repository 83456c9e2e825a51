//! `corbie add`: adds documents to the knowledge base, as one task that shows progress and can be cancelled.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};
use tokio::time::{Duration, Instant};

use super::backend::Backend;
use super::error::KnowledgeError;
use super::import_summary::ImportSummary;
use super::interrupt::Interrupt;
use super::{CommonOptions, counted, number, paths, resumed_tasks, text};
use crate::cli::exit::INTERRUPTED;
use crate::cli::progress::{self, Progress, bar_line};
use crate::cli::{CommandResult, formats, json_output, sanitize_line, value_parsers};
use crate::util::os_error::plain_message;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie add ~/Documents
  corbie add 'docs/**/*.pdf' --tag handbook
  corbie add report.pdf --base work --json")]
pub(in crate::cli) struct Add {
    /// Files, folders, or patterns such as 'docs/**/*.pdf'
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Do not descend into subdirectories
    #[arg(long)]
    no_recursive: bool,
    /// Tag for every document, for `corbie search --tag`; can be repeated
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Metadata for every document, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = value_parsers::json_object)]
    metadata: Option<Map<String, Value>>,
    /// Recognize text on all pages with OCR, also on pages with text
    #[arg(long)]
    force_ocr: bool,
    /// Follow symbolic links that leave a folder or are named themselves
    #[arg(long)]
    follow_links: bool,
    #[command(flatten)]
    pub(super) common: CommonOptions,
}

/// How a task ended.
enum AddOutcome {
    /// Results by file.
    Completed(Value),
    /// Cancelled by this command or another client; documents added before are kept.
    Cancelled(Value),
}

/// Maximum number of paths in a tool call.
const MAX_PATHS: usize = 1000;
/// Wait between two polls of a task: short at first, because most tasks are, and growing to a value that is still
/// responsive.
const INITIAL_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of progress lines if stderr is not a terminal.
const PROGRESS_LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Width of these lines.
const LOG_LINE_COLUMNS: usize = 120;

pub(super) async fn run(command: &Add, peer: &Backend, interrupt: &Interrupt, out: &mut dyn Write) -> CommandResult {
    let (paths, metadata) = (paths::resolve(&command.paths)?, command.metadata());
    resumed_tasks::report_resumed(peer).await?;
    let before = document_count(peer, &command.common).await?;
    let mut total = ImportSummary::default();
    for paths in paths.chunks(MAX_PATHS) {
        let arguments = json!({
            "paths": paths,
            "recursive": !command.no_recursive,
            "metadata": metadata,
            "force_ocr": command.force_ocr,
            "follow_links": command.follow_links,
        });
        let reply = peer.call("knowledge-import", command.common.arguments(arguments)).await?;
        match wait(peer, text(&reply, "task_id"), interrupt).await? {
            AddOutcome::Completed(status) => {
                if command.common.json {
                    json_output::write(&status, out)?;
                } else {
                    print_failures(&status["result"])?;
                }
                total.add(&status["result"]);
            }
            AddOutcome::Cancelled(status) => {
                if command.common.json {
                    json_output::write(&status, out)?;
                }
                let added = document_count(peer, &command.common).await?.saturating_sub(before);
                let added = counted(added, "document");
                writeln!(io::stderr(), "corbie: cancelled; {added} added before are kept")?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
    }
    if !command.common.json {
        writeln!(out, "{}", total.summary())?;
        if total.skipped_links() {
            writeln!(io::stderr(), "corbie: symbolic links were skipped; use --follow-links to add their targets")?;
        }
    }
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Add {
    /// Validates the arguments before any file is opened.
    pub(super) fn check(&self) -> Result<(), KnowledgeError> {
        match self.paths.iter().any(String::is_empty) {
            true => Err(KnowledgeError::argument("paths", "a path is empty; specify a file, a folder or a pattern")),
            false => Ok(()),
        }
    }

    /// Metadata of every document, including tags of both options.
    fn metadata(&self) -> Map<String, Value> {
        let mut metadata = self.metadata.clone().unwrap_or_default();
        if !self.tag.is_empty() {
            let mut tags = match metadata.remove("tags") {
                None => Vec::new(),
                Some(Value::Array(tags)) => tags,
                Some(tag) => vec![tag],
            };
            tags.extend(self.tag.iter().map(|tag| json!(tag)));
            metadata.insert("tags".into(), tags.into());
        }
        metadata
    }
}

/// Polls a task until it ends and shows its progress. An interrupt cancels the task.
async fn wait(peer: &Backend, task: &str, interrupt: &Interrupt) -> Result<AddOutcome, KnowledgeError> {
    let mut shown = AddProgress::new();
    let (mut pause, mut cancelling) = (INITIAL_POLL_INTERVAL, false);
    loop {
        let status = peer.call("knowledge-task-status", json!({ "task_id": task })).await?;
        match text(&status, "status") {
            "completed" => return Ok(AddOutcome::Completed(status)),
            "cancelled" => return Ok(AddOutcome::Cancelled(status)),
            _ => shown.update(&status),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 3 / 2).min(MAX_POLL_INTERVAL),
            () = interrupt.requested(), if !cancelling => {
                // If the task has ended meanwhile, the next poll returns its result.
                peer.cancel(task).await?;
                cancelling = true;
            }
        }
    }
}

/// Number of documents before the task, to calculate how many were added.
async fn document_count(peer: &Backend, common: &CommonOptions) -> Result<u64, KnowledgeError> {
    let status = peer.call("knowledge-status", common.arguments(json!({}))).await?;
    Ok(number(&status["knowledge_base"], "document_count"))
}

/// Prints failures and warnings on stderr, grouped by reason.
fn print_failures(result: &Value) -> io::Result<()> {
    let files = result["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    write_failures(files, &mut io::stderr())
}

/// Maximum number of files listed per reason; `--json` has all.
const MAX_LISTED: usize = 5;

/// One line for a reason with one file. Otherwise the reason with the number of files, and the first of them.
fn write_failures(files: &[Value], out: &mut dyn Write) -> io::Result<()> {
    let mut groups: IndexedGroups = Vec::new();
    for file in files {
        let is_failed = text(file, "status") == "failed";
        // The warning of a file that was added incompletely.
        let why = text(file, if is_failed { "message" } else { "warning" });
        if why.is_empty() {
            continue;
        }
        let path = text(file, "file_path");
        // The path is printed separately, so the message omits it.
        let mut why = why.replacen(&format!(": {path}"), "", 1);
        if text(file, "error") == "unsupported_format" {
            why = formats::with_other_formats(&why);
        }
        let key = (is_failed, sanitize_line(&plain_message(&why)));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, paths)) => paths.push(sanitize_line(path)),
            None => groups.push((key, vec![sanitize_line(path)])),
        }
    }
    for ((is_failed, why), paths) in groups {
        if let [path] = &paths[..] {
            writeln!(out, "corbie: {path}: {why}")?;
            continue;
        }
        let outcome = if is_failed { "failed" } else { "added with a warning" };
        writeln!(out, "corbie: {} {outcome}: {why}", counted(paths.len() as u64, "file"))?;
        paths.iter().take(MAX_LISTED).try_for_each(|path| writeln!(out, "  {path}"))?;
        if let more @ 1.. = paths.len().saturating_sub(MAX_LISTED) {
            writeln!(out, "  … and {more} more; --json lists all files")?;
        }
    }
    Ok(())
}

/// Paths by outcome and reason, in order of first occurrence.
type IndexedGroups = Vec<((bool, String), Vec<String>)>;

/// Progress of a task: a bar on a terminal, otherwise a line at intervals.
struct AddProgress {
    progress: Progress,
    lines: bool,
    last: Instant,
}

impl AddProgress {
    fn new() -> AddProgress {
        AddProgress {
            progress: Progress::new(),
            lines: !io::stderr().is_terminal() && !progress::is_silent(),
            last: Instant::now(),
        }
    }

    fn update(&mut self, status: &Value) {
        self.progress.update_with(|columns| line(status, columns));
        if self.lines && self.last.elapsed() >= PROGRESS_LINE_INTERVAL {
            self.last = Instant::now();
            let _ = writeln!(io::stderr(), "corbie: {}", line(status, LOG_LINE_COLUMNS));
        }
    }
}

fn line(status: &Value, columns: usize) -> String {
    let share = status["progress"].as_f64().unwrap_or_default();
    let step = sanitize_line(text(status, "current_step"));
    let left = match status["estimated_remaining_seconds"].as_f64() {
        Some(seconds) if seconds >= 1.0 => format!(", about {seconds:.0} s left"),
        _ => String::new(),
    };
    bar_line(share, &step, &left, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_name_does_not_hide_the_count() {
        let step = format!("{}\u{1b}[2J.pdf: Reading (3 of 9 files done)", "x".repeat(200));
        let status = json!({ "progress": 0.5, "current_step": step, "estimated_remaining_seconds": 12.3 });
        let line = line(&status, 100);
        assert!(line.starts_with("[##########..........] …xx"), "{line}");
        assert!(line.ends_with("(3 of 9 files done), about 12 s left") && line.chars().count() < 125, "{line}");
        assert!(!line.contains('\u{1b}'));
    }

    #[test]
    fn failures_are_grouped_by_reason() {
        let failed = |name: &str, why: &str| json!({ "status": "failed", "file_path": format!("/x/{name}"), "message": format!("{why}: /x/{name}") });
        let mut files = vec![failed("a.pdf", "File is empty"), failed("b.doc", "damaged")];
        files.extend((0..7).map(|at| failed(&format!("{at}.txt"), "File is empty")));
        files.push(json!({ "status": "completed", "file_path": "/x/ok.txt" }));
        files.push(json!({ "status": "completed", "file_path": "/x/scan.pdf", "warning": "page 2 was not read" }));
        let mut out = Vec::new();
        write_failures(&files, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "corbie: 8 files failed: File is empty\n  /x/a.pdf\n  /x/0.txt\n  /x/1.txt\n  /x/2.txt\n  /x/3.txt\n  \
             … and 3 more; --json lists all files\ncorbie: /x/b.doc: damaged\ncorbie: /x/scan.pdf: page 2 was not read\n"
        );
    }

    #[test]
    fn tags_of_both_options_are_kept() {
        let add = |metadata: Option<&str>| Add {
            paths: Vec::new(),
            no_recursive: false,
            tag: vec!["b".into()],
            metadata: metadata.map(|text| value_parsers::json_object(text).unwrap()),
            force_ocr: false,
            follow_links: false,
            common: CommonOptions { knowledge_base: None, json: false },
        };
        let tags = |metadata| add(metadata).metadata()["tags"].clone();
        assert_eq!(tags(None), json!(["b"]));
        assert_eq!(tags(Some(r#"{"tags": ["a"]}"#)), json!(["a", "b"]));
        assert_eq!(tags(Some(r#"{"tags": "a"}"#)), json!(["a", "b"]));
    }
}
