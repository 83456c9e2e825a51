//! `corbie demo`: shows the features on sample documents and leaves no files behind.
//!
//! The demo calls the same tools as MCP clients, with its own folder and configuration. The folder is removed at the
//! end, also after a failure or Ctrl-C.

mod documents;
mod output;
mod script;
mod signals;
mod step;
pub(super) mod workdir;

use std::io::{BufRead, IsTerminal, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::runtime::Runtime;

use self::output::DemoOutput;
use self::signals::{INTERRUPTED, ShutdownRequest, Signals};
use self::workdir::Workdir;
use super::knowledge::backend::Backend;
use super::{CommandResult, ask, json_output, serve};
use crate::config::LoadedConfig;
use crate::config::log::LogFormat;
use crate::telemetry;

/// Runs offline in a temporary folder that is removed at the end. Your settings and documents are neither read nor
/// changed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {
    /// Serve the sample documents and the web console afterwards, until Ctrl-C
    #[arg(long)]
    serve: bool,
    /// Port to serve on, instead of a free one
    #[arg(long, value_name = "PORT", requires = "serve")]
    port: Option<u16>,
    /// Print one JSON object with the command, result and duration of each step
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  corbie demo                 # runs for a few seconds
  corbie demo --serve         # then serves the web console
  corbie demo --serve --port 8099
  corbie demo --json";

/// Suggested next steps, printed at the end.
const NEXT_STEPS: [(&str, &str); 3] = [
    ("corbie add ~/Documents", "add your own documents"),
    ("corbie serve", "start the server and the web console"),
    ("corbie connect claude-desktop", "set up an MCP client"),
];

/// Lets the system choose a free port.
const ANY_PORT: u16 = 0;
/// Time limit for blocked threads at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) fn run(command: &Demo, out: &mut dyn Write) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Before the folder exists, so that no signal can leave it behind.
    let signals = {
        let _inside = runtime.enter();
        Signals::listen()
    };
    // Bind first, so that a port conflict is reported before the demo runs.
    let port = command.port.map(reserve_port).transpose()?;
    let place = Workdir::new()?;
    let end = show(command, &place, port, signals, &runtime, out);
    // A thread may still be blocked reading an answer from stdin.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    place.remove()?;
    end
}

fn show(
    command: &Demo,
    place: &Workdir,
    port: Option<TcpListener>,
    signals: Signals,
    runtime: &Runtime,
    out: &mut dyn Write,
) -> CommandResult {
    let loaded = place.settings()?;
    telemetry::start_with_quiet_modules(ask::QUIET_MODULES, LogFormat::Text);
    let (ending, open) = runtime.block_on(async {
        let ending = ShutdownRequest::watch(signals, place.path());
        let mut teller = DemoOutput::new(out, command.json);
        let peer = Backend::find(&loaded.config).await?;
        let told = tokio::select! {
            told = script::run_script(&peer, place, &mut teller) => told.map(Some),
            () = ending.requested() => Ok(None),
        };
        peer.finish().await;
        let Some(report) = told? else { return Ok((ending, false)) };
        teller.end(&report, &NEXT_STEPS)?;
        let may_ask = !command.json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let open = command.serve || (may_ask && confirm_console(&ending, out).await?);
        Ok::<_, Box<dyn std::error::Error>>((ending, open))
    })?;
    // `ending` lives until here, so that signals are handled while the folder exists.
    match (ending.is_requested(), open) {
        (true, _) => Ok(ExitCode::from(INTERRUPTED)),
        (false, true) => {
            let port = port.map_or_else(|| reserve_port(ANY_PORT), Ok)?;
            console(&loaded, port, command.json, out)
        }
        (false, false) => Ok(ExitCode::SUCCESS),
    }
}

/// Prompts whether to open the console; the default is no.
async fn confirm_console(ending: &ShutdownRequest, out: &mut dyn Write) -> std::io::Result<bool> {
    write!(out, "\nOpen the web console with these documents? [y/N] ")?;
    out.flush()?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    tokio::select! {
        answer = answer => Ok(answer.is_ok_and(|line| line.is_ok_and(|line| line.trim().to_lowercase().starts_with('y')))),
        () = ending.requested() => {
            writeln!(out)?;
            Ok(false)
        }
    }
}

/// Binds a port, to reserve it until it is served.
fn reserve_port(port: u16) -> Result<TcpListener, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| format!("--port: cannot listen on port {port}: {error}; choose another port"))
}

/// Serves the documents until a signal arrives.
fn console(loaded: &LoadedConfig, held: TcpListener, json: bool, out: &mut dyn Write) -> CommandResult {
    let port = held.local_addr()?.port();
    // Another process is unlikely to take the port in the short time until it is bound again.
    drop(held);
    if json {
        json_output::write(&serde_json::json!({ "url": format!("http://127.0.0.1:{port}/") }), out)?;
    } else {
        writeln!(
            out,
            "\nWeb console: http://127.0.0.1:{port}/\nPress Ctrl-C to stop the server and remove all files."
        )?;
    }
    out.flush()?;
    serve::serve(loaded, &[port], serve::Transports::Http)
}
