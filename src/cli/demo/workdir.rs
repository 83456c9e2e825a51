//! Temporary folder and configuration of the demo.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::documents;
use crate::config::{Config, ConfigError, LoadedConfig, Sources};

#[derive(Debug)]
pub(super) struct Workdir(TempDir);

/// Attempts at removing the folder: a thread that is shutting down may still write a file into it.
const MAX_REMOVE_ATTEMPTS: u32 = 50;
const RETRY_DELAY: Duration = Duration::from_millis(20);

impl Workdir {
    /// Creates a folder in the system's temporary directory and writes the documents into it.
    pub(super) fn new() -> io::Result<Workdir> {
        let within = std::path::absolute(std::env::temp_dir())?;
        // Settings are UTF-8, including paths.
        if within.to_str().is_none() {
            let why = "the path of the temporary folder is not UTF-8; set TMPDIR to another folder";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let place = Workdir(tempfile::Builder::new().prefix("corbie-demo-").tempdir_in(within)?);
        documents::write(&place.documents())?;
        Ok(place)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn documents(&self) -> PathBuf {
        self.path().join(documents::FOLDER)
    }

    /// Settings that ignore the user's files and environment variables and touch none of the user's data. The only
    /// provider is the mock.
    pub(super) fn settings(&self) -> Result<LoadedConfig, ConfigError> {
        let of_nobody = self.path().join("no-settings");
        Config::load(Sources {
            file: None,
            folder: of_nobody.clone(),
            system: of_nobody,
            variables: BTreeMap::new(),
            overrides: vec![
                ("knowledge.storage_path".into(), json!(self.path().join("knowledge"))),
                // The documents are short, so small chunks give short passages.
                ("knowledge.chunk_size".into(), json!(100)),
                ("knowledge.chunk_overlap".into(), json!(0)),
                ("server.tokens_file".into(), json!(self.path().join("tokens.json"))),
                // A console page left open must not delay shutdown.
                ("server.shutdown_grace_seconds".into(), json!(1)),
                ("providers.detect_ports".into(), json!([])),
                ("providers.mock".into(), json!({ "type": "mock" })),
                ("router.models.math".into(), json!("mock/mock-reasoner")),
                ("defaults.model".into(), json!("mock/mock")),
            ],
        })
    }

    /// Removes the folder, or returns an error with its path.
    pub(super) fn remove(self) -> io::Result<()> {
        let folder = self.0.keep();
        remove(&folder).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("`{}` cannot be removed: {error}; remove it manually", folder.display()),
            )
        })
    }
}

/// Removes a folder that other threads may still be writing to.
#[expect(clippy::disallowed_methods, reason = "the program is about to end, and nothing runs beside it")]
pub(in crate::cli) fn remove(folder: &Path) -> io::Result<()> {
    for _ in 1..MAX_REMOVE_ATTEMPTS {
        match std::fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => return Ok(()),
            Err(_) => thread::sleep(RETRY_DELAY),
        }
    }
    std::fs::remove_dir_all(folder)
}
