//! Confirmation prompt before data is deleted.

use std::io::{self, BufRead, IsTerminal, Write};

use super::error::KnowledgeError;

/// Returns if the user confirms. Without a terminal, `--yes` is required.
pub(super) fn confirm(question: &str) -> Result<(), Box<dyn std::error::Error>> {
    let stdin = io::stdin();
    let mut stderr = io::stderr();
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(KnowledgeError::NotConfirmed(question.to_owned()).into());
    }
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(KnowledgeError::Declined.into()),
    }
}
