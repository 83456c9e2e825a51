//! Interoperability with the official Rust client: over stdio and HTTP, in both eras.

mod fixture;

use corbie_mcp::transport::http::Options;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    GetPromptRequestParams, Implementation, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// A client whose user is called Ada.
struct Ada;

impl ClientHandler for Ada {
    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" })))
    }

    fn get_info(&self) -> ClientConfig {
        let capabilities = serde_json::from_value(json!({ "elicitation": {} })).expect("capabilities");
        ClientConfig::new(capabilities, Implementation::new("ada", "1.0.0"))
    }
}

type RmcpClient = RunningService<RoleClient, Ada>;

fn lifecycles() -> [ClientLifecycleMode; 3] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: preferred_versions.clone() },
        ClientLifecycleMode::Auto { preferred_versions, legacy_version: Some(ProtocolVersion::V_2025_11_25) },
    ]
}

async fn over_http(port: u16, lifecycle: ClientLifecycleMode) -> RmcpClient {
    let transport = StreamableHttpClientTransport::from_uri(format!("http://127.0.0.1:{port}/mcp"));
    Ada.serve_with_lifecycle(transport, lifecycle).await.expect("connected")
}

async fn call(client: &RmcpClient, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().expect("an object").clone();
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.expect("answered")
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().expect("text").text
}

/// Lists and calls the only tool of the `echo` example.
async fn use_echo(client: RmcpClient) {
    let tools = client.list_all_tools().await.expect("listed");
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["echo"]);
    let result = call(&client, "echo", json!({ "text": "caw" })).await;
    assert_eq!((text(&result), result.is_error), ("caw", Some(false)));
    client.cancel().await.expect("ended");
}

#[tokio::test]
async fn the_official_client_uses_the_example_over_stdio() {
    for lifecycle in lifecycles() {
        let transport = TokioChildProcess::new(Command::new(fixture::example("echo"))).expect("started");
        use_echo(Ada.serve_with_lifecycle(transport, lifecycle).await.expect("connected")).await;
    }
}

/// The running example; dropping the value stops it.
async fn listening_echo() -> (Child, u16) {
    for _ in 0..5 {
        // The port is free now; if another program takes it first, another port is tried.
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut child = Command::new(fixture::example("echo"))
            .args(["--port", &port.to_string()])
            .kill_on_drop(true)
            .spawn()
            .expect("started");
        while child.try_wait().expect("waitable").is_none() {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return (child, port);
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    panic!("no port could be kept");
}

#[tokio::test]
async fn the_official_client_uses_the_example_over_http() {
    let (_child, port) = listening_echo().await;
    for lifecycle in lifecycles() {
        use_echo(over_http(port, lifecycle).await).await;
    }
}

#[tokio::test]
async fn the_official_client_understands_everything_the_fixture_offers() {
    let server = fixture::server();
    let port = fixture::listen(&server, Options::default()).await;
    for lifecycle in lifecycles() {
        let client = over_http(port, lifecycle).await;
        assert_eq!(client.list_all_tools().await.expect("listed").len(), server.registry().len());
        let sum = call(&client, "add", json!({ "a": 2, "b": 3 })).await;
        assert_eq!(sum.structured_content, Some(json!({ "sum": 5 })));
        assert_eq!(call(&client, "fail", json!({})).await.is_error, Some(true));
        assert_eq!(call(&client, "picture", json!({})).await.content.len(), 2);
        assert!(client.call_tool(CallToolRequestParams::new("no_such_tool")).await.is_err());

        assert_eq!(client.list_all_resources().await.expect("listed").len(), 2);
        let read = client.read_resource(ReadResourceRequestParams::new("fixture://items/7")).await.expect("read");
        assert_eq!(serde_json::to_value(&read.contents[0]).expect("JSON")["text"], "item 7");
        let arguments = json!({ "name": "Ada" }).as_object().expect("an object").clone();
        let prompt =
            client.get_prompt(GetPromptRequestParams::new("greet").with_arguments(arguments)).await.expect("got");
        assert_eq!(serde_json::to_value(&prompt.messages[0].content).expect("JSON")["text"], "Greet Ada.");
        client.cancel().await.expect("ended");
    }
}

#[tokio::test]
async fn the_official_client_answers_a_tool_that_asks_in_both_eras() {
    let port = fixture::listen(&fixture::server(), Options::default()).await;
    for lifecycle in lifecycles() {
        let client = over_http(port, lifecycle.clone()).await;
        let result = call(&client, "ask_name", json!({})).await;
        assert_eq!(text(&result), "Accept Ada", "{lifecycle:?}");
        client.cancel().await.expect("ended");
    }
}
