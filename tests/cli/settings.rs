//! Settings with externally visible effects, and the tools that report them.

use std::io::Write;

use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestCommand, call, corbie, free_port, modern_meta, request, wait_for};

fn inspect(client: HttpClient) -> Value {
    client.post("/mcp/tools/call", &json!({ "name": "inspect_server" })).json()["structuredContent"].clone()
}

fn config_show(setup: TestCommand) -> Value {
    serde_json::from_str(&setup.arguments("config show --json").run("").stdout).unwrap()
}

// === trust ===

#[test]
fn x16_the_trust_flag_shows_in_the_start_log_and_in_inspect_server() {
    for level in ["untrusted", "verified", "trusted"] {
        for arguments in
            [format!("serve --stdio --port 0 --trust {level}"), format!("--trust {level} serve --stdio --port 0")]
        {
            let mut server = corbie(&arguments).start();
            assert!(server.wait_for_log("listening").contains(&format!("trust={level}")));
            assert!(server.wait_for_log("serving stdin and stdout").contains(&format!("trust={level}")));
            assert_eq!(inspect(server.client())["trust"], level.to_uppercase());
            let answer = server.send_and_receive(&call(1, "inspect_server", json!({})));
            assert_eq!(answer["result"]["structuredContent"]["trust"], level.to_uppercase());
        }
    }
}

#[test]
fn x16_callers_of_this_machine_are_trusted_unless_said_otherwise() {
    let mut server = corbie("serve --stdio --port 0").start();
    assert!(server.wait_for_log("listening").contains("trust=trusted"));
    assert_eq!(inspect(server.client())["trust"], "TRUSTED");
    let answer = server.send_and_receive(&call(1, "inspect_server", json!({})));
    assert_eq!(answer["result"]["structuredContent"]["trust"], "TRUSTED");
}

#[test]
fn f35_trust_is_set_for_each_way_in_and_the_flag_wins_over_all() {
    let yaml = "trust:\n  stdio: verified\n  loopback: untrusted\n";
    let trust = |flag: &str| {
        let mut server = corbie("serve --stdio --port 0").arguments(flag).file("corbie.yaml", yaml).start();
        let stdio =
            server.send_and_receive(&call(1, "inspect_server", json!({})))["result"]["structuredContent"]["trust"]
                .clone();
        (stdio, inspect(server.client())["trust"].clone())
    };
    assert_eq!(trust(""), (json!("VERIFIED"), json!("UNTRUSTED")));
    assert_eq!(trust("--trust trusted"), (json!("TRUSTED"), json!("TRUSTED")));
    assert_eq!(config_show(corbie("").variable("CORBIE_TRUST__REMOTE", "trusted"))["trust"]["remote"], "trusted");
}

// === variables ===

#[test]
fn f05_variables_reach_every_key() {
    let listen = [free_port(), free_port()];
    for list in [
        format!("127.0.0.1:{},127.0.0.1:{}", listen[0], listen[1]),
        json!(listen.map(|port| format!("127.0.0.1:{port}"))).to_string(),
    ] {
        let mut server = corbie("serve")
            .file("corbie.yaml", "server: {name: rook, listen: [\"127.0.0.1:0\"]}")
            .variable("CORBIE_SERVER__NAME", "jackdaw")
            .variable("CORBIE_SERVER__LISTEN", &list)
            .start();
        server.port();
        for port in listen {
            let health = wait_for("the listener", || HttpClient::v4(port).try_call("GET", "/health", &[], "").ok());
            assert_eq!(health.json()["name"], "jackdaw", "a variable wins over the file");
        }
    }
    let shown = config_show(
        corbie("")
            .variable("CORBIE_SERVER__TOOL_TIMEOUTS__CHAT_COMPLETION", 60)
            .variable("CORBIE_SERVER__TOOL_TIMEOUT_SECONDS", "2m")
            .variable("CORBIE_SERVER__LIMITS__MAX_MESSAGE_BYTES", "1MiB"),
    );
    assert_eq!(shown["server"]["tool_timeouts"]["chat_completion"], "1m");
    assert_eq!(shown["server"]["tool_timeout_seconds"], 120);
    assert_eq!(shown["server"]["limits"]["max_message_bytes"], "1MiB");
}

