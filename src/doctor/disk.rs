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
        findings.note("the knowledge base is off", "set `knowledge.enabled` to keep documents");
        return findings.check("disk");
    }
    let Some(storage) = config.knowledge.storage_dir() else {
        findings.problem(
            "nobody knows where documents are to be kept",
            "set `knowledge.storage_path`, or the variable `HOME`",
        );
        return findings.check("disk");
    };
    let settings = config.knowledge.clone();
    tokio::task::spawn_blocking(move || inspect(&settings, &storage, DATABASE_CHECK_TIMEOUT)).await.ok()?.check("disk")
}

fn inspect(settings: &Knowledge, storage: &Path, limit: Duration) -> Findings {
    let mut findings = Findings::default();
    let shown = storage.display();
    let advice = "give this user the folder, or set `knowledge.storage_path` to another";
    let Some(folder) = nearest_existing_dir(storage) else {
        findings.problem(format!("{shown} cannot be made"), advice);
        return findings;
    };
    // Permission bits alone are not sufficient. An anonymous temporary file leaves nothing behind.
    if let Err(error) = tempfile::tempfile_in(&folder) {
        findings.problem(format!("{shown} cannot be written: {error}"), advice);
        return findings;
    }
    if let Some(free) = free_bytes(&folder) {
        let told = format!("{:.1} GB are free for {shown}", free as f64 / 1e9);
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
        findings.ok("there are no documents yet");
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
        Ok(QuickCheck::Consistent) => findings.ok("the database opens and is whole"),
        Ok(QuickCheck::TimedOut) => findings.note(
            format!("the database opens; looking whether it is whole was not finished within {} s", limit.as_secs()),
            "run `corbie knowledge check`, which takes as long as it needs",
        ),
        Err(error @ Error::OtherStore { .. }) => findings
            .problem(error.to_string(), "restore a backup, or delete the index to use the database that is there"),
        Err(error) => findings.problem(
            error.to_string(),
            "run `corbie knowledge check`; `corbie knowledge repair` saves what can be saved",
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
    fn a_database_too_large_for_the_time_is_noted_and_is_no_problem() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path(), Options::default()).unwrap());
        let check = inspect(&Knowledge::default(), folder.path(), Duration::ZERO).check("disk").unwrap();
        assert_eq!(check.state, State::Warning, "{check:?}");
        assert!(check.message.contains("not finished within 0 s"), "{check:?}");
        assert!(check.advice.as_ref().unwrap().contains("corbie knowledge check"), "{check:?}");
        let whole = inspect(&Knowledge::default(), folder.path(), DATABASE_CHECK_TIMEOUT);
        assert!(whole.0.iter().any(|(state, found, _)| *state == State::Ok && found.contains("is whole")), "{whole:?}");
    }
}
