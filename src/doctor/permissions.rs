//! Checks file permissions: private files readable by other users, and settings writable by them.

use std::path::Path;
use std::sync::Arc;

use super::{Check, Findings, SetupContext};
use crate::config::{ApprovalFile, State};

#[cfg(unix)]
const GROUP_OR_OTHER_WRITE: u32 = 0o022;
#[cfg(unix)]
const GROUP_OR_OTHER_ANY: u32 = 0o077;

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let config = subject.config.as_ref()?;
    let mut findings = Findings::default();
    let loaded = subject.load_result.as_ref().and_then(|read| read.as_ref().ok());
    for layer in loaded
        .iter()
        .flat_map(|loaded| &loaded.layers)
        .filter(|layer| layer.state == State::Active && !layer.is_unapproved())
    {
        check_not_writable(&layer.path, &mut findings);
    }
    if let Some(approvals) = loaded.and_then(|loaded| ApprovalFile::of(&loaded.sources.variables)) {
        check_not_writable(approvals.path(), &mut findings);
    }
    if let Some(tokens) = config.tokens_file() {
        check_private(&tokens, "API tokens are stored", "600", &mut findings);
    }
    if let Some(tls) = &config.server.tls {
        check_private(&tls.key, "the TLS key is stored", "600", &mut findings);
    }
    if let Some(storage) = config.knowledge.storage_dir().filter(|_| config.knowledge.enabled) {
        check_private(&storage, "documents are stored", "700", &mut findings);
    }
    if findings.0.is_empty() {
        findings.ok("private files are readable by this user only");
    }
    findings.check("permissions")
}

/// A user who can write the settings controls corbie.
#[cfg(unix)]
fn check_not_writable(path: &Path, findings: &mut Findings) {
    if mode(path).is_some_and(|mode| mode & GROUP_OR_OTHER_WRITE != 0) {
        let path = path.display();
        findings.problem(format!("other users can change the settings in {path}"), format!("`chmod go-w {path}`"));
    }
}

#[cfg(unix)]
fn check_private(path: &Path, what: &str, wanted: &str, findings: &mut Findings) {
    if mode(path).is_some_and(|mode| mode & GROUP_OR_OTHER_ANY != 0) {
        let path = path.display();
        findings.problem(format!("other users can access {path}, where {what}"), format!("`chmod {wanted} {path}`"));
    }
}

/// `None` if the file does not exist.
#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|facts| std::os::unix::fs::PermissionsExt::mode(&facts.permissions()))
}

#[cfg(not(unix))]
fn check_not_writable(_: &Path, _: &mut Findings) {}

#[cfg(not(unix))]
fn check_private(_: &Path, _: &str, _: &str, _: &mut Findings) {}
