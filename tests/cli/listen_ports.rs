//! Listening addresses: given ports, default ports, IPv4 and IPv6, and ports in use.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;

use serde_json::json;

use crate::http::HttpClient;
use crate::process::{call, corbie, free_port, has_ipv6, modern_meta, report_skip, request, wait_for};
use crate::websocket::WebSocket;

const DEFAULT_PORTS: [u16; 2] = [8090, 3000];

/// Lock for the default ports: tests run in parallel, even in separate processes.
fn lock_default_ports() -> File {
    let lock = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("default-ports.lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// The default ports in use by another program.
fn ports_in_use() -> Vec<u16> {
    let is_free = |port| {
        TcpListener::bind(("127.0.0.1", port)).is_ok() && (!has_ipv6() || TcpListener::bind(("::1", port)).is_ok())
    };
    DEFAULT_PORTS.into_iter().filter(|port| !is_free(*port)).collect()
}

fn is_served(client: HttpClient) -> bool {
    client.try_call("GET", "/live", &[], "").is_ok_and(|reply| reply.json() == json!({ "status": "ok" }))
}

// === the ports as typed ===

#[test]
fn a03_http_and_port_work_as_typed() {
    let port = free_port();
    let mut server = corbie(&format!("--http --port {port}")).start();
    assert_eq!(server.port(), port);
    let listed = HttpClient::v4(port).post("/mcp/tools/list", &json!({})).json();
    assert!(listed["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let answer = HttpClient::v4(port).post("/mcp", &request(1, "ping", json!({})));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.body, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[test]
fn a03_other_ways_to_type_the_same() {
    for arguments in ["--port N --http", "--port N", "serve --port N", "serve --http --port N", "--http --port=N"] {
        let port = free_port();
        let mut server = corbie(&arguments.replace('N', &port.to_string())).start();
        assert_eq!(server.port(), port, "{arguments}");
        assert!(is_served(HttpClient::v4(port)), "{arguments}");
    }
}

#[test]
fn a04_several_ports_are_one_server() {
    let ports = [free_port(), free_port(), free_port()];
    let flags = ports.map(|port| format!("--port {port}")).join(" ");
    let mut server = corbie(&format!("--http {flags}")).start();
    server.wait_for_log(&ports[2].to_string());
    for port in ports {
        let reply = HttpClient::v4(port).post("/mcp/tools/call", &json!({ "name": "list_registered_tools" }));
        assert_eq!(reply.status, 200);
    }
    let inspected = HttpClient::v4(ports[1]).post("/mcp/tools/call", &json!({ "name": "inspect_server" })).json();
    assert_eq!(inspected["structuredContent"]["tools"]["list_registered_tools"]["calls"], ports.len());
}

#[test]
fn a04_x02_serve_with_stdio_does_both_at_once() {
    let mut server = corbie("serve --stdio --port 0").start();
    let client = server.client();
    for round in 1..=3 {
        assert_eq!(server.send_and_receive(&call(round, "list_registered_tools", json!({})))["id"], round);
        client.post("/mcp/tools/call", &json!({ "name": "list_registered_tools" }));
    }
    let inspected =
        server.send_and_receive(&call(9, "inspect_server", json!({})))["result"]["structuredContent"].clone();
    assert_eq!(inspected["tools"]["list_registered_tools"]["calls"], 6, "one server behind both");
}

#[test]
fn x02_an_explicit_port_that_is_taken_is_fatal() {
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, free) = (occupied.local_addr().unwrap().port(), free_port());
    for arguments in [format!("--http --port {port}"), format!("serve --port {free} --port {port}")] {
        let ended = corbie(&arguments).run("");
        let line = ended.startup_error();
        assert!(line.contains("--port") && line.contains(&port.to_string()), "{line}");
    }
    let yaml = format!("server:\n  listen: [\"127.0.0.1:{free}\", \"127.0.0.1:{port}\"]\n");
    let ended = corbie("serve").file("corbie.yaml", &yaml).run("");
    let line = ended.startup_error();
    assert!(line.contains("corbie.yaml:2:") && line.contains("server.listen"), "{line}");
    assert!(line.contains(&port.to_string()), "{line}");
}

/// Otherwise a client that connects to `localhost` might reach the process with the other half of the port.
#[test]
fn x02_t43_an_explicit_port_that_is_taken_over_ipv6_alone_is_fatal_too() {
    if !has_ipv6() {
        return report_skip("this machine has no IPv6");
    }
    let occupied = TcpListener::bind("[::1]:0").unwrap();
    let port = occupied.local_addr().unwrap().port();
    if TcpListener::bind(("127.0.0.1", port)).is_err() {
        return report_skip("the port is taken over IPv4 as well");
    }
    let mut server = corbie(&format!("--http --port {port}")).start();
    let mut listens = false;
    wait_for("a start or its end", || {
        listens = is_served(HttpClient::v4(port));
        (listens || server.has_exited()).then_some(())
    });
    assert!(!listens, "it serves 127.0.0.1:{port} although [::1]:{port} belongs to somebody else");
    assert!(server.wait().startup_error().contains(&port.to_string()));
}

#[test]
fn x02_explicit_ports_mean_only_those() {
    let _turn = lock_default_ports();
    let before = ports_in_use();
    let mut server = corbie("--http --port 0").start();
    server.port();
    assert_eq!(ports_in_use(), before);
}

// === IPv4 and IPv6 ===

#[test]
fn t43_both_loopback_addresses_are_served() {
    let port = free_port();
    let mut server = corbie(&format!("--http --port {port}")).start();
    server.port();
    assert!(is_served(HttpClient::v4(port)));
    if !has_ipv6() {
        return report_skip("this machine has no IPv6");
    }
    assert!(is_served(HttpClient::v6(port)));
    let answer = HttpClient::v6(port).post("/mcp", &call(1, "inspect_server", json!({}))).json();
    assert_eq!(answer["result"]["structuredContent"]["trust"], "TRUSTED");
}

/// A client that connects to `localhost` may get either address, and a different one each time.
#[test]
fn t43_a_session_begun_over_ipv4_goes_on_over_ipv6() {
    if !has_ipv6() {
        return report_skip("this machine has no IPv6");
    }
    let port = free_port();
    let mut server = corbie(&format!("--http --port {port}")).start();
    server.port();
    let opened =
        HttpClient::v4(port).post("/mcp", &request(1, "initialize", json!({ "protocolVersion": "2025-06-18" })));
    let session = opened.header("mcp-session-id").expect("T-15: a session is begun");
    let body = request(2, "ping", json!({})).to_string();
    let headers = [("Mcp-Session-Id", session)];
    assert_eq!(HttpClient::v4(port).call("POST", "/mcp", &headers, &body).status, 200);
    assert_eq!(HttpClient::v6(port).call("POST", "/mcp", &headers, &body).status, 200);
}

// === the default ports ===

#[test]
fn t42_t43_x02_without_a_port_it_listens_on_8090_and_3000() {
    let _turn = lock_default_ports();
    let taken = ports_in_use();
    if taken.len() == DEFAULT_PORTS.len() {
        return report_skip("both default ports are used by another program");
    }
    for arguments in ["--http", "serve"] {
        let mut server = corbie(arguments).start();
        for port in DEFAULT_PORTS.into_iter().filter(|port| !taken.contains(port)) {
            server.wait_for_log(&format!("http://127.0.0.1:{port}/mcp"));
            assert!(is_served(HttpClient::v4(port)));
            assert!(!has_ipv6() || is_served(HttpClient::v6(port)));
            assert_eq!(HttpClient::v4(port).post("/mcp", &request(1, "ping", json!({}))).status, 200);

            let mut socket = WebSocket::connect(HttpClient::v4(port));
            socket.send(&request("over a socket", "ping", json!({})));
            assert_eq!(socket.message(), json!({ "jsonrpc": "2.0", "id": "over a socket", "result": {} }));
        }
        for port in &taken {
            assert!(server.wait_for_log("WARN").contains(&port.to_string()));
        }
        server.terminate();
        assert_eq!(server.wait().code, Some(0));
    }
}

#[test]
fn x02_when_one_default_port_is_taken_it_warns_and_goes_on_with_the_other() {
    let _turn = lock_default_ports();
    for (mine, other) in [(8090, 3000), (3000, 8090)] {
        // It makes no difference whether this test or another program holds it.
        let _held = TcpListener::bind(("127.0.0.1", mine));
        if ports_in_use().contains(&other) {
            report_skip(&format!("port {other} is used by another program"));
            continue;
        }
        let mut server = corbie("--http").start();
        server.wait_for_log(&format!("http://127.0.0.1:{other}/mcp"));
        let warning = server.wait_for_log("WARN");
        let clients = if mine == 3000 { "MCP clients" } else { "semantic routers" };
        assert!(warning.contains(&mine.to_string()) && warning.contains(clients), "{warning}");
        assert!(is_served(HttpClient::v4(other)));
        server.terminate();
        assert_eq!(server.wait().code, Some(0));
    }
}

#[test]
fn x02_when_both_default_ports_are_taken_it_ends() {
    let _turn = lock_default_ports();
    let _held = DEFAULT_PORTS.map(|port| TcpListener::bind(("127.0.0.1", port)));
    let ended = corbie("--http").run("");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("corbie: ") && last.contains("cannot listen on"), "{}", ended.stderr);
}

// === no session is needed ===

#[test]
fn a13_a_conversation_can_change_the_instance_at_any_point() {
    let mut servers = [corbie("serve --port 0").start(), corbie("serve --port 0").start()];
    let [first, second] = servers.each_mut().map(|server| server.client());
    let opened = first.post("/mcp", &request(1, "initialize", json!({ "protocolVersion": "2025-06-18" })));
    assert_eq!(opened.status, 200);
    let schema = json!({ "name": "inspect_server" });
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "get_tool_schema", "arguments": schema })),
        ("resources/list", json!({})),
        ("prompts/list", json!({})),
        ("ping", json!({})),
    ] {
        // Neither instance requires a session.
        let answers = [first, second].map(|client| client.post("/mcp", &request(2, method, params.clone())));
        assert_eq!(answers[0].status, 200);
        assert_eq!(answers[0].body, answers[1].body, "{method}");
        let path = format!("/mcp/{method}");
        assert_eq!(first.post(&path, &params).body, second.post(&path, &params).body, "{method}");
    }
}

#[test]
fn a13_modern_requests_are_the_same_to_every_instance() {
    let mut servers = [corbie("serve --port 0").start(), corbie("serve --port 0").start()];
    let body = request(1, "tools/list", json!({ "_meta": modern_meta() })).to_string();
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    let answers = servers.each_mut().map(|server| server.client().call("POST", "/mcp", &headers, &body));
    for answer in &answers {
        assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None), "{answer:?}");
    }
    assert_eq!(answers[0].body, answers[1].body);
}

/// A session of another instance, or from before a restart: on 404 clients open a new one.
#[test]
fn a13_t15_a_session_of_another_instance_is_not_known() {
    let mut servers = [corbie("serve --port 0").start(), corbie("serve --port 0").start()];
    let [first, second] = servers.each_mut().map(|server| server.client());
    let opened = first.post("/mcp", &request(1, "initialize", json!({})));
    let session = opened.header("mcp-session-id").expect("a session");
    let answer =
        second.call("POST", "/mcp", &[("Mcp-Session-Id", session)], &request(2, "ping", json!({})).to_string());
    assert_eq!(answer.status, 404);
}
