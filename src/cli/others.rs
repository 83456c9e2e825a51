//! Synchronizes a shared file with other instances, for commands that change it.

use std::io::Write;

use super::one_line;
use crate::config::Config;
use crate::shared_files::{self, Kind};

/// The other instances that share a file. If they are unreachable, the file is changed locally and a server on this
/// machine publishes the change later.
pub(super) struct Others<'a> {
    settings: Settings<'a>,
    kind: Kind,
}

/// The settings, as far as they are valid.
#[derive(Clone, Copy)]
pub(super) enum Settings<'a> {
    Good(&'a Config),
    /// Invalid, but a database is configured.
    MistakenAndShared,
    Mistaken,
}

/// Whether the change has reached the other instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It has, or there are no other instances.
    Yes,
    No,
}

const MISTAKEN: &str = "the settings have mistakes";

impl<'a> Others<'a> {
    pub(super) fn of(settings: Settings<'a>, kind: Kind) -> Others<'a> {
        Others { settings, kind }
    }

    /// The latest shared version, if the file is shared and the database is reachable.
    pub(super) fn newest(&self) -> std::io::Result<Option<String>> {
        let newest = match self.settings {
            Settings::Good(config) => runtime()?.block_on(shared_files::newest(config, self.kind)),
            Settings::MistakenAndShared => Some(Err(MISTAKEN.to_owned())),
            Settings::Mistaken => None,
        };
        match newest {
            None => Ok(None),
            Some(Ok(newest)) => Ok(newest),
            Some(Err(why)) => {
                complain(&why, "what is listed is what this machine knows")?;
                Ok(None)
            }
        }
    }

    /// Pulls remote changes and publishes the local ones.
    pub(super) fn settle(&self) -> std::io::Result<Told> {
        let settled = match self.settings {
            Settings::Good(config) => runtime()?.block_on(shared_files::settle(config, self.kind)),
            Settings::MistakenAndShared => Some(Err(MISTAKEN.to_owned())),
            Settings::Mistaken => None,
        };
        match settled {
            None | Some(Ok(())) => Ok(Told::Yes),
            Some(Err(why)) => {
                complain(
                    &why,
                    "what is changed counts on this machine; a server that runs here tells the others when it can",
                )?;
                Ok(Told::No)
            }
        }
    }
}

fn complain(why: &str, so: &str) -> std::io::Result<()> {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "corbie: other instances cannot be asked: {}", one_line(why))?;
    writeln!(stderr, "corbie: {so}")
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
