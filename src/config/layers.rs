//! Where configuration files are looked for, and which of them count.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Everything a configuration is made from. Nothing else is consulted, so a test can state it all.
#[derive(Clone, Default)]
pub struct Sources {
    /// `--config`: when given, no other file is read.
    pub file: Option<PathBuf>,
    /// The working folder, where the project's file stands.
    pub folder: PathBuf,
    /// The system's configuration folder, without `corbie` at its end.
    pub system: PathBuf,
    /// The environment.
    pub variables: BTreeMap<String, String>,
    /// What flags set: a key such as `server.name`, and its value.
    pub overrides: Vec<(String, Value)>,
}

/// One place that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub scope: Scope,
    pub path: PathBuf,
    pub state: State,
}

/// Whose file it is, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Given by `--config`.
    Named,
    Project,
    User,
    System,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Read and merged.
    Active,
    Absent,
    /// Another file in the same folder comes first.
    Shadowed,
    /// `--config` was given, so it is not read.
    Skipped,
}

/// In one folder the first of these that exists is read.
const NAMES: [&str; 4] = ["corbie.yaml", "corbie.yml", "corbie.toml", "corbie.json"];

/// Every place, in search order: what comes earlier wins over what comes later.
pub fn search(sources: &Sources) -> Vec<Layer> {
    let named = sources.file.iter().map(|path| Layer {
        scope: Scope::Named,
        path: sources.folder.join(path),
        state: State::Active,
    });
    let folders = [
        (Scope::Project, Some(sources.folder.clone())),
        (Scope::User, user_folder(&sources.variables).map(|folder| folder.join("corbie"))),
        (Scope::System, Some(sources.system.join("corbie"))),
    ];
    let searched = folders.into_iter().flat_map(|(scope, folder)| {
        folder.map(|folder| in_folder(scope, &folder, sources.file.is_some())).unwrap_or_default()
    });
    named.chain(searched).collect()
}

fn in_folder(scope: Scope, folder: &Path, skip: bool) -> Vec<Layer> {
    let mut found = false;
    let layer = |name| {
        let path = folder.join(name);
        // A file that cannot be looked at counts as there: reading it will say why.
        let exists = path.try_exists().unwrap_or(true);
        let state = match exists {
            false => State::Absent,
            true if skip => State::Skipped,
            true if found => State::Shadowed,
            true => State::Active,
        };
        found |= exists;
        Layer { scope, path, state }
    };
    NAMES.into_iter().map(layer).collect()
}

// === impl Sources ===

impl Sources {
    /// What this process was started with. The only place that reads the real environment.
    pub fn of_this_process() -> std::io::Result<Self> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        };
        let variables: BTreeMap<_, _> = std::env::vars_os().map(text).collect();
        Ok(Self {
            file: None,
            folder: std::env::current_dir()?,
            system: system_folder(&variables),
            variables,
            overrides: Vec::new(),
        })
    }
}

/// Says nothing of the environment and of flags, which hold secrets in clear.
impl fmt::Debug for Sources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sources = out.debug_struct("Sources");
        sources.field("file", &self.file).field("folder", &self.folder).field("system", &self.system);
        sources.finish_non_exhaustive()
    }
}

/// `$XDG_CONFIG_HOME` counts on every system; a relative one does not, as its specification says.
fn user_folder(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let folder = |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_CONFIG_HOME").or_else(|| {
        if cfg!(windows) {
            folder("APPDATA")
        } else if cfg!(target_os = "macos") {
            folder("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            folder("HOME").map(|home| home.join(".config"))
        }
    })
}

fn system_folder(variables: &BTreeMap<String, String>) -> PathBuf {
    if cfg!(windows) {
        variables.get("ProgramData").map_or_else(|| r"C:\ProgramData".into(), PathBuf::from)
    } else if cfg!(target_os = "macos") {
        "/Library/Application Support".into()
    } else {
        "/etc".into()
    }
}

// === impl Scope, State ===

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Named => "--config",
            Self::Project => "project",
            Self::User => "user",
            Self::System => "system",
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Active => "active",
            Self::Absent => "absent",
            Self::Shadowed => "shadowed",
            Self::Skipped => "skipped",
        })
    }
}
