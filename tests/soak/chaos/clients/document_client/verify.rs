//! Checks of a librarian once the server is idle.

use serde_json::{Value, json};

use super::{DOCUMENTS, DocumentClient};
use crate::chaos::clients::{CheckResult, ClientContext, InvariantViolation};
use crate::chaos::document_text;

/// Number of words of dead versions to search for after a round.
const DEAD_VERSION_SEARCHES: usize = 4;

impl DocumentClient {
    /// Every accepted task has ended, and its result determines the state of the document.
    pub(super) fn resolve_tasks(&mut self, hand: &mut ClientContext) -> CheckResult {
        for document in 0..DOCUMENTS {
            let Some(task) = self.ledger.entry(document).task.take() else { continue };
            let said = hand.call_until_answered("knowledge-task-status", &json!({ "task_id": task }))?;
            // The version of the task is the last one sent.
            let entry = self.ledger.entry(document);
            match (said["status"].as_str(), entry.possible_versions.last().copied()) {
                (Some("completed"), Some(promised)) => {
                    let id = entry.id.clone();
                    self.ledger.record_acknowledged(document, promised, id);
                }
                (Some("failed" | "cancelled"), Some(promised)) if entry.possible_versions.len() > 1 => {
                    self.ledger.record_refused(document, promised);
                }
                (Some("failed" | "cancelled"), _) => {}
                _ => {
                    return Err(InvariantViolation(format!(
                        "the task {task} of document {document} has no end: {said}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Every document has one of its possible versions, matches it exactly, and is found. No other documents exist.
    pub(super) fn compare_all(&mut self, hand: &mut ClientContext) -> CheckResult {
        let shown = hand.call_until_answered("knowledge-show", &self.arguments(json!({ "limit": 1000 })))?;
        let documents = shown["documents"].as_array().cloned().unwrap_or_default();
        // Failed uploads are not listed. A document is `failed` if a later version could not be read; the earlier one stays.
        let mut there: Vec<&Value> = documents.iter().collect();
        let is_removed = |each: &&Value| self.ledger.removed_ids.iter().any(|id| each["id"] == id.as_str());
        if let Some(back) = documents.iter().find(is_removed) {
            return Err(InvariantViolation(format!("what was removed came back to {}: {back}", self.base)));
        }
        for document in 0..DOCUMENTS {
            let name = self.name(document);
            let place = there.iter().position(|each| each["filename"] == name.as_str());
            let found = place.map(|place| there.swap_remove(place));
            if let Some(more) = there.iter().find(|each| each["filename"] == name.as_str()) {
                return Err(InvariantViolation(format!("{name} is there twice: {more}")));
            }
            self.compare_one(document, found, hand)?;
        }
        match there.first() {
            Some(stranger) => Err(InvariantViolation(format!("a document nobody added to {}: {stranger}", self.base))),
            None => Ok(()),
        }
    }

    fn compare_one(&mut self, document: usize, found: Option<&Value>, hand: &mut ClientContext) -> CheckResult {
        let name = self.name(document);
        let may_be = self.ledger.entry(document).possible_versions.clone();
        let Some(found) = found else {
            if !may_be.contains(&None) {
                return Err(InvariantViolation(format!("{name} is lost; it may be {may_be:?} in {}", self.base)));
            }
            self.ledger.record_acknowledged(document, None, None);
            return Ok(());
        };
        let id = found["id"].as_str().unwrap_or_default().to_owned();
        let arguments = self.arguments(json!({ "document_id": id, "max_characters": 100_000 }));
        let got = hand.call_until_answered("knowledge-get", &arguments)?;
        let text = got["pages"][0]["text"].as_str().unwrap_or_default();
        let is = |version: &u64| text.split_whitespace().eq(self.expected_text(document, *version).split_whitespace());
        let Some(version) = may_be.iter().flatten().copied().find(is) else {
            return Err(InvariantViolation(format!("{name} may be {may_be:?} in {}, and says: {text}", self.base)));
        };
        hand.counts.compared += 1;
        self.ledger.record_acknowledged(document, Some(version), Some(id));
        let word = document_text::unique_word(self.number, document, version);
        let said =
            hand.call_until_answered("knowledge-search", &self.arguments(json!({ "query": word, "top_k": 5 })))?;
        if !said["results"].is_array() {
            return Err(InvariantViolation(format!("{name} cannot be searched for: {said}")));
        }
        self.check_results(document, version, &word, &said)
    }

    /// Removed, replaced and rejected versions are not found by their words.
    pub(super) fn search_dead_versions(&mut self, hand: &mut ClientContext) -> CheckResult {
        for _ in 0..DEAD_VERSION_SEARCHES.min(self.ledger.dead_versions.len()) {
            let (document, version) = self.ledger.dead_versions[hand.rng.below(self.ledger.dead_versions.len())];
            let word = document_text::unique_word(self.number, document, version);
            let said =
                hand.call_until_answered("knowledge-search", &self.arguments(json!({ "query": word, "top_k": 5 })))?;
            if !said["results"].is_array() && said["error"] != "empty_knowledge_base" {
                return Err(InvariantViolation(format!("{word} cannot be searched for: {said}")));
            }
            hand.counts.dead_version_searches += 1;
            if said["results"].to_string().contains(&word) {
                let name = self.name(document);
                return Err(InvariantViolation(format!(
                    "what was removed came back: {name} in version {version}: {said}"
                )));
            }
        }
        Ok(())
    }
}
