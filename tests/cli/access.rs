//! Authentication: listening beyond loopback, and tokens.

use serde_json::json;

use crate::process::{TestCommand, TestProcess, call, corbie};

const TOKEN: &str = "a0561fd649cdb6baa784055f051bad796ea0afef";

/// Listens on all addresses of this machine, on a free port. Loopback is one of them, so a test can connect.
fn listening_on_all_addresses() -> TestCommand {
    corbie("serve").variable("CORBIE_SERVER__LISTEN", "0.0.0.0:0")
}

/// A client of a listener on all addresses.
fn client_of(server: &mut TestProcess) -> crate::http::HttpClient {
    let line = server.wait_for_log("listening");
    let port = line.split("http://0.0.0.0:").nth(1).and_then(|rest| rest.split('/').next());
    crate::http::HttpClient::v4(
        port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no port in {line:?}")),
    )
}

#[test]
fn s06_an_address_others_can_reach_is_refused_without_a_token() {
    for setup in [
        listening_on_all_addresses(),
        listening_on_all_addresses().variable("MCP_API_KEY", ""),
        listening_on_all_addresses().variable("CORBIE_SERVER__AUTH", "bearer"),
        listening_on_all_addresses().variable("CORBIE_SERVER__AUTH", "none"),
        listening_on_all_addresses().variable("CORBIE_SERVER__AUTH", "none").variable("MCP_API_KEY", TOKEN),
        corbie("--http").variable("CORBIE_SERVER__LISTEN", "[::]:0"),
        corbie("serve --trust untrusted").variable("CORBIE_SERVER__LISTEN", "0.0.0.0:0"),
        // A proxy forwards callers from other machines.
        corbie("serve --port 0").variable("CORBIE_SERVER__TRUSTED_PROXIES", "127.0.0.1"),
    ] {
        let ended = setup.run("");
        let line = ended.startup_error();
        assert!(line.contains("server.auth"), "{line}");
        assert!(!line.contains(TOKEN), "{line}");
    }
}

#[test]
fn s06_without_configuration_only_this_machine_is_listened_on() {
    let mut server = corbie("--http --port 0").start();
    let port = server.port();
    server.client().get("/live");
    server.terminate();
    let ended = server.wait();
    for line in ended.stderr.lines().filter(|line| line.contains("listening")) {
        let loopback = [format!("http://127.0.0.1:{port}/mcp"), format!("http://[::1]:{port}/mcp")];
        assert!(loopback.iter().any(|url| line.contains(url)), "{line}");
    }
}

#[test]
fn s05_f04_beyond_this_machine_the_key_is_the_token() {
    let mut server = listening_on_all_addresses().variable("MCP_API_KEY", TOKEN).start();
    let client = client_of(&mut server);
    let body = json!({ "name": "inspect_server" }).to_string();
    assert_eq!(client.call("POST", "/mcp/tools/call", &[], &body).status, 401);
    let reply = client.call("POST", "/mcp/tools/call", &[("Authorization", &format!("Bearer {TOKEN}"))], &body);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["structuredContent"]["trust"], "VERIFIED", "X-16: beyond loopback callers are verified");
}

#[test]
fn x45_f04_the_key_alone_does_not_ask_local_callers_for_it() {
    let mut server = corbie("serve --port 0").variable("MCP_API_KEY", TOKEN).start();
    let client = server.client();
    assert_eq!(client.post("/mcp/tools/list", &json!({})).status, 200);
    assert_eq!(client.post("/mcp", &call(1, "inspect_server", json!({}))).json()["result"]["isError"], false);
    assert_eq!(client.get("/metrics").status, 200);
    let health = client.get("/health").json();
    assert!(health["tools_count"].is_u64(), "callers of this machine see the whole page: {health}");
}

