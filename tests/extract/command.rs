//! Runs `corbie extract` in its own folder.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with files to read.
pub(crate) struct ExtractFolder {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// A finished command.
#[derive(Debug)]
pub(crate) struct ExtractOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ExtractFolder {
    pub(crate) fn with_files<const N: usize>(files: [(&str, &[u8]); N]) -> ExtractFolder {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        ExtractFolder { folder, variables: Vec::new() }
    }

    /// A setting of `documents`.
    pub(crate) fn setting(self, setting: &str, value: &str) -> ExtractFolder {
        self.variable(&format!("CORBIE_DOCUMENTS__{}", setting.to_uppercase()), value)
    }

    /// A setting of `ocr`.
    pub(crate) fn ocr_setting(self, setting: &str, value: &str) -> ExtractFolder {
        self.variable(&format!("CORBIE_OCR__{}", setting.to_uppercase()), value)
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> ExtractFolder {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The command with these arguments, separated by spaces.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_corbie"));
        command.arg("extract").args(arguments.split_whitespace()).current_dir(self.folder()).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> ExtractOutput {
        self.run_with_stdin(arguments, b"")
    }

    pub(crate) fn run_with_stdin(&self, arguments: &str, input: &[u8]) -> ExtractOutput {
        let mut child = self.command(arguments).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        ExtractOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The `--json` output for one file.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &str) -> Value {
        let ended = self.run(&format!("--json {arguments}"));
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }
}

/// One file, read with `--json`.
#[track_caller]
pub(crate) fn extract_json(name: &str, bytes: &[u8]) -> Value {
    ExtractFolder::with_files([(name, bytes)]).json(name)
}

/// The texts of all pages.
#[track_caller]
pub(crate) fn page_texts(read: &Value) -> Vec<&str> {
    let pages = read["pages"].as_array().unwrap_or_else(|| panic!("no pages in {read}"));
    pages.iter().map(|page| page["text"].as_str().unwrap()).collect()
}
