//! Network faults (loss, delay, resets, partitions) in a network namespace private to this run.
//!
//! `nft` drops packets and resets connections, `tc` throttles the device. Both act on the loopback device of the
//! namespace, which carries the traffic from clients to the server and from the server to its provider.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{FaultContext, fault_duration};
use crate::rng::SeededRng;
use crate::system_commands::{has_own_namespace, succeeds};

const TABLE: &str = "inet corbie_chaos";

/// Why the network cannot be broken here; `None` if it can.
pub(super) fn unavailable_reason() -> Option<String> {
    if !has_own_namespace("net") {
        return Some("needs a network namespace (run as root, or where users may make one)".to_owned());
    }
    let works = nft("list ruleset").is_ok() && tool("tc", &["qdisc", "show", "dev", "lo"]).is_ok();
    (!works).then(|| "needs nft and tc".to_owned())
}

pub(super) fn inject(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    let server = world.server()?.address().port();
    let provider = world.upstream.address().port();
    let port = if chance.one_in(3) { provider } else { server };
    match chance.below(4) {
        0 => drop_packets(port, 3 + chance.below(28)),
        1 => slow_down(1 + chance.below(20)),
        // Partition: packets are dropped silently.
        2 => add_rules(&format!("tcp dport {port} drop; tcp sport {port} drop;")),
        // Every connection that sends data is reset.
        _ => add_rules(&format!("tcp dport {port} reject with tcp reset;")),
    }?;
    std::thread::sleep(fault_duration(chance));
    heal();
    world.server()?.wait_for_answer()
}

fn drop_packets(port: u16, percent: usize) -> Result<(), String> {
    let lost = format!("numgen random mod 100 < {percent} drop;");
    add_rules(&format!("tcp dport {port} {lost} tcp sport {port} {lost}"))
}

fn add_rules(rules: &str) -> Result<(), String> {
    nft(&format!("table {TABLE} {{ chain in {{ type filter hook input priority 0; policy accept; {rules} }}; }}\n"))
}

/// Throttles the device so that packets queue up, and are dropped when the queue is full.
fn slow_down(megabits: usize) -> Result<(), String> {
    let rate = format!("{megabits}mbit");
    tool("tc", &["qdisc", "add", "dev", "lo", "root", "tbf", "rate", &rate, "burst", "70kb", "latency", "300ms"])
}

/// Removes both kinds of rules; either may be absent.
fn heal() {
    let _ = nft(&format!("delete table {TABLE}"));
    let _ = tool("tc", &["qdisc", "del", "dev", "lo", "root"]);
}

fn nft(what: &str) -> Result<(), String> {
    let in_words = |error: std::io::Error| format!("nft: {error}");
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(in_words)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(what.as_bytes()).map_err(in_words)?;
    }
    match child.wait().map_err(in_words)?.success() {
        true => Ok(()),
        false => Err(format!("nft refuses: {what}")),
    }
}

fn tool(name: &str, words: &[&str]) -> Result<(), String> {
    match succeeds(Command::new(name).args(words)) {
        true => Ok(()),
        false => Err(format!("{name} {} failed", words.join(" "))),
    }
}
