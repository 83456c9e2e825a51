//! `knowledge-search`: arguments, replies and search quality.

use serde_json::{Value, json};

use crate::fixture::{
    CROWS, KnowledgeServer, each_transport, each_transport_with, is_timestamp, is_uuid, member_names,
};
use crate::sample_files;

const SEARCH: &str = "knowledge-search";

/// Three texts about unrelated topics.
const TOPICS: [(&str, &str); 3] = [
    ("bees.txt", "Bees gather nectar from flowers and turn it into honey, which the hive eats during the winter."),
    ("engine.txt", "If the car does not start, check the battery terminals for corrosion and tighten the clamps."),
    ("tax.txt", "The tax return is due by the end of April. Late filing leads to a penalty of five percent a month."),
];

fn add_topics(corbie: &mut KnowledgeServer) {
    for (name, text) in TOPICS {
        corbie.add(name, text);
    }
}

fn scores(found: &Value) -> Vec<f64> {
    found["results"].as_array().unwrap().iter().map(|result| result["relevance_score"].as_f64().unwrap()).collect()
}

fn names(found: &Value) -> Vec<&str> {
    found["results"].as_array().unwrap().iter().map(|result| result["filename"].as_str().unwrap()).collect()
}

// === arguments ===

#[test]
fn k04_k05_k50_a_query_is_needed_and_has_1_to_500_characters() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        let refused = corbie.expect_error(SEARCH, json!({ "top_k": 5 }), "missing_required_parameter");
        assert_eq!(refused["parameter"], "query");
        for wrong in [json!(""), json!("  \n\t "), json!(7), json!(null), json!(["a"]), json!("a".repeat(501))] {
            corbie.expect_invalid(SEARCH, json!({ "query": wrong }), "query");
        }
        corbie.search(&"a".repeat(500));
        // Characters are counted, not bytes.
        corbie.search(&"🐦".repeat(500));
        corbie.expect_invalid(SEARCH, json!({ "query": "🐦".repeat(501) }), "query");
    });
}

#[test]
fn k05_k51_k52_numbers_stay_in_their_ranges() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        for (name, wrong) in [
            ("top_k", json!(0)),
            ("top_k", json!(51)),
            ("top_k", json!(-1)),
            ("top_k", json!(2.5)),
            ("top_k", json!("5")),
            ("min_relevance", json!(-0.1)),
            ("min_relevance", json!(1.1)),
            ("min_relevance", json!("high")),
            ("filters", json!("pdf")),
            ("filters", json!([])),
            ("top_k", json!(5.5)),
        ] {
            let mut arguments = json!({ "query": "crows" });
            arguments[name] = wrong;
            corbie.expect_invalid(SEARCH, arguments, name);
        }
        for (name, right) in [
            ("top_k", json!(1)),
            ("top_k", json!(50)),
            // An integer in any notation.
            ("top_k", json!(5.0)),
            ("min_relevance", json!(1)),
            ("filters", json!({})),
        ] {
            let mut arguments = json!({ "query": "crows" });
            arguments[name] = right;
            assert_eq!(corbie.call(SEARCH, arguments)["success"], true, "{name}");
        }
    });
}

#[test]
fn k53_a_filter_that_is_malformed_names_its_member() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        for (filters, parameter) in [
            (json!({ "format": 7 }), "filters.format"),
            (json!({ "format": "xyz" }), "filters.format"),
            (json!({ "format": { "is": "pdf" } }), "filters.format"),
            (json!({ "date_range": "2025" }), "filters.date_range"),
            (json!({ "date_range": { "start": "2025-02-30" } }), "filters.date_range.start"),
            (json!({ "date_range": { "end": "2025-13-01" } }), "filters.date_range.end"),
            (json!({ "date_range": { "end": 20250101 } }), "filters.date_range.end"),
            (json!({ "date_range": { "until": "2025-01-01" } }), "filters.date_range.until"),
            (json!({ "date_range": { "start": "2025-02-01", "end": "2025-01-01" } }), "filters.date_range"),
            (json!({ "tags": [] }), "filters.tags"),
            (json!({ "tags": {} }), "filters.tags"),
        ] {
            corbie.expect_invalid(SEARCH, json!({ "query": "crows", "filters": filters }), parameter);
        }
    });
}

// === replies ===

