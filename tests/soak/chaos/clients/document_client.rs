//! Client that adds, changes, removes and finds documents in its own knowledge base and knows the expected contents.

mod import;
mod verify;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CallInfo, CallResult, ChaosClient, CheckResult, ClientContext, InvariantViolation, RESPONSE_TIMEOUT};
use crate::atomic_write::replace_atomically;
use crate::call_outcome::CallOutcome;
use crate::chaos::document_text;
use crate::chaos::ledger::{Ledger, Version};
use crate::http::{HttpConnection, HttpRequest, ServerAddress};
use crate::program::ProgramConfig;

/// Number of documents.
const DOCUMENTS: usize = 8;
/// Documents from this number on are uploaded. An upload has no path by which it could be replaced, so it is removed
/// first.
const FIRST_UPLOADED: usize = 6;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct DocumentClient {
    number: usize,
    base: String,
    files: PathBuf,
    address: SocketAddr,
    ledger: Ledger,
    /// Whether an unanswered clear call may still take effect.
    clear_in_doubt: bool,
}

impl DocumentClient {
    pub(crate) fn new(number: usize, program: &ProgramConfig) -> DocumentClient {
        let files = program.home.join("files");
        DocumentClient {
            number,
            base: format!("base{number}"),
            files,
            address: program.address,
            ledger: Ledger::default(),
            clear_in_doubt: false,
        }
    }

    fn name(&self, document: usize) -> String {
        format!("c{}d{document}.txt", self.number)
    }

    fn expected_text(&self, document: usize, version: u64) -> String {
        document_text::document_text(self.number, document, version)
    }

    fn arguments(&self, more: Value) -> Value {
        let mut arguments = more;
        arguments["knowledge_base"] = json!(self.base);
        arguments
    }

    /// Adds a new version by path or as an upload, and waits for it or accepts the task id.
    fn add(&mut self, document: usize, hand: &mut ClientContext) -> CheckResult {
        let before = self.ledger.entry(document).certain_version().flatten();
        let is_uploaded = document >= FIRST_UPLOADED;
        if is_uploaded && before.is_some() {
            return self.remove(document, hand);
        }
        let version = self.ledger.next_version();
        let text = self.expected_text(document, version);
        let path = if is_uploaded {
            match self.upload(document, &text, hand)? {
                Some(path) => path,
                None => return Ok(()),
            }
        } else {
            let path = self.files.join(self.name(document));
            replace_atomically(&path, &text)
                .map_err(|error| InvariantViolation(format!("{}: {error}", path.display())))?;
            path.display().to_string()
        };
        let is_promise = hand.rng.one_in(2);
        let arguments = self.arguments(json!({ "file_path": path, "async": is_promise }));
        self.ledger.record_sent(document, Some(version));
        match hand.call("knowledge-add", &arguments)? {
            CallResult::Answered(said) if said["success"] == true && is_promise => {
                let task =
                    said["task_id"].as_str().ok_or_else(|| InvariantViolation(format!("no task: {said}")))?.to_owned();
                self.ledger.entry(document).task = Some(task);
                self.wait_for_task(document, version, before, hand)?;
            }
            CallResult::Answered(said) if said["success"] == true => {
                self.ledger.record_acknowledged(
                    document,
                    Some(version),
                    said["document_id"].as_str().map(str::to_owned),
                );
            }
            CallResult::Answered(said) if is_disk_error(&said) => {}
            // A rejected change has no effect on the document.
            CallResult::Answered(_) | CallResult::Refused => self.ledger.record_refused(document, Some(version)),
            CallResult::Lost => {}
        }
        Ok(())
    }

