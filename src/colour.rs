//! Colour choice for terminal output.

use std::sync::OnceLock;

use clap::{ColorChoice, ValueEnum};

/// Value of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Colour {
    /// On terminals, unless NO_COLOR is set or TERM is `dumb`
    #[default]
    Auto,
    Always,
    Never,
}

/// Set once, before any output.
static CHOICE: OnceLock<Colour> = OnceLock::new();

/// Sets the choice; later calls have no effect.
pub fn set_choice(colour: Colour) {
    let _ = CHOICE.set(colour);
}

/// Whether output to a stream is coloured.
pub fn is_enabled(is_terminal: bool) -> bool {
    match CHOICE.get().copied().unwrap_or_default() {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => is_terminal && !no_color_is_set() && !is_dumb_terminal(),
    }
}

/// A terminal without escape sequences: it supports neither colours nor returning to the start of a line.
pub fn is_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether `NO_COLOR` is set to a non-empty value; see no-color.org.
fn no_color_is_set() -> bool {
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