#[test]
fn k54_k55_the_reply_has_what_the_specification_shows() {
    each_transport(|corbie| {
        corbie.add("crow.pdf", sample_files::pdf());
        let found = corbie.call(SEARCH, json!({ "query": "crow in the snow" }));
        assert_eq!(member_names(&found), ["query", "results", "search_time_ms", "success", "total_results"]);
        assert_eq!(found["query"], "crow in the snow");
        assert_eq!(found["total_results"], 1);
        assert!(found["search_time_ms"].is_u64(), "z16: {found}");
        let result = &found["results"][0];
        assert_eq!(
            member_names(result),
            [
                "chunk_id",
                "chunk_index",
                "chunk_text",
                "document_id",
                "filename",
                "metadata",
                "page",
                "relevance_score",
                "start",
            ]
        );
        assert_eq!((&result["chunk_index"], &result["page"], &result["start"]), (&json!(0), &json!(1), &json!(0)));
        assert!(is_uuid(&result["document_id"]) && is_uuid(&result["chunk_id"]), "{result}");
        assert_eq!(
            (&result["filename"], &result["chunk_text"]),
            (&json!("crow.pdf"), &json!(sample_files::SAMPLE_TEXT))
        );
        assert!(result["relevance_score"].as_f64().is_some_and(|score| score > 0.0 && score <= 1.0), "{result}");
        let metadata = &result["metadata"];
        assert_eq!((&metadata["format"], &metadata["page_num"]), (&json!("pdf"), &json!(1)), "{result}");
        assert!(is_timestamp(&metadata["date_added"]), "{result}");
    });
}

#[test]
fn k54_the_examples_of_the_specification_work_as_they_stand() {
    each_transport(|corbie| {
        let example = json!({
            "query": "How to set up vector database?",
            "top_k": 5,
            "min_relevance": 0.5,
            "filters": { "format": "pdf", "date_range": { "start": "2025-01-01", "end": "2025-12-31" } },
        });
        corbie.expect_error(SEARCH, example.clone(), "empty_knowledge_base");
        corbie.add("crows.txt", CROWS);
        assert_eq!(corbie.call(SEARCH, example)["results"], json!([]));
        let found = corbie.call(SEARCH, json!({ "query": "authentication", "top_k": 5 }));
        assert_eq!(found["success"], true);
    });
}

#[test]
fn k57_nothing_found_is_no_failure() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        let mut found = corbie.call(SEARCH, json!({ "query": "crows", "filters": { "format": "pdf" } }));
        assert!(found["search_time_ms"].take().is_u64());
        assert_eq!(
            found,
            json!({
                "success": true,
                "query": "crows",
                "results": [],
                "total_results": 0,
                "message": "No documents found matching your query",
                "search_time_ms": null,
            })
        );
    });
}

#[test]
fn k58_an_empty_base_is_told_apart_from_nothing_found() {
    each_transport(|corbie| {
        assert_eq!(
            corbie.call(SEARCH, json!({ "query": "anything" })),
            json!({
                "success": false,
                "error": "empty_knowledge_base",
                "message": "Knowledge base is empty. Add documents with knowledge-add first",
                "document_count": 0,
            })
        );
    });
}

// === order and number ===

#[test]
fn z09_z15_k51_k56_the_best_come_first_and_ties_stay_where_they_are() {
    each_transport_with(&[("CHUNK_SIZE", "16"), ("CHUNK_OVERLAP", "0")], |corbie| {
        let text: String =
            (0..14).map(|number| format!("On day {number} the sailors mended nets and sang of the sea.\n\n")).collect();
        corbie.add("sailors.txt", text);
        let query = json!({ "query": "sailors mended nets" });
        let found = corbie.call(SEARCH, query.clone());
        assert_eq!(found["total_results"], 10, "ten by default: {found}");
        let scores = scores(&found);
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "z09: {scores:?}");
        assert_eq!(corbie.call(SEARCH, query)["results"], found["results"], "the same again");
        let top = corbie.call(SEARCH, json!({ "query": "sailors mended nets", "top_k": 3 }));
        assert_eq!(top["results"][0], found["results"][0]);
        assert_eq!(top["total_results"], 3, "z15: {top}");
    });
}

#[test]
fn k52_what_is_less_relevant_than_wanted_is_left_out() {
    each_transport(|corbie| {
        add_topics(corbie);
        let all = corbie.search("honey from flowers in the hive");
        let best = scores(&all)[0];
        let least = json!({ "query": "honey from flowers in the hive", "min_relevance": best });
        assert_eq!(names(&corbie.call(SEARCH, least)), ["bees.txt"]);
        let found = corbie.call(SEARCH, json!({ "query": "late filing", "min_relevance": 0.999 }));
        assert!(scores(&found).iter().all(|score| *score >= 0.999), "{found}");
    });
}

