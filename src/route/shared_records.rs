//! Writes decision records to the shared database, in the background.
//!
//! Prompts never wait for it. Records that cannot be written stay in memory, up to the capacity of the log.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::record::Record;
use super::records::Records;
use super::router::Router;
use crate::knowledge::Knowledge;
use crate::knowledge::decisions::Decision;
use crate::knowledge::store::Error;
use crate::supervised::Name;

/// Delay between the end of a prompt and the write, to batch records.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum delay between retries while the database is unavailable.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of records per statement.
const AT_ONCE: usize = 500;
/// Maximum delay of shutdown for unwritten records.
const LAST: Duration = Duration::from_secs(2);

/// Writes records until shutdown, if the instance shares a database.
pub fn share(router: &Router, knowledge: &Knowledge) {
    if knowledge.settings().store.is_none() || router.records().most() == 0 {
        return;
    }
    let (router, shared) = (router.clone(), knowledge.clone());
    knowledge.until_the_end(Name("decision_log"), move || run(router.clone(), shared.clone()));
}

async fn run(router: Router, knowledge: Knowledge) {
    let records = router.records();
    // An earlier process may have had a higher limit, so the first write prunes.
    let mut unpruned = records.most();
    tokio::select! {
        () = write_until_dropped(records, &knowledge, &mut unpruned) => {}
        () = knowledge.stopping() => {}
    }
    if !matches!(timeout(LAST, write(records, &knowledge, &mut unpruned)).await, Ok(Ok(()))) {
        tracing::debug!("the last decisions are known to this instance alone, and are forgotten with it");
    }
}

async fn write_until_dropped(records: &Records, knowledge: &Knowledge, unpruned: &mut usize) {
    if knowledge.when_open().await.is_none() {
        return;
    }
    let mut pause = PAUSE;
    loop {
        let wrote = async {
            take_number(records, knowledge).await?;
            records.more().await;
            sleep(PAUSE).await;
            write(records, knowledge, unpruned).await
        };
        match wrote.await {
            Ok(()) => pause = PAUSE,
            Err(error) => {
                tracing::debug!(%error, "decisions wait to be written");
                sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
    }
}

async fn take_number(records: &Records, knowledge: &Knowledge) -> Result<(), Error> {
    if let (false, Some(store)) = (records.is_numbered(), knowledge.shared_store()) {
        records.number(store.decider().await?);
    }
    Ok(())
}

/// Writes all pending records, and prunes the table from time to time.
async fn write(records: &Records, knowledge: &Knowledge, unpruned: &mut usize) -> Result<(), Error> {
    let Some(store) = knowledge.shared_store() else { return Ok(()) };
    while let Some(unwritten) = records.unwritten(AT_ONCE) {
        let decisions: Vec<Decision> = unwritten.records.iter().map(decision).collect();
        if !decisions.is_empty() {
            store.keep_decisions(&decisions).await?;
        }
        records.written(&unwritten);
        *unpruned += decisions.len();
        if *unpruned > records.most() / 10 {
            store.forget_decisions(records.most()).await?;
            *unpruned = 0;
        }
    }
    Ok(())
}

fn decision(record: &Record) -> Decision {
    Decision {
        id: record.id,
        at_ms: record.at_ms,
        caller: record.caller.clone(),
        record: serde_json::to_string(record).expect("a record has string keys"),
    }
}
