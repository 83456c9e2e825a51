//! Search tests: inflections, languages, names, unusual queries.

use corbie_index::{Chunk, Document, Hit, Index, IndexUpdate, Mode, Query};

fn index(texts: &[&str]) -> Index {
    let index = Index::new(4);
    let documents = texts.iter().zip(0..).map(|(text, key)| {
        let chunk = Chunk { key: key + 100, text: (*text).into(), context: String::new(), vectors: Vec::new() };
        IndexUpdate::Put(Document { key, added: 0, facets: Vec::new(), chunks: vec![chunk] })
    });
    index.apply(documents.collect());
    index
}

fn search(index: &Index, text: &str) -> Vec<Hit> {
    index.snapshot().search(&Query { text, vector: None, filter: None, top: 10, mode: Mode::Hybrid })
}

fn found(index: &Index, text: &str) -> Vec<u64> {
    let mut documents: Vec<u64> = search(index, text).iter().map(|hit| hit.document).collect();
    documents.sort_unstable();
    documents
}

#[test]
fn words_are_found_in_their_other_forms_and_in_each_language() {
    let index = index(&[
        "The managers approved all invoices after the meetings in the large room of the house.",
        "Die Verträge wurden gestern von den Geschäftsführern in der Hauptstadt unterschrieben.",
        "Les réunions de la société ont été annulées à cause de la grève des transports publics.",
        "Договоры были подписаны вчера в столице двумя директорами этой компании.",
        "東京都の人口は約千四百万人です。日本の首都であり、経済の中心地です。",
    ]);
    for (query, documents) in [
        ("invoice approval", vec![0]),
        ("MEETING", vec![0]),
        ("Vertrag", vec![1]),
        ("vertraege", vec![1]),
        ("geschaftsfuhrer", vec![1]),
        ("réunion", vec![2]),
        ("reunion annulee", vec![2]),
        ("договор", vec![3]),
        ("東京", vec![4]),
        ("京", vec![4]),
        ("the of", vec![0]),
        ("unheard", vec![]),
    ] {
        assert_eq!(found(&index, query), documents, "{query}");
    }
}

#[test]
fn names_are_found_however_they_are_written() {
    let index = index(&[
        "See RFC-9110 for the semantics.",
        "Call parse_http_header before v1.2 of the library.",
        "Mail me@example.com about order 3,000 please 🚀",
    ]);
    for (query, document) in [
        ("RFC 9110", 0),
        ("rfc9110", 0),
        ("parse_http_header", 1),
        ("http header", 1),
        ("v1.2", 1),
        ("parseHttpHeader", 1),
        ("me@example.com", 2),
        ("3000", 2),
        ("🚀", 2),
    ] {
        assert_eq!(found(&index, query), [document], "{query}");
    }
}

#[test]
fn strange_queries_are_answered() {
    let index = index(&["one two three", "two three four"]);
    let emoji = "😀".repeat(500);
    let long = "three ".repeat(50_000);
    let letters = "x".repeat(100_000);
    for query in ["", " ", "\0", "\u{200d}\u{fe0f}", "'", "-", "a\u{300}\u{300}", &emoji, &letters] {
        assert!(found(&index, query).is_empty(), "{query}");
    }
    assert_eq!(found(&index, &long), [0, 1]);
    let mode = Mode::Vectors;
    let ask = |vector: &[f32]| {
        index.snapshot().search(&Query { text: "one", vector: Some(vector), filter: None, top: 3, mode })
    };
    for vector in [vec![], vec![0.0; 4], vec![f32::NAN; 4], vec![f32::INFINITY; 4], vec![1.0; 3], vec![1.0; 4]] {
        assert!(ask(&vector).is_empty());
    }
    assert!(index.snapshot().search(&Query { text: "one", vector: None, filter: None, top: 0, mode }).is_empty());
    let all = Query { text: "one", vector: None, filter: None, top: usize::MAX, mode: Mode::Words };
    assert_eq!(index.snapshot().search(&all).len(), 1);
}

#[test]
fn context_is_found_and_counts_less_than_text() {
    let index = Index::new(4);
    let put = |key, text: &str, context: &str| {
        let chunk = Chunk { key, text: text.into(), context: context.into(), vectors: Vec::new() };
        IndexUpdate::Put(Document { key, added: 0, facets: Vec::new(), chunks: vec![chunk] })
    };
    index.apply(vec![put(1, "about rivers", "salmon"), put(2, "about salmon", "rivers"), put(3, "other", "things")]);
    let hits = search(&index, "salmon");
    assert_eq!(hits.iter().map(|hit| hit.document).collect::<Vec<_>>(), [2, 1]);
    assert!(hits[0].words > hits[1].words);
}

#[test]
fn one_document_at_a_time_leaves_few_segments() {
    let index = Index::new(4);
    for key in 0..3000 {
        let chunk = Chunk { key, text: format!("number {key}"), context: String::new(), vectors: vec![vec![1.0; 4]] };
        index.apply(vec![IndexUpdate::Put(Document { key, added: 0, facets: Vec::new(), chunks: vec![chunk] })]);
    }
    assert!(index.save(&Default::default()).in_use.len() < 40);
    assert_eq!(found(&index, "1234"), [1234]);
    index.merge_segments();
    assert_eq!(index.save(&Default::default()).in_use.len(), 1);
    assert_eq!(found(&index, "1234"), [1234]);
    assert_eq!(index.snapshot().vectors(), 3000);
}
