//! Client that adds, changes, removes and finds documents in its own knowledge base and knows the expected contents.

mod import;
mod settle;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Broken, Call, Came, Client, Hand, PATIENCE, Seen};
use crate::chaos::books::{Books, Version};
use crate::chaos::texts;
use crate::files::replace;
use crate::http::{Line, Place, Request};
use crate::outcome::Outcome;
use crate::program::Program;

/// Number of documents.
const DOCUMENTS: usize = 8;
/// Documents from this number on are uploaded. An upload has no path by which it could be replaced, so it is removed
/// first.
const FIRST_UPLOADED: usize = 6;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) struct Librarian {
    number: usize,
    base: String,
    files: PathBuf,
    address: SocketAddr,
    books: Books,
    /// Whether an unanswered clear call may still take effect.
    may_be_cleared: bool,
}

impl Librarian {
    pub(crate) fn new(number: usize, program: &Program) -> Librarian {
        let files = program.home.join("files");
        Librarian {
            number,
            base: format!("base{number}"),
            files,
            address: program.address,
            books: Books::default(),
            may_be_cleared: false,
        }
    }

    fn name(&self, document: usize) -> String {
        format!("c{}d{document}.txt", self.number)
    }

    fn says(&self, document: usize, version: u64) -> String {
        texts::text(self.number, document, version)
    }

    fn arguments(&self, more: Value) -> Value {
        let mut arguments = more;
        arguments["knowledge_base"] = json!(self.base);
        arguments
    }

    /// Adds a new version by path or as an upload, and waits for it or accepts the task id.
    fn add(&mut self, document: usize, hand: &mut Hand) -> Seen {
        let before = self.books.entry(document).certain().flatten();
        let is_uploaded = document >= FIRST_UPLOADED;
        if is_uploaded && before.is_some() {
            return self.remove(document, hand);
        }
        let version = self.books.next_version();
        let text = self.says(document, version);
        let path = if is_uploaded {
            match self.upload(document, &text, hand)? {
                Some(path) => path,
                None => return Ok(()),
            }
        } else {
            let path = self.files.join(self.name(document));
            replace(&path, &text).map_err(|error| Broken(format!("{}: {error}", path.display())))?;
            path.display().to_string()
        };
        let is_promise = hand.chance.once_in(2);
        let arguments = self.arguments(json!({ "file_path": path, "async": is_promise }));
        self.books.sent(document, Some(version));
        match hand.call("knowledge-add", &arguments)? {
            Came::Said(said) if said["success"] == true && is_promise => {
                let task = said["task_id"].as_str().ok_or_else(|| Broken(format!("no task: {said}")))?.to_owned();
                self.books.entry(document).task = Some(task);
                self.follow(document, version, before, hand)?;
            }
            Came::Said(said) if said["success"] == true => {
                self.books.is(document, Some(version), said["document_id"].as_str().map(str::to_owned));
            }
            Came::Said(said) if is_of_the_disk(&said) => {}
            // A rejected change has no effect on the document.
            Came::Said(_) | Came::Refused => self.books.refused(document, Some(version)),
            Came::Lost => {}
        }
        Ok(())
    }

