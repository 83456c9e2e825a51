//! Commands of the system that break things, or say whether that can be done.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Whether a command was content.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Whether this process has a namespace of its own, in which it may break what others would miss. `tests/endurance/run`
/// says which one it was started in; otherwise it is compared with that of the first process there is.
pub(crate) fn has_own_namespace(kind: &str) -> bool {
    let at = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/{kind}")).ok().map(PathBuf::into_os_string);
    let outside = std::env::var_os(format!("ENDURANCE_OUTSIDE_{kind}")).or_else(|| at("1"));
    outside.is_some() && outside != at("self")
}
