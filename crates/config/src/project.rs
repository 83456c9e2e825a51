//! Project file in the working folder: all of its settings take effect only if the user has approved its content
//!

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

use super::approvals::{self, ApprovalFile, Approvals, ContentHash};
use super::diagnostic::{ConfigError, Diagnostic, Diagnostics, KeyPath, Segment, ValueSource};
use super::layers::{Approval, NAMES, Scope, State, layers_in_dir};
use super::spanned_value::SpannedValue;
use super::{mask, read, schema, unapproved_settings};
use corbie_util::fs::atomic_write::parent_dir;
use corbie_util::shell_quote::shell_quote;

/// Approved content that is in effect. A running server keeps it until an approved change replaces it.
pub(super) struct ApprovedContent {
    /// Path of the file for messages.
    path: PathBuf,
    /// The path that was approved.
    approval_path: PathBuf,
    bytes: Zeroizing<Vec<u8>>,
}

/// Result of reading a project file.
pub(super) struct ProjectFile {
    /// The settings that take effect; `None` if the file cannot be used.
    pub(super) settings: Option<SpannedValue>,
    pub(super) approval: Approval,
    pub(super) in_force: Option<Arc<ApprovedContent>>,
    /// Why a server must not listen without the settings that are ignored.
    pub(super) listen_refusal: Option<Diagnostic>,
}

/// A file that can be approved.
#[derive(Debug)]
pub struct ApprovalCandidate {
    /// The path used as the key of the approval.
    pub path: PathBuf,
    pub hash: ContentHash,
    pub keys: Vec<WrittenKey>,
}

/// A setting in a file.
#[derive(Debug)]
pub struct WrittenKey {
    pub path: KeyPath,
    /// As written, without expanded variables; secret parts are masked.
    pub value: String,
    /// Ignored unless the file is approved.
    pub needs_approval: bool,
}

/// Maximum number of keys in a warning.
const MAX_LISTED_KEYS: usize = 20;
/// Longer keys, which are no settings, are truncated.
const MAX_KEY_CHARS: usize = 100;

/// Reads a project file once: the bytes that are compared with the approval are the bytes that are parsed.
pub(super) fn read(
    path: &Path,
    variables: &BTreeMap<String, String>,
    in_force: Option<&Arc<ApprovedContent>>,
    schema: &Value,
    findings: &mut Diagnostics,
) -> ProjectFile {
    let about = |message: String| Diagnostic::with_source(ValueSource::File(path.into()), message);
    let file = ApprovalFile::of(variables);
    let known = file.as_ref().map_or_else(|| Ok(Approvals::new()), ApprovalFile::read);
    if let Err(error) = &known {
        findings.warnings.push(about(format!("cannot be approved: {error}")));
    }
    let content = read::read_content(path, read::CONFIG_FILE);
    let place = approvals::approval_path(path).ok();
    if let (Ok(bytes), Some(place), Ok(known)) = (&content, &place, &known)
        && known.get(place) == Some(&ContentHash::of(bytes))
    {
        let content = ApprovedContent { path: path.to_owned(), approval_path: place.clone(), bytes: bytes.clone() };
        return Arc::new(content).into_force(Approval::Approved, findings);
    }
    // A missing file withdraws its approval; an unreadable file does not.
    let is_withdrawn =
        |content: &ApprovedContent| known.as_ref().is_ok_and(|known| !known.contains_key(&content.approval_path));
    let how = how_to_approve(path, file.as_ref());
    if let Some(content) = in_force.filter(|content| !is_withdrawn(content)) {
        let message = format!(
            "has changed since it was approved; the previously approved settings remain active; \
            {how}"
        );
        findings.warnings.push(about(message));
        return Arc::clone(content).into_force(Approval::Outdated, findings);
    }
    // Its earlier content may have restricted callers.
    let is_changed = matches!((&place, &known), (Some(place), Ok(known)) if known.contains_key(place));
    let mut listen_refusal =
        is_changed.then(|| about(format!("has changed since it was approved, so the server does not start; {how}")));
    let settings = match content.and_then(|bytes| read::parse_content(&bytes, path, read::CONFIG_FILE)) {
        Ok(mut written) => {
            super::remove_schema_key(&mut written);
            let (allowed, ignored) = unapproved_settings::allowed_settings(&written, schema);
            if !ignored.is_empty() {
                let keys = join_keys(&ignored);
                findings.warnings.push(about(format!("is not approved, so these settings are ignored: {keys}; {how}")));
            }
            let access: Vec<KeyPath> = ignored.into_iter().filter(unapproved_settings::is_about_access).collect();
            if !access.is_empty() && listen_refusal.is_none() {
                let keys = join_keys(&access);
                let message = format!(
                    "is not approved and contains access settings ({keys}), so the server does not start; {how}"
                );
                listen_refusal = Some(about(message));
            }
            Some(allowed)
        }
        Err(problems) => {
            let first = problems.into_iter().next();
            findings.warnings.extend(first.map(|problem| Diagnostic {
                message: format!("{}; the file is not approved, so it is ignored", problem.message),
                ..problem
            }));
            None
        }
    };
    ProjectFile { settings, approval: Approval::Unapproved, in_force: None, listen_refusal }
}

