//! A program that a setting names: where it is looked for, and the folder that it runs in.
//!
//! MCP clients start corbie in folders that others wrote. Neither the program nor the files that its arguments name may
//! come from there by accident, so the working folder of corbie plays no part in either.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf, is_separator};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

/// A program and its working folder. Written as a name, which is looked up in `PATH`, or as a path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "PathBuf", into = "PathBuf")]
pub struct Program {
    name: PathBuf,
    folder: PathBuf,
}

/// The search path of the C library where `PATH` is not set.
const DEFAULT_PATH: &str = if cfg!(unix) { "/usr/bin:/bin" } else { "" };

impl Program {
    /// The name or path. Once the settings are loaded, a path is absolute.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The folder that the program runs in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets the folder that the program runs in, from which a relative path starts.
    pub(super) fn set_folder(&mut self, folder: PathBuf) {
        if self.is_path() {
            self.name = folder.join(&self.name);
        }
        self.folder = folder;
    }

    /// The path, unless the program is a name.
    pub(super) fn path_mut(&mut self) -> Option<&mut PathBuf> {
        self.is_path().then_some(&mut self.name)
    }

    /// A command that starts the program in its folder. `search_path` is the `PATH` that the program gets.
    pub fn command(&self, search_path: Option<&OsStr>) -> io::Result<Command> {
        let mut command = Command::new(self.find(search_path)?);
        command.current_dir(&self.folder);
        Ok(command)
    }

    /// The file to run. An empty or relative entry of `PATH` means the working folder, so it is skipped.
    fn find(&self, search_path: Option<&OsStr>) -> io::Result<PathBuf> {
        if self.is_path() {
            return Ok(self.folder.join(&self.name));
        }
        let folders = std::env::split_paths(search_path.unwrap_or(OsStr::new(DEFAULT_PATH)));
        let files = folders.filter(|folder| folder.is_absolute()).flat_map(|folder| {
            let suffix = format!("{}{}", self.name.display(), std::env::consts::EXE_SUFFIX);
            [folder.join(&self.name), folder.join(suffix)]
        });
        files.into_iter().find(|file| is_executable(file)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn is_path(&self) -> bool {
        self.name.to_string_lossy().contains(is_separator)
    }
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

impl From<PathBuf> for Program {
    fn from(name: PathBuf) -> Program {
        Program { name, folder: MAIN_SEPARATOR_STR.into() }
    }
}

impl From<&str> for Program {
    fn from(name: &str) -> Program {
        PathBuf::from(name).into()
    }
}

impl From<Program> for PathBuf {
    fn from(program: Program) -> PathBuf {
        program.name
    }
}

impl JsonSchema for Program {
    fn schema_name() -> Cow<'static, str> {
        "Program".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, folder: &Path) -> Program {
        let mut program = Program::from(name);
        program.set_folder(folder.to_owned());
        program
    }

    #[test]
    fn x46_a_path_starts_from_the_folder_and_an_absolute_one_stays() {
        let folder = Path::new("/home/user/.config/corbie");
        for (name, file) in [
            ("bin/sorter", "/home/user/.config/corbie/bin/sorter"),
            ("./sorter", "/home/user/.config/corbie/./sorter"),
            ("/opt/sorter", "/opt/sorter"),
        ] {
            let program = program(name, folder);
            assert_eq!(program.find(Some(OsStr::new("/bin"))).unwrap(), Path::new(file));
            assert_eq!((program.name(), program.folder()), (Path::new(file), folder));
        }
    }

    #[cfg(unix)]
    #[test]
    fn x46_a_name_is_looked_up_in_absolute_entries_of_path_alone() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let (plain, executable) = (root.path().join("plain"), root.path().join("executable"));
        for (folder, mode) in [(&plain, 0o644), (&executable, 0o755)] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("sorter"), "").unwrap();
            std::fs::set_permissions(folder.join("sorter"), PermissionsExt::from_mode(mode)).unwrap();
        }
        // The folder itself is never searched.
        let find = |search_path: String| program("sorter", &executable).find(Some(OsStr::new(&search_path))).ok();
        assert_eq!(find(format!(":.::{}:{}", plain.display(), executable.display())), Some(executable.join("sorter")));
        for search_path in [String::new(), ":".into(), ".".into(), "..:bin".into(), plain.display().to_string()] {
            assert_eq!(find(search_path.clone()), None, "{search_path:?}");
        }
        for name in ["", ".", ".."] {
            assert!(program(name, &executable).find(Some(executable.as_os_str())).is_err(), "{name:?}");
        }
    }

    #[test]
    fn x46_without_path_the_folders_of_the_system_are_searched() {
        if cfg!(unix) {
            assert!(program("sh", Path::new("/")).find(None).unwrap().is_absolute());
        }
    }
}
