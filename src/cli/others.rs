//! Other instances, for commands that change a file which all of them follow.

use std::io::Write;

use super::one_line;
use crate::config::Config;
use crate::shared_files::{self, Kind};

/// Those who follow a file. They may be out of reach; then it is changed here, and servers of this machine tell them later.
pub(super) struct Others<'a> {
    settings: Settings<'a>,
    kind: Kind,
}

/// What is known of who shares a file.
#[derive(Clone, Copy)]
pub(super) enum Settings<'a> {
    Good(&'a Config),
    /// They have mistakes, and name a database all the same.
    MistakenAndShared,
    Mistaken,
}

/// Whether others know what was changed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// They do, or there are none.
    Yes,
    No,
}

const MISTAKEN: &str = "the settings have mistakes";

impl<'a> Others<'a> {
    pub(super) fn of(settings: Settings<'a>, kind: Kind) -> Others<'a> {
        Others { settings, kind }
    }

    /// What all say, where the file is shared and the database answers.
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

    /// Brings what they have changed, and has them get what was changed here.
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
