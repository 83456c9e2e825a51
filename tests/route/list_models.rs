//! P-05, P-06, P-19: the list of models, and notifications when it changes.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corbie::app::App;
use corbie::route;
use corbie_mcp::TrustLevel;
use corbie_mcp::transport::stdio;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, split};

use crate::fixture::{app, call, request};
use crate::process::{corbie, free_port, request as message};
use crate::upstream::{FORMATS, FakeUpstream, ScriptedServer, listing, write_json};

const MESSAGE_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn p05_all_models_are_listed_and_one_failing_provider_is_told_apart() {
    let upstream = FakeUpstream::start();
    let refusing = free_port();
    let mut providers = json!({
        "broken": { "base_url": format!("http://127.0.0.1:{refusing}/v1") },
        "locked": upstream.provider_with("openai", json!({ "api_key": "bad-key" })),
        "mock": { "type": "mock" },
    });
    for format in FORMATS {
        providers[format] = upstream.provider(format);
    }
    let app = app(json!({ "providers": providers }));
    let listed = request(&app, "models/list", json!({})).await.unwrap();
    let models = listed["models"].as_array().unwrap();
    let of = |provider: &str| models.iter().filter(|model| model["provider"] == provider).count();
    // The lists of Anthropic and Google are paginated, and all pages are read.
    assert_eq!(FORMATS.map(of), [3, 3, 3], "{listed}");
    assert_eq!((of("mock"), of("broken"), of("locked")), (2, 0, 0));
    for model in models {
        let full = format!("{}/{}", model["provider"].as_str().unwrap(), model["id"].as_str().unwrap());
        assert_eq!((&model["full_id"], &model["status"]), (&json!(full), &json!("up")));
    }
    let failed: Vec<_> =
        listed["failed"].as_array().unwrap().iter().map(|one| (&one["provider"], &one["kind"])).collect();
    assert_eq!(json!(failed), json!([["broken", "network"], ["locked", "authentication"]]));
    // The tools return the same.
    assert_eq!(call(&app, "list_models", json!({})).await, listed);
    let told = call(&app, "list_providers", json!({})).await;
    let status = |name: &str| {
        told["providers"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()["status"].clone()
    };
    assert_eq!(
        [status("broken"), status("locked"), status("openai"), status("mock")],
        ["failing", "failing", "up", "up"]
    );
    // The lists are cached.
    let asked = upstream.requests().len();
    request(&app, "models/list", json!({})).await.unwrap();
    assert_eq!(upstream.requests().len(), asked);
}

/// A legacy client of an in-process server that subscribes to the models.
struct McpClient {
    writer: WriteHalf<DuplexStream>,
    reader: BufReader<ReadHalf<DuplexStream>>,
}

impl McpClient {
    async fn connect(app: &App) -> McpClient {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (server, (reader, writer)) = (app.server.clone(), split(far));
        tokio::spawn(async move { stdio::serve_streams(&server, reader, writer, TrustLevel::Trusted).await });
        tokio::spawn(route::run_refresh(app.router.clone(), app.server.clone()));
        let (reader, writer) = split(near);
        let mut client = McpClient { writer, reader: BufReader::new(reader) };
        let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        client.send(&message(1, "initialize", about)).await;
        client.receive().await;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let mut line = String::new();
        tokio::time::timeout(MESSAGE_TIMEOUT, self.reader.read_line(&mut line)).await.expect("in time").unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

#[tokio::test]
async fn p06_a_client_is_told_when_a_providers_models_become_others() {
    let models: Arc<Mutex<Vec<&str>>> = Arc::new(Mutex::new(vec!["one"]));
    let shown = models.clone();
    let peer = ScriptedServer::answering(move |_| listing(&shown.lock().unwrap()));
    let app = app(json!({ "providers": { "house": { "base_url": format!("http://127.0.0.1:{}/v1", peer.port) } } }));
    let mut client = McpClient::connect(&app).await;
    app.router.providers().refresh_models(Duration::ZERO).await;
    let changed = client.receive().await;
    assert_eq!(changed, json!({ "jsonrpc": "2.0", "method": "notifications/models/list_changed", "params": {} }));
    // An unchanged list causes no notification: the next message is the reply.
    app.router.providers().refresh_models(Duration::ZERO).await;
    client.send(&message(2, "models/list", json!({}))).await;
    assert_eq!(client.receive().await["result"]["models"][0]["id"], "one");
    models.lock().unwrap().push("two");
    app.router.providers().refresh_models(Duration::ZERO).await;
    assert_eq!(client.receive().await["method"], "notifications/models/list_changed");
}

/// Half a minute later, even if the models of other providers were listed just before.
#[tokio::test]
async fn p06_a_local_server_that_appears_is_found_and_told_of() {
    let port = free_port();
    let app = app(json!({ "providers": { "detect_ports": [port] } }));
    let mut client = McpClient::connect(&app).await;
    client.send(&message(2, "models/list", json!({}))).await;
    assert_eq!(client.receive().await["result"], json!({ "models": [] }));
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let _peer = ScriptedServer::start_on(listener, |_, connection| write_json(connection, &listing(&["llama3"])));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    assert_eq!(client.receive().await["method"], "notifications/models/list_changed");
    client.send(&message(3, "completion/complete", json!({ "prompt": "" }))).await;
    client.receive().await;
    let providers = call(&app, "list_providers", json!({})).await;
    let found = &providers["providers"][0];
    assert_eq!((&found["name"], &found["detected"]), (&json!(format!("local-{port}")), &json!(true)), "{providers}");
    assert_eq!(call(&app, "list_models", json!({})).await["models"][0]["id"], "llama3");
}

#[test]
fn p06_p02_a_local_server_is_found_by_the_program_and_answers() {
    let peer = ScriptedServer::answering(|request| match request.head.starts_with("GET") {
        true => listing(&["llama3"]),
        false => {
            json!({ "model": "llama3", "choices": [{ "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop" }] })
        }
    });
    let ports = ("CORBIE_PROVIDERS__DETECT_PORTS", format!("[{}]", peer.port));
    let mut server = corbie("stdio").variable(ports.0, ports.1).variable("CORBIE_ROUTER__ENABLED", false).start();
    server.wait_for_log("detected local model server");
    let answer = server.send_and_receive(&message(1, "completion/complete", json!({ "prompt": "Hello" })));
    assert_eq!(answer["result"]["message"]["content"], "hi", "{answer}");
    assert_eq!(answer["result"]["provider"], format!("local-{}", peer.port));
}
