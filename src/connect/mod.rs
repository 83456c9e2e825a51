//! Sets up MCP clients to use corbie: adds its entry to the client's configuration file, or removes it.
//!
//! [`client`] has the supported clients, [`entry`] creates the entry for each, [`edit`] changes the text of a file,
//! [`diff`] displays the change, and [`file`] is the only part with file I/O.

pub mod client;
pub mod diff;
pub mod edit;
pub mod entry;
pub mod file;

use std::path::PathBuf;

use serde_json::{Map, Value};

pub use client::{Client, Places};
pub use entry::Connection;

use edit::Refused;
use file::Opened;

/// Location of an entry.
#[derive(Debug)]
pub struct Place {
    pub client: Client,
    /// Path of the file as the client uses it; may be a symbolic link.
    pub file: PathBuf,
    /// The name of the entry.
    pub name: String,
}

/// A pending change of a file.
#[derive(Debug)]
pub struct Change {
    pub opened: Opened,
    /// The complete new content.
    pub text: String,
    /// Whether an entry with this name exists.
    pub was_there: bool,
}

/// Content of a file other than the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// Other members, but no other servers.
    Settings,
    /// Number of other servers.
    Servers(usize),
}

/// Why a client cannot be connected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{}` was left as it is: {why}", .file.display())]
    Refused { file: PathBuf, why: Refused },
    #[error(transparent)]
    File(#[from] file::Error),
}

/// Adds the entry to the file's text.
pub fn adding(place: &Place, entry: &Map<String, Value>) -> Result<Change, Error> {
    change(place, |text| {
        let was_there = edit::find(place.client.format(), text, place.client.section(), &place.name)?.is_some();
        let text = edit::set(place.client.format(), text, place.client.section(), &place.name, entry)?;
        Ok((text, was_there))
    })
}

/// The file without the entry. If corbie's last change of the file is the only one since its newest backup, the result
/// is that backup, byte for byte.
pub fn removing(place: &Place) -> Result<Change, Error> {
    let (format, section) = (place.client.format(), place.client.section());
    change(place, |text| {
        let Some(found) = edit::find(format, text, section, &place.name)? else { return Ok((text.to_owned(), false)) };
        let restored = found.as_object().and_then(|entry| {
            let before = file::newest_backup(&place.file)?;
            let had_none = edit::find(format, &before, section, &place.name).ok()?.is_none();
            let again = edit::set(format, &before, section, &place.name, entry).ok()?;
            (had_none && again == text).then_some(before)
        });
        let text = match restored {
            Some(before) => before,
            None => edit::remove(format, text, section, &place.name)?,
        };
        Ok((text, true))
    })
}

/// The present entry.
pub fn found(place: &Place) -> Result<Option<Value>, Error> {
    let opened = file::open(&place.file)?;
    let found = edit::find(place.client.format(), opened.text(), place.client.section(), &place.name);
    found.map_err(|why| Error::Refused { file: place.file.clone(), why })
}

fn change(place: &Place, edit: impl FnOnce(&str) -> Result<(String, bool), Refused>) -> Result<Change, Error> {
    let opened = file::open(&place.file)?;
    let edited = edit(opened.text());
    let (text, was_there) = edited.map_err(|why| Error::Refused { file: place.file.clone(), why })?;
    Ok(Change { opened, text, was_there })
}

impl Error {
    /// Whether the user can fix the file and insert the entry manually.
    pub fn is_mistake_in_the_file(&self) -> bool {
        matches!(self, Error::Refused { .. } | Error::File(file::Error::NotUtf8 { .. }))
    }
}

impl Change {
    /// The file's content other than the entry.
    pub fn beside(&self, place: &Place) -> Result<Beside, Error> {
        let found = edit::beside(place.client.format(), self.opened.text(), place.client.section(), &place.name);
        found.map_err(|why| Error::Refused { file: place.file.clone(), why })
    }

    /// Whether the servers are in one inline table, in TOML.
    pub fn is_inline(&self, place: &Place) -> bool {
        edit::is_inline(place.client.format(), self.opened.text(), place.client.section())
    }

    /// Whether the change is empty.
    pub fn is_none(&self) -> bool {
        self.opened.text() == self.text
    }
}
