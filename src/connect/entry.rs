//! The entry for corbie in the configuration format of each client.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::client::McpClient;
use super::edit::{self, ClientFileFormat};

/// How a client connects to corbie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// The client starts corbie and communicates over stdin and stdout.
    Program { command: String, arguments: Vec<String> },
    /// URL of a running server.
    Url(String),
}

/// Indentation in a new file.
const INDENT: &str = "  ";

impl Connection {
    /// The entry for one client.
    pub fn entry(&self, client: McpClient) -> Map<String, Value> {
        let mut entry = Map::new();
        let kind = match (self, client) {
            (_, McpClient::ClaudeDesktop | McpClient::Cursor | McpClient::Codex) => None,
            (Connection::Program { .. }, McpClient::AmazonQ) => None,
            (Connection::Program { .. }, McpClient::Copilot) => Some("local"),
            (Connection::Program { .. }, McpClient::ClaudeCode | McpClient::Vscode) => Some("stdio"),
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
        if client == McpClient::Copilot {
            // Without this list the client offers no tools.
            entry.insert("tools".into(), json!(["*"]));
        }
        entry
    }

    /// A complete file with this entry, for copying.
    pub fn snippet(&self, client: McpClient, name: &str) -> String {
        edit::set(client.format(), "", client.section(), name, &self.entry(client))
            .expect("a new file has nothing in the way")
    }

    /// The entry alone, for an existing section. In TOML it is a separate table.
    pub fn member(&self, client: McpClient, name: &str) -> String {
        self.nested_text(client, name, 2)
    }

    /// The entry alone, for an inline table in TOML.
    pub fn inline_member(&self, client: McpClient, name: &str) -> String {
        let section = format!("{} = {{", client.section());
        let whole = edit::set(client.format(), &format!("{section}}}"), client.section(), name, &self.entry(client))
            .expect("a new file has nothing in the way");
        let inside = whole.trim().strip_prefix(&section).and_then(|rest| rest.strip_suffix('}'));
        format!("{}\n", inside.unwrap_or(&whole).trim())
    }

    /// The section with this entry alone, for a file that has none.
    pub fn section(&self, client: McpClient, name: &str) -> String {
        self.nested_text(client, name, 1)
    }

    /// The part of the snippet at this nesting depth, without its indentation.
    fn nested_text(&self, client: McpClient, name: &str, depth: usize) -> String {
        let snippet = self.snippet(client, name);
        if client.format() == ClientFileFormat::Toml {
            return snippet;
        }
        let lines: Vec<&str> = snippet.lines().collect();
        let inside = lines.get(depth..lines.len().saturating_sub(depth)).unwrap_or_default();
        let brackets_indent = INDENT.repeat(depth);
        inside.iter().map(|line| format!("{}\n", line.strip_prefix(&brackets_indent).unwrap_or(line))).collect()
    }
}

/// The program of an entry, if its path is absolute and does not exist.
pub fn missing_program(entry: &Value) -> Option<&str> {
    let is_missing = |command: &&str| Path::new(command).is_absolute() && !Path::new(command).is_file();
    entry.get("command").and_then(Value::as_str).filter(is_missing)
}

/// Whether an entry has neither a command nor a URL.
pub fn has_no_target(entry: &Value) -> bool {
    !["command", "url"].iter().any(|key| entry.get(key).is_some_and(Value::is_string))
}

/// Whether the user has disabled the entry.
pub fn is_disabled(entry: &Value) -> bool {
    entry.get("disabled") == Some(&Value::Bool(true)) || entry.get("enabled") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_snippet_fit_where_they_are_told_to_go() {
        let connection = Connection::Program { command: "/bin/corbie".into(), arguments: vec!["stdio".into()] };
        for client in McpClient::ALL.into_iter().filter(|client| client.format() == ClientFileFormat::Json) {
            let entry = json!({ "corbie": connection.entry(client) });
            let parsed =
                |text: String| serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(parsed(format!("{{{}}}", connection.member(client, "corbie"))), entry);
            assert_eq!(
                parsed(format!("{{{}}}", connection.section(client, "corbie"))),
                json!({ client.section(): entry })
            );
            assert!(connection.member(client, "corbie").starts_with("\"corbie\": {\n  \""));
        }
        assert!(connection.member(McpClient::Codex, "corbie").starts_with("[mcp_servers.corbie]\n"));
        let inline = connection.inline_member(McpClient::Codex, "corbie");
        let beside = format!("mcp_servers = {{ docs = {{ command = 'd' }}, {} }}\n", inline.trim());
        let found = edit::find(ClientFileFormat::Toml, &beside, "mcp_servers", "corbie").unwrap();
        assert_eq!(found, Some(connection.entry(McpClient::Codex).into()), "{beside}");
    }

    #[test]
    fn only_a_program_named_by_its_path_can_be_missing() {
        let missing = |entry: Value| missing_program(&entry).map(str::to_owned);
        assert_eq!(missing(json!({ "command": "/nowhere/corbie" })).as_deref(), Some("/nowhere/corbie"));
        for there in [json!({ "command": "corbie" }), json!({ "url": "http://localhost:8090/mcp" }), json!(1)] {
            assert_eq!(missing(there), None);
        }
        let here = std::env::current_exe().unwrap();
        assert_eq!(missing(json!({ "command": here })), None);
        assert!(missing(json!({ "command": here.parent().unwrap() })).is_some(), "a folder is no program");
    }
}
