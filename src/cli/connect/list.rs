//! Lists all clients and whether corbie is configured in them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::Connect;
use crate::cli::table::{Align, write_table};
use crate::cli::{CommandResult, json_output, sanitize_line, terminal};
use crate::connect::{self, ClientDirs, EntryLocation, McpClient, entry};

/// Inspection result of a client.
struct ClientStatus {
    client: McpClient,
    file: PathBuf,
    installed: bool,
    state: ConnectionState,
}

enum ConnectionState {
    Connected,
    Unknown,
    /// The program that the entry starts does not exist.
    MissingProgram(String),
    /// The entry has neither a command nor a URL.
    EmptyEntry,
    Disabled,
    Unreadable(connect::Error),
}

pub(super) fn run(command: &Connect, places: &ClientDirs, out: &mut dyn Write) -> CommandResult {
    let clients: Vec<ClientStatus> =
        McpClient::ALL.into_iter().map(|client| inspect(client, &command.name, places)).collect();
    if command.json {
        let told: Vec<Value> = clients.iter().map(|looked| to_json(looked, &command.name)).collect();
        json_output::write(&json!({ "clients": told }), out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let [client, installed, connected] = ["CLIENT", "INSTALLED", "SET UP"].map(|name| (name, Align::Left));
    let heading = [client, installed, connected, ("FILE", Align::Wrap)];
    let rows: Vec<Vec<String>> = clients.iter().map(row).collect();
    write_table(&heading, &rows, out)?;
    writeln!(out)?;
    let problems = clients.iter().filter_map(|looked| Some((looked.client, problem(looked, &command.name)?)));
    for (client, problem) in problems {
        terminal::write_wrapped(&format!("{}: {}", client.id(), sanitize_line(&problem)), 2, out)?;
    }
    let hint = "`corbie connect CLIENT` prints the snippet for a client's configuration; `--write` writes it.";
    terminal::write_wrapped(hint, 0, out)?;
    Ok(ExitCode::SUCCESS)
}

fn inspect(client: McpClient, name: &str, places: &ClientDirs) -> ClientStatus {
    let place = EntryLocation { client, file: client.file(places), name: name.to_owned() };
    let standing = match connect::find_entry(&place) {
        Ok(None) => ConnectionState::Unknown,
        Ok(Some(entry)) if entry::is_disabled(&entry) => ConnectionState::Disabled,
        Ok(Some(entry)) if entry::has_no_target(&entry) => ConnectionState::EmptyEntry,
        Ok(Some(entry)) => match entry::missing_program(&entry) {
            Some(program) => ConnectionState::MissingProgram(program.to_owned()),
            None => ConnectionState::Connected,
        },
        Err(error) => ConnectionState::Unreadable(error),
    };
    ClientStatus { client, file: place.file, installed: client.is_installed(places), state: standing }
}

fn row(looked: &ClientStatus) -> Vec<String> {
    let connected = match &looked.state {
        ConnectionState::Connected => "yes",
        ConnectionState::Unknown => "no",
        ConnectionState::MissingProgram(_) => "program missing",
        ConnectionState::EmptyEntry => "incomplete",
        ConnectionState::Disabled => "disabled",
        ConnectionState::Unreadable(_) => "unreadable",
    };
    let installed = if looked.installed { "yes" } else { "no" };
    vec![
        looked.client.id().into(),
        installed.into(),
        connected.into(),
        sanitize_line(&looked.file.display().to_string()),
    ]
}

fn to_json(looked: &ClientStatus, name: &str) -> Value {
    let mut told = json!({
        "client": looked.client.id(),
        "title": looked.client.title(),
        "file": looked.file,
        "installed": looked.installed,
        "connected": matches!(looked.state, ConnectionState::Connected),
    });
    if let Some(problem) = problem(looked, name) {
        told["problem"] = problem.into();
    }
    told
}

/// A problem of the entry and its solution.
fn problem(looked: &ClientStatus, name: &str) -> Option<String> {
    let named = if name == super::DEFAULT_NAME { String::new() } else { format!(" --name {name}") };
    let again = format!("`corbie connect {}{named} --write`", looked.client.id());
    match &looked.state {
        ConnectionState::Connected | ConnectionState::Unknown => None,
        ConnectionState::MissingProgram(program) => {
            Some(format!("its program `{program}` does not exist; {again} replaces it"))
        }
        ConnectionState::EmptyEntry => Some(format!("its entry has neither `command` nor `url`; {again} replaces it")),
        ConnectionState::Disabled => Some(format!("its entry is disabled in {}", looked.file.display())),
        ConnectionState::Unreadable(error) => Some(error.to_string()),
    }
}
