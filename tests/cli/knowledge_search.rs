//! `corbie search` and `corbie ask --documents`, each without a server and with one.

use serde_json::{Value, json};

use crate::knowledge::{KnowledgeFixture, with_and_without_server};
#[cfg(unix)]
use crate::process::wait_for;
#[cfg(unix)]
use crate::terminal::run_in_terminal;
use crate::upstream::FakeUpstream;

// === search ===

#[test]
fn k55_search_shows_score_file_heading_and_snippet() {
    with_and_without_server(|place, _| {
        let ended = place.run("search who keeps the queen warm in winter");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let first = ended.stdout.lines().next().unwrap();
        assert!(first.starts_with("1. ") && first.contains("bees.md"), "{ended:?}");
        assert!(ended.stdout.contains("   ") && ended.stdout.contains("shivering around her"), "{ended:?}");
        assert!(!ended.stdout.contains('\u{1b}'), "no colours in a pipe: {ended:?}");

        let reply = place.json("search --json --top 1 invoice of March");
        assert_eq!((&reply["success"], &reply["total_results"]), (&json!(true), &json!(1)));
        assert_eq!(reply["results"][0]["filename"], "taxes.txt");
    });
}

#[test]
fn k53_a_search_is_narrowed_by_format_tag_and_dates() {
    with_and_without_server(|place, _| {
        let files = |arguments: &str| {
            let reply = place.json(&format!("search --json queen invoice {arguments}"));
            let results = reply["results"].as_array().unwrap().clone();
            results.iter().map(|found| found["filename"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert!(files("--format txt").iter().all(|file| file == "taxes.txt"));
        assert!(!files("--format md --format txt --tag first --since 2020-01-01").is_empty());
        for nothing in ["--tag other", "--until 2020-01-01", "--since 2999-01-01", "--min-relevance 1"] {
            assert_eq!(files(nothing), [""; 0], "{nothing}");
        }
        let ended = place.run("search queen --tag other");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "No documents found matching your query\n"));
        for wrong in ["--top 51", "--since yesterday", "--format xyz", "--base a/b"] {
            let ended = place.run(&format!("search queen {wrong}"));
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{wrong}");
            assert!(ended.stderr.starts_with("error: invalid value"), "{ended:?}");
        }
    });
}

#[test]
fn k58_empty_base_error_has_advice() {
    let place = KnowledgeFixture::new();
    let check = || {
        let ended = place.run("search anything");
        assert_eq!(ended.code, Some(1));
        assert_eq!(ended.startup_error(), "corbie: the knowledge base is empty; add documents with `corbie add PATH`");
        let ended = place.run("search --json anything");
        assert_eq!((ended.code, &ended.messages()[0]["error"]), (Some(1), &json!("empty_knowledge_base")));
        let ended = place.run("show");
        let empty = "the knowledge base is empty; add documents with `corbie add PATH`\n";
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), empty));
    };
    check();
    #[cfg(unix)]
    {
        let _server = place.serve();
        check();
    }
}

#[cfg(unix)]
#[test]
fn terms_are_bold_on_a_terminal_unless_colours_are_off() {
    let place = KnowledgeFixture::with_documents();
    let line = |variables: &str| {
        format!(
            "CORBIE_KNOWLEDGE__STORAGE_PATH='{}' {variables} '{}' search shivering queen",
            place.storage(),
            env!("CARGO_BIN_EXE_corbie")
        )
    };
    let Some(ended) = run_in_terminal(&line(""), "") else { return };
    assert!(ended.stdout.contains("\u{1b}[1mshivering\u{1b}[0m"), "{ended:?}");
    let Some(ended) = run_in_terminal(&line("NO_COLOR=1"), "") else { return };
    assert!(ended.stdout.contains("shivering") && !ended.stdout.contains("\u{1b}[1m"), "{ended:?}");
}

#[test]
fn a_document_cannot_control_the_terminal() {
    let place = KnowledgeFixture::new();
    place.write("evil\u{1b}[2J.txt", "Beware of the dog \u{1b}[31m in the garden \u{7}\u{8} at night.\n");
    assert_eq!(place.run("add .").code, Some(0));
    let id = place.json("show --json")["documents"][0]["id"].as_str().unwrap().to_owned();
    for command in ["search dog in the garden", "show", "tasks", &format!("show {id}"), &format!("remove --yes {id}")] {
        let ended = place.run(command);
        assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
        let harmful = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
        assert!(!ended.stdout.contains(harmful) && !ended.stderr.contains(harmful), "{command}: {ended:?}");
        assert!(!ended.stdout.is_empty(), "{command}");
    }
}