#[test]
fn k53_k60_filters_narrow_before_the_best_are_taken() {
    each_transport(|corbie| {
        for number in 0..4 {
            let path = corbie.file(&format!("crows{number}.txt"), format!("{CROWS} {number}"));
            corbie.add_path(&path, json!({ "tags": ["birds"], "author": "Ann" }));
        }
        let path = corbie.file("ravens.md", "Some birds, such as ravens, are large.");
        corbie.add_path(&path, json!({ "tags": ["large", "birds"], "author": "Bob" }));
        let mut find = |filters: Value, top: u32| {
            let found =
                corbie.call(SEARCH, json!({ "query": "crows are clever birds", "top_k": top, "filters": filters }));
            assert_eq!(found["success"], true, "{found}");
            names(&found).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        // Without the filter it would be ranked last.
        for filters in [
            json!({ "author": "Bob" }),
            json!({ "format": "md" }),
            json!({ "tags": ["large", "other"] }),
            json!({ "tags": "large" }),
            json!({ "author": "Bob", "tags": ["birds"] }),
        ] {
            assert_eq!(find(filters.clone(), 1), ["ravens.md"], "{filters}");
        }
        assert_eq!(find(json!({ "tags": ["birds"] }), 10).len(), 5);
        assert_eq!(find(json!({ "author": "bob" }), 10).len(), 0, "equality is exact");
        assert_eq!(find(json!({ "author": "Ann", "tags": ["large"] }), 10).len(), 0);
        assert_eq!(find(json!({ "unknown": true }), 10).len(), 0);
    });
}

#[test]
fn k53_dates_are_those_of_adding_and_both_ends_count() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        let added = corbie.show()["documents"][0]["date_added"].as_str().unwrap().to_owned();
        let day = &added[..10];
        for (range, found) in [
            (json!({ "start": day, "end": day }), 1),
            (json!({ "start": added, "end": added }), 1),
            (json!({ "start": "2020-01-01" }), 1),
            (json!({ "start": "1900-01-01" }), 1),
            (json!({ "end": "1969-07-20" }), 0),
            (json!({ "end": "2020-01-01" }), 0),
            (json!({ "start": "2999-01-01" }), 0),
            (json!({}), 1),
        ] {
            let reply = corbie.call(SEARCH, json!({ "query": "crows", "filters": { "date_range": range } }));
            assert_eq!(reply["total_results"], found, "{range}: {reply}");
        }
    });
}

// === meaning ===

#[test]
fn k59_a_paraphrase_without_a_shared_word_finds_the_passage() {
    let mut corbie = KnowledgeServer::start();
    add_topics(&mut corbie);
    for (query, expected) in [
        ("how do insects make something sweet", "bees.txt"),
        ("my vehicle won't turn over", "engine.txt"),
        ("deadline for declaring income to the government", "tax.txt"),
    ] {
        let found = corbie.search(query);
        assert_eq!(names(&found).first(), Some(&expected), "{query}: {found}");
        assert!(scores(&found)[0] > 0.0);
    }
}

#[test]
fn k59_a_topic_that_is_absent_yields_nothing() {
    let mut corbie = KnowledgeServer::start();
    add_topics(&mut corbie);
    for query in [
        "quantum chromodynamics of gluon plasma",
        "recipe for lasagna with spinach",
        "who won the football world cup in 1998",
        "xqzzt vbrrk",
    ] {
        let found = corbie.search(query);
        assert_eq!(found["results"], json!([]), "{query}");
        assert_eq!(found["message"], "No documents found matching your query");
    }
}

#[test]
fn k59_what_has_nothing_to_do_with_it_scores_lower() {
    let mut corbie = KnowledgeServer::start();
    add_topics(&mut corbie);
    let found = corbie.search("penalty for filing the tax return late");
    assert_eq!(names(&found)[0], "tax.txt", "{found}");
    let scores = scores(&found);
    assert!(scores[0] > 0.5, "{found}");
    assert!(scores[1..].iter().all(|other| *other < scores[0] / 2.0), "{found}");
}

#[test]
fn k59_numbers_and_names_are_found_by_their_words_alone() {
    each_transport(|corbie| {
        add_topics(corbie);
        corbie.add("contact.txt", "Call Zsuzsanna Kovacs at +36 1 555 0199 when case ZX-4711 is settled.");
        for query in ["0199", "+36 1 555 0199", "Zsuzsanna Kovacs", "ZX-4711"] {
            let found = corbie.search(query);
            assert_eq!(names(&found).first(), Some(&"contact.txt"), "{query}: {found}");
            assert!(scores(&found)[0] >= 0.2, "{query}: {found}");
        }
    });
}

#[test]
fn k59_a_mistyped_word_finds_what_was_meant() {
    let mut corbie = KnowledgeServer::start();
    add_topics(&mut corbie);
    for (query, name) in [("batery terminlas", "engine.txt"), ("penlaty", "tax.txt"), ("flwoers", "bees.txt")] {
        let found = corbie.search(query);
        assert_eq!(names(&found).first(), Some(&name), "{query}: {found}");
    }
}