#[test]
fn f05_a_variable_that_names_no_key_is_a_mistake() {
    let ended = corbie("").variable("CORBIE_SERVER__TOOL_TIMEOUT", 5).run("");
    assert!(ended.startup_error().contains("CORBIE_SERVER__TOOL_TIMEOUT"), "{ended:?}");
}

// === server ===

#[test]
fn f34_the_servers_name_is_told_everywhere() {
    let mut server = corbie("serve --stdio --port 0").file("corbie.toml", "[server]\nname = \"jackdaw\"\n").start();
    let client = server.client();
    let opened = server.send_and_receive(&request(1, "initialize", json!({})))["result"].clone();
    assert_eq!((&opened["name"], &opened["serverInfo"]["name"]), (&json!("jackdaw"), &json!("jackdaw")));
    assert_eq!(inspect(client)["name"], "jackdaw");
    assert_eq!(client.get("/health").json()["name"], "jackdaw");
}

#[test]
fn f34_limits_hold() {
    let yaml = "server:\n  limits: {max_message_bytes: 2KiB, max_batch: 2, page_size: 1}\n";
    let mut server = corbie("serve --stdio --port 0").file("corbie.yaml", yaml).start();
    let client = server.client();
    let long = request(1, "ping", json!({ "text": "x".repeat(3000) }));
    assert_eq!(client.post("/mcp", &long).status, 413);
    assert_eq!(server.send_and_receive(&long)["error"]["code"], -32600);

    let batch = json!([1, 2, 3].map(|id| request(id, "ping", json!({}))));
    assert_eq!(server.send_and_receive(&batch)["error"]["code"], -32600);
    assert_eq!(server.send_and_receive(&json!([request(1, "ping", json!({}))]))[0]["id"], 1);

    let page = server.send_and_receive(&request(2, "tools/list", json!({})))["result"].clone();
    assert_eq!(page["tools"].as_array().unwrap().len(), 1);
    let next =
        server.send_and_receive(&request(3, "tools/list", json!({ "cursor": page["nextCursor"] })))["result"].clone();
    assert_ne!(next["tools"][0]["name"], page["tools"][0]["name"]);
}

#[test]
fn f34_the_limit_of_connections_holds_over_all_listeners() {
    let ports = [free_port(), free_port()];
    let mut server = corbie(&format!("serve --port {} --port {}", ports[0], ports[1]))
        .variable("CORBIE_SERVER__LIMITS__MAX_CONNECTIONS", 1)
        .start();
    server.port();
    let mut kept = HttpClient::v4(ports[0]).connect().unwrap();
    // A connection in use: the server waits for the rest of its body.
    kept.write_all(HttpClient::v4(ports[0]).head("POST", "/mcp", &[], 100).as_bytes()).unwrap();
    kept.write_all(b"{").unwrap();
    // There is one connection permit and it is taken, so further connections are rejected on every listener.
    wait_for("the first connection to count", || {
        let reply = HttpClient::v4(ports[0]).try_call("GET", "/metrics", &[], "").ok()?;
        (reply.status == 503).then_some(())
    });
    let elsewhere = |path| HttpClient::v4(ports[1]).try_call("GET", path, &[], "").map(|reply| reply.status).ok();
    let statuses = [elsewhere("/metrics"), elsewhere("/live")];
    drop(kept);
    assert_eq!(statuses, [Some(503), Some(200)], "`max_connections` counts over all listeners, but for health probes");
}

#[test]
fn f34_x20_a_configured_rate_limit_is_kept() {
    let mut server = corbie("serve --port 0")
        .variable("CORBIE_SERVER__RATE_LIMIT__PER_SECOND", 1)
        .variable("CORBIE_SERVER__RATE_LIMIT__BURST", 2)
        .start();
    let client = server.client();
    let statuses: Vec<u16> =
        (0..20).map(|_| client.post("/mcp/tools/call", &json!({ "name": "inspect_server" })).status).collect();
    assert_eq!(statuses[0], 200);
    assert!(statuses.contains(&429), "20 calls at once, 1 a second allowed: {statuses:?}");
}

