//! Checks the storage folder: permissions, free space, and the SQLite database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Check, Findings, SetupContext};
use crate::config::knowledge::Knowledge;
use crate::knowledge::backend;
use crate::knowledge::store::Error;
use crate::knowledge::store::sqlite::{self, QuickCheck, Store};
#[cfg(unix)]
use crate::util::fs::dir_permissions;
use crate::util::fs::free_space::free_bytes;

/// Below this, adding documents soon fails.
const LOW_SPACE_BYTES: u64 = 1 << 30;
/// Below this, adding documents fails now.
const MIN_SPACE_BYTES: u64 = 64 << 20;
/// Timeout for the integrity check: enough for several gigabytes, and less than the limit of the whole check.
const DATABASE_CHECK_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let config = subject.config.as_ref()?;
    let mut findings = Findings::default();
    if !config.knowledge.enabled {
        findings.note("the knowledge base is disabled", "set `knowledge.enabled` to true to use it");
        return findings.check("disk");
    }
    let Some(storage) = config.knowledge.storage_dir() else {
        findings.problem("the storage folder is unknown", "set `knowledge.storage_path`, or the variable `HOME`");
        return findings.check("disk");
    };
    let settings = config.knowledge.clone();
    tokio::task::spawn_blocking(move || inspect(&settings, &storage, DATABASE_CHECK_TIMEOUT)).await.ok()?.check("disk")
}

fn inspect(settings: &Knowledge, storage: &Path, limit: Duration) -> Findings {
    let mut findings = Findings::default();
    let shown = storage.display();
    let advice = "grant this user access to the folder, or set `knowledge.storage_path` to another one";
    let Some(folder) = nearest_existing_dir(storage) else {
        findings.problem(format!("{shown} cannot be created"), advice);
        return findings;
    };
    // Permission bits alone are not sufficient. An anonymous temporary file leaves nothing behind.
    if let Err(error) = tempfile::tempfile_in(&folder) {
        findings.problem(format!("{shown} is not writable: {error}"), advice);
        return findings;
    }
    if let Some(free) = free_bytes(&folder) {
        let told = format!("{:.1} GB free for {shown}", free as f64 / 1e9);
        match free {
            ..MIN_SPACE_BYTES => {
                findings.problem(told, "free some space, or set `knowledge.storage_path` to a folder on another disk")
            }
            MIN_SPACE_BYTES..LOW_SPACE_BYTES => findings.note(told, "free some space before you add many documents"),
            _ => findings.ok(told),
        }
    }
    // The database check covers PostgreSQL. The folder is still used for uploads.
    if settings.store.is_some() {
        return findings;
    }
    let index = backend::index_there(settings, storage);
    if let Err(error) = Store::must_not_be_missing(storage, index.as_deref()) {
        findings
            .problem(error.to_string(), "restore a backup, or delete the index to start with an empty knowledge base");
        return findings;
    }
    if !Store::exists(storage) {
        findings.ok("no documents yet");
        return findings;
    }
    #[cfg(unix)]
    if let Err(error) = dir_permissions::check(storage)
        && !matches!(error, dir_permissions::Error::Io { .. })
    {
        findings.problem(error.to_string(), "make the folder private to the user that corbie runs as");
        return findings;
    }
    match sqlite::quick_check(storage, index.as_deref(), limit) {
        Ok(QuickCheck::Consistent) => findings.ok("database: OK"),
        Ok(QuickCheck::TimedOut) => findings.note(
            format!("the database opens, but its integrity check did not finish within {} s", limit.as_secs()),
            "run `corbie knowledge check`, which has no time limit",
        ),
        Err(error @ Error::OtherStore { .. }) => {
            findings.problem(error.to_string(), "restore a backup, or delete the index to use this database")
        }
        Err(error) => findings.problem(
            error.to_string(),
            "run `corbie knowledge check`, then `corbie knowledge repair` to recover the data",
        ),
    }
    findings
}

/// The folder or its nearest existing ancestor. `None` if that is not a directory.
fn nearest_existing_dir(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find(|folder| folder.symlink_metadata().is_ok())?;
    there.is_dir().then(|| there.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use crate::knowledge::store::Options;

    #[test]
    fn integrity_check_that_times_out_is_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path(), Options::default()).unwrap());
        let check = inspect(&Knowledge::default(), folder.path(), Duration::ZERO).check("disk").unwrap();
        assert_eq!(check.state, State::Warning, "{check:?}");
        assert!(check.message.contains("did not finish within 0 s"), "{check:?}");
        assert!(check.advice.as_ref().unwrap().contains("corbie knowledge check"), "{check:?}");
        let whole = inspect(&Knowledge::default(), folder.path(), DATABASE_CHECK_TIMEOUT);
        assert!(
            whole.0.iter().any(|(state, found, _)| *state == State::Ok && found.contains("database: OK")),
            "{whole:?}"
        );
    }
}
