//! Writes decision records to the shared database, in the background.
//!
//! Prompts never wait for it. Records that cannot be written stay in memory, up to the capacity of the log.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::decision_log::DecisionLog;
use super::decision_record::DecisionRecord;
use super::router::Router;
use corbie_knowledge::Knowledge;
use corbie_knowledge::decision_log::StoredDecision;
use corbie_knowledge::store::Error;
use corbie_util::backoff::Backoff;
use corbie_util::supervisor::TaskName;

/// Delay between the end of a prompt and the write, to batch records.
const WRITE_INTERVAL: Duration = Duration::from_millis(200);
/// Delay between retries while the database is unavailable.
const RETRY_BACKOFF: Backoff = Backoff::new(WRITE_INTERVAL, Duration::from_secs(5));
/// Maximum number of records per statement.
const BATCH_SIZE: usize = 500;
/// Maximum delay of shutdown for unwritten records.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes records until shutdown, if the instance shares a database.
pub fn sync_decision_log(router: &Router, knowledge: &Knowledge) {
    if knowledge.settings().store.is_none() || router.decision_log().capacity() == 0 {
        return;
    }
    let (router, shared) = (router.clone(), knowledge.clone());
    knowledge.spawn_supervised(TaskName("decision_log"), move || run(router.clone(), shared.clone()));
}

async fn run(router: Router, knowledge: Knowledge) {
    let records = router.decision_log();
    // An earlier process may have had a higher limit, so the first write prunes.
    let mut unpruned = records.capacity();
    tokio::select! {
        () = write_until_dropped(records, &knowledge, &mut unpruned) => {}
        () = knowledge.stopped() => {}
    }
    if !matches!(timeout(SHUTDOWN_TIMEOUT, write(records, &knowledge, &mut unpruned)).await, Ok(Ok(()))) {
        tracing::debug!("cannot write the latest decisions to the database before shutdown; they are lost");
    }
}

async fn write_until_dropped(records: &DecisionLog, knowledge: &Knowledge, unpruned: &mut usize) {
    if knowledge.wait_until_open().await.is_none() {
        return;
    }
    let mut backoff = RETRY_BACKOFF;
    loop {
        let wrote = async {
            assign_instance_number(records, knowledge).await?;
            records.wait_for_unwritten().await;
            sleep(WRITE_INTERVAL).await;
            write(records, knowledge, unpruned).await
        };
        match wrote.await {
            Ok(()) => backoff.reset(),
            Err(error) => {
                tracing::debug!(%error, "cannot write decisions to the database; retrying");
                sleep(backoff.next_delay()).await;
            }
        }
    }
}

async fn assign_instance_number(records: &DecisionLog, knowledge: &Knowledge) -> Result<(), Error> {
    if let (false, Some(store)) = (records.has_instance_number(), knowledge.shared_store()) {
        records.set_instance_number(store.next_decider_id().await?);
    }
    Ok(())
}

/// Writes all pending records, and prunes the table from time to time.
async fn write(records: &DecisionLog, knowledge: &Knowledge, unpruned: &mut usize) -> Result<(), Error> {
    let Some(store) = knowledge.shared_store() else { return Ok(()) };
    while let Some(unwritten) = records.unwritten(BATCH_SIZE) {
        let decisions: Vec<StoredDecision> = unwritten.records.iter().map(decision).collect();
        if !decisions.is_empty() {
            store.store_decisions(&decisions).await?;
        }
        records.mark_written(&unwritten);
        *unpruned += decisions.len();
        if *unpruned > records.capacity() / 10 {
            store.prune_decisions(records.capacity()).await?;
            *unpruned = 0;
        }
    }
    Ok(())
}

fn decision(record: &DecisionRecord) -> StoredDecision {
    StoredDecision {
        id: record.id,
        at_ms: record.at_ms,
        caller: record.caller.clone(),
        record: serde_json::to_string(record).expect("a record has string keys"),
    }
}
