//! Tells MCP clients of this program: the file that each of them reads gets an entry, and loses it again.
//!
//! [`client`] knows the clients, [`entry`] what each wants to read, [`edit`] changes the text of a file and nothing
//! else in it, [`diff`] shows the change, and [`file`] is the only part that touches the disk.

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

/// Where one client's entry stands, or is to stand.
#[derive(Debug)]
pub struct Place {
    pub client: Client,
    /// The file, as the client calls it; it may be a link to another.
    pub file: PathBuf,
    /// The name of the entry.
    pub name: String,
}

/// A change of a file that has not been made yet.
#[derive(Debug)]
pub struct Change {
    pub opened: Opened,
    /// The whole file as it would be.
    pub text: String,
    /// There is an entry of that name now.
    pub was_there: bool,
}

/// What a file has besides the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// Other members, and no other servers.
    Settings,
    /// So many other servers.
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

/// What the file would be with the entry in it.
pub fn adding(place: &Place, entry: &Map<String, Value>) -> Result<Change, Error> {
    change(place, |text| {
        let was_there = edit::find(place.client.format(), text, place.client.section(), &place.name)?.is_some();
        let text = edit::set(place.client.format(), text, place.client.section(), &place.name, entry)?;
        Ok((text, was_there))
    })
}

/// What the file would be without the entry. If it is what this program made of the file that it put aside last, it
/// is that file again, to the byte.
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

/// The entry that is there now.
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
    /// A person can put the file right, and the entry into it.
    pub fn is_mistake_in_the_file(&self) -> bool {
        matches!(self, Error::Refused { .. } | Error::File(file::Error::NotUtf8 { .. }))
    }
}

impl Change {
    /// What else the file has now.
    pub fn beside(&self, place: &Place) -> Result<Beside, Error> {
        let found = edit::beside(place.client.format(), self.opened.text(), place.client.section(), &place.name);
        found.map_err(|why| Error::Refused { file: place.file.clone(), why })
    }

    /// Whether the servers stand within one pair of braces, in TOML.
    pub fn is_inline(&self, place: &Place) -> bool {
        edit::is_inline(place.client.format(), self.opened.text(), place.client.section())
    }

    /// Nothing would be different.
    pub fn is_none(&self) -> bool {
        self.opened.text() == self.text
    }
}
