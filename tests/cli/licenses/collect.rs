//! Collects license texts of crates, of software bundled in crates, of models and of documents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use corbie_infer::builtin_models;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::packages::Package;

/// Texts by a prefix of their hash.
type Texts = BTreeMap<String, String>;

/// Names of license files.
const NAMES: [&str; 7] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "UNLICENSE", "NOTICE", "AUTHORS"];
/// Folders of a package that are not compiled into the program.
const EXCLUDED_FOLDERS: [&str; 3] = ["TESTS", "EXAMPLES", "BENCHES"];

/// All components and all texts.
pub(super) fn collect(packages: &[Package]) -> (Vec<Value>, Texts) {
    let mut texts = Texts::new();
    let own = insert_text(&read(&root().join("LICENSE")), &mut texts);
    let version = env!("CARGO_PKG_VERSION");
    let mut parts = vec![
        json!({ "kind": "program", "name": "corbie", "version": version, "license": "Apache-2.0", "texts": [own] }),
        json!({
            "kind": "documents", "name": "sample documents of `corbie demo`", "version": version,
            "license": "Apache-2.0", "texts": [own],
        }),
    ];
    for card in builtin_models() {
        let source = &card.source;
        let license = match source.model_license == source.package_license {
            true => source.model_license.clone(),
            false => format!("{} AND {}", source.model_license, source.package_license),
        };
        let folder = root().join("crates/infer/models").join(card.id.trim_end_matches("-int8"));
        let of: Vec<String> = license_files(&folder).iter().map(|path| insert_text(&read(path), &mut texts)).collect();
        parts.push(
            json!({ "kind": "model", "name": card.id, "version": source.version, "license": license, "texts": of }),
        );
    }
    for package in packages {
        // Components bundled in a crate that are listed separately.
        match package.name.as_str() {
            "hayro-font" => {
                let text = insert_text(&read(&package.folder.join("assets/LICENSE_FOXIT")), &mut texts);
                parts.push(json!({
                    "kind": "font", "name": "Foxit fonts", "version": package.version, "license": "BSD-3-Clause", "texts": [text],
                }));
            }
            "libsqlite3-sys" => {
                let text = insert_text(&sqlite_blessing(&package.folder), &mut texts);
                parts.push(json!({
                    "kind": "library", "name": "SQLite", "version": sqlite_version(&package.folder),
                    "license": "blessing (public domain)", "texts": [text],
                }));
            }
            _ => {}
        }
    }
    for package in packages {
        let mut of: Vec<String> =
            license_files(&package.folder).iter().map(|path| insert_text(&read(path), &mut texts)).collect();
        let standard = of.is_empty();
        if standard {
            of.push(insert_text(&standard_text(package, packages), &mut texts));
        }
        of.sort_unstable();
        of.dedup();
        let mut part = json!({
            "kind": "crate", "name": package.name, "version": package.version, "license": package.license, "texts": of,
        });
        if standard {
            part["standard_text"] = json!(true);
        }
        parts.push(part);
    }
    (parts, texts)
}

/// The standard license text, if the package ships none; of several licenses, the most permissive one.
fn standard_text(package: &Package, packages: &[Package]) -> String {
    let ours = |name: &str| {
        let text = read(&root().join("src/cli/licenses").join(name));
        text.replace("NAME", &package.name)
    };
    match package.license.as_str() {
        license if license.contains("MIT") => ours("MIT.txt"),
        license if license.contains("Apache-2.0") => read(&root().join("LICENSE")),
        "BSD-3-Clause" => ours("BSD-3-Clause.txt"),
        // The text of another package with the same license.
        license => {
            let same = |other: &&Package| other.license == license && !license_files(&other.folder).is_empty();
            let other =
                packages.iter().find(same).unwrap_or_else(|| panic!("{} has no text for {license}", package.name));
            read(&license_files(&other.folder)[0])
        }
    }
}

/// The license files of a package, in any folder.
fn license_files(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().to_uppercase();
            if path.is_dir() {
                if !name.starts_with('.') && !EXCLUDED_FOLDERS.contains(&&*name) {
                    folders.push(path);
                }
            } else if !name.ends_with(".RS") && NAMES.iter().any(|known| name.contains(known)) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths
}

/// The public domain dedication at the start of SQLite's source.
fn sqlite_blessing(folder: &Path) -> String {
    let source = read(&folder.join("sqlite3/sqlite3.h"));
    let from = source.find("The author disclaims copyright").expect("SQLite's blessing");
    let lines = source[from..].lines().take_while(|line| !line.contains("****"));
    lines.map(|line| line.trim_start_matches(['*', ' '])).collect::<Vec<_>>().join("\n")
}

fn sqlite_version(folder: &Path) -> String {
    let source = read(&folder.join("sqlite3/sqlite3.h"));
    let line = source.lines().find(|line| line.starts_with("#define SQLITE_VERSION ")).expect("SQLite's version");
    line.split('"').nth(1).expect("a version in quotes").to_owned()
}

/// Stores a text and returns its name. Trailing spaces are ignored.
fn insert_text(text: &str, texts: &mut Texts) -> String {
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    let text = lines.join("\n").trim_matches('\n').to_owned();
    let name: String = Sha256::digest(text.as_bytes()).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    texts.insert(name.clone(), text);
    name
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
