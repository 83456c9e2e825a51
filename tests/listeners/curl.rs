//! `curl` as an independent client.

use std::process::Command;

/// Its output and the status; `None` on machines without it.
pub(crate) fn curl(arguments: &[&str]) -> Option<(String, u16)> {
    let mut command = Command::new("curl");
    // Ignores the user's settings.
    command.args(["-q", "--silent", "--show-error", "--max-time", "30", "--noproxy", "*", "-w", "\n%{http_code}"]);
    let output = command.args(arguments).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, status) = text.rsplit_once('\n').unwrap();
    Some((body.to_owned(), status.parse().unwrap()))
}
