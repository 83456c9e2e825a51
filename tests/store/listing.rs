//! Listing of documents and of pending ones.

use corbie::knowledge::document::{NewDocument, Status};
use corbie::knowledge::store::{
    DocumentFilter, DocumentListQuery, ProcessingStatus, SortDirection, SortKey, Store, TaskListQuery,
};
use corbie::knowledge::task::{NewTask, TaskEnd, TaskId, TaskLink};
use serde_json::json;

use crate::fixture::{default_base, document, metadata, put, store_location, task};

async fn names(store: &Store, listing: DocumentListQuery) -> Vec<String> {
    let listed = store.documents(&default_base(), listing).await.unwrap();
    listed.documents.into_iter().map(|document| document.filename).collect()
}

#[tokio::test]
async fn k81_lists_are_sorted_by_date_name_or_size() {
    let home = store_location();
    let store = home.open().await;
    for (name, chunks) in [("b.pdf", 2), ("C.pdf", 3), ("a.pdf", 1)] {
        put(&store, document(name, chunks)).await;
    }
    let by = |sort, order| DocumentListQuery { sort, order, ..DocumentListQuery::default() };
    assert_eq!(names(&store, DocumentListQuery::default()).await, ["a.pdf", "C.pdf", "b.pdf"]);
    assert_eq!(names(&store, by(SortKey::DateAdded, SortDirection::Ascending)).await, ["b.pdf", "C.pdf", "a.pdf"]);
    assert_eq!(names(&store, by(SortKey::Filename, SortDirection::Ascending)).await, ["a.pdf", "b.pdf", "C.pdf"]);
    assert_eq!(names(&store, by(SortKey::Size, SortDirection::Descending)).await, ["C.pdf", "b.pdf", "a.pdf"]);
}

#[tokio::test]
async fn k82_a_part_of_a_list_tells_how_many_there_are() {
    let home = store_location();
    let store = home.open().await;
    for number in 0..7 {
        put(&store, document(&format!("{number}.pdf"), 1)).await;
    }
    let mut seen = Vec::new();
    for offset in [0, 3, 6] {
        let listed = store
            .documents(&default_base(), DocumentListQuery { limit: 3, offset, ..DocumentListQuery::default() })
            .await
            .unwrap();
        assert_eq!(listed.total, 7);
        seen.extend(listed.documents.into_iter().map(|document| document.filename));
    }
    assert_eq!(seen, ["6.pdf", "5.pdf", "4.pdf", "3.pdf", "2.pdf", "1.pdf", "0.pdf"]);
    let beyond = store
        .documents(&default_base(), DocumentListQuery { offset: u64::MAX, ..DocumentListQuery::default() })
        .await
        .unwrap();
    assert_eq!((beyond.documents.len(), beyond.total), (0, 7));
}

#[tokio::test]
async fn k82_a_list_is_narrowed_by_name_title_format_and_status() {
    let home = store_location();
    let store = home.open().await;
    for (name, title) in [
        ("100%.pdf", None),
        ("100 days.pdf", None),
        ("a_b.pdf", None),
        ("aXb.pdf", Some("Über die Krähen")),
        ("it's \\ \"odd\".pdf", None),
    ] {
        let new = document(name, 1);
        put(&store, NewDocument { title: title.map(str::to_owned), ..new }).await;
    }
    let mut said = document("said.html", 1);
    said.format = "html".into();
    said.status = Status::Partial;
    said.metadata = metadata(json!({ "title": "What its user calls it" }));
    put(&store, said).await;
    let numbered = NewDocument { metadata: metadata(json!({ "title": 1984 })), ..document("orwell.pdf", 1) };
    put(&store, numbered).await;
    store.add_task(&task("days to come.pdf")).await.unwrap();

    let only = |named: &str| DocumentFilter { name_contains: Some(named.to_owned()), ..DocumentFilter::default() };
    for (only, expected) in [
        (only("100"), ["100 days.pdf", "100%.pdf"].as_slice()),
        (only("%"), &["100%.pdf"]),
        (only("a_B"), &["a_b.pdf"]),
        (only("ÜBER DIE"), &["aXb.pdf"]),
        (only("krähe"), &["aXb.pdf"]),
        (only("user CALLS"), &["said.html"]),
        (only("On said"), &[]),
        (only("1984"), &["orwell.pdf"]),
        (only("'S \\ \""), &["it's \\ \"odd\".pdf"]),
        (only("days"), &["days to come.pdf", "100 days.pdf"]),
        (only("nobody"), &[]),
        (DocumentFilter { format: Some("html".into()), ..DocumentFilter::default() }, &["said.html"]),
        (DocumentFilter { format: Some("pdf".into()), ..only("days") }, &["days to come.pdf", "100 days.pdf"]),
        (DocumentFilter { format: Some("html".into()), ..only("days") }, &[]),
        (DocumentFilter { status: Some(ProcessingStatus::Partial), ..DocumentFilter::default() }, &["said.html"]),
        (
            DocumentFilter { status: Some(ProcessingStatus::Pending), ..DocumentFilter::default() },
            &["days to come.pdf"],
        ),
        (DocumentFilter { status: Some(ProcessingStatus::Completed), ..only("days") }, &["100 days.pdf"]),
        (DocumentFilter { status: Some(ProcessingStatus::Failed), ..DocumentFilter::default() }, &[]),
    ] {
        let listing = DocumentListQuery { filter: only.clone(), ..DocumentListQuery::default() };
        let listed = store.documents(&default_base(), listing.clone()).await.unwrap();
        let names: Vec<_> = listed.documents.iter().map(|document| document.filename.as_str()).collect();
        assert_eq!((names.as_slice(), listed.total), (expected, expected.len() as u64), "{only:?}");
        let first = store.documents(&default_base(), DocumentListQuery { limit: 1, ..listing }).await.unwrap();
        assert_eq!(first.total, listed.total, "of all pages: {only:?}");
    }
}

