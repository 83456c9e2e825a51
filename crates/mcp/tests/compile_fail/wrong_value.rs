#![allow(unused)]

use corbie_mcp::mcp_tool;

/// Rings.
#[mcp_tool(timeout = "5s")]
fn ring() {}

/// Rings.
#[mcp_tool(effect = "reads")]
fn look() {}

/// Rings.
#[mcp_tool(read_only, destructive)]
fn smash() {}

/// Rings.
#[mcp_tool(blocking)]
async fn wait() {}

/// Rings.
#[mcp_tool]
fn count(#[arg(default = true)] times: u32) {}

fn main() {}
