#![allow(unused)]

use corbie_mcp::mcp_tool;

/// Rings.
#[mcp_tool(tiemout = 5)]
fn ring() {}

/// Rings.
#[mcp_tool(effect = destroy)]
fn smash() {}

/// Rings.
#[mcp_tool]
fn strike(#[arg(lenght(min = 1))] bell: String) {}

/// Rings.
#[mcp_tool]
fn toll(#[serde(default)] times: u8) {}

fn main() {}
