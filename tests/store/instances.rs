//! Several processes on one store, some of which die.

use std::time::{Duration, Instant};

use corbie::knowledge::document::PutOutcome;
use corbie::knowledge::store::{Error, TaskOwnership};
use corbie::knowledge::task::{NewTask, TaskEnd, TaskId, TaskLink, TaskState, UnfinishedTasks};

use crate::crash::start;
use crate::fixture::{adopt_orphans, default_base, document, eventually, put, store_location, task, temp_folder};

#[tokio::test]
async fn k37_a_killed_process_leaves_whole_documents_and_its_tasks() {
    let (home, notes) = (store_location(), temp_folder());
    let store = home.open().await;
    let noted = notes.path().join("acknowledged");
    let mut child = start(&home.address(), &noted);
    assert_eq!(store.adopt_orphaned_tasks().await.unwrap(), [], "it lives");
    child.kill().unwrap();
    child.wait().unwrap();

    let report = store.check().await.unwrap();
    assert!(report.is_consistent(), "{report:?}");
    assert_eq!(report.chunks, report.documents * 20);
    let acknowledged = std::fs::read_to_string(&noted).unwrap();
    assert!(report.documents > acknowledged.parse().unwrap_or(5), "what was acknowledged is there");

    let adopted = adopt_orphans(&store).await;
    let seen: Vec<_> = adopted.iter().map(|t| (t.filename.as_deref().unwrap(), &t.state, t.attempts)).collect();
    assert_eq!(seen, [("runs.pdf", &TaskState::Queued, 1), ("waits.pdf", &TaskState::Queued, 0)]);
    assert!(adopted.iter().all(|task| task.runner.as_deref() == Some(store.instance())));
    assert!(store.start_task(adopted[0].id).await.unwrap());
    assert_eq!(store.task(adopted[0].id).await.unwrap().unwrap().attempts, 2);
}

#[tokio::test]
async fn a_task_whose_process_is_gone_does_not_run() {
    let home = store_location();
    let (looks, runs, ends) = (home.open().await, home.open().await, home.open().await);
    let (alive, dead, handed_back) = (task("alive.pdf"), task("dead.pdf"), task("handed_back.pdf"));
    runs.add_task(&alive).await.unwrap();
    runs.start_task(alive.id).await.unwrap();
    ends.add_task(&dead).await.unwrap();
    ends.start_task(dead.id).await.unwrap();
    let told = async |task: &NewTask| {
        // The death of the process may be detected between the two calls.
        eventually("a list that tells the same", async || {
            let told = looks.task(task.id).await.unwrap().unwrap();
            let is_listed = looks.tasks(None, 9).await.unwrap().contains(&told);
            is_listed.then_some((told.state.name(), told.interrupted))
        })
        .await
    };
    assert_eq!(told(&dead).await, ("running", false));
    assert_eq!(looks.unfinished_tasks().await.unwrap(), UnfinishedTasks { running: 2, queued: 0 });
    drop(ends);
    let hands_back = home.open().await;
    hands_back.add_task(&handed_back).await.unwrap();
    assert_eq!(told(&handed_back).await, ("queued", false));
    hands_back.release_tasks().await.unwrap();
    assert_eq!(told(&alive).await, ("running", false));
    eventually("it to be missed", async || (told(&dead).await == ("queued", true)).then_some(())).await;
    assert_eq!(told(&handed_back).await, ("queued", true));
    assert_eq!(looks.unfinished_tasks().await.unwrap(), UnfinishedTasks { running: 1, queued: 2 });
    looks.cancel_task(dead.id).await.unwrap();
    assert_eq!(told(&dead).await, ("cancelled", false));
}

#[tokio::test]
async fn an_orphan_is_adopted_once() {
    let home = store_location();
    let dead = home.open().await;
    for number in 0..20 {
        dead.add_task(&task(&number.to_string())).await.unwrap();
    }
    let stores = [home.open().await, home.open().await, home.open().await];
    drop(dead);
    let [a, b, c] = &stores;
    let mut adopted = Vec::new();
    eventually("all to be adopted", async || {
        let (a, b, c) = tokio::join!(a.adopt_orphaned_tasks(), b.adopt_orphaned_tasks(), c.adopt_orphaned_tasks());
        adopted.extend([a, b, c].into_iter().flat_map(Result::unwrap).map(|task| task.id));
        (adopted.len() >= 20).then_some(())
    })
    .await;
    let mut once = adopted.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!((adopted.len(), once.len()), (20, 20));
}

