#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Compile-fail tests of `#[mcp_tool]`.
//!
//! rustc compiles each file against the library that cargo has built for the tests; a build of its own would compile all
//! dependencies again. Each file has its expected output next to it; `CORBIE_BLESS=1` regenerates the output, to be
//! reviewed before committing.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest build of the library. Another selection of features has another file name.
fn library(folder: &Path) -> PathBuf {
    let files = folder.read_dir().unwrap().flatten().map(|file| file.path());
    let libraries = files.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libcorbie_mcp-") && name.ends_with(".rlib")
    });
    libraries.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).expect("the library")
}

/// The errors of a file without the summary after them.
fn errors(file: &Path, folder: &Path, library: &Path) -> String {
    let out = tempfile::tempdir().unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--cap-lints=allow", "--color=never"]);
    command.arg("--out-dir").arg(out.path());
    command.arg("-L").arg(format!("dependency={}", folder.display()));
    command.arg("--extern").arg(format!("corbie_mcp={}", library.display())).arg(file);
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{} compiles", file.display());
    let text = String::from_utf8(output.stderr).unwrap();
    let end = text.find("error: aborting due to").expect("a summary");
    format!("{}\n", text[..end].trim_end())
}

#[test]
fn misuse_is_answered_with_what_to_write_instead() {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let library = library(folder);
    let files = Path::new("tests/compile_fail").read_dir().unwrap().flatten().map(|file| file.path());
    let mut sources: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|is| is == "rs")).collect();
    sources.sort();
    assert!(!sources.is_empty());
    for source in sources {
        let expected = source.with_extension("stderr");
        let actual = errors(&source, folder, &library);
        if std::env::var_os("CORBIE_BLESS").is_some() {
            std::fs::write(&expected, &actual).unwrap();
        }
        let text = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(actual, text, "{}", source.display());
    }
}
