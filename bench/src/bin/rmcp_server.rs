//! The official Rust SDK, configured for speed: non-blocking pipes on stdio; stateless HTTP with JSON replies. It
//! serves both eras.

use std::sync::Arc;

use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::transport::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};

#[derive(Clone)]
struct Bench {
    /// Shared: HTTP creates a service for every request, which should be as cheap as possible.
    router: Arc<ToolRouter<Bench>>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// Text to echo
    text: String,
}

#[tool_router]
impl Bench {
    /// Say the text back.
    #[tool]
    async fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    /// Ten thousand bytes of text.
    #[tool]
    async fn ten_kb(&self) -> String {
        "x".repeat(10_000)
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bench = Bench { router: Arc::new(Bench::tool_router()) };
    match std::env::args().skip_while(|word| word != "--port").nth(1) {
        Some(port) => {
            let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
            let service: StreamableHttpService<Bench, LocalSessionManager> =
                StreamableHttpService::new(move || Ok(bench.clone()), Default::default(), config);
            let router = axum::Router::new().nest_service("/mcp", service);
            let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
            let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
            axum::serve(listener, router).await?;
        }
        None => drop(bench.serve(stdio_pipes()).await?.waiting().await?),
    }
    Ok(())
}
