//! `corbie connect`: prints or writes the entry for corbie in the configuration of an MCP client.

mod list;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use corbie_mcp::TrustLevel;
use serde_json::{Map, Value, json};

use super::exit::UsageError;
use super::{CommandResult, json_output, sanitize_line};
use crate::config::tool_selection::ToolSelection;
use crate::config::{self, Scope, Sources, State};
use crate::connect::file::NewFilePermissions;
use crate::connect::{self, ClientDirs, Connection, EntryLocation, McpClient, OtherContent, PendingEdit, diff};
use crate::running_servers::{self, RunningServer};
use crate::util::os_error::FILE_NOT_FOUND;
use crate::util::shell_quote::shell_quote;

const EXAMPLES: &str = "Examples:
  corbie connect                                # list clients and their status
  corbie connect claude-desktop                 # print the entry and where to add it
  corbie connect claude-desktop --write         # write the entry, after a backup
  corbie connect codex --remove                 # remove the entry";

/// Default endpoint of `corbie serve`.
const DEFAULT_URL: &str = "http://localhost:8090/mcp";
/// Default name of the entry.
const DEFAULT_NAME: &str = "corbie";
/// Maximum length of a name; clients use it as a prefix of tool names.
const MAX_NAME_LEN: usize = 64;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Connect {
    /// MCP client; without one, all clients are listed
    client: Option<McpClient>,
    /// Write the entry to the client's configuration file, after a backup; all other content is preserved
    #[arg(long, requires = "client")]
    write: bool,
    /// Remove the entry from the client's configuration file
    #[arg(long, requires = "client", conflicts_with_all = ["write", "url"])]
    remove: bool,
    /// Show the change without making it
    #[arg(long, requires = "client")]
    dry_run: bool,
    /// Name of the entry: letters, digits, `-` and `_`
    #[arg(long, default_value = DEFAULT_NAME, value_parser = name)]
    name: String,
    /// Connect to a running server, instead of having the client start one. Without a value, the URL of the server that
    /// is running now
    #[arg(long, value_name = "URL", value_parser = url)]
    url: Option<Option<String>>,
    /// Tools that the client lists: a profile (all, knowledge, classify, gateway) or names, separated by commas
    #[arg(long, value_name = "TOOLS", conflicts_with_all = ["url", "remove"], value_parser = tools)]
    tools: Option<String>,
    /// Configuration file of the client, instead of its default location
    #[arg(long, value_name = "PATH", requires = "client")]
    file: Option<PathBuf>,
    /// Use the project's file in this folder: .mcp.json, .cursor/mcp.json or .vscode/mcp.json
    #[arg(long, requires = "client", conflicts_with = "file")]
    project: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("`{}`: {FILE_NOT_FOUND}; the client could not start corbie with it", .0.display())]
    NoConfig(PathBuf),
    #[error("the path `{}` is not UTF-8 and cannot be written to a client's file; move the file", .0.display())]
    NotUtf8(PathBuf),
}

fn no_url(client: McpClient) -> UsageError {
    let title = client.title();
    UsageError::Line(format!("{title} does not support URLs in its configuration file; omit `--url`"))
}

fn no_project(client: McpClient) -> UsageError {
    let title = client.title();
    UsageError::Line(format!(
        "{title} has no project configuration file; omit `--project`, or specify a file with `--file`"
    ))
}

