//! Whether what is shown to people may have colours.

use std::sync::OnceLock;

use clap::{ColorChoice, ValueEnum};

/// What `--color` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Colour {
    /// On terminals, unless NO_COLOR is set or TERM is `dumb`
    #[default]
    Auto,
    Always,
    Never,
}

/// Chosen once, before anything is shown.
static CHOSEN: OnceLock<Colour> = OnceLock::new();

/// The first choice stays.
pub fn choose(colour: Colour) {
    let _ = CHOSEN.set(colour);
}

/// Whether a stream, which may be a terminal, is written to with colours.
pub fn suits(is_terminal: bool) -> bool {
    match CHOSEN.get().copied().unwrap_or_default() {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => is_terminal && !is_unwanted() && !is_dumb(),
    }
}

/// A terminal that knows no escape sequences: it can neither colour nor go back to the beginning of a line.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Any value but an empty one says so: see no-color.org.
fn is_unwanted() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

impl From<Colour> for ColorChoice {
    fn from(colour: Colour) -> ColorChoice {
        match colour {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        }
    }
}
