//! `knowledge-get`: the text of a document, some pages at a time.

use serde_json::json;

use crate::fixture::{CROWS, each};
use crate::made;

const GET: &str = "knowledge-get";

#[test]
fn k04_k05_k73_the_document_must_be_named_and_there() {
    each(|corbie| {
        corbie.refused(GET, json!({}), "missing_required_parameter");
        corbie.invalid(GET, json!({ "document_id": "x", "page": 0 }), "page");
        corbie.invalid(GET, json!({ "document_id": "x", "max_characters": 1 }), "max_characters");
        corbie.refused(GET, json!({ "document_id": "x" }), "document_not_found");
    });
}

#[test]
fn k34_pages_come_in_order_and_tell_where_to_go_on() {
    each(|corbie| {
        let added = corbie.add("pages.pdf", made::pages(&["page one", "page two", "page three"]));
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
    each(|corbie| {
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
