//! `corbie completions`: shell completion scripts.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use super::{CommandResult, command};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(corbie completions bash)
  corbie completions zsh > ~/.zfunc/_corbie
  corbie completions fish > ~/.config/fish/completions/corbie.fish
  corbie completions powershell >> $PROFILE")]
pub(super) struct Completions {
    /// Shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(command: &Completions, out: &mut dyn Write) -> CommandResult {
    let whole = command::command();
    // Leave out hidden commands.
    let shown = whole.get_subcommands().filter(|known| !known.is_hide_set()).cloned();
    let mut shown = clap::Command::new("corbie").args(whole.get_arguments().cloned()).subcommands(shown);
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut shown, "corbie", &mut script);
    out.write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