#[tokio::test]
async fn k84_tasks_are_listed_until_their_document_is() {
    let home = store_location();
    let store = home.open().await;
    let [waits, runs, fails, ends, cancelled] = ["1", "2", "3", "4", "5"].map(|name| task(&format!("{name}.pdf")));
    for task in [&waits, &runs, &fails, &ends, &cancelled] {
        store.add_task(task).await.unwrap();
    }
    store.start_task(runs.id).await.unwrap();
    store.end_task(TaskEnd::failed(fails.id, "corrupted_file", "cannot be read")).await.unwrap();
    store.cancel_task(cancelled.id).await.unwrap();
    let mut new = document("4.pdf", 1);
    new.id = ends.document.unwrap();
    let end = TaskEnd::completed(ends.id, json!({}));
    store.put_document(new, TaskLink::Ends(end)).await.unwrap();
    let by_name =
        DocumentListQuery { sort: SortKey::Filename, order: SortDirection::Ascending, ..DocumentListQuery::default() };
    let listed = store.documents(&default_base(), by_name).await.unwrap();
    let seen: Vec<_> = listed.documents.iter().map(|d| (d.filename.as_str(), d.status, d.task)).collect();
    let expected = [
        ("1.pdf", ProcessingStatus::Pending, Some(waits.id)),
        ("2.pdf", ProcessingStatus::Processing, Some(runs.id)),
        ("4.pdf", ProcessingStatus::Completed, None),
    ];
    assert_eq!((seen, listed.total), (expected.to_vec(), 3), "x48: a failed task is no document");
    assert_eq!(listed.documents[0].size_bytes, 1234);

    store.clear(&default_base()).await.unwrap();
    assert_eq!(
        store.documents(&default_base(), DocumentListQuery::default()).await.unwrap().total,
        0,
        "nothing reappears after a clear"
    );
}

/// A task that adds this file.
fn adds(path: &str) -> NewTask {
    let filename = path.rsplit('/').next().unwrap();
    let request = json!({ "add": { "file_path": path, "origin": "added" } });
    NewTask { request, ..task(filename) }
}

/// The listed tasks that failed.
async fn failures(store: &Store) -> Vec<TaskId> {
    let query = TaskListQuery { bases: vec![default_base()], owner: None, states: vec!["failed"], limit: 100 };
    store.latest_tasks(query).await.unwrap().into_iter().map(|task| task.id).collect()
}

async fn fail(store: &Store, task: &NewTask) {
    store.add_task(task).await.unwrap();
    store.start_task(task.id).await.unwrap();
    assert!(store.end_task(TaskEnd::failed(task.id, "corrupted_file", "cannot be read")).await.unwrap());
}

#[tokio::test]
async fn x48_a_file_that_failed_is_listed_once_and_gone_after_a_later_success() {
    let home = store_location();
    let store = home.open().await;
    let [first, again, namesake] = ["/a/crow.pdf", "/a/crow.pdf", "/b/crow.pdf"].map(adds);
    for task in [&first, &again, &namesake] {
        fail(&store, task).await;
    }
    assert_eq!(failures(&store).await, [namesake.id, again.id], "one entry per file");
    assert!(store.task(first.id).await.unwrap().unwrap().state.is_finished(), "k114: it can still be queried");

    let success = adds("/a/crow.pdf");
    store.add_task(&success).await.unwrap();
    store.start_task(success.id).await.unwrap();
    let new = NewDocument { path: Some("/a/crow.pdf".into()), filename: "crow.pdf".into(), ..document("crow.pdf", 1) };
    let end = TaskEnd::completed(success.id, json!({}));
    store.put_document(new, TaskLink::Ends(end)).await.unwrap();
    assert_eq!(failures(&store).await, [namesake.id]);

    // An import, or a call that waits, writes the document without a task of its own.
    let new = NewDocument { path: Some("/b/crow.pdf".into()), filename: "crow.pdf".into(), ..document("other.pdf", 1) };
    put(&store, new).await;
    assert_eq!(failures(&store).await, []);
}

#[tokio::test]
async fn x48_a_document_is_failed_if_its_file_could_not_be_read_again() {
    let home = store_location();
    let store = home.open().await;
    let new = NewDocument { path: Some("/a/crow.pdf".into()), filename: "crow.pdf".into(), ..document("crow.pdf", 1) };
    let written = put(&store, new).await;
    fail(&store, &adds("/a/crow.pdf")).await;
    for filter in
        [DocumentFilter::default(), DocumentFilter { status: Some(ProcessingStatus::Failed), ..Default::default() }]
    {
        let query = DocumentListQuery { filter, ..DocumentListQuery::default() };
        let listed = store.documents(&default_base(), query).await.unwrap();
        assert_eq!(listed.total, 1);
        let document = &listed.documents[0];
        assert_eq!((document.id, document.status, document.chunk_count), (written.id, ProcessingStatus::Failed, 1));
        assert_eq!(document.warning.as_deref(), Some("cannot be read"));
    }
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 1);
    let mut next = document("crow.pdf", 2);
    (next.path, next.replaces) = (Some("/a/crow.pdf".into()), Some(written.id));
    put(&store, next).await;
    let listed = store.documents(&default_base(), DocumentListQuery::default()).await.unwrap();
    assert_eq!((listed.documents[0].status, failures(&store).await.len()), (ProcessingStatus::Completed, 0));
}
