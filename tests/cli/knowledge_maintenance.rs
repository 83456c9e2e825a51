//! `corbie knowledge`: checks, repairs and backups.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::json;

use crate::knowledge::KnowledgeFixture;

/// Path of a new file next to the documents.
fn file(place: &KnowledgeFixture, name: &str) -> String {
    place.documents().join(name).display().to_string()
}

/// Whether a backup file name ends with a timestamp, such as `knowledge.db.damaged-2026-01-31T12-00-00Z`.
fn is_timestamped(path: &str, why: &str) -> bool {
    let Some((_, date)) = path.rsplit_once(&format!("knowledge.db.{why}-")) else { return false };
    let shape: String = date.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    shape == "0000-00-00T00-00-00Z"
}

#[test]
fn check_verifies_the_database_and_the_index() {
    let place = KnowledgeFixture::with_documents();
    let check = || {
        let ended = place.run("knowledge check");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(ended.stdout.starts_with("OK: 2 documents, "), "{ended:?}");
        assert!(ended.stdout.ends_with("; the index matches\n"), "{ended:?}");
    };
    check();
    #[cfg(unix)]
    {
        let _server = place.serve();
        check();
    }
    let checked = place.json("knowledge check --json");
    assert_eq!((&checked["documents"], &checked["index"]), (&json!(2), &json!("same")), "{checked}");
}

#[test]
fn maintenance_creates_no_knowledge_base() {
    let place = KnowledgeFixture::new();
    for command in ["check", "repair", "backup new.db"] {
        let ended = place.run(&format!("knowledge {command}"));
        assert!(ended.startup_error().contains("there is no knowledge base in `"), "{command}: {ended:?}");
    }
    assert!(!Path::new(&place.storage()).exists());
}

#[test]
fn backup_can_be_restored() {
    let place = KnowledgeFixture::with_documents();
    let backup = file(&place, "backup.db");
    let ended = place.run(&format!("knowledge backup {backup}"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("Backed up to "), "{ended:?}");
    let again = place.run(&format!("knowledge backup {backup}"));
    assert!(again.startup_error().contains("already"), "nothing is overwritten: {again:?}");

    assert_eq!(place.run("clear --yes").code, Some(0));
    let restored = place.json(&format!("knowledge restore --json {backup}"));
    let aside = restored["set_aside"].as_str().unwrap();
    assert!(Path::new(aside).exists() && is_timestamped(aside, "before-restore"), "{restored}");
    assert_eq!(place.json("show --json")["total_count"], 2);
    assert!(place.run("search who keeps the queen warm").stdout.contains("bees.md"));
    let foreign = place.run(&format!("knowledge restore {}", file(&place, "documents/bees.md")));
    assert!(foreign.startup_error().contains("not a corbie knowledge base"), "{foreign:?}");
    assert_eq!(place.json("show --json")["total_count"], 2, "a restore that fails changes nothing");
}

#[cfg(unix)]
#[test]
fn running_server_allows_backups_but_no_restore() {
    let place = KnowledgeFixture::with_documents();
    let server = place.serve();
    let backup = file(&place, "backup.db");
    assert_eq!(place.run(&format!("knowledge backup {backup}")).code, Some(0));
    for command in ["repair".to_owned(), format!("restore {backup}")] {
        let ended = place.run(&format!("knowledge {command}"));
        assert!(ended.startup_error().contains("is in use by another process; stop it first"), "{command}: {ended:?}");
    }
    drop(server);
    assert_eq!(place.run(&format!("knowledge restore {backup}")).code, Some(0));
    assert_eq!(place.json("knowledge repair --json")["problems"], json!([]));
}

#[test]
fn damaged_file_is_detected_and_repaired() {
    let place = KnowledgeFixture::with_documents();
    // A restored file has no WAL from which intact pages could be read.
    let backup = file(&place, "backup.db");
    assert_eq!(place.run(&format!("knowledge backup {backup}")).code, Some(0));
    assert_eq!(place.run(&format!("knowledge restore {backup}")).code, Some(0));
    let database = Path::new(&place.storage()).join("knowledge.db");
    let length = std::fs::metadata(&database).unwrap().len();
    let mut damaged = std::fs::OpenOptions::new().write(true).open(&database).unwrap();
    // The start of every second page after the first few.
    for page in (3..length / 8192).step_by(2) {
        damaged.seek(SeekFrom::Start(page * 8192)).unwrap();
        damaged.write_all(&[0xa5; 64]).unwrap();
    }
    drop(damaged);
    let ended = place.run("knowledge check");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.starts_with("problem: ") && ended.stdout.contains("corbie knowledge repair"), "{ended:?}");
    let repaired = place.run("knowledge repair");
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    let kept = repaired.stdout.lines().find_map(|line| line.strip_prefix("The damaged file is kept as "));
    assert!(kept.is_some_and(|kept| Path::new(kept).exists() && is_timestamped(kept, "damaged")), "{repaired:?}");
    assert_eq!(place.json("knowledge check --json")["success"], true);
}

/// With two documents whose rows are on a damaged page; the index of their paths is on another.
fn with_damaged_documents() -> KnowledgeFixture {
    with_damaged_page("SELECT rootpage FROM sqlite_schema WHERE name = 'documents'")
}

