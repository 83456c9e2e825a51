//! `corbie show`, `status`, `remove` and `clear`, each without a server and with one.

use serde_json::json;

use crate::knowledge::{KnowledgeFixture, with_and_without_server};
use crate::pdf_builder::{Builder, text as line};
#[cfg(unix)]
use crate::process::TestCommand;
#[cfg(unix)]
use crate::terminal::run_in_terminal;

// === show ===

#[test]
fn k83_the_list_has_a_line_for_each_document() {
    with_and_without_server(|place, _| {
        let ended = place.run("show --sort name --order asc");
        let lines: Vec<&str> = ended.stdout.lines().collect();
        let [heading, bees, taxes] = lines[..] else { panic!("{ended:?}") };
        let columns = ["STATUS", "FORMAT", "SIZE", "CHUNKS", "ADDED", "ID", "NAME"];
        assert_eq!(heading.split_whitespace().collect::<Vec<_>>(), columns);
        let id = &place.id("bees.md")[..8];
        assert!(bees.starts_with("completed  md") && bees.ends_with(&format!("  {id}  bees.md")), "{bees}");
        assert!(taxes.contains("taxes.txt"), "{taxes}");
        let page = place.run("show --sort name --order asc --limit 1 --offset 1");
        assert!(page.stdout.contains("taxes.txt") && !page.stdout.contains("bees.md"), "{page:?}");
        assert_eq!(place.json("show --json --limit 1")["total_count"], 2);
        assert!(place.run("show --limit 1").stderr_line().contains("1 of 2 documents; use --offset 1"));
        let none = place.run("show --limit 0");
        assert!(none.code == Some(2) && none.stderr.contains("--limit"), "{none:?}");
        let last = place.run("show --limit 1 --offset 1");
        assert_eq!(last.stderr, "", "nothing comes after the last");
        let past = place.run("show --offset 7");
        let told = "offset 7 is past the end: there are only 2 documents\n";
        assert_eq!((past.code, past.stdout.as_str(), past.stderr.as_str()), (Some(0), told, ""));
    });
}

#[test]
fn id_prefix_shows_the_text_of_a_document() {
    with_and_without_server(|place, _| {
        let id = place.id("taxes.txt");
        for typed in [&id[..], &id[..12], &id[..12].to_uppercase()] {
            let ended = place.run(&format!("show {typed}"));
            assert_eq!(ended.code, Some(0), "{typed}: {ended:?}");
            assert!(ended.stdout.starts_with("==> taxes.txt, page 1 of 1"), "{ended:?}");
            assert!(ended.stdout.contains("interest of 12 euros"), "{ended:?}");
        }
        let reply = place.json(&format!("show --json {}", &id[..12]));
        assert_eq!((&reply["document"]["id"], &reply["page_count"]), (&json!(id), &json!(1)));
        let page = place.run(&format!("show --page 2 {id}"));
        assert!(page.startup_error().contains("has 1 page; page 2 does not exist"), "{page:?}");
        let nothing = place.run("show zzz");
        assert_eq!(
            nothing.startup_error(),
            "corbie: no document has the name or ID prefix `zzz`; `corbie show` lists all documents"
        );
        let nobody = place.run("show 00000000-0000-4000-8000-000000000000");
        assert!(nobody.startup_error().contains("not found"), "{nobody:?}");
    });
}

#[test]
fn k34_a_document_of_pages_is_printed_page_by_page() {
    let place = KnowledgeFixture::new();
    let mut pages = Builder::new();
    let sentences = [
        "The lighthouse keeper wrote about storms in the logbook every single evening of that long and dark winter.",
        "Bread was baked on Thursdays, with flour that a boat from the mainland brought once every other month.",
    ];
    for sentence in sentences {
        pages.page(&line("F1", 8, 72, 700, sentence));
    }
    std::fs::create_dir_all(place.documents().join("documents")).unwrap();
    std::fs::write(place.documents().join("documents/log.pdf"), pages.build()).unwrap();
    let ended = place.run("add .");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let id = place.id("log.pdf");
    let (first, second) = ("==> log.pdf, page 1 of 2 <==\nThe light", "==> log.pdf, page 2 of 2 <==\nBread");
    let whole = place.run(&format!("show {id}"));
    assert!(whole.stdout.starts_with(first) && whole.stdout.contains(&format!("\n\n{second}")), "{whole:?}");
    let page = place.run(&format!("show {id} --page 2"));
    assert!(page.stdout.starts_with(second) && !page.stdout.contains("lighthouse"), "{page:?}");
    let reply = place.json(&format!("show {id} --page 1 --json"));
    assert_eq!((&reply["pages"][0]["page"], &reply["next_page"]), (&json!(1), &json!(2)), "{reply}");
    assert!(place.run("search storms in the logbook").stdout.starts_with("1. "));
    assert!(place.run("search storms in the logbook").stdout.contains("log.pdf, page 1"));
}

#[cfg(unix)]
#[test]
fn closed_pipe_is_no_failure() {
    let place = KnowledgeFixture::new();
    // More than a pipe buffer; a word unknown to the model is tokenized quickly, however long it is.
    place.write("long.txt", &format!("A sentence with {}.\n", "x".repeat(1000)).repeat(150));
    assert_eq!(place.run("add .").code, Some(0));
    let id = place.id("long.txt");
    for command in ["search sentence", "show", &format!("show {id}"), &format!("show --json {id}"), "status", "tasks"] {
        let line = format!("{{ '{}' {command}; echo \"code $?\" >&2; }} | head -c 5", env!("CARGO_BIN_EXE_corbie"));
        let ended = place.with(TestCommand::new("sh".into()).argument("-c").argument(line)).run("");
        assert_eq!(ended.stderr, "code 0\n", "{command}");
        assert_eq!(ended.stdout.len(), 5, "{command}");
    }
}

