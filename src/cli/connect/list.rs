//! Lists all clients and whether corbie is configured in them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::Connect;
use crate::cli::table::{Align, write_table};
use crate::cli::{End, one_line};
use crate::connect::{self, Client, Place, Places, entry};

/// Inspection result of a client.
struct Looked {
    client: Client,
    file: PathBuf,
    installed: bool,
    standing: Standing,
}

enum Standing {
    Connected,
    Unknown,
    /// The program that the entry starts does not exist.
    NoProgram(String),
    /// The entry has neither a command nor a URL.
    SaysNothing,
    SwitchedOff,
    Unreadable(connect::Error),
}

pub(super) fn run(command: &Connect, places: &Places, out: &mut dyn Write) -> End {
    let clients: Vec<Looked> = Client::ALL.into_iter().map(|client| look(client, &command.name, places)).collect();
    if command.json {
        let told: Vec<Value> = clients.iter().map(|looked| told(looked, &command.name)).collect();
        writeln!(out, "{:#}", json!({ "clients": told }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let heading = ["CLIENT", "INSTALLED", "CONNECTED", "FILE"].map(|name| (name, Align::Left));
    let rows: Vec<Vec<String>> = clients.iter().map(row).collect();
    write_table(&heading, &rows, out)?;
    writeln!(out)?;
    let problems = clients.iter().filter_map(|looked| Some((looked.client, problem(looked, &command.name)?)));
    for (client, problem) in problems {
        writeln!(out, "{}: {}", client.id(), one_line(&problem))?;
    }
    writeln!(out, "`corbie connect CLIENT` shows what a client has to read, and `--write` writes it.")?;
    Ok(ExitCode::SUCCESS)
}

fn look(client: Client, name: &str, places: &Places) -> Looked {
    let place = Place { client, file: client.file(places), name: name.to_owned() };
    let standing = match connect::found(&place) {
        Ok(None) => Standing::Unknown,
        Ok(Some(entry)) if entry::is_switched_off(&entry) => Standing::SwitchedOff,
        Ok(Some(entry)) if entry::says_nothing(&entry) => Standing::SaysNothing,
        Ok(Some(entry)) => match entry::missing_program(&entry) {
            Some(program) => Standing::NoProgram(program.to_owned()),
            None => Standing::Connected,
        },
        Err(error) => Standing::Unreadable(error),
    };
    Looked { client, file: place.file, installed: client.seems_installed(places), standing }
}

fn row(looked: &Looked) -> Vec<String> {
    let connected = match &looked.standing {
        Standing::Connected => "yes",
        Standing::Unknown => "no",
        Standing::NoProgram(_) => "program missing",
        Standing::SaysNothing => "incomplete",
        Standing::SwitchedOff => "switched off",
        Standing::Unreadable(_) => "unreadable",
    };
    let installed = if looked.installed { "yes" } else { "no" };
    vec![looked.client.id().into(), installed.into(), connected.into(), one_line(&looked.file.display().to_string())]
}

fn told(looked: &Looked, name: &str) -> Value {
    let mut told = json!({
        "client": looked.client.id(),
        "title": looked.client.title(),
        "file": looked.file,
        "installed": looked.installed,
        "connected": matches!(looked.standing, Standing::Connected),
    });
    if let Some(problem) = problem(looked, name) {
        told["problem"] = problem.into();
    }
    told
}

/// A problem of the entry and its solution.
fn problem(looked: &Looked, name: &str) -> Option<String> {
    let named = if name == super::NAME { String::new() } else { format!(" --name {name}") };
    let again = format!("`corbie connect {}{named} --write`", looked.client.id());
    match &looked.standing {
        Standing::Connected | Standing::Unknown => None,
        Standing::NoProgram(program) => {
            Some(format!("it starts `{program}`, which is not there; {again} puts this program in its place"))
        }
        Standing::SaysNothing => Some(format!("its entry has neither `command` nor `url`; {again} puts them in")),
        Standing::SwitchedOff => Some(format!("its entry is switched off in {}", looked.file.display())),
        Standing::Unreadable(error) => Some(error.to_string()),
    }
}
