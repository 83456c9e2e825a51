//! Locations of configuration files and their precedence.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};

use serde_json::Value;

/// All inputs of a configuration. No other input is read, so a test can define all of them.
#[derive(Clone, Default)]
pub struct Sources {
    /// `--config`: the only file that is read. If it is the user's own file, the system's file still applies. The variable
    /// `CORBIE_CONFIG` does the same with an absolute path.
    pub file: Option<PathBuf>,
    /// The working folder, which may contain a project file.
    pub folder: PathBuf,
    /// The system's configuration folder, without `corbie` at its end.
    pub system: PathBuf,
    /// The environment.
    pub variables: BTreeMap<String, String>,
    /// Values of flags: a key such as `server.name`, and its value.
    pub overrides: Vec<(String, Value)>,
}

/// A location that was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub scope: Scope,
    pub path: PathBuf,
    pub state: State,
    /// For a project file, set only after the file was read.
    pub approval: Approval,
}

/// Owner of the file, highest precedence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Given by `--config` or `CORBIE_CONFIG`.
    Explicit,
    /// Found in the working folder, which may be untrusted.
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
    /// Not read, because `--config` was given.
    Skipped,
}

/// Which settings of a file take effect (X-46).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Named by the user, or found in the user's or the system's configuration folder.
    NotNeeded,
    /// A project file whose content the user has approved.
    Approved,
    /// A project file that has changed since; the approved content stays in effect until the next start.
    Outdated,
    /// A project file of which only harmless settings take effect.
    Unapproved,
}

/// The variable that names a file, as `--config` does.
pub(super) const CONFIG_VARIABLE: &str = "CORBIE_CONFIG";

/// The first of these that exists in a folder is read.
pub(super) const NAMES: [&str; 4] = ["corbie.yaml", "corbie.yml", "corbie.toml", "corbie.json"];

/// All locations, highest precedence first.
pub fn search(sources: &Sources) -> Vec<Layer> {
    let user = sources.user_config_dir();
    let system = sources.system.join("corbie");
    let named = sources.named_file().map(|path| sources.folder.join(path));
    // If the user's own file is named, only the project's file is left out: the administrator's settings still apply.
    let names_own = named.as_ref().is_some_and(|named| sources.user_file().is_some_and(|own| is_same(named, &own)));
    let is_skipped = |scope| named.is_some() && !(names_own && scope == Scope::System);
    let named = named.iter().map(|path| Layer {
        scope: Scope::Explicit,
        path: path.clone(),
        state: State::Active,
        approval: Approval::NotNeeded,
    });
    // If the working folder is one of these, the file in it is the user's own and not a project's.
    let is_own = user.iter().chain([&system]).any(|folder| is_same(folder, &sources.folder));
    let folders = [
        (Scope::Project, (!is_own).then(|| sources.folder.clone())),
        (Scope::User, user),
        (Scope::System, Some(system)),
    ];
    let searched =
        folders.into_iter().filter_map(|(scope, folder)| Some(layers_in_dir(scope, &folder?, is_skipped(scope))));
    named.chain(searched.flatten()).collect()
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

pub(super) fn layers_in_dir(scope: Scope, folder: &Path, skip: bool) -> Vec<Layer> {
    let mut found = false;
    let approval = if scope == Scope::Project { Approval::Unapproved } else { Approval::NotNeeded };
    let layer = |name| {
        let path = folder.join(name);
        // A file whose existence cannot be determined counts as existing: reading it reports the error.
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
    /// The sources of this process. This is the only function that reads the real environment.
    ///
    /// A relative path in `CORBIE_CONFIG` is an error.
    pub fn from_process() -> io::Result<Self> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        };
        let variables: BTreeMap<_, _> = std::env::vars_os().map(text).collect();
        check_config_variable(&variables)?;
        Ok(Self {
            file: None,
            folder: std::env::current_dir()?,
            system: system_config_dir(&variables),
            variables,
            overrides: Vec::new(),
        })
    }

    /// The file that the user named. The flag takes precedence over the variable; a relative path in the variable is
    /// ignored.
    pub fn named_file(&self) -> Option<PathBuf> {
        let variable = || self.variables.get(CONFIG_VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute());
        self.file.clone().or_else(variable)
    }

    /// The user's own file, if it exists.
    pub fn user_file(&self) -> Option<PathBuf> {
        let layers = layers_in_dir(Scope::User, &self.user_config_dir()?, false);
        layers.into_iter().find(|layer| layer.state == State::Active).map(|layer| layer.path)
    }

    /// The user's home folder.
    pub(super) fn home_folder(&self) -> Option<&Path> {
        let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        self.variables.get(name).map(Path::new).filter(|home| home.is_absolute())
    }

    /// Working folder of programs whose command comes from no file: the user's configuration folder, else the home
    /// folder, else the root. It is never corbie's working folder, which may be untrusted.
    pub(super) fn program_folder(&self) -> PathBuf {
        let folders = self.user_config_dir().into_iter().chain(self.home_folder().map(Path::to_owned));
        folders.into_iter().find(|folder| folder.is_dir()).unwrap_or_else(|| MAIN_SEPARATOR_STR.into())
    }

    pub(super) fn user_config_dir(&self) -> Option<PathBuf> {
        user_config_dir(&self.variables).map(|folder| folder.join("corbie"))
    }
}

/// Omits the environment and flags, which contain secrets in plain text.
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

/// `$XDG_CONFIG_HOME` applies on every system; a relative path is ignored, as its specification requires.
pub(super) fn user_config_dir(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
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

fn system_config_dir(variables: &BTreeMap<String, String>) -> PathBuf {
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
    /// Whether the file is read without the user's approval.
    pub fn is_unapproved(&self) -> bool {
        self.state == State::Active && self.approval == Approval::Unapproved
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Explicit => "--config",
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
