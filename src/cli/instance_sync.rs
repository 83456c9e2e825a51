//! Synchronizes a shared file with other instances, for commands that change it.

use std::io::Write;

use super::sanitize_line;
use crate::config::Config;
use crate::file_sync::{self, SharedFileKind};

/// The other instances that share a file. If they are unreachable, the file is changed locally and a server on this
/// machine publishes the change later.
pub(super) struct InstanceSync<'a> {
    settings: SyncSettings<'a>,
    kind: SharedFileKind,
}

/// The settings, as far as they are valid.
#[derive(Clone, Copy)]
pub(super) enum SyncSettings<'a> {
    Valid(&'a Config),
    /// Invalid, but a database is configured.
    InvalidButShared,
    Invalid,
}

/// Whether the change has reached the other instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncStatus {
    /// It has, or there are no other instances.
    Synced,
    NotSynced,
}

const INVALID_SETTINGS: &str = "the settings are invalid";

impl<'a> InstanceSync<'a> {
    pub(super) fn new(settings: SyncSettings<'a>, kind: SharedFileKind) -> InstanceSync<'a> {
        InstanceSync { settings, kind }
    }

    /// The latest shared version, if the file is shared and the database is reachable.
    pub(super) fn newest(&self) -> std::io::Result<Option<String>> {
        let newest = match self.settings {
            SyncSettings::Valid(config) => runtime()?.block_on(file_sync::newest_version(config, self.kind)),
            SyncSettings::InvalidButShared => Some(Err(INVALID_SETTINGS.to_owned())),
            SyncSettings::Invalid => None,
        };
        match newest {
            None => Ok(None),
            Some(Ok(newest)) => Ok(newest),
            Some(Err(why)) => {
                warn_unreachable(&why, "showing the local list")?;
                Ok(None)
            }
        }
    }

    /// Pulls remote changes and publishes the local ones.
    pub(super) fn sync(&self) -> std::io::Result<SyncStatus> {
        let settled = match self.settings {
            SyncSettings::Valid(config) => runtime()?.block_on(file_sync::sync_now(config, self.kind)),
            SyncSettings::InvalidButShared => Some(Err(INVALID_SETTINGS.to_owned())),
            SyncSettings::Invalid => None,
        };
        match settled {
            None | Some(Ok(())) => Ok(SyncStatus::Synced),
            Some(Err(why)) => {
                warn_unreachable(
                    &why,
                    "the change applies to this machine; a server running here publishes it once the database is reachable",
                )?;
                Ok(SyncStatus::NotSynced)
            }
        }
    }
}

fn warn_unreachable(why: &str, so: &str) -> std::io::Result<()> {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "corbie: other instances are unreachable: {}", sanitize_line(why))?;
    writeln!(stderr, "corbie: {so}")
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
