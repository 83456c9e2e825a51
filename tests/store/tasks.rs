//! Tasks of one process.

use std::time::Duration;

use corbie::knowledge::document::{NewDocument, PutOutcome};
use corbie::knowledge::store::{Error, Options};
use corbie::knowledge::task::{TaskEnd, TaskId, TaskKind, TaskLink, TaskOutcome, TaskProgress, TaskState};
use serde_json::json;

use crate::fixture::{adopt_orphans, base_named, default_base, document, put, store_location, task};

#[tokio::test]
async fn a_task_is_kept_as_it_was_asked_for() {
    let home = store_location();
    let store = home.open().await;
    let new = task("engine.pdf");
    store.add_task(&new).await.unwrap();
    let kept = store.task(new.id).await.unwrap().unwrap();
    assert_eq!((kept.id, &kept.base, &kept.owner, kept.kind), (new.id, &new.base, &new.owner, TaskKind::Add));
    assert_eq!((&kept.request, kept.document, &kept.filename), (&new.request, new.document, &new.filename));
    assert_eq!((kept.state, kept.attempts, kept.runner.as_deref()), (TaskState::Queued, 0, Some(store.instance())));
    assert_eq!((kept.started, kept.ended), (None, None));
    assert_eq!(store.task(TaskId::random()).await.unwrap(), None);
}

#[tokio::test]
async fn k114_a_task_goes_from_queued_to_running_to_its_end() {
    let home = store_location();
    let store = home.open().await;
    let new = task("engine.pdf");
    store.add_task(&new).await.unwrap();
    assert!(store.start_task(new.id).await.unwrap());
    assert!(!store.start_task(new.id).await.unwrap(), "once");
    let progress = TaskProgress { step: "Processing page 5 of 10".to_owned(), done: 5, total: 10, permille: 450 };
    assert!(store.record_progress(new.id, progress.clone()).await.unwrap());
    let running = store.task(new.id).await.unwrap().unwrap();
    assert_eq!((running.state, running.attempts), (TaskState::Running(progress), 1));
    assert!(running.started.is_some());
    assert!(store.end_task(TaskEnd::completed(new.id, json!({"chunks_created": 3}))).await.unwrap());
    let ended = store.task(new.id).await.unwrap().unwrap();
    assert_eq!(ended.state, TaskState::Completed(json!({"chunks_created": 3})));
    assert!(ended.ended >= ended.started);
    assert!(!store.end_task(TaskEnd::failed(new.id, "late", "too late")).await.unwrap());
    assert!(!store.cancel_task(new.id).await.unwrap());
    assert!(!store.record_progress(new.id, TaskProgress::default()).await.unwrap());
}

#[tokio::test]
async fn x48_a_request_is_forgotten_with_its_end_but_for_an_upload_and_a_file_that_failed() {
    let home = store_location();
    let store = home.open().await;
    let wish = |origin: &str| json!({"add": {"file_path": "/up/engine.pdf", "origin": origin, "metadata": {"a": "b"}}});
    // The file of a failure is kept: it is listed once, and until it is added (x48).
    for (origin, left, failed) in [
        ("added", json!({}), json!({"file": "/up/engine.pdf"})),
        ("uploaded", json!({"upload": "/up/engine.pdf"}), json!({"upload": "/up/engine.pdf", "file": "ends.pdf"})),
    ] {
        let mut tasks = ["ends.pdf", "cancelled.pdf", "cleared.pdf"].map(task);
        for task in &mut tasks {
            task.request = wish(origin);
            store.add_task(task).await.unwrap();
        }
        store.end_task(TaskEnd::failed(tasks[0].id, "no", "no")).await.unwrap();
        store.cancel_task(tasks[1].id).await.unwrap();
        assert_eq!(store.task(tasks[2].id).await.unwrap().unwrap().request, wish(origin), "it is still needed");
        store.clear(&default_base()).await.unwrap();
        for (task, left) in tasks.iter().zip([&failed, &left, &left]) {
            assert_eq!(store.task(task.id).await.unwrap().unwrap().request, *left);
        }
    }
}

