//! The corbie contestant: the library's public API with its default limits. Validation, trust gate, metrics and audit
//! are part of every call, as in the product.

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::transport::stdio;
use corbie_mcp::{Server, TrustLevel, mcp_tool};

/// The allocator of the product; see `src/main.rs` for the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Say the text back.
#[mcp_tool]
async fn echo(
    /** What to say */
    text: String,
) -> String {
    text
}

/// Ten thousand bytes of text.
#[mcp_tool]
async fn ten_kb() -> String {
    "x".repeat(10_000)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("bench", "1.0.0").tool(echo_tool()).tool(ten_kb_tool()).build()?;
    tokio::spawn(corbie_mcp::transport::stop_on_signal(server.clone()));
    match std::env::args().skip_while(|word| word != "--port").nth(1) {
        Some(port) => {
            let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
            Http::new(server, Options::default()).serve(listener).await?
        }
        None => stdio::serve(&server, TrustLevel::Trusted).await?,
    }
    std::process::exit(0) // A pending read of stdin would keep the runtime from ending.
}
