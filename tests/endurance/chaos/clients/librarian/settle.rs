//! Checks of a librarian once the server is idle.

use serde_json::{Value, json};

use super::{DOCUMENTS, Librarian};
use crate::chaos::clients::{Broken, Hand, Seen};
use crate::chaos::texts;

/// Number of words of dead versions to search for after a round.
const SEARCHES_IN_VAIN: usize = 4;

impl Librarian {
    /// Every accepted task has ended, and its result determines the state of the document.
    pub(super) fn end_tasks(&mut self, hand: &mut Hand) -> Seen {
        for document in 0..DOCUMENTS {
            let Some(task) = self.books.entry(document).task.take() else { continue };
            let said = hand.must("knowledge-task-status", &json!({ "task_id": task }))?;
            // The version of the task is the last one sent.
            let entry = self.books.entry(document);
            match (said["status"].as_str(), entry.may_be.last().copied()) {
                (Some("completed"), Some(promised)) => {
                    let id = entry.id.clone();
                    self.books.is(document, promised, id);
                }
                (Some("failed" | "cancelled"), Some(promised)) if entry.may_be.len() > 1 => {
                    self.books.refused(document, promised);
                }
                (Some("failed" | "cancelled"), _) => {}
                _ => return Err(Broken(format!("the task {task} of document {document} has no end: {said}"))),
            }
        }
        Ok(())
    }

    /// Every document has one of its possible versions, matches it exactly, and is found. No other documents exist.
    pub(super) fn compare_all(&mut self, hand: &mut Hand) -> Seen {
        let shown = hand.must("knowledge-show", &self.arguments(json!({ "limit": 1000 })))?;
        let documents = shown["documents"].as_array().cloned().unwrap_or_default();
        let (failed, mut there): (Vec<&Value>, Vec<&Value>) =
            documents.iter().partition(|each| each["processing_status"] == "failed");
        let is_removed = |each: &&Value| self.books.removed.iter().any(|id| each["id"] == id.as_str());
        if let Some(back) = documents.iter().find(is_removed) {
            return Err(Broken(format!("what was removed came back to {}: {back}", self.base)));
        }
        // Failed uploads are listed as failed and are not documents. After a clear none of them may remain.
        let was_tried = |each: &Value| self.books.tried.iter().any(|document| each["filename"] == self.name(*document));
        if let Some(back) = failed.iter().find(|each| !was_tried(each)) {
            return Err(Broken(format!("what was cleared away came back to {} as failed: {back}", self.base)));
        }
        for document in 0..DOCUMENTS {
            let name = self.name(document);
            let place = there.iter().position(|each| each["filename"] == name.as_str());
            let found = place.map(|place| there.swap_remove(place));
            if let Some(more) = there.iter().find(|each| each["filename"] == name.as_str()) {
                return Err(Broken(format!("{name} is there twice: {more}")));
            }
            self.compare_one(document, found, hand)?;
        }
        match there.first() {
            Some(stranger) => Err(Broken(format!("a document nobody added to {}: {stranger}", self.base))),
            None => Ok(()),
        }
    }

    fn compare_one(&mut self, document: usize, found: Option<&Value>, hand: &mut Hand) -> Seen {
        let name = self.name(document);
        let may_be = self.books.entry(document).may_be.clone();
        let Some(found) = found else {
            if !may_be.contains(&None) {
                return Err(Broken(format!("{name} is lost; it may be {may_be:?} in {}", self.base)));
            }
            self.books.is(document, None, None);
            return Ok(());
        };
        let id = found["id"].as_str().unwrap_or_default().to_owned();
        let arguments = self.arguments(json!({ "document_id": id, "max_characters": 100_000 }));
        let got = hand.must("knowledge-get", &arguments)?;
        let text = got["pages"][0]["text"].as_str().unwrap_or_default();
        let is = |version: &u64| text.split_whitespace().eq(self.says(document, *version).split_whitespace());
        let Some(version) = may_be.iter().flatten().copied().find(is) else {
            return Err(Broken(format!("{name} may be {may_be:?} in {}, and says: {text}", self.base)));
        };
        hand.tally.compared += 1;
        self.books.is(document, Some(version), Some(id));
        let word = texts::word(self.number, document, version);
        let said = hand.must("knowledge-search", &self.arguments(json!({ "query": word, "top_k": 5 })))?;
        if !said["results"].is_array() {
            return Err(Broken(format!("{name} cannot be searched for: {said}")));
        }
        self.judge(document, version, &word, &said)
    }

    /// Removed, replaced and rejected versions are not found by their words.
    pub(super) fn search_in_vain(&mut self, hand: &mut Hand) -> Seen {
        for _ in 0..SEARCHES_IN_VAIN.min(self.books.dead.len()) {
            let (document, version) = self.books.dead[hand.chance.below(self.books.dead.len())];
            let word = texts::word(self.number, document, version);
            let said = hand.must("knowledge-search", &self.arguments(json!({ "query": word, "top_k": 5 })))?;
            if !said["results"].is_array() && said["error"] != "empty_knowledge_base" {
                return Err(Broken(format!("{word} cannot be searched for: {said}")));
            }
            hand.tally.in_vain += 1;
            if said["results"].to_string().contains(&word) {
                let name = self.name(document);
                return Err(Broken(format!("what was removed came back: {name} in version {version}: {said}")));
            }
        }
        Ok(())
    }
}
