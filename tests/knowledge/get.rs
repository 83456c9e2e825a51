//! `knowledge-get`: the text of a document, page by page.

use serde_json::{Value, json};

use crate::fixture::{CROWS, KnowledgeServer, each_transport};
use crate::sample_files;

const GET: &str = "knowledge-get";

#[test]
fn k04_k05_k73_the_document_must_be_named_and_there() {
    each_transport(|corbie| {
        corbie.expect_error(GET, json!({}), "missing_required_parameter");
        corbie.expect_invalid(GET, json!({ "document_id": "x", "page": 0 }), "page");
        corbie.expect_invalid(GET, json!({ "document_id": "x", "max_characters": 1 }), "max_characters");
        corbie.expect_error(GET, json!({ "document_id": "x" }), "document_not_found");
    });
}

#[test]
fn k34_pages_come_in_order_and_tell_where_to_go_on() {
    each_transport(|corbie| {
        let added = corbie.add("pages.pdf", sample_files::pdf_with_pages(&["page one", "page two", "page three"]));
        let id = &added["document_id"];
        let got = corbie.call(GET, json!({ "document_id": id, "pages": 2 }));
        assert_eq!((&got["page_count"], &got["next_page"], &got["next_offset"]), (&json!(3), &json!(3), &json!(0)));
        assert_eq!(got["pages"], json!([{ "page": 1, "text": "page one" }, { "page": 2, "text": "page two" }]));
        let rest = corbie.call(GET, json!({ "document_id": id, "page": 3 }));
        assert_eq!(rest["pages"], json!([{ "page": 3, "text": "page three" }]));
        assert_eq!(rest.get("next_page"), None);
        assert_eq!(corbie.call(GET, json!({ "document_id": id, "page": 9 }))["pages"], json!([]));
    });
}

#[test]
fn a_long_page_is_read_piece_by_piece_whatever_its_letters() {
    each_transport(|corbie| {
        let text = format!("{CROWS} Ä🐦 ").repeat(20);
        let added = corbie.add("long.txt", &text);
        let (mut whole, mut offset) = (String::new(), 0);
        loop {
            let got = corbie
                .call(GET, json!({ "document_id": added["document_id"], "max_characters": 150, "offset": offset }));
            whole += got["pages"][0]["text"].as_str().unwrap();
            match got["next_offset"].as_u64() {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(whole.trim(), text.trim());
    });
}

/// The text at the offsets of a chunk, in the pages of the same reply.
fn chunk_text_in_pages(got: &Value, chunk: &Value) -> String {
    let pages = got["pages"].as_array().unwrap();
    let page = pages.iter().find(|page| page["page"] == chunk["page"]).unwrap_or_else(|| panic!("no page of {chunk}"));
    let [start, end] = ["start", "end"].map(|name| chunk[name].as_u64().unwrap_or_else(|| panic!("{chunk}")) as usize);
    page["text"].as_str().unwrap().chars().skip(start).take(end - start).collect()
}

#[test]
fn chunks_are_told_only_to_those_who_ask_and_stand_where_they_say() {
    each_transport(|corbie| {
        let added = corbie.add(
            "pages.pdf",
            sample_files::pdf_with_pages(&["Crows are clever.", "Bees make honey.", "Owls see at night."]),
        );
        let id = &added["document_id"];
        assert_eq!(corbie.call(GET, json!({ "document_id": id })).get("chunks"), None);
        let got = corbie.call(GET, json!({ "document_id": id, "chunks": true }));
        let chunks = got["chunks"].as_array().unwrap();
        let told: Vec<String> = chunks.iter().map(|chunk| chunk_text_in_pages(&got, chunk)).collect();
        assert_eq!(told, ["Crows are clever.", "Bees make honey.", "Owls see at night."], "{got}");
        let found = corbie.search("what do bees make");
        let result = &found["results"][0];
        assert!(chunks.iter().any(|chunk| chunk["chunk_id"] == result["chunk_id"]), "{result}");
        let second = corbie.call(GET, json!({ "document_id": id, "page": 2, "pages": 1, "chunks": true }));
        assert!(second["chunks"].as_array().unwrap().iter().all(|chunk| chunk["page"] == 2), "{second}");
        assert_eq!(chunk_text_in_pages(&second, &second["chunks"][0]), "Bees make honey.");
        assert_eq!(corbie.call(GET, json!({ "document_id": id, "page": 9, "chunks": true }))["chunks"], json!([]));
    });
}

#[test]
fn a_passage_that_was_found_is_opened_where_it_stands() {
    let mut corbie = KnowledgeServer::start();
    let filler = |number: usize| format!("Die Krähe Nummer {number} – eine von vielen 🐦 – saß auf dem Zaun. ");
    let mut text: String = (0..400).map(filler).collect();
    text += "\n\nThe zeppelin landed safely behind the old observatory.\n\n";
    text += &(400..800).map(filler).collect::<String>();
    let added = corbie.add("long.txt", &text);
    let id = &added["document_id"];
    let found = corbie.search("where did the zeppelin land");
    let result = &found["results"][0];
    assert!(result["chunk_text"].as_str().unwrap().contains("zeppelin"), "{result}");
    let wanted = json!({
        "document_id": id, "page": result["page"], "offset": result["start"], "max_characters": 100, "chunks": true,
    });
    let got = corbie.call(GET, wanted);
    let opened = got["pages"][0]["text"].as_str().unwrap();
    assert!(result["chunk_text"].as_str().unwrap().starts_with(opened.trim_end()), "{opened:?} of {result}");
    let chunks = got["chunks"].as_array().unwrap();
    let same = chunks.iter().find(|chunk| chunk["chunk_id"] == result["chunk_id"]).unwrap_or_else(|| panic!("{got}"));
    assert_eq!((&same["start"], &same["chunk_index"]), (&result["start"], &result["chunk_index"]));
    assert!(chunks.len() <= 3, "only those in sight: {got}");

    let whole = corbie.call(GET, json!({ "document_id": id, "max_characters": 500_000, "chunks": true }));
    let chunks = whole["chunks"].as_array().unwrap();
    assert!(chunks.len() > 5, "{}", chunks.len());
    for (number, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["chunk_index"], number);
        let resource = corbie.request(
            "resources/read",
            json!({ "uri": format!("knowledge://chunks/{}", chunk["chunk_id"].as_str().unwrap()) }),
        );
        let says = resource["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(chunk_text_in_pages(&whole, chunk).trim_end(), says.trim_end(), "chunk {number}");
    }
    assert_eq!(chunks[0]["start"], 0);
    let end = whole["pages"][0]["text"].as_str().unwrap().chars().count();
    assert_eq!(chunks.last().unwrap()["end"], end, "together they are the whole text");
}
