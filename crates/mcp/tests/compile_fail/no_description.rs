use corbie_mcp::mcp_tool;

#[mcp_tool(title = "Ring")]
fn ring() {}

fn main() {}