#[test]
fn x45_s05_with_bearer_every_path_needs_the_token() {
    let mut server =
        corbie("serve --port 0").variable("MCP_API_KEY", TOKEN).variable("CORBIE_SERVER__AUTH", "bearer").start();
    let client = server.client();
    let body = call(1, "inspect_server", json!({})).to_string();
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("POST", "/mcp/tools/call"),
        ("POST", "/mcp/initialize"),
        ("GET", "/metrics"),
        ("GET", "/nowhere"),
    ] {
        let reply = client.call(method, path, &[], &body);
        assert_eq!(reply.status, 401, "{method} {path}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{method} {path}");
        let error = reply.json()["error"].clone();
        assert_eq!((&error["code"], &error["data"]["error_type"]), (&json!(-32001), &json!("AuthenticationError")));

        for wrong in [format!("Bearer {TOKEN}x"), format!("Basic {TOKEN}"), "Bearer".into(), TOKEN.into()] {
            let reply = client.call(method, path, &[("Authorization", &wrong)], &body);
            assert_eq!(reply.status, 401, "{wrong}");
            assert!(reply.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")), "{reply:?}");
            assert!(!reply.body.contains(TOKEN), "{reply:?}");
        }
    }
    let known = [("Authorization", format!("Bearer {TOKEN}"))];
    let known = known.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(client.call("POST", "/mcp", &known, &body).json()["result"]["isError"], false);
    assert_eq!(client.call("GET", "/metrics", &known, "").status, 200);
    let health = client.call("GET", "/health", &known, "").json();
    assert_eq!(health["name"], "corbie");
}

#[test]
fn a_server_that_asks_for_a_token_says_so_and_how_to_get_one() {
    let bearer = |setup: TestCommand| setup.variable("MCP_API_KEY", TOKEN).variable("CORBIE_SERVER__AUTH", "bearer");
    for setup in [bearer(corbie("serve --port 0")), listening_on_all_addresses().variable("MCP_API_KEY", TOKEN)] {
        let mut server = setup.start();
        let line = server.wait_for_log("callers must send a token");
        for part in ["Authorization: Bearer", "corbie tokens create NAME", "MCP_API_KEY", "server.token"] {
            assert!(line.contains(part), "{line}");
        }
        server.terminate();
        let ended = server.wait();
        assert!(!ended.stderr.contains(TOKEN), "{}", ended.stderr);
    }
    let mut server = corbie("serve --port 0").variable("MCP_API_KEY", TOKEN).start();
    server.port();
    server.terminate();
    assert!(!server.wait().stderr.contains("need a token"), "nobody is asked for one");
}

#[test]
fn s05_without_the_token_health_pages_tell_the_status_word_only() {
    let mut server =
        corbie("serve --port 0").variable("MCP_API_KEY", TOKEN).variable("CORBIE_SERVER__AUTH", "bearer").start();
    let client = server.client();
    for path in ["/health", "/live", "/ready"] {
        for headers in [&[][..], &[("Authorization", "Bearer wrong")]] {
            let reply = client.call("GET", path, headers, "");
            assert_eq!((reply.status, reply.json()), (200, json!({ "status": "ok" })), "{path}");
        }
    }
}

#[test]
fn x45_bearer_without_a_token_is_a_mistake_on_loopback_too() {
    let ended = corbie("serve --port 0").file("corbie.yaml", "server:\n  auth: bearer\n").run("");
    let line = ended.startup_error();
    assert!(line.contains("corbie.yaml:2:") && line.contains("server.auth: "), "{line}");
    assert!(line.contains("MCP_API_KEY"), "it says what to do: {line}");
}

#[test]
fn x45_stdio_never_asks_for_the_token() {
    let setup = corbie("").variable("MCP_API_KEY", TOKEN).variable("CORBIE_SERVER__AUTH", "bearer");
    let answer = setup.start().send_and_receive(&call(1, "inspect_server", json!({})));
    assert_eq!(answer["result"]["isError"], false);
}