// === remove and clear ===

#[test]
fn k70_documents_are_removed_by_id_prefix() {
    with_and_without_server(|place, _| {
        let (bees, taxes) = (place.id("bees.md"), place.id("taxes.txt"));
        let refused = place.run(&format!("remove {bees}"));
        assert!(
            refused.startup_error().contains("This permanently removes bees.md (") && refused.stderr.contains("--yes"),
            "{refused:?}"
        );
        assert_eq!(place.json("show --json")["total_count"], 2, "nobody agreed");

        let ended = place.run(&format!("remove --yes {}", &bees[..13]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.starts_with("Removed bees.md ("), "{ended:?}");
        let again = place.run(&format!("remove --yes {bees} {taxes} --json"));
        let replies = again.messages();
        assert_eq!((again.code, replies.len()), (Some(1), 2), "one is gone already, the other is removed all the same");
        assert_eq!((&replies[0]["error"], &replies[1]["success"]), (&json!("document_not_found"), &json!(true)));
        assert_eq!(place.json("show --json")["total_count"], 0);
    });
}

#[cfg(unix)]
#[test]
fn removal_is_confirmed_on_a_terminal() {
    let place = KnowledgeFixture::with_documents();
    let line = |command: &str| {
        format!("CORBIE_KNOWLEDGE__STORAGE_PATH='{}' '{}' {command}", place.storage(), env!("CARGO_BIN_EXE_corbie"))
    };
    let remove = line(&format!("remove {}", place.id("bees.md")));
    let Some(ended) = run_in_terminal(&remove, "n\n") else { return };
    assert!(ended.stdout.contains("bees.md") && ended.stdout.contains("[y/N]"), "{ended:?}");
    assert_eq!((ended.code, &place.json("show --json")["total_count"]), (Some(1), &json!(2)), "{ended:?}");
    let Some(ended) = run_in_terminal(&remove, "y\n") else { return };
    assert_eq!((ended.code, &place.json("show --json")["total_count"]), (Some(0), &json!(1)), "{ended:?}");
    let Some(ended) = run_in_terminal(&line("clear"), "yes\n") else { return };
    assert!(ended.stdout.contains("1 document ("), "{ended:?}");
    assert_eq!((ended.code, &place.json("show --json")["total_count"]), (Some(0), &json!(0)), "{ended:?}");
}

#[test]
fn k91_clear_requires_confirmation() {
    with_and_without_server(|place, _| {
        let refused = place.run("clear");
        assert!(refused.startup_error().contains("2 documents (") && refused.stderr.contains("--yes"), "{refused:?}");
        assert_eq!(place.json("show --json")["total_count"], 2);
        let cleared = place.json("clear --yes --json");
        assert_eq!((&cleared["success"], &cleared["documents_removed"]), (&json!(true), &json!(2)));
        assert_eq!(place.run("clear --yes").stdout, "Removed 0 documents\n", "K-94: nothing was freed");
        assert_eq!(place.run("add .").code, Some(0));
        let cleared = place.run("clear --yes").stdout;
        assert!(!cleared.contains("0.0 MB"), "{cleared}");
    });
}

#[test]
fn bases_are_separate() {
    with_and_without_server(|place, _| {
        place.write("other/cats.txt", "A cat sleeps sixteen hours a day, mostly in the sun.\n");
        assert_eq!(place.run("add --knowledge-base pets ./other").code, Some(0));
        assert_eq!(place.json("show --json --base pets")["total_count"], 1);
        assert_eq!(place.json("show --json")["total_count"], 2);
        assert!(place.run("search --base pets how long does a cat sleep").stdout.contains("cats.txt"));
        assert!(!place.run("search how long does a cat sleep").stdout.contains("cats.txt"));
        assert!(place.run("status --base pets").stdout.contains("all bases"), "{:?}", place.run("status --base pets"));
        assert_eq!(place.json("clear --yes --json --base pets")["documents_removed"], 1);
        assert_eq!(place.json("show --json")["total_count"], 2);
    });
}

// === status ===

#[test]
fn k101_status_shows_counts_and_the_server() {
    with_and_without_server(|place, is_served| {
        let ended = place.run("status");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        for part in ["knowledge base  default", "documents       2 (", "healthy", &place.storage()] {
            assert!(ended.stdout.contains(part), "{part}: {ended:?}");
        }
        let server = if is_served { "server          running" } else { "server          not running" };
        assert!(ended.stdout.contains(server), "{ended:?}");
        let status = place.json("status --json");
        assert_eq!(status["knowledge_base"]["document_count"], 2);
    });
}

#[cfg(unix)]
#[test]
fn server_that_closes_the_connection_is_skipped() {
    let place = KnowledgeFixture::with_documents();
    let sockets = std::path::Path::new(&place.storage()).join("sockets");
    std::fs::create_dir_all(&sockets).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(sockets.join("1.socket")).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let ended = place.run("status");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("server          not running"), "{ended:?}");
}

#[test]
fn disabled_knowledge_base_error_names_the_setting() {
    let place = KnowledgeFixture::new();
    for command in ["status", "tasks", "search x", "add .", "knowledge check", "ask --documents why"] {
        let ended = place.corbie(command).variable("CORBIE_KNOWLEDGE__ENABLED", "false").run("");
        assert!(ended.startup_error().contains("set `knowledge.enabled` to true"), "{command}: {ended:?}");
    }
}