// === ask ===

#[test]
fn answer_without_a_provider_shows_passages_and_the_reason() {
    with_and_without_server(|place, _| {
        let ended = place.run("ask --documents who keeps the queen warm in winter?");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr_line().contains("No provider is configured"), "{ended:?}");
        assert!(ended.stdout.starts_with("1. ") && ended.stdout.contains("bees.md"), "{ended:?}");
        let reply = place.json("ask --documents --json who keeps the queen warm in winter?");
        assert_eq!((&reply["answer"], &reply["passages"][0]["number"]), (&Value::Null, &json!(1)));
    });
}

#[test]
fn an_answer_from_documents_is_followed_by_its_sources() {
    let place = KnowledgeFixture::with_documents();
    let upstream = FakeUpstream::start();
    let ask = |arguments: &str| {
        place
            .with(upstream.corbie("ask --documents"))
            .arguments(arguments)
            .arguments("when was the invoice of [1] paid?")
            .run("")
    };
    let ended = ask("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let (answer, sources) = ended.stdout.split_once("\nSources:\n").unwrap_or_else(|| panic!("{ended:?}"));
    assert!(answer.contains("of [1]"), "the model says what it was asked: {ended:?}");
    assert!(sources.starts_with("[1] taxes.txt"), "{ended:?}");
    let reply = &ask("--json").messages()[0];
    assert_eq!((&reply["provider"], &reply["citations"][0]["filename"]), (&json!("acme"), &json!("taxes.txt")));
}

// === grounding ===

#[test]
fn explain_shows_grounding_and_its_effect() {
    let place = KnowledgeFixture::with_documents();
    let upstream = FakeUpstream::start();
    let explain = |arguments: &str, prompt: &str| {
        let setup = place.with(upstream.corbie("ask --explain")).variable("CORBIE_ROUTER__GROUNDING__ENABLED", "true");
        // The threshold is low, because this test is not about search confidence.
        let setup = setup.variable("CORBIE_ROUTER__GROUNDING__ANSWERED_ABOVE", "0.2");
        let setup = setup.variable("CORBIE_ROUTER__GROUNDING__ANSWERED_MODEL", "acme/echo-small");
        let ended = setup.arguments(arguments).argument(prompt).run("");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        ended.stdout
    };
    let (bees, else_) = ("who keeps the queen warm in winter?", "how do I sharpen the chain of a chainsaw?");
    let known = explain("", bees);
    assert!(known.contains("\ndocuments      answer the prompt (relevance of the best passage "), "{known}");
    assert!(known.contains("\nsources        bees.md"), "{known}");
    assert!(known.contains("\neffect         acme/echo-small instead of "), "{known}");
    assert!(known.contains("added\n"), "{known}");
    let told: Value = serde_json::from_str(&explain("--json", bees)).unwrap();
    assert_eq!(
        (&told["documents"]["verdict"], &told["documents"]["sources"][0]),
        (&json!("answered"), &json!("bees.md"))
    );
    assert!(told["documents"]["model_without_documents"].is_string(), "{told}");

    let unknown = explain("", else_);
    assert!(unknown.contains("\ndocuments      do not cover the prompt\neffect         none\n"), "{unknown}");
    let named = explain("--model acme/other", bees);
    assert!(named.contains("\ndocuments      not searched: a model was requested\n"), "{named}");
}

#[cfg(unix)]
#[test]
fn grounded_prompt_resumes_no_tasks() {
    let place = KnowledgeFixture::with_documents();
    let upstream = FakeUpstream::start();
    let task = || place.json("tasks --json --limit 1")["tasks"][0].clone();
    let mut text = String::new();
    (0..20_000).for_each(|number| text += &format!("Line {number} of a very long list of things to do.\n"));
    place.write("long.txt", &text);
    let adding = place.corbie("add ./long.txt").start();
    wait_for("the task", || (task()["status"] == "running").then_some(()));
    drop(adding);
    // Timestamps have a resolution of one second; wait so that a restarted task would have a different one.
    wait_for("a later second", || (task()["age_seconds"].as_u64()? > 2).then_some(()));
    let before = task();
    let ask = place.with(upstream.corbie("ask")).variable("CORBIE_ROUTER__GROUNDING__ENABLED", "true");
    assert_eq!(ask.arguments("who keeps the queen warm?").run("").code, Some(0));
    assert_eq!((&task()["attempts"], &task()["started"]), (&before["attempts"], &before["started"]));
}
