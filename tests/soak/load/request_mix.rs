//! Requests of the load test with their expected responses.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::call_outcome::CallOutcome;
use crate::rng::SeededRng;
use crate::server::{RESPONSE_TIMEOUT, ServerProcess};

const DOCUMENTS: usize = 40;

/// One request and how to recognize its response.
#[derive(Debug)]
pub(crate) struct LoadRequest {
    pub(crate) path: &'static str,
    pub(crate) body: Value,
    /// Text that only the right response contains.
    pub(crate) expected: String,
}

#[derive(Debug)]
pub(crate) struct RequestMix {
    categories: Vec<(String, String)>,
}

impl RequestMix {
    /// Adds documents and records the expected classifications before the load starts.
    pub(crate) fn prepare(server: &ServerProcess, folder: &Path) -> Result<RequestMix, String> {
        let files = folder.join("documents");
        fs::create_dir_all(&files).map_err(|error| error.to_string())?;
        for number in 0..DOCUMENTS {
            let text = format!(
                "{} is the word of note {number}. Ships waited for the tide, and grain was weighed.",
                unique_word(number)
            );
            fs::write(files.join(format!("note{number}.txt")), text).map_err(|error| error.to_string())?;
        }
        let said = call_tool(server, "knowledge-import", &json!({ "paths": [files], "async": false }))?;
        if said["failed"] != 0 {
            return Err(format!("documents are not added: {said}"));
        }
        let texts = ["i was charged twice", "the courier is late", "i cannot sign in", "where is my refund"];
        let category = |text: &str| -> Result<(String, String), String> {
            let said = call_tool(server, "classify_text", &json!({ "text": text }))?;
            let name = said["category"].as_str().ok_or_else(|| format!("no category: {said}"))?;
            Ok((text.to_owned(), name.to_owned()))
        };
        Ok(RequestMix { categories: texts.into_iter().map(category).collect::<Result<_, _>>()? })
    }

    pub(crate) fn next(&self, chance: &mut SeededRng, number: u64) -> LoadRequest {
        let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
        match chance.below(4) {
            0 => {
                let (text, category) = &self.categories[chance.below(self.categories.len())];
                let body = call("classify_text", json!({ "text": text }));
                LoadRequest { path: "/mcp/tools/call", body, expected: format!("\\\"category\\\":\\\"{category}\\\"") }
            }
            1 | 2 => {
                let document = chance.below(DOCUMENTS);
                // Unique query, so that no response comes from a cache.
                let query = format!("{} is the word of which note? {number}", unique_word(document));
                let body = call("knowledge-search", json!({ "query": query, "top_k": 3 }));
                LoadRequest {
                    path: "/mcp/tools/call",
                    body,
                    expected: format!("{} is the word of note {document}.", unique_word(document)),
                }
            }
            _ => {
                let nonce = format!("nonce-{number}-end");
                let messages = json!([{ "role": "user", "content": nonce }]);
                let body = json!({ "model": "stand-in/echo-large", "messages": messages });
                LoadRequest { path: "/v1/chat/completions", body, expected: nonce }
            }
        }
    }
}

/// A word unique to one note.
fn unique_word(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + (number % 20) as u8);
    format!("qzv{}{}{}", letter(number), letter(number / 20), letter(number / 3 + 7))
}

fn call_tool(server: &ServerProcess, tool: &str, arguments: &Value) -> Result<Value, String> {
    match server.call(tool, arguments, RESPONSE_TIMEOUT) {
        CallOutcome::Answered(said) => Ok(said),
        other => Err(format!("{tool}: {other:?}")),
    }
}
