//! Minimal server: one tool, over stdio, or over HTTP with `--port N`.

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::transport::stdio;
use corbie_mcp::{Server, TrustLevel, mcp_tool};

/// Say the text back.
#[mcp_tool]
async fn echo(
    /** What to say */
    text: String,
) -> String {
    text
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("echo", "1.0.0").tool(echo_tool()).build()?;
    tokio::spawn(corbie_mcp::transport::stop_on_signal(server.clone()));
    match std::env::args().skip_while(|word| word != "--port").nth(1) {
        Some(port) => {
            Http::new(server, Options::default())
                .serve(tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?)
                .await?
        }
        None => stdio::serve(&server, TrustLevel::Trusted).await?,
    }
    std::process::exit(0) // A pending read of stdin would keep the runtime from shutting down.
}
