//! Asks before something is lost.

use std::io::{self, BufRead, IsTerminal, Write};

/// Whether to go on. Where nobody can be asked, `--yes` has to say so.
pub(super) fn confirmed(question: &str, yes: bool) -> Result<bool, Box<dyn std::error::Error>> {
    if yes {
        return Ok(true);
    }
    let stdin = io::stdin();
    let mut stderr = io::stderr();
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(format!("{question} Nobody can be asked here; add --yes to go on").into());
    }
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    let agreed = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if !agreed {
        writeln!(stderr, "Nothing was removed.")?;
    }
    Ok(agreed)
}
