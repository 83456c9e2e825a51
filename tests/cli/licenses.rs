//! `corbie licenses`, and the lists it prints, generated here from cargo metadata.
//!
//! `CORBIE_BLESS=1 cargo nextest run -p corbie --test cli licenses` updates them.

#[path = "licenses/collect.rs"]
mod collect;
#[path = "licenses/packages.rs"]
mod packages;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::process::corbie;

const REGENERATE: &str = "run: CORBIE_BLESS=1 cargo nextest run -p corbie --test cli licenses";

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/cli/licenses").join(name)
}

fn unpacked() -> String {
    let packed = std::fs::read(file("texts.json.gz")).unwrap_or_default();
    let mut text = String::new();
    let _ = GzDecoder::new(&*packed).read_to_string(&mut text);
    text
}

#[test]
fn the_list_of_licences_is_that_of_the_locked_packages() {
    let (parts, texts) = collect::collect(&packages::packages());
    // One component per line, for readable diffs.
    let lines: Vec<String> = parts.iter().map(Value::to_string).collect();
    let (list, texts) = (format!("[\n{}\n]\n", lines.join(",\n")), serde_json::to_string(&texts).unwrap());
    if std::env::var_os("CORBIE_BLESS").is_some() {
        std::fs::write(file("list.json"), &list).unwrap();
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(texts.as_bytes()).unwrap();
        std::fs::write(file("texts.json.gz"), packed.finish().unwrap()).unwrap();
    }
    let kept = std::fs::read_to_string(file("list.json")).unwrap_or_default();
    let lacking = list.lines().find(|line| !kept.contains(line.trim_end_matches(',')));
    assert_eq!(lacking, None, "the list of licences lacks it; {REGENERATE}");
    assert!(list == kept, "the list of licences names what is not inside any more; {REGENERATE}");
    assert!(unpacked() == texts, "the texts of licences are others; {REGENERATE}");
}

#[test]
fn every_part_has_a_licence_and_its_text() {
    let ended = corbie("licenses --full --json").run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    let parts = all["parts"].as_array().unwrap();
    let texts: BTreeMap<String, String> = serde_json::from_value(all["texts"].clone()).unwrap();
    for part in parts {
        assert!(!part["license"].as_str().unwrap().is_empty(), "{part}");
        let of = part["texts"].as_array().unwrap();
        // Some components have an additional short file that refers to the license text.
        assert!(of.iter().any(|name| texts[name.as_str().unwrap()].len() > 100), "{part}");
    }
    for (kind, name) in [
        ("program", "corbie"),
        ("crate", "tokio"),
        ("library", "SQLite"),
        ("model", "all-MiniLM-L6-v2-int8"),
        ("font", "Foxit fonts"),
        ("documents", "sample documents of `corbie demo`"),
    ] {
        assert!(parts.iter().any(|part| part["kind"] == kind && part["name"] == name), "{kind} {name} is missing");
    }
}

#[test]
fn one_part_is_found_by_its_name_and_a_name_that_is_nowhere_fails() {
    let ended = corbie("licenses --full memchr").run("");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("memchr  2.") && ended.stdout.contains("Andrew Gallant"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("tokio"), "{}", ended.stdout);
    let ended = corbie("licenses rten-simd").run("");
    assert!(
        ended.stdout.contains("Apache-2.0 *") && ended.stdout.contains("the standard text of the license is used"),
        "{}",
        ended.stdout
    );
    let ended = corbie("licenses nothing-of-this-name").run("");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("`corbie licenses` lists all components"), "{}", ended.stderr);
}
