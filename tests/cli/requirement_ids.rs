//! Requirement ids: every id that code or a test cites is defined in `docs/spec/`, and every row there has a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Elliptic curves, which look like rows of part P.
const NOT_IDS: [&str; 3] = ["P-256", "P-384", "P-521"];

#[test]
fn every_cited_id_is_defined_in_the_specification() {
    let defined = defined_ids("");
    let mut undefined = BTreeMap::<String, BTreeSet<PathBuf>>::new();
    for path in sources(&["src", "crates", "tests", "bench/src", "examples", "fuzz"], &["rs", "mjs", "py", "ts"]) {
        let text = fs::read_to_string(&path).unwrap();
        let ids = ids_in_text(&text).into_iter().chain(if is_rust(&path) {
            ids_in_test_names(&text)
        } else {
            BTreeSet::new()
        });
        for id in ids.filter(|id| !defined.contains(id)) {
            undefined.entry(id).or_default().insert(path.clone());
        }
    }
    assert!(undefined.is_empty(), "docs/spec defines no row for these ids: {undefined:#?}");
}

#[test]
fn every_row_of_the_specification_has_a_test() {
    let mut tested = BTreeSet::new();
    for path in sources(&["src", "crates", "tests"], &["rs"]) {
        tested.extend(ids_in_test_names(&fs::read_to_string(&path).unwrap()));
    }
    // Scripts have no test names; they cite the row next to the check.
    for path in sources(&["tests", "bench"], &["mjs", "py", "ts", ""]) {
        tested.extend(ids_in_text(&fs::read_to_string(&path).unwrap_or_default()));
    }
    let without_test: Vec<String> = defined_ids("planned.md").into_iter().filter(|id| !tested.contains(id)).collect();
    assert!(without_test.is_empty(), "rows of docs/spec that no test carries: {without_test:?}");
}

#[test]
fn ids_are_read_from_test_names_and_from_prose() {
    assert_eq!(ids_in_test_names("#[test]\nfn m85_x12_destructive() {}\nfn p50_ms() {}"), id_set(&["M-85", "X-12"]));
    assert_eq!(ids_in_test_names("#[tokio::test]\nasync fn k05_adds() {}"), id_set(&["K-05"]));
    assert_eq!(
        ids_in_text("see X-41, (M-85) and `K-05`; not UTF-16, A-1, P-256 or RX-41"),
        id_set(&["K-05", "M-85", "X-41"])
    );
}

fn id_set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// The ids of all rows of `docs/spec`, except for the page `except`.
fn defined_ids(except: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs/spec")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name == except) {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            if let Some(id) = line.strip_prefix("| ").and_then(|rest| rest.split(" |").next()).filter(|id| is_id(id)) {
                assert!(ids.insert(id.to_owned()), "{id} is defined twice");
            }
        }
    }
    ids
}

/// Ids in the names of test functions: `fn m85_x12_…` after a test attribute has M-85 and X-12.
fn ids_in_test_names(text: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= line.contains("test");
            continue;
        }
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        // Properties are inside of `proptest!`, where the attribute is the same.
        if let Some(name) = function.filter(|_| is_test) {
            ids.extend(name.split('_').map_while(|word| {
                let (letter, digits) = word.split_at_checked(1)?;
                let id = format!("{}-{digits}", letter.to_ascii_uppercase());
                (letter.chars().all(|c| c.is_ascii_lowercase()) && is_id(&id)).then_some(id)
            }));
        }
        if !line.is_empty() && !line.starts_with("//") {
            is_test = false;
        }
    }
    ids
}

/// Ids in prose: `X-41`, not part of a longer word.
fn ids_in_text(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
        .filter(|word| is_id(word) && !NOT_IDS.contains(word))
        .map(str::to_owned)
        .collect()
}

fn is_id(word: &str) -> bool {
    let Some((part, digits)) = word.split_once('-') else { return false };
    part.len() == 1
        && "ATMCPKESNFVXZ".contains(part)
        && (2..=3).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_digit())
}

fn sources(folders: &[&str], extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !["target", "node_modules", "corpus", ".venv"].contains(&name) {
                folders.push(path);
            } else if path.is_file()
                && extensions.contains(&path.extension().and_then(|e| e.to_str()).unwrap_or_default())
            {
                found.push(path);
            }
        }
    }
    found
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
