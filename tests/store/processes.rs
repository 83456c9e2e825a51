//! Several processes on one store, and processes that die.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use corbie::knowledge::store::sqlite::Store;
use corbie::knowledge::store::{Error, Options};
use corbie::knowledge::task::{NewTask, TaskEnd, TaskState, Unfinished, Work};

use crate::fixture::{base, document, folder, open, put, task};

/// Where the process below finds the store; unset in all others.
const FOLDER: &str = "CORBIE_TEST_STORE";

/// Not a test, but the process that others start and kill: begins a task and puts documents for ever.
#[tokio::test]
async fn process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = open(Path::new(&folder));
    let (runs, waits) = (task("runs.pdf"), task("waits.pdf"));
    store.add_task(&runs).await.unwrap();
    store.add_task(&waits).await.unwrap();
    store.start_task(runs.id).await.unwrap();
    for number in 0.. {
        put(&store, document(&format!("{number}.pdf"), 20)).await;
        std::fs::write(Path::new(&folder).join("acknowledged"), number.to_string()).unwrap();
        if number == 5 {
            #[expect(clippy::print_stderr, reason = "stdout is captured, and somebody listens here")]
            {
                eprintln!("ready");
            }
        }
    }
}

fn start(folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::process_that_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "it never became ready");
    child
}

#[tokio::test]
async fn k37_a_killed_process_leaves_whole_documents_and_its_tasks() {
    let folder = folder();
    let store = open(folder.path());
    let mut child = start(folder.path());
    assert_eq!(store.orphaned_tasks().await.unwrap(), [], "it lives");
    child.kill().unwrap();
    child.wait().unwrap();

    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.chunks, report.documents * 20);
    let acknowledged = std::fs::read_to_string(folder.path().join("acknowledged")).unwrap();
    assert!(report.documents > acknowledged.parse().unwrap_or(5), "what was acknowledged is there");
    assert_eq!(store.last_change().unwrap(), store.sequence().await.unwrap());

    let adopted = store.orphaned_tasks().await.unwrap();
    let seen: Vec<_> = adopted.iter().map(|t| (t.filename.as_deref().unwrap(), &t.state, t.attempts)).collect();
    assert_eq!(seen, [("runs.pdf", &TaskState::Queued, 1), ("waits.pdf", &TaskState::Queued, 0)]);
    assert!(adopted.iter().all(|task| task.runner.as_deref() == Some(store.instance())));
    assert!(store.start_task(adopted[0].id).await.unwrap());
    assert_eq!(store.task(adopted[0].id).await.unwrap().unwrap().attempts, 2);
}

#[tokio::test]
async fn a_task_whose_process_is_gone_does_not_run() {
    let folder = folder();
    let (looks, runs, ends) = (open(folder.path()), open(folder.path()), open(folder.path()));
    let (alive, dead, handed_back) = (task("alive.pdf"), task("dead.pdf"), task("handed_back.pdf"));
    runs.add_task(&alive).await.unwrap();
    runs.start_task(alive.id).await.unwrap();
    ends.add_task(&dead).await.unwrap();
    ends.start_task(dead.id).await.unwrap();
    let told = async |task: &NewTask| {
        let told = looks.task(task.id).await.unwrap().unwrap();
        assert!(looks.tasks(None, 9).await.unwrap().contains(&told));
        (told.state.name(), told.interrupted)
    };
    assert_eq!(told(&dead).await, ("running", false));
    assert_eq!(looks.unfinished_tasks().await.unwrap(), Unfinished { running: 2, queued: 0 });
    drop(ends);
    let hands_back = open(folder.path());
    hands_back.add_task(&handed_back).await.unwrap();
    assert_eq!(told(&handed_back).await, ("queued", false));
    hands_back.hand_back_tasks().await.unwrap();
    assert_eq!(told(&alive).await, ("running", false));
    assert_eq!(told(&dead).await, ("queued", true));
    assert_eq!(told(&handed_back).await, ("queued", true));
    assert_eq!(looks.unfinished_tasks().await.unwrap(), Unfinished { running: 1, queued: 2 });
    looks.cancel_task(dead.id).await.unwrap();
    assert_eq!(told(&dead).await, ("cancelled", false));
}

