//! The file in the working folder: it counts as a whole only where the user has approved its content.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

use super::approvals::{self, ApprovalFile, Approvals, ContentHash};
use super::layers::{Approval, NAMES, Scope, State, in_folder};
use super::problem::{ConfigError, Findings, KeyPath, Problem, Source};
use super::tree::Node;
use super::{read, schema, unapproved};
use crate::shell::quoted;
use crate::whole_file::folder_of;

/// Content that is in force. A server keeps it: a change of the file that is not approved leaves it in force.
pub(super) struct ApprovedContent {
    /// The file that has it, as it is shown.
    path: PathBuf,
    /// The path that was approved.
    place: PathBuf,
    bytes: Zeroizing<Vec<u8>>,
}

/// What a project file comes to.
pub(super) struct ProjectFile {
    /// The settings that count; nothing where the file cannot be used.
    pub(super) settings: Option<Node>,
    pub(super) approval: Approval,
    pub(super) in_force: Option<Arc<ApprovedContent>>,
    /// Why a server must not listen without the settings that are ignored.
    pub(super) not_to_listen: Option<Problem>,
}

/// A file that could be approved.
#[derive(Debug)]
pub struct Candidate {
    /// The path that an approval is for.
    pub path: PathBuf,
    pub hash: ContentHash,
    pub keys: Vec<WrittenKey>,
}

/// One setting of a file.
#[derive(Debug)]
pub struct WrittenKey {
    pub path: KeyPath,
    /// As it is written, without variables put in; secrets are masked.
    pub value: String,
    /// It is ignored unless the file is approved.
    pub needs_approval: bool,
}

/// A warning names no more keys than this.
const MAX_LISTED_KEYS: usize = 20;
/// Longer keys, which are no settings, are truncated.
const MAX_KEY_CHARS: usize = 100;
const MASK: &str = "***";

/// Reads a project file once: the bytes that are compared with the approval are the bytes that are parsed.
pub(super) fn read(
    path: &Path,
    variables: &BTreeMap<String, String>,
    in_force: Option<&Arc<ApprovedContent>>,
    schema: &Value,
    findings: &mut Findings,
) -> ProjectFile {
    let about = |message: String| Problem::with_source(Source::File(path.into()), message);
    let file = ApprovalFile::of(variables);
    let known = file.as_ref().map_or_else(|| Ok(Approvals::new()), ApprovalFile::read);
    if let Err(error) = &known {
        findings.warnings.push(about(format!("cannot be approved: {error}")));
    }
    let content = read::content(path, read::CONFIGURATION);
    let place = approvals::place(path).ok();
    if let (Ok(bytes), Some(place), Ok(known)) = (&content, &place, &known)
        && known.get(place) == Some(&ContentHash::of(bytes))
    {
        let content = ApprovedContent { path: path.to_owned(), place: place.clone(), bytes: bytes.clone() };
        return Arc::new(content).into_force(Approval::Approved, findings);
    }
    // The user withdraws an approval by removing it; a file that cannot be read withdraws none.
    let is_withdrawn =
        |content: &ApprovedContent| known.as_ref().is_ok_and(|known| !known.contains_key(&content.place));
    let how = how_to_approve(path, file.as_ref());
    if let Some(content) = in_force.filter(|content| !is_withdrawn(content)) {
        let message = format!("has changed and is not approved, so the settings approved before stay in force; {how}");
        findings.warnings.push(about(message));
        return Arc::clone(content).into_force(Approval::Outdated, findings);
    }
    // Its earlier content may have said who may call.
    let is_changed = matches!((&place, &known), (Some(place), Ok(known)) if known.contains_key(place));
    let mut not_to_listen =
        is_changed.then(|| about(format!("has changed since it was approved, so corbie does not listen; {how}")));
    let settings = match content.and_then(|bytes| read::parsed(&bytes, path, read::CONFIGURATION)) {
        Ok(mut written) => {
            super::set_aside(&mut written);
            let (allowed, ignored) = unapproved::allowed_settings(&written, schema);
            if !ignored.is_empty() {
                let keys = listed(&ignored);
                findings.warnings.push(about(format!("is not approved, so these settings are ignored: {keys}; {how}")));
            }
            let access: Vec<KeyPath> = ignored.into_iter().filter(unapproved::is_about_access).collect();
            if !access.is_empty() && not_to_listen.is_none() {
                let keys = listed(&access);
                let message =
                    format!("is not approved and says who may call ({keys}), so corbie does not listen; {how}");
                not_to_listen = Some(about(message));
            }
            Some(allowed)
        }
        Err(problems) => {
            let first = problems.into_iter().next();
            findings.warnings.extend(first.map(|problem| Problem {
                message: format!("{}; the file is not approved, so it is ignored", problem.message),
                ..problem
            }));
            None
        }
    };
    ProjectFile { settings, approval: Approval::Unapproved, in_force: None, not_to_listen }
}

