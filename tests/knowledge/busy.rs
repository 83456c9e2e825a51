//! A store that another process keeps busy: what was acknowledged waits for it.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::fixture::{Corbie, long_text};

/// The store itself waits for half a minute, and may do so more than once, before its caller hears of it.
const PATIENCE: Duration = Duration::from_secs(240);

/// Asks for a task until what is told of it fits.
#[track_caller]
fn told(corbie: &mut Corbie, task: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let told = corbie.task(task);
        if fits(&told) {
            return told;
        }
        assert!(Instant::now() < deadline, "still {told}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[test]
fn k114_a_task_waits_for_a_store_that_others_keep_busy() {
    let mut corbie = Corbie::start();
    let database = corbie.storage().join("knowledge.db");
    // The store is opened with the first call that needs it.
    let other = Connection::open(&database).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    let path = corbie.file("long.txt", &long_text()[..100_000]);
    let task = corbie.begin(&path);
    // It runs by now, or will; either way its next write finds the store busy.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = told(&mut corbie, &task, |told| told["current_step"] == "Waiting for the storage");
    assert_eq!(waiting["success"], true, "{waiting}");
    other.execute_batch("ROLLBACK").unwrap();
    let ended = told(&mut corbie, &task, |told| !["queued", "running"].contains(&told["status"].as_str().unwrap()));
    assert_eq!((&ended["status"], &ended["result"]["filename"]), (&json!("completed"), &json!("long.txt")), "{ended}");
    assert_eq!(corbie.show()["total_count"], 1);
}