#[tokio::test]
async fn an_orphan_is_adopted_once() {
    let folder = folder();
    let dead = open(folder.path());
    for number in 0..20 {
        dead.add_task(&task(&number.to_string())).await.unwrap();
    }
    let stores = [open(folder.path()), open(folder.path()), open(folder.path())];
    drop(dead);
    let [a, b, c] = &stores;
    let (a, b, c) = tokio::join!(a.orphaned_tasks(), b.orphaned_tasks(), c.orphaned_tasks());
    let adopted: Vec<_> = [a, b, c].into_iter().flat_map(Result::unwrap).map(|task| task.id).collect();
    let mut once = adopted.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!((adopted.len(), once.len()), (20, 20));
}

#[tokio::test]
async fn a_task_of_a_living_process_is_nobody_elses() {
    let folder = folder();
    let (one, other) = (open(folder.path()), open(folder.path()));
    assert_ne!(one.instance(), other.instance());
    let new = task("engine.pdf");
    one.add_task(&new).await.unwrap();
    assert_eq!(other.orphaned_tasks().await.unwrap(), []);
    assert!(!other.start_task(new.id).await.unwrap());
    let error = other.put_document(document("engine.pdf", 1), Work::PartOf(new.id)).await.unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert!(other.cancel_task(new.id).await.unwrap(), "but everybody can cancel it");
    assert!(!one.start_task(new.id).await.unwrap());
}

#[tokio::test]
async fn a_task_that_was_taken_over_is_not_ended_by_who_had_it_before() {
    let folder = folder();
    let (before, after) = (open(folder.path()), open(folder.path()));
    let new = task("engine.pdf");
    before.add_task(&new).await.unwrap();
    before.start_task(new.id).await.unwrap();
    before.hand_back_tasks().await.unwrap();
    assert_eq!(after.orphaned_tasks().await.unwrap().len(), 1);
    for end in [TaskEnd::failed(new.id, "late", "too late"), TaskEnd::completed(new.id, serde_json::json!({}))] {
        assert!(!before.end_task(end).await.unwrap());
    }
    assert_eq!(after.task(new.id).await.unwrap().unwrap().state, TaskState::Queued);
    assert!(after.end_task(TaskEnd::failed(new.id, "no", "no")).await.unwrap());
}

#[tokio::test]
async fn files_of_dead_processes_are_removed() {
    let folder = folder();
    let locks = || std::fs::read_dir(folder.path().join("instances")).unwrap().count();
    let store = open(folder.path());
    start(folder.path()).kill().unwrap();
    assert_eq!(locks(), 2);
    drop(store);
    assert_eq!(locks(), 1);
    // The killed one may take a moment to be gone.
    tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            drop(open(folder.path()));
            if locks() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_writer_waits_for_the_other() {
    let folder = folder();
    let stores = [open(folder.path()), open(folder.path())];
    let mut writing = tokio::task::JoinSet::new();
    for number in 0..40 {
        let store = stores[number % 2].clone();
        writing.spawn(async move { put(&store, document(&format!("{number}.pdf"), 5)).await.sequence });
    }
    let mut sequences = writing.join_all().await;
    sequences.sort_unstable();
    assert_eq!(sequences, (1..=40).collect::<Vec<_>>());
    assert_eq!(stores[0].totals(&base()).await.unwrap().chunks, 200);
}

#[tokio::test]
async fn a_writer_that_is_kept_waiting_too_long_says_so() {
    let folder = folder();
    let patience = Options { busy_timeout: Duration::from_millis(20), ..Options::default() };
    let store = Store::open(folder.path(), patience).unwrap();
    let other = rusqlite::Connection::open(folder.path().join("knowledge.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.put_document(document("engine.pdf", 1), Work::Alone).await.unwrap_err();
    assert!(matches!(error, Error::Busy) && error.retryable(), "{error}");
    assert_eq!(store.totals(&base()).await.unwrap().documents, 0, "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    put(&store, document("engine.pdf", 1)).await;
}