/// The file that `corbie config trust` would approve in a folder.
pub fn candidate(folder: &Path) -> Result<Candidate, ConfigError> {
    let found = in_folder(Scope::Project, folder, false).into_iter().find(|layer| layer.state == State::Active);
    let Some(layer) = found else {
        let message = format!("has no configuration file; corbie looks for {}", NAMES.join(", "));
        return Err(Problem::with_source(Source::File(folder.into()), message).into());
    };
    let wrong = |problems| ConfigError { problems };
    let bytes = read::content(&layer.path, read::CONFIGURATION).map_err(wrong)?;
    let mut written = read::parsed(&bytes, &layer.path, read::CONFIGURATION).map_err(wrong)?;
    super::set_aside(&mut written);
    let path = approvals::place(&layer.path).map_err(|error| {
        Problem::with_source(Source::File(layer.path.as_path().into()), format!("cannot be approved: {error}"))
    })?;
    let keys = unapproved::leaves(&written).into_iter().map(|(path, value)| WrittenKey::of(path, value)).collect();
    Ok(Candidate { path, hash: ContentHash::of(&bytes), keys })
}

/// The hash of a configuration file; nothing where it cannot be read.
pub fn content_hash(path: &Path) -> Option<ContentHash> {
    read::content(path, read::CONFIGURATION).ok().map(|bytes| ContentHash::of(&bytes))
}

/// What the user has to do so that a file counts.
fn how_to_approve(path: &Path, approvals: Option<&ApprovalFile>) -> String {
    match approvals {
        Some(_) => format!(
            "if you trust the file, run `corbie config trust {}`",
            quoted(&folder_of(path).display().to_string())
        ),
        None => {
            "no file can be approved, because the environment names no configuration folder of the user: set HOME, or \
                 name the file with `--config`"
                .into()
        }
    }
}

fn listed(keys: &[KeyPath]) -> String {
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
    fn into_force(self: Arc<Self>, approval: Approval, findings: &mut Findings) -> ProjectFile {
        let parsed = read::parsed(&self.bytes, &self.path, read::CONFIGURATION);
        let settings = parsed.map_err(|problems| findings.mistakes.extend(problems)).ok();
        ProjectFile { settings, approval, in_force: Some(self), not_to_listen: None }
    }
}

/// The content may hold keys of providers.
impl fmt::Debug for ApprovedContent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ApprovedContent").field("path", &self.path).finish_non_exhaustive()
    }
}

// === impl WrittenKey ===

impl WrittenKey {
    fn of(path: KeyPath, value: &Node) -> WrittenKey {
        let has_reference = unapproved::has_reference(value);
        let needs_approval = has_reference || !unapproved::is_allowed(&path);
        let schema = schema::at(schema::schema(), &path.0);
        let is_secret = |schema: &Value| schema.get("writeOnly").is_some();
        // What a secret is made of is worth seeing: `Bearer ${AWS_SECRET_ACCESS_KEY}`.
        let masked = !has_reference
            && schema.is_none_or(|schema| is_secret(schema) || schema.get("items").is_some_and(is_secret));
        let value = match value.to_json() {
            _ if masked => MASK.to_owned(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        WrittenKey { path, value, needs_approval }
    }
}
