//! Commands of the system that break things, or say whether that can be done.

use std::process::{Command, Stdio};

/// Whether a command was content.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