#[test]
fn s01_v12_the_token_is_in_no_output_whatever_goes_wrong() {
    let token = |setup: TestCommand| setup.variable("MCP_API_KEY", TOKEN).variable("CORBIE_SERVER__AUTH", "bearer");
    let mut server = token(corbie("serve --stdio --port 0 --log-level debug")).start();
    let client = server.client();
    let known = format!("Bearer {TOKEN}");
    let mut replies = Vec::new();
    for headers in [[("Authorization", known.as_str())], [("Authorization", "Bearer a0561fd649cd")]] {
        for path in ["/health", "/metrics"] {
            replies.push(client.call("GET", path, &headers, "").body);
        }
        for body in ["{", "{}", r#"{"name":"no_such_tool"}"#, r#"{"name":"inspect_server"}"#] {
            replies.push(client.call("POST", "/mcp", &headers, body).body);
            replies.push(client.call("POST", "/mcp/tools/call", &headers, body).body);
        }
    }
    let inspected = server.send_and_receive(&call(1, "inspect_server", json!({}))).to_string();
    server.terminate();
    let ended = server.wait();
    let mistaken = token(corbie("serve").variable("CORBIE_SERVER__TOKEN", format!("{TOKEN}\n"))).run("");
    let shown = token(corbie("config show")).run("");
    for text in
        replies.iter().chain([&inspected, &ended.stdout, &ended.stderr, &mistaken.stderr, &shown.stdout, &shown.stderr])
    {
        assert!(!text.contains(TOKEN), "{text}");
    }
    assert!(mistaken.startup_error().contains("CORBIE_SERVER__TOKEN"), "{mistaken:?}");
}

#[test]
fn s05_a_token_that_can_be_guessed_is_refused_at_start_with_the_command_that_makes_one() {
    for weak in [
        "a",
        "1234",
        "password-password-password-password",
        "0123456789abcdef0123456789abcdef",
        "P4ssw0rd-P4ssw0rd-2024!",
        "https://corbie.example.com/mcp",
        "550e8400-e29b-41d4-a716-446655440000",
    ] {
        let guarded = [
            listening_on_all_addresses(),
            corbie("serve --port 0").variable("CORBIE_SERVER__AUTH", "bearer"),
            corbie("config validate").variable("CORBIE_SERVER__AUTH", "bearer"),
        ];
        for setup in guarded {
            let ended = setup.variable("MCP_API_KEY", weak).run("");
            assert_ne!(ended.code, Some(0), "{weak}");
            let said = format!("{}{}", ended.stdout, ended.stderr);
            for part in ["MCP_API_KEY", "server.token", "openssl rand -hex 32", "corbie tokens create"] {
                assert!(said.contains(part), "{weak}: {said}");
            }
            assert!(weak.len() < 5 || !said.contains(weak), "{said}");
        }
    }
    let random = corbie("config validate").variable("CORBIE_SERVER__AUTH", "bearer").variable("MCP_API_KEY", TOKEN);
    assert_eq!(random.run("").code, Some(0));
    // A token that no listener requires may be weak: the variable may be meant for other servers.
    let ended = corbie("config validate").variable("MCP_API_KEY", "a").run("");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn s05_a_token_that_can_be_guessed_is_a_warning_for_commands_that_do_not_listen() {
    let weak = |arguments: &str| {
        corbie(arguments).variable("MCP_API_KEY", "changeme").variable("CORBIE_SERVER__AUTH", "bearer")
    };
    for arguments in ["tokens create laptop", "tokens list", "tools list", "config show"] {
        let setup = weak(arguments);
        let tokens = setup.folder().join("tokens.json").display().to_string();
        let ended = setup.variable("CORBIE_SERVER__TOKENS_FILE", tokens).run("");
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        let warns = ended.stderr.contains("openssl rand -hex 32") && !ended.stderr.contains("changeme");
        assert!(warns || arguments == "config show", "{arguments}: {ended:?}");
    }
    let mut stdio = weak("stdio").start();
    assert_eq!(stdio.send_and_receive(&call(1, "inspect_server", json!({})))["result"]["isError"], false);
    stdio.wait_for_log("openssl rand -hex 32");
}

#[test]
fn s05_a_four_digit_token_cannot_be_tried_from_loopback() {
    let mut server =
        corbie("serve --port 0").variable("MCP_API_KEY", TOKEN).variable("CORBIE_SERVER__AUTH", "bearer").start();
    let client = server.client();
    let status =
        |token: &str| client.call("POST", "/mcp/ping", &[("Authorization", &format!("Bearer {token}"))], "").status;
    assert_eq!(status(TOKEN), 200);
    let refused = (0..1000).filter(|guess| status(&format!("{guess:04}")) == 429).count();
    assert!(refused > 500, "{refused}");
    assert_eq!(status(TOKEN), 200, "who was known before goes on");
}