/// Why a server must not listen in a folder: the user has approved a file there that does not take effect, because it is
/// missing or another file comes first. Its settings may have restricted callers.
pub(super) fn ignored_approval(
    folder: &Path,
    variables: &BTreeMap<String, String>,
    in_force: Option<&ApprovedContent>,
) -> Option<Diagnostic> {
    let approvals = ApprovalFile::of(variables)?.read().ok()?;
    let canonical = folder.canonicalize().ok()?;
    let is_ignored = |path: &&PathBuf| {
        path.parent() == Some(&canonical) && in_force.is_none_or(|content| content.approval_path != **path)
    };
    let path = approvals.keys().find(is_ignored)?;
    let (state, remedy) = match path.try_exists().unwrap_or(true) {
        true => ("is shadowed by another file in this folder", "remove the other file"),
        false => ("is missing", "restore it"),
    };
    let message = format!(
        "is approved and {state}; its settings may restrict access, so the server does not start; {remedy}, or run \
         `corbie config untrust {}` to withdraw the approval",
        shell_quote(&canonical.display().to_string())
    );
    let shown = folder.join(path.file_name()?);
    Some(Diagnostic::with_source(ValueSource::File(shown.into()), message))
}

/// Approved files in the folder of the candidate that would no longer take effect if it were approved.
pub fn superseded_approvals(candidate: &ApprovalCandidate, approvals: &Approvals) -> Vec<PathBuf> {
    let is_superseded = |path: &&PathBuf| **path != candidate.path && path.parent() == candidate.path.parent();
    approvals.keys().filter(is_superseded).cloned().collect()
}

/// The file that `corbie config trust` would approve in a folder.
pub fn approval_candidate(folder: &Path) -> Result<ApprovalCandidate, ConfigError> {
    let found = layers_in_dir(Scope::Project, folder, false).into_iter().find(|layer| layer.state == State::Active);
    let Some(layer) = found else {
        let message = format!("has no configuration file; expected one of {}", NAMES.join(", "));
        return Err(Diagnostic::with_source(ValueSource::File(folder.into()), message).into());
    };
    let wrong = |problems| ConfigError { diagnostics: problems };
    let bytes = read::read_content(&layer.path, read::CONFIG_FILE).map_err(wrong)?;
    let mut written = read::parse_content(&bytes, &layer.path, read::CONFIG_FILE).map_err(wrong)?;
    super::remove_schema_key(&mut written);
    let path = approvals::approval_path(&layer.path).map_err(|error| {
        Diagnostic::with_source(ValueSource::File(layer.path.as_path().into()), format!("cannot be approved: {error}"))
    })?;
    let keys =
        unapproved_settings::leaves(&written).into_iter().map(|(path, value)| WrittenKey::of(path, value)).collect();
    Ok(ApprovalCandidate { path, hash: ContentHash::of(&bytes), keys })
}

/// The hash of a configuration file; `None` if it cannot be read.
pub fn content_hash(path: &Path) -> Option<ContentHash> {
    read::read_content(path, read::CONFIG_FILE).ok().map(|bytes| ContentHash::of(&bytes))
}

/// Instructions for approving a file.
fn how_to_approve(path: &Path, approvals: Option<&ApprovalFile>) -> String {
    match approvals {
        Some(_) => format!(
            "if you trust the file, run `corbie config trust {}`",
            shell_quote(&parent_dir(path).display().to_string())
        ),
        None => "cannot approve files, because there is no user configuration folder: set HOME, or pass the file with \
             `--config`"
            .into(),
    }
}

fn join_keys(keys: &[KeyPath]) -> String {
    let short = |key: &KeyPath| -> String {
        let key = key.to_string();
        match key.char_indices().nth(MAX_KEY_CHARS) {
            Some((end, _)) => format!("{}…", &key[..end]),
            None => key,
        }
    };
    let shown: Vec<String> = keys.iter().take(MAX_LISTED_KEYS).map(short).collect();
    match keys.len().saturating_sub(MAX_LISTED_KEYS) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

// === impl ApprovedContent ===

impl ApprovedContent {
    fn into_force(self: Arc<Self>, approval: Approval, findings: &mut Diagnostics) -> ProjectFile {
        let parsed = read::parse_content(&self.bytes, &self.path, read::CONFIG_FILE);
        let settings = parsed.map_err(|problems| findings.errors.extend(problems)).ok();
        ProjectFile { settings, approval, in_force: Some(self), listen_refusal: None }
    }
}

/// The content may contain keys of providers.
impl fmt::Debug for ApprovedContent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ApprovedContent").field("path", &self.path).finish_non_exhaustive()
    }
}

// === impl WrittenKey ===

impl WrittenKey {
    fn of(path: KeyPath, value: &SpannedValue) -> WrittenKey {
        let has_reference = unapproved_settings::has_reference(value);
        let needs_approval = has_reference || !unapproved_settings::is_allowed(&path);
        let value = match path.0.as_slice() {
            [.., Segment::Key(map), Segment::Key(name)] if map == "env" => mask::masked_variable(name, value),
            _ => mask::masked(value, schema::schema_at(schema::schema(), &path.0)),
        };
        WrittenKey { path, value, needs_approval }
    }
}