#[tokio::test]
async fn a_task_that_stores_documents_is_not_to_blame_for_the_ends_of_its_processes() {
    let home = store_location();
    let store = home.open().await;
    let new = task("folder");
    store.add_task(&new).await.unwrap();
    let attempts = async || store.task(new.id).await.unwrap().unwrap().attempts;
    store.start_task(new.id).await.unwrap();
    assert_eq!(attempts().await, 1);
    let PutOutcome::Written(first) = store.put_document(document("1.pdf", 1), TaskLink::PartOf(new.id)).await.unwrap()
    else {
        panic!("nothing is in its way")
    };
    assert_eq!(attempts().await, 0);
    drop(store);

    // Another process resumes the task and finds the existing documents: that is no progress.
    let store = home.open().await;
    assert_eq!(adopt_orphans(&store).await.len(), 1);
    store.start_task(new.id).await.unwrap();
    let described = store
        .update_metadata(&default_base(), first.id, Default::default(), None, TaskLink::PartOf(new.id))
        .await
        .unwrap();
    assert!(described.is_some());
    assert_eq!(store.task(new.id).await.unwrap().unwrap().attempts, 1);
    let again = NewDocument { replaces: Some(first.id), ..document("1.pdf", 2) };
    store.put_document(again, TaskLink::PartOf(new.id)).await.unwrap();
    let changed = put(&store, document("2.pdf", 1)).await;
    let again = NewDocument { replaces: Some(changed.id), ..document("2.pdf", 2) };
    store.put_document(again, TaskLink::PartOf(new.id)).await.unwrap();
    assert_eq!(store.import_checkpoint(new.id).await.unwrap(), [(first.id, false), (changed.id, true)].into());
    store.end_task(TaskEnd::completed(new.id, json!({}))).await.unwrap();
    assert_eq!(store.import_checkpoint(new.id).await.unwrap(), [].into());
}

#[tokio::test]
async fn a_document_and_the_end_of_its_task_are_one() {
    let home = store_location();
    let store = home.open().await;
    let new = task("engine.pdf");
    store.add_task(&new).await.unwrap();
    store.start_task(new.id).await.unwrap();
    let end = TaskEnd { task: new.id, outcome: TaskOutcome::Completed(json!({"filename": "engine.pdf"})) };
    let put = store.put_document(document("engine.pdf", 2), TaskLink::Ends(end)).await.unwrap();
    assert!(matches!(put, PutOutcome::Written(_)));
    let ended = store.task(new.id).await.unwrap().unwrap();
    assert_eq!(ended.state, TaskState::Completed(json!({"filename": "engine.pdf"})));
}

#[tokio::test]
async fn k117_a_cancelled_task_writes_nothing() {
    let home = store_location();
    let store = home.open().await;
    let new = task("engine.pdf");
    store.add_task(&new).await.unwrap();
    store.start_task(new.id).await.unwrap();
    store.put_document(document("part.pdf", 1), TaskLink::PartOf(new.id)).await.unwrap();
    assert!(store.cancel_task(new.id).await.unwrap());
    for work in [TaskLink::PartOf(new.id), TaskLink::Ends(TaskEnd::completed(new.id, json!({})))] {
        let error = store.put_document(document("engine.pdf", 2), work.clone()).await.unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        let id = store.document_by_path(&default_base(), "/home/ada/part.pdf").await.unwrap().unwrap().id;
        assert!(store.update_metadata(&default_base(), id, Default::default(), None, work).await.is_err());
    }
    assert_eq!(store.task(new.id).await.unwrap().unwrap().state, TaskState::Cancelled);
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 1);
}

#[tokio::test]
async fn k93_a_clear_cancels_the_tasks_of_its_base() {
    let home = store_location();
    let store = home.open().await;
    let (waits, runs) = (task("engine.pdf"), task("loom.pdf"));
    let mut other = task("tea.pdf");
    other.base = base_named("kitchen");
    for task in [&waits, &runs, &other] {
        store.add_task(task).await.unwrap();
    }
    store.start_task(runs.id).await.unwrap();
    let mut cancelled = store.clear(&default_base()).await.unwrap().cancelled_tasks;
    cancelled.sort_unstable();
    let mut expected = [waits.id, runs.id];
    expected.sort_unstable();
    assert_eq!(cancelled, expected);
    let end = TaskEnd::completed(runs.id, json!({}));
    assert!(store.put_document(document("loom.pdf", 1), TaskLink::Ends(end)).await.is_err());
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 0);
    assert_eq!(store.task(other.id).await.unwrap().unwrap().state, TaskState::Queued);
}

