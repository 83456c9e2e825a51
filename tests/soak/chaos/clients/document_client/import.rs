//! Imports several documents as one task.

use std::time::Instant;

use serde_json::{Value, json};

use super::{DocumentClient, FIRST_UPLOADED, POLL_INTERVAL};
use crate::atomic_write::replace_atomically;
use crate::chaos::clients::{CallResult, CheckResult, ClientContext, InvariantViolation, RESPONSE_TIMEOUT};

/// Number of documents per import.
const MAX_BATCH: usize = 3;

impl DocumentClient {
    /// Imports new versions of documents that are not in doubt. Each outcome is certain if everything succeeded;
    /// otherwise all of them are in doubt until the server is idle.
    pub(super) fn import(&mut self, hand: &mut ClientContext) -> CheckResult {
        let first = hand.rng.below(FIRST_UPLOADED);
        let some = (first..FIRST_UPLOADED).take(MAX_BATCH);
        let documents: Vec<usize> =
            some.filter(|document| self.ledger.entry(*document).certain_version().is_some()).collect();
        let mut sent = Vec::new();
        let mut paths = Vec::new();
        for document in documents {
            let version = self.ledger.next_version();
            let path = self.files.join(self.name(document));
            let text = self.expected_text(document, version);
            replace_atomically(&path, &text)
                .map_err(|error| InvariantViolation(format!("{}: {error}", path.display())))?;
            self.ledger.record_sent(document, Some(version));
            sent.push((document, version));
            paths.push(path.display().to_string());
        }
        if sent.is_empty() {
            return Ok(());
        }
        let is_promise = hand.rng.one_in(2);
        let arguments = self.arguments(json!({ "paths": paths, "async": is_promise }));
        let ended = match hand.call("knowledge-import", &arguments)? {
            CallResult::Answered(said) if said["success"] == true && is_promise => wait_for_task(&said, hand)?,
            CallResult::Answered(said) if said["success"] == true => Some(said),
            CallResult::Refused => {
                sent.iter().for_each(|(document, version)| self.ledger.record_refused(*document, Some(*version)));
                None
            }
            CallResult::Answered(_) | CallResult::Lost => None,
        };
        if ended.is_some_and(|said| said["failed"] == 0 && said["files_total"] == sent.len()) {
            for (document, version) in sent {
                let id = self.ledger.entry(document).id.clone();
                self.ledger.record_acknowledged(document, Some(version), id);
            }
        }
        Ok(())
    }
}

/// The outcome of an accepted task; `None` if the client did not see it.
fn wait_for_task(promise: &Value, hand: &mut ClientContext) -> CheckResult<Option<Value>> {
    let task = promise["task_id"].as_str().ok_or_else(|| InvariantViolation(format!("no task: {promise}")))?;
    let until = Instant::now() + RESPONSE_TIMEOUT;
    while Instant::now() < until {
        let CallResult::Answered(said) = hand.call("knowledge-task-status", &json!({ "task_id": task }))? else {
            return Ok(None);
        };
        match said["status"].as_str() {
            Some("completed") => return Ok(Some(said)),
            Some("failed" | "cancelled") => return Ok(None),
            None if said["error"] == "task_not_found" => {
                return Err(InvariantViolation(format!("the task {task} was promised, and is not known: {said}")));
            }
            _ => std::thread::sleep(POLL_INTERVAL),
        }
    }
    Ok(None)
}
