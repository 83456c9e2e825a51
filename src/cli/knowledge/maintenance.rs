//! `corbie knowledge`: maintenance of the database.

mod repair_report;
mod restore_test;
mod verify_index;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::counted;
use super::error::KnowledgeError;
use super::migrate;
use crate::cli::interrupt::CleanupOnInterrupt;
use crate::cli::progress::Progress;
use crate::cli::{CommandResult, json_output, sanitize_line};
use crate::config::LoadedConfig;
use crate::knowledge::backend;
use crate::knowledge::store::sqlite::Store;
use crate::knowledge::store::{self, CheckReport};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  corbie knowledge check
  corbie knowledge backup knowledge.db
  corbie knowledge drill
  corbie knowledge migrate --from sqlite: --to env:DATABASE_URL")]
pub(in crate::cli) enum MaintenanceCommand {
    /// Check the knowledge base and report errors; exits with 1 on errors
    #[command(after_help = "\
Examples:
  corbie knowledge check
  corbie knowledge check --json")]
    Check(JsonOutput),
    /// Repair a damaged database; stop all servers first. The damaged file is kept if it has to be replaced; exits with
    /// 1 if no data could be recovered
    #[command(after_help = "\
Examples:
  corbie knowledge repair")]
    Repair(JsonOutput),
    /// Back up the knowledge base to a new file; safe while servers are running
    #[command(after_help = "\
Examples:
  corbie knowledge backup knowledge.db")]
    Backup {
        /// File to create
        file: PathBuf,
        #[command(flatten)]
        format: JsonOutput,
    },
    /// Verify that a backup can be restored, without touching live data; exits with 1 on failure. Safe while servers
    /// are running
    #[command(after_help = "\
Examples:
  corbie knowledge drill
  corbie knowledge drill --from knowledge.db
  corbie knowledge drill --json")]
    Drill(restore_test::Drill),
    /// Restore a backup; stop all servers first. The replaced database is kept in the same folder
    #[command(after_help = "\
Examples:
  corbie knowledge restore knowledge.db")]
    Restore {
        /// Backup file
        file: PathBuf,
        #[command(flatten)]
        format: JsonOutput,
    },
    /// Migrate the knowledge base to a PostgreSQL database, or back to a file; stop all servers first. An interrupted
    /// migration is resumed when started again; exits with 1 if both sides differ afterwards
    #[command(after_help = "\
Examples:
  corbie knowledge migrate --from sqlite: --to env:DATABASE_URL
  corbie knowledge migrate --from postgres://corbie@db.example.org/corbie --to sqlite:./knowledge")]
    Migrate(migrate::Migrate),
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct JsonOutput {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) async fn run(command: &MaintenanceCommand, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    // It does not need the storage in the settings.
    if let MaintenanceCommand::Migrate(command) = command {
        return migrate::run(command, loaded, out).await;
    }
    let storage = storage_dir(loaded)?;
    let there = || -> Result<(), Box<dyn std::error::Error>> {
        Store::must_not_be_missing(&storage, index_there(loaded)?.as_deref())?;
        match store_exists(&storage) {
            true => Ok(()),
            false => Err(KnowledgeError::NoKnowledgeBase(sanitize_line(&storage.display().to_string())).into()),
        }
    };
    match command {
        MaintenanceCommand::Check(JsonOutput { json }) => {
            there()?;
            check(loaded, *json, out).await
        }
        MaintenanceCommand::Repair(JsonOutput { json }) => {
            there()?;
            let (folder, index) = (storage.clone(), index_there(loaded)?);
            let progress = Progress::with_message("repairing the database …");
            let repaired = tokio::task::spawn_blocking(move || {
                // The file may be intact and still be the wrong one.
                index.map_or(Ok(()), |index| Store::check_index(&folder, &index)).and_then(|()| Store::repair(&folder))
            })
            .await??;
            drop(progress);
            match *json {
                true => json_output::write(&repair_report::to_json(&repaired), out)?,
                false => repair_report::write(&repaired, out)?,
            }
            Ok(if repaired.unreadable { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        MaintenanceCommand::Backup { file, format } => {
            there()?;
            let store = open(loaded).await?;
            let (progress, unfinished) = (Progress::with_message("backing up …"), CleanupOnInterrupt::file(file));
            store.backup(file).await?;
            drop((progress, unfinished));
            let bytes = std::fs::metadata(file)?.len();
            print_result(
                format,
                &json!({ "success": true, "file": file, "size_bytes": bytes }),
                &format!("Backed up to {} ({})", file.display(), super::size(bytes)),
                out,
            )
        }
        MaintenanceCommand::Drill(drill) => restore_test::run(drill, loaded, out).await,
        MaintenanceCommand::Migrate(command) => migrate::run(command, loaded, out).await,
        MaintenanceCommand::Restore { file, format } => {
            if !file.exists() {
                return Err(KnowledgeError::NoBackup(sanitize_line(&file.display().to_string())).into());
            }
            let (folder, from) = (storage.clone(), file.clone());
            let progress = Progress::with_message("restoring the backup …");
            let aside = tokio::task::spawn_blocking(move || Store::restore(&folder, &from)).await??;
            drop(progress);
            let kept = match &aside {
                Some(aside) => format!("; the previous database is kept as {}", aside.display()),
                None => String::new(),
            };
            print_result(
                format,
                &json!({ "success": true, "set_aside": aside }),
                &format!("Restored {}{kept}", file.display()),
                out,
            )
        }
    }
}

/// The storage folder.
pub(super) fn storage_dir(loaded: &LoadedConfig) -> Result<PathBuf, KnowledgeError> {
    let settings = &loaded.config.knowledge;
    match settings.enabled {
        true => settings.storage_dir().ok_or(KnowledgeError::NoStorage),
        false => Err(KnowledgeError::Disabled),
    }
}

fn store_exists(storage: &Path) -> bool {
    Store::exists(storage)
}

/// Opens the store without resuming its unfinished tasks.
async fn open(loaded: &LoadedConfig) -> Result<Store, Box<dyn std::error::Error>> {
    Ok(try_open(loaded).await??)
}

async fn try_open(loaded: &LoadedConfig) -> Result<Result<Store, store::Error>, Box<dyn std::error::Error>> {
    let folder = storage_dir(loaded)?;
    let options = backend::embedded_options(&loaded.config.knowledge, &folder);
    Ok(tokio::task::spawn_blocking(move || Store::open(&folder, options)).await?)
}

fn index_there(loaded: &LoadedConfig) -> Result<Option<PathBuf>, KnowledgeError> {
    Ok(backend::index_there(&loaded.config.knowledge, &storage_dir(loaded)?))
}

/// Advice for a damaged knowledge base.
const REPAIR_ADVICE: &str = "stop all servers and run `corbie knowledge repair`, or restore a backup";

async fn check(loaded: &LoadedConfig, json: bool, out: &mut dyn Write) -> CommandResult {
    let progress = Progress::new();
    progress.update("checking the database …");
    let (report, index) = match try_open(loaded).await? {
        // A database that cannot be opened is the result of the check, not an error of the command.
        Err(error @ store::Error::Corrupt(_)) => (
            CheckReport { problems: vec![error.to_string()], ..CheckReport::default() },
            verify_index::IndexComparison::NotCompared,
        ),
        Err(error) => return Err(error.into()),
        Ok(store) => {
            let report = store.check().await?;
            if let (0, 0, Some(index)) = (report.documents, store.sequence().await?, index_there(loaded)?) {
                return Err(store::Error::Missing { index }.into());
            }
            // Rows written by an older version have no checksums until they are read.
            while report.is_consistent() && !store.record_checksums().await? {}
            progress.update("rebuilding the index for comparison …");
            let index = match report.is_consistent() {
                true => verify_index::compare(&loaded.config, &store).await?,
                false => verify_index::IndexComparison::NotCompared,
            };
            (report, index)
        }
    };
    drop(progress);
    let mut problems = report.problems.clone();
    if let verify_index::IndexComparison::Different(differences) = &index {
        problems.extend(differences.iter().cloned());
    }
    if json {
        let mut told = json!({
            "success": problems.is_empty(),
            "documents": report.documents,
            "pages": report.pages,
            "chunks": report.chunks,
            "vectors": report.vectors,
            "tasks": report.tasks,
            "index": index.as_str(),
            "problems": problems,
        });
        if !problems.is_empty() {
            told["error"] = "storage_corrupt".into();
            told["message"] = REPAIR_ADVICE.into();
        }
        json_output::write(&told, out)?;
    } else {
        write_problems(&problems, out)?;
        let (documents, chunks) = (counted(report.documents, "document"), counted(report.chunks, "chunk"));
        match problems.len() {
            0 => {
                writeln!(out, "OK: {documents}, {chunks}, {}; {}", counted(report.vectors, "vector"), index.sentence())?
            }
            _ => writeln!(out, "{REPAIR_ADVICE}")?,
        }
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn write_problems(problems: &[String], out: &mut dyn Write) -> std::io::Result<()> {
    problems.iter().try_for_each(|problem| writeln!(out, "problem: {}", sanitize_line(problem)))
}

fn print_result(format: &JsonOutput, object: &Value, sentence: &str, out: &mut dyn Write) -> CommandResult {
    match format.json {
        true => json_output::write(object, out)?,
        false => writeln!(out, "{}", sanitize_line(sentence))?,
    }
    Ok(ExitCode::SUCCESS)
}