    fn upload(&self, document: usize, text: &str, hand: &mut ClientContext) -> CheckResult<Option<String>> {
        let path = format!("/files?filename={}", self.name(document));
        let headers = [("Content-Type", "text/plain")];
        let request = HttpRequest { method: "POST", path: &path, headers: &headers, body: text.as_bytes() };
        let outcome = match HttpConnection::new(ServerAddress::Tcp(self.address)).send(&request, RESPONSE_TIMEOUT) {
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(said) if reply.status == 201 => CallOutcome::Answered(said),
                Ok(said) => CallOutcome::from_status(reply.status, &said.to_string()),
                Err(_) => CallOutcome::Invalid(format!("/files: {} {}", reply.status, reply.text())),
            },
            Err(error) => CallOutcome::from_io_error(&error),
        };
        match hand.record(CallInfo { tool: "/files", protocol: "upload", is_disconnected: false }, outcome)? {
            CallResult::Answered(said) => Ok(said["file_path"].as_str().map(str::to_owned)),
            CallResult::Refused | CallResult::Lost => Ok(None),
        }
    }

    /// Follows a task until it ends or a call gets no reply.
    fn wait_for_task(
        &mut self,
        document: usize,
        version: u64,
        before: Version,
        hand: &mut ClientContext,
    ) -> CheckResult {
        let Some(task) = self.ledger.entry(document).task.clone() else { return Ok(()) };
        let until = Instant::now() + RESPONSE_TIMEOUT;
        while Instant::now() < until {
            match hand.call("knowledge-task-status", &json!({ "task_id": task }))? {
                CallResult::Answered(said) => match said["status"].as_str() {
                    Some("completed") => {
                        self.ledger.record_acknowledged(
                            document,
                            Some(version),
                            said["document_id"].as_str().map(str::to_owned),
                        );
                        return Ok(());
                    }
                    // Another process may resume the task, because the failure itself could not be stored.
                    Some("failed") if is_disk_error(&said) => return Ok(()),
                    Some("failed" | "cancelled") => {
                        self.ledger.entry(document).task = None;
                        self.ledger.record_refused(document, Some(version));
                        debug_assert!(self.ledger.entry(document).possible_versions.contains(&before));
                        return Ok(());
                    }
                    Some(_) => {}
                    None if said["error"] == "task_not_found" => {
                        return Err(InvariantViolation(format!(
                            "the task {task} was promised, and is not known: {said}"
                        )));
                    }
                    None => return Ok(()),
                },
                CallResult::Refused | CallResult::Lost => return Ok(()),
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn remove(&mut self, document: usize, hand: &mut ClientContext) -> CheckResult {
        let entry = self.ledger.entry(document);
        let Some(id) = entry.id.clone() else { return Ok(()) };
        self.ledger.record_sent(document, None);
        let arguments = self.arguments(json!({ "document_id": id, "confirm": true }));
        match hand.call("knowledge-remove", &arguments)? {
            CallResult::Answered(said) if said["success"] == true => self.ledger.record_removed(document),
            CallResult::Answered(said) if said["error"] == "document_not_found" => {
                return Err(InvariantViolation(format!(
                    "{} is there, and cannot be removed: {said}",
                    self.name(document)
                )));
            }
            CallResult::Answered(_) | CallResult::Refused => self.ledger.record_refused(document, None),
            CallResult::Lost => {}
        }
        Ok(())
    }

    /// An existing version is found by its unique word, with the right text.
    fn search(&mut self, document: usize, hand: &mut ClientContext) -> CheckResult {
        let Some(version) = self.ledger.entry(document).certain_version() else { return Ok(()) };
        let Some(version) = version else { return Ok(()) };
        let word = document_text::unique_word(self.number, document, version);
        let arguments = self.arguments(json!({ "query": word, "top_k": 5 }));
        let CallResult::Answered(said) = hand.call("knowledge-search", &arguments)? else { return Ok(()) };
        self.check_results(document, version, &word, &said)
    }

    fn check_results(&self, document: usize, version: u64, word: &str, said: &Value) -> CheckResult {
        let Some(results) = said["results"].as_array() else {
            // If the base reports that it is empty, it has lost this document.
            return match said["error"] == "empty_knowledge_base" {
                true => Err(InvariantViolation(format!("{} of {} is lost: {said}", self.name(document), self.base))),
                false => Ok(()),
            };
        };
        let name = self.name(document);
        let mut of_it = results.iter().filter(|hit| hit["filename"] == name.as_str()).peekable();
        if of_it.peek().is_none() {
            return Err(InvariantViolation(format!(
                "{name} in version {version} ({word}) is not found in {}: {said}",
                self.base
            )));
        }
        for hit in of_it {
            let text = hit["chunk_text"].as_str().unwrap_or_default();
            if !document_text::is_of_one_version(text, word) {
                return Err(InvariantViolation(format!("{name} is {version} ({word}), and a passage says: {text}")));
            }
        }
        Ok(())
    }

    /// The full text equals that of the version.
    fn read(&mut self, document: usize, hand: &mut ClientContext) -> CheckResult {
        let (Some(Some(version)), Some(id)) =
            (self.ledger.entry(document).certain_version(), self.ledger.entry(document).id.clone())
        else {
            return Ok(());
        };
        let arguments = self.arguments(json!({ "document_id": id, "max_characters": 100_000 }));
        if let CallResult::Answered(said) = hand.call("knowledge-get", &arguments)? {
            if said["error"] == "document_not_found" {
                return Err(InvariantViolation(format!("{} is lost: {said}", self.name(document))));
            }
            if said["success"] == true {
                self.compare(document, version, &said, hand)?;
            }
        }
        Ok(())
    }

    fn compare(&self, document: usize, version: u64, got: &Value, hand: &mut ClientContext) -> CheckResult {
        hand.counts.compared += 1;
        let wanted = self.expected_text(document, version);
        let text = got["pages"][0]["text"].as_str().unwrap_or_default();
        match text.split_whitespace().eq(wanted.split_whitespace()) {
            true => Ok(()),
            false => Err(InvariantViolation(format!("{} is {version}, and says: {text}", self.name(document)))),
        }
    }

    fn clear(&mut self, hand: &mut ClientContext) -> CheckResult {
        if self.ledger.entries.values().any(|entry| entry.certain_version().is_none()) {
            return Ok(());
        }
        for document in 0..DOCUMENTS {
            self.ledger.record_sent(document, None);
        }
        let arguments = self.arguments(json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
        match hand.call("knowledge-clear", &arguments)? {
            CallResult::Answered(said) if said["success"] == true => {
                self.ledger.record_cleared();
            }
            CallResult::Answered(_) | CallResult::Refused => {
                for entry in self.ledger.entries.values_mut().filter(|entry| entry.possible_versions.len() > 1) {
                    entry.possible_versions.retain(Option::is_some);
                }
            }
            CallResult::Lost => self.clear_in_doubt = true,
        }
        Ok(())
    }
}

impl ChaosClient for DocumentClient {
    fn step(&mut self, hand: &mut ClientContext) -> CheckResult {
        let document = hand.rng.below(DOCUMENTS);
        let is_certain = self.ledger.entry(document).certain_version().is_some();
        // In-doubt documents stay untouched until the server is idle: a late change must not race with a new one.
        let may_change = !self.clear_in_doubt;
        match hand.rng.below(100) {
            0..40 if may_change && is_certain => self.add(document, hand),
            40..45 if may_change => self.import(hand),
            45..58 if may_change && is_certain => self.remove(document, hand),
            58..60 if may_change => self.clear(hand),
            60..80 => self.search(document, hand),
            _ => self.read(document, hand),
        }
    }

    fn verify(&mut self, hand: &mut ClientContext) -> CheckResult {
        self.clear_in_doubt = false;
        self.resolve_tasks(hand)?;
        self.compare_all(hand)?;
        self.search_dead_versions(hand)
    }
}

/// Whether a call failed because of the disk. The failure itself could not be stored either, so the task may be resumed
/// once there is space.
fn is_disk_error(said: &Value) -> bool {
    said.to_string().contains("disk is full")
        || said["error"].as_str().is_some_and(|error| error.starts_with("storage"))
}
