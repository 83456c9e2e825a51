//! Text of documents.

use corbie::knowledge::document::{CharSpan, DocumentPage, NewDocument};
use corbie::knowledge::store::PageRange;

use crate::fixture::{base_named, default_base, document, put, store_location};

/// All pages.
const ALL_PAGES: PageRange = PageRange { from: 1, pages: u32::MAX, max_bytes: usize::MAX };

#[tokio::test]
async fn pages_are_given_from_a_number_on_and_up_to_a_size() {
    let home = store_location();
    let store = home.open().await;
    let new = document("engine.pdf", 5);
    put(&store, new.clone()).await;
    let pages = async |wanted| store.text(&default_base(), new.id, wanted).await.unwrap().unwrap().1;
    assert_eq!(pages(ALL_PAGES).await, new.pages);
    assert_eq!(pages(PageRange { from: 2, pages: 2, ..ALL_PAGES }).await, new.pages[1..3]);
    assert_eq!(pages(PageRange { from: 6, ..ALL_PAGES }).await, []);
    let bytes = new.pages[0].text.len() + new.pages[1].text.len() - 1;
    assert_eq!(pages(PageRange { max_bytes: bytes, ..ALL_PAGES }).await, new.pages[..2]);
    assert_eq!(store.text(&base_named("other"), new.id, ALL_PAGES).await.unwrap(), None, "a base has only its own");
}

/// Number of reads while the document is being replaced.
const READS: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_is_replaced_while_it_is_read_is_of_one_version() {
    let home = store_location();
    let store = home.open().await;
    let version = |number: u32| {
        let pages = (1..=300).map(|page| DocumentPage { number: page, label: None, text: format!("version {number}") });
        NewDocument { pages: pages.collect(), title: Some(number.to_string()), ..document("engine.pdf", 1) }
    };
    let first = put(&store, version(0)).await;
    let writing = store.clone();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let writer = tokio::spawn(async move {
        let mut number = 0;
        while stopped.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty) {
            number += 1;
            put(&writing, NewDocument { replaces: Some(first.id), ..version(number) }).await;
        }
        number
    });
    for _ in 0..READS {
        let (document, pages) = store.text(&default_base(), first.id, ALL_PAGES).await.unwrap().unwrap();
        let said = format!("version {}", document.title.unwrap());
        assert_eq!(pages.len(), 300);
        assert!(pages.iter().all(|page| page.text == said), "pages of another version than {said}");
    }
    stop.send(()).unwrap();
    assert!(writer.await.unwrap() > 0);
}

#[tokio::test]
async fn chunks_come_with_their_pages_and_tell_their_place_or_how_they_begin() {
    let home = store_location();
    let store = home.open().await;
    let mut new = document("engine.pdf", 5);
    new.chunks[2].spans.clear();
    put(&store, new.clone()).await;
    let wanted = PageRange { from: 2, pages: 2, max_bytes: usize::MAX };
    let (_, pages, chunks) = store.text_and_chunks(&default_base(), new.id, wanted).await.unwrap().unwrap();
    assert_eq!(pages.iter().map(|page| page.number).collect::<Vec<_>>(), [2, 3]);
    let told: Vec<_> = chunks.iter().map(|chunk| (chunk.ordinal, chunk.spans.as_slice())).collect();
    let place = |page| [CharSpan { page, start: 4, end: 20, in_chunk: Some(page), windows: 1 }];
    assert_eq!(told, [(1, place(2).as_slice()), (2, &[]), (3, &place(4))], "the next may repeat the end of this");
    let beginning = new.chunks[2].text.chars().take(200).collect::<String>();
    assert_eq!(chunks[1].excerpt, Some(beginning));
    assert_eq!((&chunks[0].excerpt, &chunks[2].excerpt), (&None, &None));
    let found = store.chunk(chunks[0].id).await.unwrap().unwrap();
    assert_eq!(found.spans, place(2), "by the same id");
}
