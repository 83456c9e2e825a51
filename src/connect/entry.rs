//! What a client is told of this program, in the words that it understands.

use serde_json::{Map, Value, json};

use super::client::Client;
use super::edit;

/// How a client reaches this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// It starts it, and speaks over its standard streams.
    Program { command: String, arguments: Vec<String> },
    /// It is served there already.
    Url(String),
}

impl Connection {
    /// The entry for one client.
    pub fn entry(&self, client: Client) -> Map<String, Value> {
        let mut entry = Map::new();
        let kind = match (self, client) {
            (_, Client::ClaudeDesktop | Client::Cursor | Client::Codex) => None,
            (Connection::Program { .. }, Client::AmazonQ) => None,
            (Connection::Program { .. }, Client::Copilot) => Some("local"),
            (Connection::Program { .. }, Client::ClaudeCode | Client::Vscode) => Some("stdio"),
            (Connection::Url(_), _) => Some("http"),
        };
        entry.extend(kind.map(|kind| ("type".to_owned(), json!(kind))));
        match self {
            Connection::Program { command, arguments } => {
                entry.insert("command".into(), json!(command));
                entry.insert("args".into(), json!(arguments));
            }
            Connection::Url(url) => {
                entry.insert("url".into(), json!(url));
            }
        }
        if client == Client::Copilot {
            // Without this list it offers none of the tools.
            entry.insert("tools".into(), json!(["*"]));
        }
        entry
    }

    /// A file with this entry and nothing else, to be copied.
    pub fn snippet(&self, client: Client, name: &str) -> String {
        edit::set(client.format(), "", client.section(), name, &self.entry(client))
            .expect("a new file has nothing in the way")
    }
}
