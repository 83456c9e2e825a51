use corbie_mcp::mcp_tool;

/// Says it back.
#[mcp_tool]
fn echo<T: Into<String>>(text: T) -> String {
    text.into()
}

/// Says it back.
#[mcp_tool]
fn shout(text: impl Into<String>) -> String {
    text.into()
}

/// Says it back.
#[mcp_tool]
fn whisper(text: String) -> impl corbie_mcp::IntoOutcome {
    text
}

fn main() {}