#[tokio::test]
async fn there_is_an_end_to_how_many_tasks_wait() {
    let home = store_location();
    let store = home.open_with(Options { max_tasks: 2, ..Options::default() }).await;
    let first = task("1.pdf");
    store.add_task(&first).await.unwrap();
    store.add_task(&task("2.pdf")).await.unwrap();
    let error = store.add_task(&task("3.pdf")).await.unwrap_err();
    assert!(matches!(error, Error::TooManyTasks { bound: 2 }) && error.is_retryable());
    store.cancel_task(first.id).await.unwrap();
    store.add_task(&task("3.pdf")).await.unwrap();
}

#[tokio::test]
async fn k114_finished_tasks_stay_for_an_hour_at_least() {
    let home = store_location();
    let store = home.open().await;
    let (ended, waits) = (task("1.pdf"), task("2.pdf"));
    store.add_task(&ended).await.unwrap();
    store.add_task(&waits).await.unwrap();
    store.end_task(TaskEnd::failed(ended.id, "no", "no")).await.unwrap();
    let at = store.task(ended.id).await.unwrap().unwrap().ended.unwrap();
    let minutes = |minutes: i64| at + minutes * 60_000;
    assert_eq!(store.prune_tasks(minutes(59), Duration::ZERO).await.unwrap(), 0);
    assert_eq!(store.prune_tasks(minutes(61), Duration::from_secs(7200)).await.unwrap(), 0);
    assert_eq!(store.prune_tasks(minutes(121), Duration::from_secs(7200)).await.unwrap(), 1);
    let left: Vec<TaskId> = store.tasks(None, 10).await.unwrap().iter().map(|task| task.id).collect();
    assert_eq!(left, [waits.id], "those that are not finished stay");
}

#[tokio::test]
async fn there_is_an_end_to_how_many_finished_tasks_are_kept() {
    let home = store_location();
    let store = home.open_with(Options { max_finished_tasks: 2, ..Options::default() }).await;
    let tasks = ["1.pdf", "2.pdf", "3.pdf", "4.pdf"].map(task);
    for task in &tasks {
        store.add_task(task).await.unwrap();
    }
    // The task that ended first is evicted first, independent of when it was begun.
    for task in [&tasks[3], &tasks[0], &tasks[1]] {
        store.end_task(TaskEnd::failed(task.id, "no", "no")).await.unwrap();
        let at = store.task(task.id).await.unwrap().unwrap().ended.unwrap();
        // Tasks that end within the same millisecond have no defined order.
        while unix_ms() <= at {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(store.tasks(None, 10).await.unwrap().len(), 4);
    let waits = task("5.pdf");
    store.add_task(&waits).await.unwrap();
    let mut left: Vec<TaskId> = store.tasks(None, 10).await.unwrap().iter().map(|task| task.id).collect();
    left.sort_unstable();
    let mut expected = [tasks[0].id, tasks[1].id, tasks[2].id, waits.id];
    expected.sort_unstable();
    assert_eq!(left, expected);
}

/// Milliseconds since the epoch, as stored.
fn unix_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[tokio::test]
async fn the_latest_tasks_come_first() {
    let home = store_location();
    let store = home.open().await;
    let tasks = ["1", "2", "3"].map(task);
    for task in &tasks {
        store.add_task(task).await.unwrap();
    }
    let found = store.tasks(Some(&default_base()), 2).await.unwrap();
    assert_eq!(found.iter().map(|task| task.id).collect::<Vec<_>>(), [tasks[2].id, tasks[1].id]);
    assert_eq!(store.tasks(Some(&base_named("kitchen")), 2).await.unwrap(), []);
}
