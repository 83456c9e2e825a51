//! System commands that inject faults, and checks whether they are available.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Whether a command exits successfully.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Whether this process has a private namespace, in which faults cannot affect the rest of the machine.
/// `tests/soak/run` exports the outer namespace; otherwise the namespace of process 1 is used for comparison.
pub(crate) fn has_own_namespace(kind: &str) -> bool {
    let at = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/{kind}")).ok().map(PathBuf::into_os_string);
    let outside = std::env::var_os(format!("SOAK_OUTER_NS_{kind}")).or_else(|| at("1"));
    outside.is_some() && outside != at("self")
}