#[tokio::test]
async fn a_task_of_a_living_process_is_nobody_elses() {
    let home = store_location();
    let (one, other) = (home.open().await, home.open().await);
    assert_ne!(one.instance(), other.instance());
    let new = task("engine.pdf");
    one.add_task(&new).await.unwrap();
    assert_eq!(other.adopt_orphaned_tasks().await.unwrap(), []);
    assert!(!other.start_task(new.id).await.unwrap());
    let error = other.put_document(document("engine.pdf", 1), TaskLink::PartOf(new.id)).await.unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert!(other.cancel_task(new.id).await.unwrap(), "but everybody can cancel it");
    assert!(!one.start_task(new.id).await.unwrap());
}

#[tokio::test]
async fn a_task_that_was_taken_over_is_not_ended_by_who_had_it_before() {
    let home = store_location();
    let (before, after) = (home.open().await, home.open().await);
    let new = task("engine.pdf");
    before.add_task(&new).await.unwrap();
    before.start_task(new.id).await.unwrap();
    before.release_tasks().await.unwrap();
    assert_eq!(after.adopt_orphaned_tasks().await.unwrap().len(), 1);
    for end in [TaskEnd::failed(new.id, "late", "too late"), TaskEnd::completed(new.id, serde_json::json!({}))] {
        assert!(!before.end_task(end).await.unwrap());
    }
    assert_eq!(after.task(new.id).await.unwrap().unwrap().state, TaskState::Queued);
    assert!(after.end_task(TaskEnd::failed(new.id, "no", "no")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_several_write_at_once_is_all_there() {
    let home = store_location();
    let stores = [home.open().await, home.open().await];
    let mut writing = tokio::task::JoinSet::new();
    for number in 0..40 {
        let store = stores[number % 2].clone();
        writing.spawn(async move { put(&store, document(&format!("{number}.pdf"), 5)).await.key });
    }
    let mut keys = writing.join_all().await;
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 40);
    for store in &stores {
        let totals = store.totals(&default_base()).await.unwrap();
        assert_eq!((totals.documents, totals.chunks, totals.vectors), (40, 200, 400));
    }
    let report = stores[1].check().await.unwrap();
    assert!(report.is_consistent(), "{report:?}");
}

/// Concurrent puts of the same file store it once, and none blocks forever.
#[tokio::test(flavor = "multi_thread")]
async fn k36_the_same_content_is_written_once_however_many_write_it() {
    let home = store_location();
    let stores = [home.open().await, home.open().await];
    let mut writing = tokio::task::JoinSet::new();
    for number in 0..20 {
        let store = stores[number % 2].clone();
        let mut new = document("engine.pdf", 3);
        new.path = Some(format!("/home/ada/{number}/engine.pdf"));
        writing.spawn(async move { store.put_document(new, TaskLink::Standalone).await.unwrap() });
    }
    let put = writing.join_all().await;
    let written: Vec<_> =
        put.iter().filter_map(|put| if let PutOutcome::Written(new) = put { Some(new.id) } else { None }).collect();
    assert_eq!(written.len(), 1, "{put:?}");
    assert!(
        put.iter().all(|put| matches!(put, PutOutcome::Written(_)) || *put == PutOutcome::DuplicateContent(written[0])),
        "{put:?}"
    );
    assert_eq!(stores[0].totals(&default_base()).await.unwrap().documents, 1);
}

#[tokio::test]
async fn what_became_of_many_tasks_is_one_question() {
    let home = store_location();
    let (one, other) = (home.open().await, home.open().await);
    let [waits, runs, cancelled, failed, taken] = ["waits", "runs", "cancelled", "failed", "taken"].map(task);
    other.add_task(&taken).await.unwrap();
    for task in [&waits, &runs, &cancelled, &failed] {
        one.add_task(task).await.unwrap();
    }
    one.start_task(runs.id).await.unwrap();
    other.cancel_task(cancelled.id).await.unwrap();
    one.end_task(TaskEnd::failed(failed.id, "no", "no")).await.unwrap();
    let mut ids: Vec<_> = (0..10_000).map(|_| TaskId::random()).collect();
    ids.extend([waits.id, runs.id, cancelled.id, failed.id, taken.id]);
    let begun = Instant::now();
    let whose = one.task_ownership(&ids).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let wanted = [
        (waits.id, TaskOwnership::Own),
        (runs.id, TaskOwnership::Own),
        (cancelled.id, TaskOwnership::Cancelled),
        (failed.id, TaskOwnership::Ended),
        (taken.id, TaskOwnership::Other),
    ];
    assert_eq!(whose, wanted.into());
}
