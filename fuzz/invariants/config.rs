//! Invariants of configuration: a file is accepted or rejected with diagnostics, and the output of `config show` for an
//! accepted file is equivalent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use corbie::cli::config::{Show, show};
use corbie::config::{Config, ConfigError, Sources};

/// The first byte selects the file format.
pub(super) fn check_invariants(bytes: &[u8]) {
    let Some((first, text)) = bytes.split_first() else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let written = write(folder.path(), ["yaml", "toml", "json"][usize::from(first % 3)], text);
    match Config::load(sources(folder.path(), &written)) {
        Ok(_) => {
            let shown = config_show(folder.path(), &written, false);
            // The mask of a token is no token that could guard a server.
            let filled = shown.replace("token: \"***\"", "token: 8f14e45fceea167a5a36dedd4bea2543");
            let again = write(folder.path(), "again.yaml", filled.as_bytes());
            assert_eq!(
                self::config_show(folder.path(), &again, false),
                shown,
                "settings that are shown can be read again"
            );
        }
        Err(error) => check_diagnostics(&error, text),
    }
}

/// Every diagnostic has a message and points into the file.
pub(super) fn check_diagnostics(error: &ConfigError, text: &[u8]) {
    let lines = text.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    assert!(!error.diagnostics.is_empty());
    for problem in &error.diagnostics {
        assert!(!problem.message.is_empty());
        if let Some(position) = problem.origin.as_ref().and_then(|origin| origin.position) {
            assert!((1..=lines + 1).contains(&position.line), "line {} of {lines}", position.line);
        }
    }
}

fn write(folder: &Path, end: &str, text: &[u8]) -> PathBuf {
    let path = folder.join(format!("corbie.{end}"));
    std::fs::write(&path, text).expect("there is room");
    path
}

/// Only this file and the given variables.
fn sources(folder: &Path, file: &Path) -> Sources {
    let variables = BTreeMap::from([("WORD", "word"), ("HOME", "/home/nobody")]);
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Sources {
        file: Some(file.to_owned()),
        folder: folder.to_owned(),
        system: folder.to_owned(),
        variables,
        ..Sources::default()
    }
}

fn config_show(folder: &Path, file: &Path, json: bool) -> String {
    let mut out = Vec::new();
    if let Err(error) = show(&Show { json }, sources(folder, file), &mut out) {
        panic!("settings that were taken are not taken any more: {error}");
    }
    String::from_utf8(out).expect("text")
}