    fn upload(&self, document: usize, text: &str, hand: &mut Hand) -> Seen<Option<String>> {
        let path = format!("/files?filename={}", self.name(document));
        let headers = [("Content-Type", "text/plain")];
        let request = Request { method: "POST", path: &path, headers: &headers, body: text.as_bytes() };
        let outcome = match Line::new(Place::Port(self.address)).exchange(&request, PATIENCE) {
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(said) if reply.status == 201 => Outcome::Said(said),
                Ok(said) => Outcome::of_status(reply.status, &said.to_string()),
                Err(_) => Outcome::Wrong(format!("/files: {} {}", reply.status, reply.text())),
            },
            Err(error) => Outcome::of_error(&error),
        };
        match hand.count(Call { tool: "/files", face: "upload", is_cut_off: false }, outcome)? {
            Came::Said(said) => Ok(said["file_path"].as_str().map(str::to_owned)),
            Came::Refused | Came::Lost => Ok(None),
        }
    }

    /// Follows a task until it ends or a call gets no reply.
    fn follow(&mut self, document: usize, version: u64, before: Version, hand: &mut Hand) -> Seen {
        let Some(task) = self.books.entry(document).task.clone() else { return Ok(()) };
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match hand.call("knowledge-task-status", &json!({ "task_id": task }))? {
                Came::Said(said) => match said["status"].as_str() {
                    Some("completed") => {
                        self.books.is(document, Some(version), said["document_id"].as_str().map(str::to_owned));
                        return Ok(());
                    }
                    // Another process may resume the task, because the failure itself could not be stored.
                    Some("failed") if is_of_the_disk(&said) => return Ok(()),
                    Some("failed" | "cancelled") => {
                        self.books.entry(document).task = None;
                        self.books.refused(document, Some(version));
                        debug_assert!(self.books.entry(document).may_be.contains(&before));
                        return Ok(());
                    }
                    Some(_) => {}
                    None if said["error"] == "task_not_found" => {
                        return Err(Broken(format!("the task {task} was promised, and is not known: {said}")));
                    }
                    None => return Ok(()),
                },
                Came::Refused | Came::Lost => return Ok(()),
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn remove(&mut self, document: usize, hand: &mut Hand) -> Seen {
        let entry = self.books.entry(document);
        let Some(id) = entry.id.clone() else { return Ok(()) };
        self.books.sent(document, None);
        let arguments = self.arguments(json!({ "document_id": id, "confirm": true }));
        match hand.call("knowledge-remove", &arguments)? {
            Came::Said(said) if said["success"] == true => self.books.removed(document),
            Came::Said(said) if said["error"] == "document_not_found" => {
                return Err(Broken(format!("{} is there, and cannot be removed: {said}", self.name(document))));
            }
            Came::Said(_) | Came::Refused => self.books.refused(document, None),
            Came::Lost => {}
        }
        Ok(())
    }

    /// An existing version is found by its unique word, with the right text.
    fn search(&mut self, document: usize, hand: &mut Hand) -> Seen {
        let Some(version) = self.books.entry(document).certain() else { return Ok(()) };
        let Some(version) = version else { return Ok(()) };
        let word = texts::word(self.number, document, version);
        let arguments = self.arguments(json!({ "query": word, "top_k": 5 }));
        let Came::Said(said) = hand.call("knowledge-search", &arguments)? else { return Ok(()) };
        self.judge(document, version, &word, &said)
    }

    fn judge(&self, document: usize, version: u64, word: &str, said: &Value) -> Seen {
        let Some(results) = said["results"].as_array() else {
            // If the base reports that it is empty, it has lost this document.
            return match said["error"] == "empty_knowledge_base" {
                true => Err(Broken(format!("{} of {} is lost: {said}", self.name(document), self.base))),
                false => Ok(()),
            };
        };
        let name = self.name(document);
        let mut of_it = results.iter().filter(|hit| hit["filename"] == name.as_str()).peekable();
        if of_it.peek().is_none() {
            return Err(Broken(format!("{name} in version {version} ({word}) is not found in {}: {said}", self.base)));
        }
        for hit in of_it {
            let text = hit["chunk_text"].as_str().unwrap_or_default();
            if !texts::is_of_one_version(text, word) {
                return Err(Broken(format!("{name} is {version} ({word}), and a passage says: {text}")));
            }
        }
        Ok(())
    }

    /// The full text equals that of the version.
    fn read(&mut self, document: usize, hand: &mut Hand) -> Seen {
        let (Some(Some(version)), Some(id)) =
            (self.books.entry(document).certain(), self.books.entry(document).id.clone())
        else {
            return Ok(());
        };
        let arguments = self.arguments(json!({ "document_id": id, "max_characters": 100_000 }));
        if let Came::Said(said) = hand.call("knowledge-get", &arguments)? {
            if said["error"] == "document_not_found" {
                return Err(Broken(format!("{} is lost: {said}", self.name(document))));
            }
            if said["success"] == true {
                self.compare(document, version, &said, hand)?;
            }
        }
        Ok(())
    }

    fn compare(&self, document: usize, version: u64, got: &Value, hand: &mut Hand) -> Seen {
        hand.tally.compared += 1;
        let wanted = self.says(document, version);
        let text = got["pages"][0]["text"].as_str().unwrap_or_default();
        match text.split_whitespace().eq(wanted.split_whitespace()) {
            true => Ok(()),
            false => Err(Broken(format!("{} is {version}, and says: {text}", self.name(document)))),
        }
    }

    fn clear(&mut self, hand: &mut Hand) -> Seen {
        if self.books.entries.values().any(|entry| entry.certain().is_none()) {
            return Ok(());
        }
        for document in 0..DOCUMENTS {
            self.books.sent(document, None);
        }
        let arguments = self.arguments(json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
        match hand.call("knowledge-clear", &arguments)? {
            Came::Said(said) if said["success"] == true => {
                self.books.cleared();
            }
            Came::Said(_) | Came::Refused => {
                for entry in self.books.entries.values_mut().filter(|entry| entry.may_be.len() > 1) {
                    entry.may_be.retain(Option::is_some);
                }
            }
            Came::Lost => self.may_be_cleared = true,
        }
        Ok(())
    }
}

impl Client for Librarian {
    fn step(&mut self, hand: &mut Hand) -> Seen {
        let document = hand.chance.below(DOCUMENTS);
        let is_certain = self.books.entry(document).certain().is_some();
        // In-doubt documents stay untouched until the server is idle: a late change must not race with a new one.
        let may_change = !self.may_be_cleared;
        match hand.chance.below(100) {
            0..40 if may_change && is_certain => self.add(document, hand),
            40..45 if may_change => self.import(hand),
            45..58 if may_change && is_certain => self.remove(document, hand),
            58..60 if may_change => self.clear(hand),
            60..80 => self.search(document, hand),
            _ => self.read(document, hand),
        }
    }

    fn settle(&mut self, hand: &mut Hand) -> Seen {
        self.may_be_cleared = false;
        self.end_tasks(hand)?;
        self.compare_all(hand)?;
        self.search_in_vain(hand)
    }
}

/// Whether a call failed because of the disk. The failure itself could not be stored either, so the task may be resumed
/// once there is space.
fn is_of_the_disk(said: &Value) -> bool {
    said.to_string().contains("no room left")
        || said["error"].as_str().is_some_and(|error| error.starts_with("storage"))
}
