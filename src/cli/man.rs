//! `corbie man`: man pages generated from the help texts.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap_mangen::roff::{Roff, roman};

use super::{CommandResult, command, output_file, sanitize_line};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie man | man -l -
  corbie man --folder ~/.local/share/man/man1")]
pub(super) struct Man {
    /// Write one page per command into this folder, which is created if missing
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// A page and its name for `man`.
struct ManPage {
    name: String,
    roff: Vec<u8>,
}

/// Preamble of the generator that defines apostrophes.
const ROFF_PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

pub(super) fn run(command: &Man, out: &mut dyn Write) -> CommandResult {
    // Include the options that short help hides.
    let mut whole = command::command().disable_help_subcommand(true).mut_args(|flag| flag.hide_short_help(false));
    whole.build();
    let Some(folder) = &command.folder else {
        out.write_all(&page(&whole)?.roff)?;
        return Ok(ExitCode::SUCCESS);
    };
    let shown = sanitize_line(&folder.display().to_string());
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("`{shown}` cannot be created: {error}; choose a writable folder"))?;
    let mut pages = Vec::new();
    collect_pages(&whole, &mut pages)?;
    for ManPage { name, roff } in &pages {
        output_file::replace(&folder.join(format!("{name}.1")), roff)?;
    }
    writeln!(out, "Wrote {} pages to {shown}", pages.len())?;
    Ok(ExitCode::SUCCESS)
}

/// The pages of a command and its subcommands.
fn collect_pages(command: &clap::Command, pages: &mut Vec<ManPage>) -> io::Result<()> {
    pages.push(page(command)?);
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| collect_pages(below, pages))
}

fn page(command: &clap::Command) -> io::Result<ManPage> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let man =
        clap_mangen::Man::new(command.clone()).manual("corbie").source(concat!("corbie ", env!("CARGO_PKG_VERSION")));
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut roff)?;
    }
    let below = command.get_after_long_help().or(command.get_after_help());
    sections(&below.map(ToString::to_string).unwrap_or_default()).to_writer(&mut roff)?;
    // Every section repeats the preamble, which is needed only once.
    let mut text = String::from_utf8_lossy(&roff).replace(ROFF_PREAMBLE, "");
    text.insert_str(0, ROFF_PREAMBLE);
    Ok(ManPage { name, roff: text.into_bytes() })
}

/// Converts the text after the options, such as examples: each paragraph has a title and becomes a section.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let (title, lines) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        roff.control("SH", [title.trim_end_matches(':').to_uppercase().as_str()]);
        for line in lines.lines() {
            roff.text([roman(line)]);
        }
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_paragraph_after_the_options_is_a_section() {
        let written = sections("Examples:\n  corbie a\n  corbie b\n\nExit codes:\n  0  done").render();
        for expected in [".SH EXAMPLES\n  corbie a\n  corbie b\n", ".SH \"EXIT CODES\"\n  0  done"] {
            assert!(written.contains(expected), "{written}");
        }
    }
}