/// `sources` and `trust` are the options given before or after the command; the client starts corbie with the same
/// ones.
pub(super) fn run(
    command: &Connect,
    sources: &Sources,
    trust: Option<TrustLevel>,
    out: &mut dyn Write,
) -> CommandResult {
    let places = ClientDirs::new(&sources.variables, &sources.folder);
    let Some(client) = command.client else { return list::run(command, &places, out) };
    let file = match (&command.file, command.project) {
        (Some(file), _) => sources.folder.join(file),
        (None, false) => client.file(&places),
        (None, true) => client.project_file(&places).ok_or_else(|| no_project(client))?,
    };
    let place = EntryLocation { client, file, name: command.name.clone() };
    if command.remove {
        return remove(command, &place, out);
    }
    let connection = connection(command, client, sources, trust)?;
    let warning = ignored_settings(&connection, sources);
    if let Some(warning) = warning.as_ref().filter(|_| !command.json) {
        writeln!(std::io::stderr(), "corbie: warning: {}", sanitize_line(warning))?;
    }
    let entry = connection.entry(client);
    let change = match connect::plan_add(&place, &entry) {
        Err(error) if error.is_content_error() => return show_manual_steps(command, &place, &connection, error, out),
        change => change?,
    };
    if command.write || command.dry_run {
        return write(command, &place, &change, Some(&entry), warning.as_deref(), out);
    }
    if command.json {
        let told = to_json(&place, &change, Some(&entry), warning.as_deref(), None);
        json_output::write(&told, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    if change.is_noop() {
        writeln!(out, "{} is already set up: `{}` in {}", client.title(), place.name, place.file.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    show(&place, &change, &connection, &write_command(command, sources, trust), out)
}

/// Prints the entry, where to insert it, and the command that does so.
fn show(
    place: &EntryLocation,
    change: &PendingEdit,
    connection: &Connection,
    again: &str,
    out: &mut dyn Write,
) -> CommandResult {
    let EntryLocation { client, name, .. } = place;
    let (client, path, key) = (*client, place.file.display(), place.client.section());
    let beside = change.other_content(place)?;
    let (where_to, text) = match beside {
        _ if change.existed => {
            let told = format!("Change the entry `{name}` under `{key}` in {path}; its other members can stay");
            (told, connection.member(client, name))
        }
        OtherContent::Nothing => (format!("Paste this into {path}"), connection.snippet(client, name)),
        OtherContent::Settings => {
            (format!("Add `{key}` to {path}, next to the other settings"), connection.section(client, name))
        }
        OtherContent::Servers(count) => {
            let others = if count == 1 { "another server".to_owned() } else { format!("{count} other servers") };
            let told = format!("Add `{name}` under `{key}` in {path}, next to {others}");
            let text = match change.is_inline(place) {
                true => connection.inline_member(client, name),
                false => connection.member(client, name),
            };
            (told, text)
        }
    };
    let effect = if change.file.exists() { "changes nothing else in the file" } else { "creates the file" };
    writeln!(out, "{where_to}\n\n{}", text.trim_end())?;
    writeln!(out, "\nOr run this command, which {effect}:\n\n  {again}\n\n{}", client.next_step())?;
    Ok(ExitCode::SUCCESS)
}

/// Does not change an invalid file. Prints the entry for manual insertion together with the error.
fn show_manual_steps(
    command: &Connect,
    place: &EntryLocation,
    connection: &Connection,
    error: connect::Error,
    out: &mut dyn Write,
) -> CommandResult {
    let (client, key) = (place.client, place.client.section());
    let snippet = connection.snippet(client, &place.name);
    if command.json {
        let told = json!({
            "success": false,
            "error": "failed",
            "message": error.to_string(),
            "file": place.file,
            "key": key,
            "entry": connection.entry(client),
            "snippet": snippet,
        });
        json_output::write(&told, out)?;
        return Ok(ExitCode::FAILURE);
    }
    let (path, name) = (place.file.display(), &place.name);
    let member = connection.member(client, name);
    writeln!(out, "After correcting {path}, add `{name}` under `{key}`:\n\n{}\n", member.trim_end())?;
    Err(error.into())
}

fn remove(command: &Connect, place: &EntryLocation, out: &mut dyn Write) -> CommandResult {
    let change = connect::plan_remove(place)?;
    if !change.existed && !command.json {
        writeln!(out, "No entry `{}` in {}. Nothing changed.", place.name, place.file.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    write(command, place, &change, None, None, out)
}

/// Shows the change, and makes it unless this is a dry run.
fn write(
    command: &Connect,
    place: &EntryLocation,
    change: &PendingEdit,
    entry: Option<&Map<String, Value>>,
    warning: Option<&str>,
    out: &mut dyn Write,
) -> CommandResult {
    let path = place.file.display();
    if !command.json {
        if change.is_noop() {
            let title = place.client.title();
            writeln!(out, "{title} is already set up: `{}` in {path}. Nothing changed.", place.name)?;
            return Ok(ExitCode::SUCCESS);
        }
        write!(out, "{}", unified_diff(place, change))?;
    }
    if command.dry_run || change.is_noop() {
        if command.json {
            json_output::write(&to_json(place, change, entry, warning, None), out)?;
        } else {
            writeln!(out, "\nDry run: nothing changed.")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let readers = if command.project { NewFilePermissions::Default } else { NewFilePermissions::OwnerOnly };
    let backup = change.file.replace(&change.text, readers)?;
    if command.json {
        json_output::write(&to_json(place, change, entry, warning, Some(backup.as_deref())), out)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "\nWrote {path}")?;
    if let Some(backup) = backup {
        writeln!(out, "Backup: {}", backup.display())?;
    }
    writeln!(
        out,
        "{}",
        if entry.is_some() { place.client.next_step() } else { "Restart the client to apply the change." }
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The result as JSON. `written` is `None` if the file was not written, and otherwise contains the path of its backup.
fn to_json(
    place: &EntryLocation,
    change: &PendingEdit,
    entry: Option<&Map<String, Value>>,
    warning: Option<&str>,
    written: Option<Option<&Path>>,
) -> Value {
    let state = match (change.is_noop(), change.existed) {
        (true, true) => "same",
        (false, true) if entry.is_some() => "different",
        (false, true) => "there",
        (_, false) => "absent",
    };
    let mut told = json!({
        "client": place.client.id(),
        "name": place.name,
        "file": place.file,
        "exists": change.file.exists(),
        "state": state,
        "entry": entry,
        "diff": unified_diff(place, change),
        "written": written.is_some(),
        "backup": written.flatten(),
    });
    if let Some(warning) = warning {
        told["warning"] = warning.into();
    }
    told
}

fn unified_diff(place: &EntryLocation, change: &PendingEdit) -> String {
    diff::unified(&sanitize_line(&place.file.display().to_string()), change.file.text(), &change.text)
}

fn connection(
    command: &Connect,
    client: McpClient,
    sources: &Sources,
    trust: Option<TrustLevel>,
) -> Result<Connection, Box<dyn std::error::Error>> {
    if let Some(url) = command.server_url(sources) {
        return match client.supports_url() {
            true => Ok(Connection::Url(url)),
            false => Err(no_url(client).into()),
        };
    }
    let mut arguments = vec!["stdio".to_owned()];
    // With an explicit path, the entry does not depend on the client's working directory.
    let named = sources.named_file().map(|file| sources.folder.join(file));
    if let Some(config) = named.or_else(|| sources.user_file()) {
        if !config.exists() {
            return Err(Error::NoConfig(config).into());
        }
        arguments.extend(["--config".to_owned(), text(&config)?]);
    }
    if let Some(trust) = trust {
        arguments.extend(["--trust".to_owned(), trust.as_str().to_owned()]);
    }
    if let Some(tools) = &command.tools {
        arguments.extend(["--tools".to_owned(), tools.clone()]);
    }
    Ok(Connection::Program { command: text(&std::env::current_exe()?)?, arguments })
}

impl Connect {
    /// The URL of `--url`; without a value, that of the running server.
    fn server_url(&self, sources: &Sources) -> Option<String> {
        self.url.as_ref().map(|url| {
            let running = || {
                let servers = running_servers::find(&sources.variables);
                servers.iter().find_map(RunningServer::web_url).map(str::to_owned)
            };
            url.clone().or_else(running).unwrap_or_else(|| DEFAULT_URL.to_owned())
        })
    }
}

/// A warning if the working directory has settings that the client does not get: it starts corbie in another folder.
fn ignored_settings(connection: &Connection, sources: &Sources) -> Option<String> {
    let Connection::Program { .. } = connection else { return None };
    let layers = config::layers(sources);
    let project = layers.iter().find(|layer| layer.scope == Scope::Project && layer.state == State::Active)?;
    let path = project.path.display().to_string();
    Some(format!(
        "the settings in `{path}` do not apply to the client, which does not start corbie in this folder; if it should use \
         them, add `--config {}`",
        shell_quote(&path)
    ))
}

fn text(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::NotUtf8(path.to_owned()))
}

/// The same command with `--write`.
fn write_command(command: &Connect, sources: &Sources, trust: Option<TrustLevel>) -> String {
    let mut words = vec!["corbie".to_owned(), "connect".to_owned()];
    words.extend(command.client.map(|client| client.id().to_owned()));
    if command.name != DEFAULT_NAME {
        words.extend(["--name".to_owned(), command.name.clone()]);
    }
    if let Some(url) = command.server_url(sources) {
        words.push("--url".to_owned());
        words.extend((url != DEFAULT_URL).then(|| shell_quote(&url)));
    }
    words.extend(command.tools.iter().flat_map(|tools| ["--tools".to_owned(), tools.clone()]));
    let path = |flag: &str, path: &Path| [flag.to_owned(), shell_quote(&path.display().to_string())];
    words.extend(command.file.iter().flat_map(|file| path("--file", file)));
    words.extend(command.project.then(|| "--project".to_owned()));
    words.extend(sources.file.iter().flat_map(|file| path("--config", file)));
    words.extend(trust.iter().flat_map(|trust| ["--trust".to_owned(), trust.as_str().to_owned()]));
    words.push("--write".to_owned());
    words.join(" ")
}

/// Refuses unknown names, which would only show when the client starts corbie.
fn tools(text: &str) -> Result<String, String> {
    match ToolSelection::of_text(text).mistakes().into_iter().next() {
        None => Ok(text.to_owned()),
        Some(mistake) => Err(mistake),
    }
}

fn name(name: &str) -> Result<String, String> {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    match (1..=MAX_NAME_LEN).contains(&name.len()) && name.chars().all(is_fine) {
        true => Ok(name.to_owned()),
        false => Err(format!("must have 1 to {MAX_NAME_LEN} letters, digits, `-` and `_`")),
    }
}

fn url(text: &str) -> Result<String, String> {
    match url::Url::parse(text) {
        // A URL without a path gets the path of corbie's MCP endpoint.
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() && url.path() == "/" => {
            Ok(format!("{}/mcp", text.trim_end_matches('/')))
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(text.to_owned()),
        _ => Err(format!("not a URL; use one such as {DEFAULT_URL}, or omit the value")),
    }
}
