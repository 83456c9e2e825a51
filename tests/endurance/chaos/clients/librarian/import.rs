//! Imports several documents as one task.

use std::time::Instant;

use serde_json::{Value, json};

use super::{FIRST_UPLOADED, LOOK_AGAIN, Librarian};
use crate::chaos::clients::{Broken, Came, Hand, PATIENCE, Seen};
use crate::files::replace;

/// Number of documents per import.
const MOST: usize = 3;

impl Librarian {
    /// Imports new versions of documents that are not in doubt. Each outcome is certain if everything succeeded;
    /// otherwise all of them are in doubt until the server is idle.
    pub(super) fn import(&mut self, hand: &mut Hand) -> Seen {
        let first = hand.chance.below(FIRST_UPLOADED);
        let some = (first..FIRST_UPLOADED).take(MOST);
        let documents: Vec<usize> = some.filter(|document| self.books.entry(*document).certain().is_some()).collect();
        let mut sent = Vec::new();
        let mut paths = Vec::new();
        for document in documents {
            let version = self.books.next_version();
            let path = self.files.join(self.name(document));
            let text = self.says(document, version);
            replace(&path, &text).map_err(|error| Broken(format!("{}: {error}", path.display())))?;
            self.books.sent(document, Some(version));
            sent.push((document, version));
            paths.push(path.display().to_string());
        }
        if sent.is_empty() {
            return Ok(());
        }
        let is_promise = hand.chance.once_in(2);
        let arguments = self.arguments(json!({ "paths": paths, "async": is_promise }));
        let ended = match hand.call("knowledge-import", &arguments)? {
            Came::Said(said) if said["success"] == true && is_promise => end_of_task(&said, hand)?,
            Came::Said(said) if said["success"] == true => Some(said),
            Came::Refused => {
                sent.iter().for_each(|(document, version)| self.books.refused(*document, Some(*version)));
                None
            }
            Came::Said(_) | Came::Lost => None,
        };
        if ended.is_some_and(|said| said["failed"] == 0 && said["files_total"] == sent.len()) {
            for (document, version) in sent {
                let id = self.books.entry(document).id.clone();
                self.books.is(document, Some(version), id);
            }
        }
        Ok(())
    }
}

/// The outcome of an accepted task; `None` if the client did not see it.
fn end_of_task(promise: &Value, hand: &mut Hand) -> Seen<Option<Value>> {
    let task = promise["task_id"].as_str().ok_or_else(|| Broken(format!("no task: {promise}")))?;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let Came::Said(said) = hand.call("knowledge-task-status", &json!({ "task_id": task }))? else {
            return Ok(None);
        };
        match said["status"].as_str() {
            Some("completed") => return Ok(Some(said)),
            Some("failed" | "cancelled") => return Ok(None),
            None if said["error"] == "task_not_found" => {
                return Err(Broken(format!("the task {task} was promised, and is not known: {said}")));
            }
            _ => std::thread::sleep(LOOK_AGAIN),
        }
    }
    Ok(None)
}
