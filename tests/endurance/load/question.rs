//! Requests of the load test with their expected responses.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::outcome::Outcome;
use crate::server::{PATIENCE, Server};

const DOCUMENTS: usize = 40;

/// One request and how to recognize its response.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) path: &'static str,
    pub(crate) body: Value,
    /// Text that only the right response contains.
    pub(crate) answer: String,
}

#[derive(Debug)]
pub(crate) struct Questions {
    categories: Vec<(String, String)>,
}

impl Questions {
    /// Adds documents and records the expected classifications before the load starts.
    pub(crate) fn prepare(server: &Server, folder: &Path) -> Result<Questions, String> {
        let files = folder.join("documents");
        fs::create_dir_all(&files).map_err(|error| error.to_string())?;
        for number in 0..DOCUMENTS {
            let text = format!(
                "{} is the word of note {number}. Ships waited for the tide, and grain was weighed.",
                word(number)
            );
            fs::write(files.join(format!("note{number}.txt")), text).map_err(|error| error.to_string())?;
        }
        let said = ask(server, "knowledge-import", &json!({ "paths": [files], "async": false }))?;
        if said["failed"] != 0 {
            return Err(format!("documents are not added: {said}"));
        }
        let texts = ["i was charged twice", "the courier is late", "i cannot sign in", "where is my refund"];
        let category = |text: &str| -> Result<(String, String), String> {
            let said = ask(server, "classify_text", &json!({ "text": text }))?;
            let name = said["category"].as_str().ok_or_else(|| format!("no category: {said}"))?;
            Ok((text.to_owned(), name.to_owned()))
        };
        Ok(Questions { categories: texts.into_iter().map(category).collect::<Result<_, _>>()? })
    }

    pub(crate) fn next(&self, chance: &mut Chance, number: u64) -> Question {
        let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
        match chance.below(4) {
            0 => {
                let (text, category) = &self.categories[chance.below(self.categories.len())];
                let body = call("classify_text", json!({ "text": text }));
                Question { path: "/mcp/tools/call", body, answer: format!("\\\"category\\\":\\\"{category}\\\"") }
            }
            1 | 2 => {
                let document = chance.below(DOCUMENTS);
                // Unique query, so that no response comes from a cache.
                let query = format!("{} is the word of which note? {number}", word(document));
                let body = call("knowledge-search", json!({ "query": query, "top_k": 3 }));
                Question {
                    path: "/mcp/tools/call",
                    body,
                    answer: format!("{} is the word of note {document}.", word(document)),
                }
            }
            _ => {
                let nonce = format!("nonce-{number}-end");
                let messages = json!([{ "role": "user", "content": nonce }]);
                let body = json!({ "model": "stand-in/echo-large", "messages": messages });
                Question { path: "/v1/chat/completions", body, answer: nonce }
            }
        }
    }
}

/// A word unique to one note.
fn word(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + (number % 20) as u8);
    format!("qzv{}{}{}", letter(number), letter(number / 20), letter(number / 3 + 7))
}

fn ask(server: &Server, tool: &str, arguments: &Value) -> Result<Value, String> {
    match server.ask(tool, arguments, PATIENCE) {
        Outcome::Said(said) => Ok(said),
        other => Err(format!("{tool}: {other:?}")),
    }
}
