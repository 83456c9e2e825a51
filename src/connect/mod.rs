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

pub use client::{ClientDirs, McpClient};
pub use entry::Connection;

use edit::EditError;
use file::ClientFile;

/// Location of an entry.
#[derive(Debug)]
pub struct EntryLocation {
    pub client: McpClient,
    /// Path of the file as the client uses it; may be a symbolic link.
    pub file: PathBuf,
    /// The name of the entry.
    pub name: String,
}

/// A pending change of a file.
#[derive(Debug)]
pub struct PendingEdit {
    pub file: ClientFile,
    /// The complete new content.
    pub text: String,
    /// Whether an entry with this name exists.
    pub existed: bool,
}

/// Content of a file other than the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherContent {
    Nothing,
    /// Other members, but no other servers.
    Settings,
    /// Number of other servers.
    Servers(usize),
}

/// Why a client cannot be connected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{}` was not changed: {why}", .file.display())]
    Edit { file: PathBuf, why: EditError },
    #[error(transparent)]
    File(#[from] file::Error),
}

/// Adds the entry to the file's text.
pub fn plan_add(place: &EntryLocation, entry: &Map<String, Value>) -> Result<PendingEdit, Error> {
    plan_edit(place, |text| {
        let was_there = edit::find(place.client.format(), text, place.client.section(), &place.name)?.is_some();
        let text = edit::set(place.client.format(), text, place.client.section(), &place.name, entry)?;
        Ok((text, was_there))
    })
}

/// The file without the entry. If corbie's last change of the file is the only one since its newest backup, the result
/// is that backup, byte for byte.
pub fn plan_remove(place: &EntryLocation) -> Result<PendingEdit, Error> {
    let (format, section) = (place.client.format(), place.client.section());
    plan_edit(place, |text| {
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
pub fn find_entry(place: &EntryLocation) -> Result<Option<Value>, Error> {
    let opened = file::open(&place.file)?;
    let found = edit::find(place.client.format(), opened.text(), place.client.section(), &place.name);
    found.map_err(|why| Error::Edit { file: place.file.clone(), why })
}

fn plan_edit(
    place: &EntryLocation,
    edit: impl FnOnce(&str) -> Result<(String, bool), EditError>,
) -> Result<PendingEdit, Error> {
    let opened = file::open(&place.file)?;
    let edited = edit(opened.text());
    let (text, was_there) = edited.map_err(|why| Error::Edit { file: place.file.clone(), why })?;
    Ok(PendingEdit { file: opened, text, existed: was_there })
}

impl Error {
    /// Whether the user can fix the file and insert the entry manually.
    pub fn is_content_error(&self) -> bool {
        matches!(self, Error::Edit { .. } | Error::File(file::Error::NotUtf8 { .. }))
    }
}

impl PendingEdit {
    /// The file's content other than the entry.
    pub fn other_content(&self, place: &EntryLocation) -> Result<OtherContent, Error> {
        let found = edit::other_content(place.client.format(), self.file.text(), place.client.section(), &place.name);
        found.map_err(|why| Error::Edit { file: place.file.clone(), why })
    }

    /// Whether the servers are in one inline table, in TOML.
    pub fn is_inline(&self, place: &EntryLocation) -> bool {
        edit::is_inline(place.client.format(), self.file.text(), place.client.section())
    }

    /// Whether the change is empty.
    pub fn is_noop(&self) -> bool {
        self.file.text() == self.text
    }
}
