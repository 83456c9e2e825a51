#![allow(unused)]

use corbie_mcp::{Context, mcp_tool};

/// Measures.
#[mcp_tool]
fn distance((x, y): (f64, f64), _: bool, name: &str) {}

/// Looks twice.
#[mcp_tool]
fn look(first: Context, second: &Context) {}

/// Has two arguments of one name.
#[mcp_tool]
fn collide(#[arg(rename = "b")] a: u8, b: u8) {}

struct Query;

/// Finds.
#[mcp_tool]
fn find(#[args] query: Query, limit: u32) {}

fn main() {}