#[test]
fn f34_x20_without_a_limit_callers_of_this_machine_are_not_held_back() {
    let calls: String = (0..3000).map(|id| format!("{}\n", call(id, "inspect_server", json!({})))).collect();
    let answers = corbie("").run(&calls).messages();
    assert_eq!(answers.len(), 3000);
    assert!(answers.iter().all(|answer| answer["result"]["isError"] == false));
}

#[test]
fn f34_the_grace_is_a_setting_and_its_default_is_30_seconds() {
    assert_eq!(config_show(corbie(""))["server"]["shutdown_grace_seconds"], 30);
    assert_eq!(config_show(corbie(""))["server"]["tool_timeout_seconds"], 30);
    let mut server = corbie("").variable("CORBIE_SERVER__SHUTDOWN_GRACE_SECONDS", 7).start();
    server.send_and_receive(&request(1, "ping", json!({})));
    server.terminate();
    assert!(server.wait_for_log("shutting down").contains("grace_seconds=7"));
}

// === registry ===

#[test]
fn f37_the_default_is_300_seconds() {
    assert_eq!(config_show(corbie(""))["registry"]["cache_ttl"], 300);
    let listed = corbie("").start().send_and_receive(&request(1, "tools/list", json!({})))["result"]["tools"].clone();
    for tool in listed.as_array().unwrap() {
        assert_eq!(tool["metadata"]["cache_ttl"], 300, "{tool}");
    }
    let listed = corbie("").start().send_and_receive(&request(1, "tools/list", json!({ "_meta": modern_meta() })));
    assert_eq!(listed["result"]["ttlMs"], 300_000);
}

/// `registry.cache_ttl` in the schema of the settings: "How long a client may keep the list of tools".
#[test]
fn f37_clients_are_told_the_configured_time() {
    let mut server = corbie("").variable("CORBIE_REGISTRY__CACHE_TTL", 60).start();
    let listed = server.send_and_receive(&request(1, "tools/list", json!({ "_meta": modern_meta() })));
    assert_eq!(listed["result"]["ttlMs"], 60_000);
}

// === server metadata ===

#[test]
fn m48_the_counts_of_initialize_are_real() {
    let mut server = corbie("").start();
    let opened = server.send_and_receive(&request(1, "initialize", json!({})))["result"].clone();
    for (counted, method, member) in [
        ("tools_count", "tools/list", "tools"),
        ("resources_count", "resources/list", "resources"),
        ("prompts_count", "prompts/list", "prompts"),
    ] {
        let listed =
            server.send_and_receive(&request(2, method, json!({})))["result"][member].as_array().unwrap().len();
        assert_eq!(opened[counted], listed, "{counted}");
    }
    assert_eq!((&opened["name"], &opened["version"]), (&json!("corbie"), &json!(env!("CARGO_PKG_VERSION"))));
}

#[test]
fn m69_inspect_server_tells_all_that_is_promised() {
    let mut server = corbie("").start();
    let opened =
        server.send_and_receive(&request(1, "initialize", json!({ "protocolVersion": "2025-11-25" })))["result"]
            .clone();
    let inspect = |server: &mut crate::process::TestProcess| {
        let result = server.send_and_receive(&call(2, "inspect_server", json!({})))["result"].clone();
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        text
    };
    let told = inspect(&mut server);
    for member in ["name", "version", "tools_count", "resources_count", "prompts_count"] {
        assert_eq!(told[member], opened[member], "{member}");
    }
    assert_eq!(told["protocol_version"], "2025-11-25");
    assert_eq!(told["trust"], "TRUSTED");
    assert_eq!(told["via"], "stdio");
    let capabilities: Vec<&str> = match &told["capabilities"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::Object(members) => members.keys().map(String::as_str).collect(),
        other => panic!("{other}"),
    };
    for capability in opened["capabilities"].as_object().unwrap().keys() {
        assert!(capabilities.contains(&capability.as_str()), "{capability}");
    }
    let before = told["uptime_seconds"].as_f64().unwrap();
    let again = inspect(&mut server);
    assert!(again["uptime_seconds"].as_f64().unwrap() > before);
    assert_eq!(again["tools"]["inspect_server"]["calls"], 1, "M-88: the first call was counted");
}
