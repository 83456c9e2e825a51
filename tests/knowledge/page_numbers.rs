//! The page, slide or sheet of a search result (K-34, X-50).

use serde_json::{Value, json};

use crate::fixture::KnowledgeServer;
use crate::pdf_builder::{Builder, text};
use crate::sample_files;

/// A fact for each of ten pages, with a question about it.
const FACTS: [(&str, &str); 10] = [
    ("The pump in the cellar was replaced after the flood.", "why did the cellar get another pump"),
    ("Visitors leave their coats in the small room beside the stairs.", "where do guests put their coats"),
    ("The apprentices begin at seven and have lunch at noon.", "when do the apprentices start in the morning"),
    ("A spare key lies with the neighbour who runs the bakery.", "who has the spare key"),
    ("Paint for the fence comes in barrels of twenty litres.", "how large are the barrels of paint"),
    ("The choir rehearses on Thursdays in the gymnasium.", "on which day does the choir rehearse"),
    ("Honey from the hives on the roof is sold in autumn.", "when can I buy honey from the roof"),
    ("Broken lamps are collected in the green box near the gate.", "where do I bring a broken lamp"),
    ("The ferry to the island costs eleven crowns for a child.", "what is the price of the ferry for children"),
    ("Mushrooms are dried on strings above the oven.", "how are mushrooms dried"),
];

/// Text without any of these facts, in lines of a page.
const FILLER: [&str; 6] = [
    "This part of the manual is about the organisation of the house as a whole.",
    "Everybody should have read it once before the first week is over.",
    "Changes are announced at the board and in the letter of the month.",
    "The committee has approved the wording and thanks all who helped.",
    "Older versions remain in the archive and may be read on request.",
    "What is not covered here is decided by those who are present.",
];

fn page_numbers(corbie: &mut KnowledgeServer, name: &str) -> Vec<(Value, Value)> {
    let metadata = |question: &str| {
        let best = corbie.search(question)["results"][0].clone();
        assert_eq!(best["filename"], name, "{question}: {best}");
        (best["metadata"]["page_num"].clone(), best["metadata"]["pages"].clone())
    };
    FACTS.iter().map(|(_, question)| *question).map(metadata).collect()
}

#[test]
fn x50_k34_each_of_ten_slides_is_told() {
    let mut corbie = KnowledgeServer::start();
    let slides: Vec<(Option<&str>, &str)> =
        FACTS.iter().zip(0..).map(|((fact, _), at)| ((at % 2 == 0).then_some("House"), *fact)).collect();
    let added = corbie.add("deck.pptx", sample_files::pptx_with_slides(&slides));
    assert_eq!(added["chunks_created"], 10, "{added}");
    let found = page_numbers(&mut corbie, "deck.pptx");
    let wanted: Vec<(Value, Value)> = (1..=10).map(|page| (json!(page), json!([page, page]))).collect();
    assert_eq!(found, wanted);
}

#[test]
fn x50_k34_each_of_ten_sheets_is_told() {
    let mut corbie = KnowledgeServer::start();
    let names: Vec<String> = (1..=10).map(|number| format!("Sheet {number}")).collect();
    let sheets: Vec<(&str, &str)> = names.iter().zip(FACTS).map(|(name, (fact, _))| (name.as_str(), fact)).collect();
    let added = corbie.add("book.xlsx", sample_files::xlsx_with_sheets(&sheets));
    assert_eq!(added["chunks_created"], 10, "{added}");
    let found = page_numbers(&mut corbie, "book.xlsx");
    let wanted: Vec<(Value, Value)> = (1..=10).map(|page| (json!(page), json!([page, page]))).collect();
    assert_eq!(found, wanted);
}

#[test]
fn x50_k34_the_page_of_the_best_sentence_is_told_whatever_the_length_of_the_pages() {
    let mut corbie = KnowledgeServer::start();
    for lines in [0, 3, 12, 40] {
        let name = format!("manual-{lines}.pdf");
        let mut builder = Builder::new();
        for (at, (fact, _)) in FACTS.iter().enumerate() {
            // The fact is at the top, in the middle or at the bottom of its page.
            let place = lines * (at % 3) / 2;
            let filler = |line: usize| FILLER[(line + at) % FILLER.len()];
            let lines = (0..=lines).map(|line| match line.cmp(&place) {
                std::cmp::Ordering::Less => filler(line),
                std::cmp::Ordering::Equal => *fact,
                std::cmp::Ordering::Greater => filler(line - 1),
            });
            let shown = (0..).zip(lines).map(|(line, words)| text("F1", 10, 72, 760 - 14 * line, words));
            builder.page(&shown.collect::<String>());
        }
        corbie.add(&name, builder.build());
        let found = page_numbers(&mut corbie, &name);
        let right = (1..).zip(&found).filter(|(page, (found, _))| found == page).count();
        assert!(right >= 9, "{lines} lines: {found:?}");
        for (page, span) in &found {
            assert!(span[0].as_u64() <= page.as_u64() && page.as_u64() <= span[1].as_u64(), "{page} in {span}");
        }
        corbie.call("knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
    }
}
