//! `corbie config trust` and `untrust`: approve the configuration file of a project folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::Error;
use crate::cli::json_output;
use crate::config::{self, ApprovalCandidate, ApprovalFile, ContentHash, Sources, WrittenKey};
use crate::util::sanitize::{escape_unsafe, sanitize_line};
use crate::util::shell_quote::shell_quote;

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  corbie config trust --dry-run    # what the file in this folder sets
  corbie config trust              # approve it
  corbie config trust ~/projects/notes
  corbie config trust --list")]
pub struct Trust {
    /// Project folder; defaults to the working directory
    #[arg(value_name = "DIR", conflicts_with = "list")]
    pub folder: Option<PathBuf>,
    /// List the approved files
    #[arg(long)]
    pub list: bool,
    /// Approve the file even if another approved file in the folder stops taking effect
    #[arg(long, conflicts_with = "list")]
    pub replace: bool,
    /// Show the settings in the file without approving it
    #[arg(long, conflicts_with = "list")]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  corbie config untrust
  corbie config untrust ~/projects/notes")]
pub struct Untrust {
    /// Project folder; defaults to the working directory
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Keys are aligned up to this width. Values are never truncated: the truncated part could be the relevant one.
const MAX_KEY_WIDTH: usize = 60;

pub(super) fn trust(options: &Trust, sources: &Sources, out: &mut dyn Write) -> Result<ExitCode, Error> {
    let approvals = ApprovalFile::of(&sources.variables).ok_or(Error::NoUserFolder)?;
    if options.list {
        list(&approvals, options.json, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = options.folder.as_ref().map_or_else(|| sources.folder.clone(), |folder| sources.folder.join(folder));
    let candidate = config::approval_candidate(&folder)?;
    let known = approvals.read()?;
    let was_approved = known.get(&candidate.path) == Some(&candidate.hash);
    let superseded = config::superseded_approvals(&candidate, &known);
    if !options.json {
        show(&candidate, out)?;
        for path in &superseded {
            writeln!(out, "{} is approved and would no longer take effect.", shown(path))?;
        }
    }
    // The other file may restrict callers: its approval does not end unnoticed.
    if let Some(path) = superseded.first().filter(|_| !options.dry_run && !options.replace) {
        return Err(Error::Superseded { candidate: candidate.path, approved: path.clone() });
    }
    if !options.dry_run {
        approvals.approve_alone(&candidate.path, candidate.hash.clone())?;
    }
    let is_approved = was_approved || !options.dry_run;
    if options.json {
        json_output::write(&reply(&candidate, is_approved, &superseded), out)?;
    } else if options.dry_run {
        let state = if is_approved { "approved" } else { "not approved" };
        writeln!(out, "This content is {state}; `--dry-run` changes nothing.")?;
    } else {
        let folder = shell_quote(&folder_of(&candidate.path));
        writeln!(
            out,
            "Approved until the file changes. `corbie config untrust {}` withdraws it.",
            sanitize_line(&folder)
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn untrust(options: &Untrust, sources: &Sources, out: &mut dyn Write) -> Result<ExitCode, Error> {
    let approvals = ApprovalFile::of(&sources.variables).ok_or(Error::NoUserFolder)?;
    let folder = options.folder.as_ref().map_or_else(|| sources.folder.clone(), |folder| sources.folder.join(folder));
    // A deleted folder has no canonical path any more.
    let folder = std::fs::canonicalize(&folder).unwrap_or(folder);
    let withdrawn = approvals.withdraw(&folder)?;
    if options.json {
        json_output::write(&json!({ "success": true, "withdrawn": withdrawn }), out)?;
    } else if withdrawn.is_empty() {
        writeln!(out, "No file in {} was approved.", shown(&folder))?;
    }
    for path in withdrawn.iter().filter(|_| !options.json) {
        writeln!(out, "No longer approved: {}", shown(path))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the settings that approving the file would put into effect.
fn show(candidate: &ApprovalCandidate, out: &mut dyn Write) -> io::Result<()> {
    let keys: Vec<(String, &WrittenKey)> = candidate
        .keys
        .iter()
        .filter(|key| key.needs_approval)
        .map(|key| (sanitize_line(&key.path.to_string()), key))
        .collect();
    match keys.is_empty() {
        true => writeln!(out, "{}: no setting needs approval.", shown(&candidate.path))?,
        false => writeln!(out, "{}: settings that need approval:", shown(&candidate.path))?,
    }
    let width = keys.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default().min(MAX_KEY_WIDTH);
    for (name, key) in keys {
        writeln!(out, "  {name:<width$}  {}", escape_unsafe(&key.value))?;
    }
    Ok(())
}

fn reply(candidate: &ApprovalCandidate, is_approved: bool, superseded: &[PathBuf]) -> Value {
    let key = |WrittenKey { path, value, needs_approval }: &WrittenKey| json!({ "key": path.to_string(), "value": value, "needs_approval": needs_approval });
    json!({
        "success": true,
        "path": candidate.path,
        "sha256": candidate.hash.as_str(),
        "approved": is_approved,
        "superseded": superseded,
        "keys": candidate.keys.iter().map(key).collect::<Vec<_>>(),
    })
}

fn list(approvals: &ApprovalFile, json: bool, out: &mut dyn Write) -> Result<(), Error> {
    let files = approvals.read()?.into_iter().map(|(path, hash)| (state(&path, &hash), path, hash));
    if json {
        let files = files.map(|(state, path, hash)| json!({ "path": path, "sha256": hash.as_str(), "state": state }));
        json_output::write(&json!({ "files": files.collect::<Vec<_>>() }), out)?;
        return Ok(());
    }
    let mut is_empty = true;
    for (state, path, _) in files {
        writeln!(out, "{state:<8}  {}", shown(&path))?;
        is_empty = false;
    }
    if is_empty {
        writeln!(out, "No file is approved.")?;
    }
    Ok(())
}

/// Whether the file still has the content that was approved.
fn state(path: &Path, approved: &ContentHash) -> &'static str {
    match config::content_hash(path) {
        Some(hash) if hash == *approved => "approved",
        Some(_) => "changed",
        None => "missing",
    }
}

fn folder_of(path: &Path) -> String {
    path.parent().unwrap_or(path).display().to_string()
}

fn shown(path: &Path) -> String {
    sanitize_line(&path.display().to_string())
}