/// With two documents, and a damaged page whose number this query returns.
fn with_damaged_page(number: &str) -> KnowledgeFixture {
    let place = KnowledgeFixture::with_documents();
    let database = Path::new(&place.storage()).join("knowledge.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let page: u64 = connection.query_row(number, [], |row| row.get(0)).unwrap();
    let length: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    drop(connection);
    let mut damaged = std::fs::OpenOptions::new().write(true).open(&database).unwrap();
    damaged.seek(SeekFrom::Start((page - 1) * length)).unwrap();
    damaged.write_all(&vec![0xa5; length as usize]).unwrap();
    place
}

#[test]
fn unreadable_file_is_not_reported_as_repaired() {
    let first = "SELECT 1";
    let place = with_damaged_page(first);
    let repaired = place.run("knowledge repair");
    assert_eq!(repaired.code, Some(1), "{repaired:?}");
    assert!(repaired.stdout.contains("\nno data could be recovered, "), "{repaired:?}");
    assert!(repaired.stdout.contains("`corbie knowledge restore FILE`"), "{repaired:?}");
    assert!(!repaired.stdout.contains("Repaired: "), "{repaired:?}");
    let kept = repaired.stdout.lines().find_map(|line| line.strip_prefix("The damaged file is kept as "));
    assert!(kept.is_some_and(|kept| Path::new(kept).exists() && is_timestamped(kept, "damaged")), "{repaired:?}");
    // The database is now intact, but empty.
    assert_eq!(place.run("knowledge repair").code, Some(0));

    let place = with_damaged_page(first);
    let told = place.json("knowledge repair --json");
    assert_eq!((&told["success"], &told["error"]), (&json!(false), &json!("storage_corrupt")), "{told}");
    assert!(told["message"].as_str().unwrap().contains("corbie knowledge restore"), "{told}");
    assert!(is_timestamped(told["set_aside"].as_str().unwrap(), "damaged"), "{told}");
}

#[test]
fn lost_documents_are_listed() {
    let names = ["bees.md", "taxes.txt"];
    let place = with_damaged_documents();
    let repaired = place.run("knowledge repair");
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    for name in names {
        let line = format!("lost: {name} ({})", place.documents().join("documents").join(name).display());
        assert!(repaired.stdout.lines().any(|told| told == line), "{repaired:?}");
    }
    assert!(repaired.stdout.contains("\nAdd these documents again with `corbie add PATH`.\n"), "{repaired:?}");
    assert_eq!(place.run("add .").stdout, "2 files: 2 added\n");

    let place = with_damaged_documents();
    let told = place.json("knowledge repair --json");
    let lost = told["lost"].as_array().unwrap().iter();
    let mut paths: Vec<&str> = lost.filter_map(|lost| lost["file_path"].as_str()).collect();
    paths.sort_unstable();
    let expected = names.map(|name| place.documents().join("documents").join(name).display().to_string());
    assert_eq!(paths, expected, "{told}");
    assert_eq!((&told["lost_unnamed"], &told["incomplete"]), (&json!(0), &json!([])), "{told}");
}

/// Files of the index.
fn segments(place: &KnowledgeFixture) -> usize {
    let within = |path: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let index = Path::new(&place.storage()).join("index");
    within(&index).iter().flat_map(|generation| within(generation)).flat_map(|base| within(&base)).count()
}

#[test]
fn empty_or_missing_database_with_an_index_is_an_error() {
    let place = KnowledgeFixture::with_documents();
    let backup = file(&place, "backup.db");
    assert_eq!(place.run(&format!("knowledge backup {backup}")).code, Some(0));
    assert!(place.run("search bees").stdout.contains("bees.md"));
    assert!(segments(&place) > 0);
    let database = Path::new(&place.storage()).join("knowledge.db");
    for is_there in [true, false] {
        match is_there {
            true => std::fs::write(&database, "").unwrap(),
            false => std::fs::remove_file(&database).unwrap(),
        }
        for command in ["knowledge check", "knowledge repair", "knowledge backup new.db", "search bees", "add ."] {
            let ended = place.run(command);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(ended.code != Some(0) && said.contains("is empty or missing"), "{command}: {ended:?}");
            assert!(said.contains("corbie knowledge restore FILE"), "{command}: {ended:?}");
        }
        assert_eq!(std::fs::metadata(&database).map(|found| found.len()).ok(), is_there.then_some(0));
    }
    assert_eq!(place.run(&format!("knowledge restore {backup}")).code, Some(0));
    assert!(place.run("knowledge check").stdout.starts_with("OK: 2 documents"));
    // To start with an empty knowledge base, the index has to be deleted too.
    std::fs::remove_file(&database).unwrap();
    std::fs::remove_dir_all(Path::new(&place.storage()).join("index")).unwrap();
    assert!(place.run("knowledge check").startup_error().contains("there is no knowledge base in `"));
}

#[test]
fn flipped_bit_is_detected_and_repaired_by_adding_the_file_again() {
    let place = KnowledgeFixture::with_documents();
    let sql = "UPDATE pages SET text = replace(text, 'queen', 'quemn')";
    let database = Path::new(&place.storage()).join("knowledge.db");
    assert!(rusqlite::Connection::open(&database).unwrap().execute(sql, []).unwrap() > 0);
    let checked = place.run("knowledge check");
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(checked.stdout.contains("of `bees.md` does not match its checksum"), "{checked:?}");
    let read = place.run(&format!("tools call knowledge-get --json {{\"document_id\":\"{}\"}}", place.id("bees.md")));
    let said = format!("{}{}", read.stdout, read.stderr);
    assert!(said.contains("document_damaged") && !said.contains("quemn"), "{read:?}");
    let added = place.run("add .");
    assert_eq!((added.code, added.stdout.as_str()), (Some(0), "2 files: 1 updated, 1 unchanged\n"), "{added:?}");
    assert!(place.run("knowledge check").stdout.starts_with("OK: 2 documents"));
}
