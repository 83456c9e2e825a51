//! Where configuration files are looked for, and which of them count.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Everything a configuration is made from. Nothing else is consulted, so a test can state it all.
#[derive(Clone, Default)]
pub struct Sources {
    /// `--config`: when given, no other file is read. The variable `CORBIE_CONFIG` does the same with an absolute path.
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
    /// Of a project file this is known only after it was read.
    pub approval: Approval,
}

/// Whose file it is, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Given by `--config` or `CORBIE_CONFIG`.
    Named,
    /// Found in the working folder, which may be the work of others.
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

/// How far the settings of a file count (X-46).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// The user named it, or it stands in the user's or the system's configuration folder.
    NotNeeded,
    /// A project file whose content the user has approved.
    Approved,
    /// A project file that has changed since; the content approved before stays in force until the next start.
    Outdated,
    /// A project file of which only harmless settings count.
    Unapproved,
}

/// The variable that names a file as `--config` does.
pub(super) const CONFIG_VARIABLE: &str = "CORBIE_CONFIG";

/// In one folder the first of these that exists is read.
pub(super) const NAMES: [&str; 4] = ["corbie.yaml", "corbie.yml", "corbie.toml", "corbie.json"];

/// Every place, in search order: what comes earlier wins over what comes later.
pub fn search(sources: &Sources) -> Vec<Layer> {
    let named = sources.named_file();
    let skip = named.is_some();
    let named = named.into_iter().map(|path| Layer {
        scope: Scope::Named,
        path: sources.folder.join(path),
        state: State::Active,
        approval: Approval::NotNeeded,
    });
    let user = sources.user_folder();
    let system = sources.system.join("corbie");
    // Started in one of these folders, a program finds the user's own file there, not a project's.
    let is_own = user.iter().chain([&system]).any(|folder| is_same_folder(folder, &sources.folder));
    let folders = [
        (Scope::Project, (!is_own).then(|| sources.folder.clone())),
        (Scope::User, user),
        (Scope::System, Some(system)),
    ];
    let searched = folders
        .into_iter()
        .flat_map(|(scope, folder)| folder.map(|folder| in_folder(scope, &folder, skip)).unwrap_or_default());
    named.chain(searched).collect()
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

pub(super) fn in_folder(scope: Scope, folder: &Path, skip: bool) -> Vec<Layer> {
    let mut found = false;
    let approval = if scope == Scope::Project { Approval::Unapproved } else { Approval::NotNeeded };
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
        Layer { scope, path, state, approval }
    };
    NAMES.into_iter().map(layer).collect()
}

// === impl Sources ===

impl Sources {
    /// What this process was started with. The only place that reads the real environment.
    ///
    /// A relative path in `CORBIE_CONFIG` is an error.
    pub fn of_this_process() -> io::Result<Self> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        };
        let variables: BTreeMap<_, _> = std::env::vars_os().map(text).collect();
        check_config_variable(&variables)?;
        Ok(Self {
            file: None,
            folder: std::env::current_dir()?,
            system: system_folder(&variables),
            variables,
            overrides: Vec::new(),
        })
    }

    /// The file that the user named: the flag counts before the variable, of which a relative path does not count.
    pub fn named_file(&self) -> Option<PathBuf> {
        let variable = || self.variables.get(CONFIG_VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute());
        self.file.clone().or_else(variable)
    }

    /// The user's own file, where there is one.
    pub fn user_file(&self) -> Option<PathBuf> {
        let layers = in_folder(Scope::User, &self.user_folder()?, false);
        layers.into_iter().find(|layer| layer.state == State::Active).map(|layer| layer.path)
    }

    fn user_folder(&self) -> Option<PathBuf> {
        user_folder(&self.variables).map(|folder| folder.join("corbie"))
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

/// Rejects a relative path in `CORBIE_CONFIG`. It would name another file in each working folder, and a named file
/// needs no approval.
fn check_config_variable(variables: &BTreeMap<String, String>) -> io::Result<()> {
    match variables.get(CONFIG_VARIABLE) {
        Some(path) if !path.is_empty() && !Path::new(path).is_absolute() => {
            let message = format!("{CONFIG_VARIABLE} must be an absolute path; for a relative path, use `--config`");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        _ => Ok(()),
    }
}

/// `$XDG_CONFIG_HOME` counts on every system; a relative one does not, as its specification says.
pub(super) fn user_folder(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
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

// === impl Layer, Scope, State, Approval ===

impl Layer {
    /// A file that is read although the user has not approved it.
    pub fn is_unapproved(&self) -> bool {
        self.state == State::Active && self.approval == Approval::Unapproved
    }
}

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

impl fmt::Display for Approval {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::NotNeeded => "no approval needed",
            Self::Approved => "approved",
            Self::Outdated => "changed, not approved",
            Self::Unapproved => "not approved",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x46_the_variable_names_a_file_by_its_absolute_path() {
        let check = |path: &str| check_config_variable(&[(CONFIG_VARIABLE.to_owned(), path.to_owned())].into());
        let absolute = std::env::temp_dir().join("corbie.yaml").display().to_string();
        assert!(check_config_variable(&BTreeMap::new()).is_ok());
        assert!(check("").is_ok() && check(&absolute).is_ok());
        for relative in ["corbie.yaml", "./corbie.yaml", "../corbie.yaml"] {
            let error = check(relative).unwrap_err();
            assert!(error.to_string().contains("CORBIE_CONFIG must be an absolute path"), "{error}");
        }
    }
}
