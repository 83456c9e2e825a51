//! Helper process that other tests start and kill.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use corbie::knowledge::store::{Options, Store, sqlite};

use crate::fixture::{document, put, task};

/// Location of the store; set only for the helper process.
const STORE_VARIABLE: &str = "CORBIE_TEST_KILLED_STORE";
/// File in which the helper records the number of the last acknowledged document.
const ACKNOWLEDGED_VARIABLE: &str = "CORBIE_TEST_KILLED_NOTED";

/// Not a test but the helper process: begins a task and puts documents forever.
#[tokio::test]
async fn process_that_is_killed() {
    let (Ok(at), Ok(noted)) = (std::env::var(STORE_VARIABLE), std::env::var(ACKNOWLEDGED_VARIABLE)) else { return };
    let store: Store = match at.starts_with("postgres://") {
        true => Store::connect(&at, Options::default()).await.unwrap(),
        false => sqlite::Store::open(Path::new(&at), Options::default()).unwrap().into(),
    };
    let (runs, waits) = (task("runs.pdf"), task("waits.pdf"));
    store.add_task(&runs).await.unwrap();
    store.add_task(&waits).await.unwrap();
    store.start_task(runs.id).await.unwrap();
    for number in 0.. {
        put(&store, document(&format!("{number}.pdf"), 20)).await;
        std::fs::write(&noted, number.to_string()).unwrap();
        if number == 5 {
            #[expect(clippy::print_stderr, reason = "stdout is captured, and somebody listens here")]
            {
                eprintln!("ready");
            }
        }
    }
}

/// Starts the helper on a store and waits until it has put some documents.
pub(crate) fn start(at: &str, noted: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::process_that_is_killed", "--nocapture"])
        .env(STORE_VARIABLE, at)
        .env(ACKNOWLEDGED_VARIABLE, noted)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "it never became ready");
    child
}
