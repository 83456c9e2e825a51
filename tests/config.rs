#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Configuration loading: files, variables and flags in, settings or diagnostics out.

#[path = "config/adversarial.rs"]
mod adversarial;
#[path = "config/approval.rs"]
mod approval;
#[path = "config/commands.rs"]
mod commands;
#[path = "config/diagnostics.rs"]
mod diagnostics;
#[path = "config/environment.rs"]
mod environment;
#[path = "config/expansion.rs"]
mod expansion;
#[path = "config/external_classifier.rs"]
mod external_classifier;
#[path = "config/formats.rs"]
mod formats;
#[path = "config/precedence.rs"]
mod precedence;
#[path = "config/providers.rs"]
mod providers;
#[path = "config/schema.rs"]
mod schema;
#[path = "config/secrets.rs"]
mod secrets;
#[path = "config/settings.rs"]
mod settings;

use std::path::PathBuf;

use corbie::config::{ApprovalFile, Config, ConfigError, LoadedConfig, Sources, approved_place, content_hash};
use serde_json::Value;

/// A machine with empty project, user and system configuration folders.
struct ConfigMachine {
    root: tempfile::TempDir,
    sources: Sources,
}

impl ConfigMachine {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| root.path().join(name);
        let sources = Sources {
            folder: path("project"),
            system: path("etc"),
            variables: [("XDG_CONFIG_HOME".to_owned(), path("home").display().to_string())].into(),
            ..Sources::default()
        };
        Self { root, sources }
    }

    /// Writes `name`, such as `project/corbie.yaml` or `home/corbie/corbie.toml`. The user approves a project's file.
    fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let machine = self.foreign_file(name, content);
        let path = machine.root.path().join(name);
        if let (true, Some(hash)) = (name.starts_with("project/corbie."), content_hash(&path)) {
            let place = approved_place(&path).expect("a path");
            ApprovalFile::of(&machine.sources.variables).expect("a home").approve(&place, hash).expect("an approval");
        }
        machine
    }

    /// Writes a file without approving it.
    fn foreign_file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
        std::fs::write(path, content).expect("a new file");
        self
    }

    /// Writes the project's file in YAML.
    fn project(self, yaml: &str) -> Self {
        self.file("project/corbie.yaml", yaml)
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.variables.insert(name.into(), value.into());
        self
    }

    fn flag(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.sources.overrides.push((key.into(), value.into()));
        self
    }

    /// Like `--config`.
    fn config(mut self, path: &str) -> Self {
        self.sources.file = Some(PathBuf::from(path));
        self
    }

    fn try_load(&self) -> Result<LoadedConfig, ConfigError> {
        Config::load(self.sources.clone())
    }

    #[track_caller]
    fn load(&self) -> Config {
        self.try_load().expect("a good configuration").config
    }

    #[track_caller]
    fn warnings(&self) -> Vec<String> {
        let warnings = self.try_load().expect("a good configuration").warnings;
        warnings.iter().map(|warning| self.relative(&warning.to_string())).collect()
    }

    /// Every diagnostic, one line each, with paths relative to the root of the machine.
    #[track_caller]
    fn diagnostics(&self) -> Vec<String> {
        let error = self.try_load().expect_err("a bad configuration");
        self.relative(&error.to_string()).lines().map(String::from).collect()
    }

    fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}{}", self.root.path().display(), std::path::MAIN_SEPARATOR), "")
    }
}
