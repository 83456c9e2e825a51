//! Classification end to end: examples of spec 000, request styles, signals and commands.

use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestProcess, corbie, free_port, request, wait_for};

fn serve(arguments: &str) -> (TestProcess, HttpClient) {
    let mut server = corbie(arguments).start();
    let client = server.client();
    (server, client)
}

#[track_caller]
fn tool_json(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// The two commands of "Using cURL", with their own quotes, run by a shell.
#[test]
fn v03_both_curl_lines_of_the_specification_work_as_they_stand() {
    let lines = r#"
# Test list_categories
curl -X POST http://localhost:8090/mcp/tools/call \
  -H "Content-Type: application/json" \
  -d '{"name": "list_categories", "arguments": {}}'
echo
# Test classify_text
curl -X POST http://localhost:8090/mcp/tools/call \
  -H "Content-Type: application/json" \
  -d '{"name": "classify_text", "arguments": {"text": "What is 2+2?"}}'
"#;
    // Another test or the developer may be using the port; then a free one replaces it.
    let port = match std::net::TcpListener::bind("127.0.0.1:8090") {
        Ok(_) => 8090,
        Err(_) => free_port(),
    };
    let (_server, _client) = serve(&format!("--http --port {port}"));
    let lines =
        lines.replace("localhost:8090", &format!("localhost:{port}")).replace("curl -X", "curl -sS --noproxy '*' -X");
    let output = std::process::Command::new("sh").arg("-c").arg(lines).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [listed, classified] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!((&listed["isError"], &classified["isError"]), (&json!(false), &json!(false)));
    assert_eq!(tool_json(listed)["categories"], json!(["math", "science", "technology", "history", "general"]));
    assert_eq!(tool_json(classified)["class"], 0);
    assert_eq!(tool_json(classified)["model"], "openai/gpt-oss-20b");
}

/// A router's requests at startup: no `jsonrpc`, no id, an empty method, only `Accept: application/json`.
#[test]
fn v05_z04_z6_the_routers_start_sequence_and_its_queries() {
    let (_server, client) = serve("--http --port 0");
    let post = |path: &str, params: Value| {
        let body = json!({ "method": "", "params": params }).to_string();
        let reply = client.call("POST", &format!("/mcp/{path}"), &[("Accept", "application/json")], &body);
        assert_eq!(reply.status, 200, "{path}");
        reply.json()
    };
    let opened = post(
        "initialize",
        json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "http-mcp-client", "version": "1.0.0" } }),
    );
    assert_eq!(opened["protocolVersion"], "2024-11-05");
    let tools = post("tools/list", json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"classify_text") && names.contains(&"list_categories"));
    for path in ["resources/list", "prompts/list"] {
        post(path, json!({}));
    }
    assert_eq!(client.call("POST", "/mcp/ping", &[], "").status, 200);
    let call =
        |tool: &str, arguments: Value| tool_json(&post("tools/call", json!({ "name": tool, "arguments": arguments })));
    let listed = call("list_categories", json!({}));
    let categories = listed["categories"].as_array().unwrap();
    for (text, category, reasons) in [
        ("What is the derivative of x squared?", "math", false),
        ("who was the last tsar of russia", "history", false),
        (
            "please explain in detail why the roman republic turned into an empire, and compare the reforms of the gracchi \
             with those of sulla and caesar",
            "history",
            true,
        ),
    ] {
        let verdict = call("classify_text", json!({ "text": text, "with_probabilities": true }));
        assert_eq!(categories[verdict["class"].as_u64().unwrap() as usize], category, "{text}");
        assert_eq!(verdict["use_reasoning"], reasons, "{text}");
        assert_eq!(verdict["probabilities"].as_array().unwrap().len(), categories.len());
    }
}

#[test]
fn x04_z03_z6_the_style_of_the_request_decides_the_style_of_its_failure() {
    let (mut server, client) = serve("--http --port 0");
    let call = json!({ "name": "classify_text", "arguments": { "text": " " } });
    let plain = [
        client.post("/mcp/tools/call", &call),
        client.post("/mcp", &json!({ "method": "tools/call", "params": call, "id": 1 })),
    ];
    for reply in plain {
        assert_eq!(reply.status, 200);
        let body = reply.json();
        let result = body.get("result").unwrap_or(&body);
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(tool_json(result).as_object().unwrap().keys().collect::<Vec<_>>(), ["error"]);
    }
    let standard = client.post("/mcp", &request(1, "tools/call", call.clone()));
    assert_eq!(standard.status, 200);
    let result = standard.json()["result"].clone();
    assert_eq!(result["isError"], true);
    assert_eq!(tool_json(&result).as_object().unwrap().keys().collect::<Vec<_>>(), ["error"]);
    // Other tools keep their own error format.
    let other = client.post("/mcp/tools/call", &json!({ "name": "get_tool_schema", "arguments": {} })).json();
    assert_eq!(other["isError"], true);
    server.terminate();
}

#[test]
fn c32_bytes_that_are_not_text_are_refused() {
    let (_server, client) = serve("--http --port 0");
    let body = b"{\"name\": \"classify_text\", \"arguments\": {\"text\": \"\xff\xfe\"}}";
    let reply = client.call_bytes("POST", "/mcp/tools/call", body);
    assert_eq!(reply.status, 400);
    let surrogate = r#"{"name": "classify_text", "arguments": {"text": "\ud800"}}"#;
    assert_eq!(client.call("POST", "/mcp/tools/call", &[], surrogate).status, 400);
}

const TWO_CATEGORIES: &str = "
categories:
  - {name: fruit, certain: ['^apple$'], examples: [apples and pears, a ripe banana]}
  - {name: tools, certain: ['^hammer$'], examples: [a hammer and a saw, sharpen the chisel]}
";

#[test]
fn who_has_the_categories_measured_is_told_how_far_it_is() {
    let setup = corbie("serve --stdio --port 0").variable("CORBIE_TRUST__STDIO", "verified");
    let setup = setup.file("two.yaml", TWO_CATEGORIES).file("corbie.yaml", "classification: {taxonomy: two.yaml}");
    let mut server = setup.start();
    let params = json!({ "name": "evaluate_categories", "arguments": {}, "_meta": { "progressToken": "far" } });
    server.send(&request(7, "tools/call", params));
    let mut steps = Vec::new();
    let answer = loop {
        let message = server.receive();
        match message.get("id") {
            Some(_) => break message,
            None => steps.push((message["params"]["progress"].as_f64().unwrap(), message["params"]["total"].clone())),
        }
    };
    assert!(steps.len() > 1 && steps.is_sorted_by(|one, next| one.0 < next.0 && one.1 == next.1), "{steps:?}");
    let found = tool_json(&answer["result"]);
    assert_eq!((&found["count"], &found["held_out"]), (&json!(4), &json!(true)), "{found}");
}

#[test]
fn the_taxonomy_is_changed_over_http_and_in_use_at_once() {
    let setup = corbie("serve --port 0").variable("CORBIE_TRUST__LOOPBACK", "trusted");
    let setup = setup
        .file("two.yaml", TWO_CATEGORIES)
        .file("corbie.yaml", "classification: {taxonomy: two.yaml, watch: false}");
    let file = setup.folder().join("two.yaml");
    let mut server = setup.start();
    let client = server.client();
    let call = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        client.post("/mcp", &request(1, "tools/call", params)).json()["result"].clone()
    };
    let found = call("get_taxonomy", json!({}))["structuredContent"].clone();
    assert_eq!((&found["text"], &found["writable"]), (&json!(TWO_CATEGORIES), &json!(true)), "{found}");
    assert!(found["path"].as_str().unwrap().ends_with("/two.yaml"), "{found}");
    let three = format!(
        "{TWO_CATEGORIES}  - {{name: birds, certain: ['^raven$'], examples: [a crow on the roof, owls at night]}}\n"
    );
    let arguments = json!({ "text": three, "version": found["version"] });
    let tried = call("check_taxonomy", json!({ "text": three, "trial_texts": ["raven"] }))["structuredContent"].clone();
    assert_eq!(tried["trial_results"][0]["category"], "birds", "{tried}");
    assert_eq!(call("save_taxonomy", arguments.clone())["structuredContent"]["saved"], true);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), three);
    assert_eq!(call("classify_text", json!({ "text": "raven" }))["structuredContent"]["category"], "birds");
    let again = call("save_taxonomy", arguments);
    assert_eq!((&again["isError"], &tool_json(&again)["reason"]), (&json!(true), &json!("conflict")));
    server.terminate();
}

fn categories(client: &HttpClient) -> Value {
    tool_json(&client.post("/mcp/tools/call", &json!({ "name": "list_categories", "arguments": {} })).json())["categories"]
        .clone()
}

#[cfg(unix)]
#[test]
fn a12_c55_a_signal_or_a_changed_file_reloads_the_taxonomy_and_mistakes_are_logged() {
    let setup =
        corbie("--http --port 0").file("t.yaml", TWO_CATEGORIES).variable("CORBIE_CLASSIFICATION__TAXONOMY", "t.yaml");
    let path = setup.folder().join("t.yaml");
    let mut server = setup.start();
    let client = server.client();
    assert_eq!(categories(&client), json!(["fruit", "tools"]));

    std::fs::write(&path, format!("{TWO_CATEGORIES}  - {{name: birds, examples: [a raven, two crows]}}\n")).unwrap();
    wait_for("the new file to be noticed", || {
        (categories(&client) == json!(["fruit", "tools", "birds"])).then_some(())
    });

    std::fs::write(&path, "categories: [{name: fruit, patterns: ['(']}]").unwrap();
    server.signal("HUP");
    let line = server.wait_for_log("rejected the new taxonomy");
    assert!(line.contains("kept the previous one"), "{line}");
    server.wait_for_log("unclosed group");
    assert_eq!(categories(&client), json!(["fruit", "tools", "birds"]));

    std::fs::write(&path, TWO_CATEGORIES.replace("tools", "gear")).unwrap();
    server.signal("HUP");
    wait_for("the signal to be followed", || {
        (categories(&client) == json!(["fruit", "tools", "birds", "gear"])).then_some(())
    });
}

#[cfg(unix)]
#[test]
fn c55_x36_clients_are_told_that_the_list_has_changed() {
    let setup = corbie("stdio").file("t.yaml", TWO_CATEGORIES).variable("CORBIE_CLASSIFICATION__TAXONOMY", "t.yaml");
    let path = setup.folder().join("t.yaml");
    let mut server = setup.start();
    let opening =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    server.send_and_receive(&request(1, "initialize", opening));
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    server.send_and_receive(&request(2, "ping", json!({})));
    std::fs::write(&path, TWO_CATEGORIES.replace("tools", "gear")).unwrap();
    server.signal("HUP");
    let notice = server.receive();
    assert_eq!(notice["method"], "notifications/tools/list_changed");
}

#[test]
fn a_taxonomy_with_mistakes_keeps_the_server_from_starting() {
    let ended = corbie("serve --port 0")
        .file("t.yaml", "categories:\n  - name: a\n    patterns: ['(']\n    colour: red\n")
        .variable("CORBIE_CLASSIFICATION__TAXONOMY", "t.yaml")
        .run("");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("t.yaml:4:5: categories[0].colour: unknown setting"), "{}", ended.stderr);
}

#[test]
fn classify_tells_the_category_of_arguments_and_of_lines() {
    let ended = corbie("classify").argument("what is 2 + 2").argument("who was nero").run("");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("math\t0.9") && lines[0].ends_with("\twhat is 2 + 2"), "{lines:?}");
    assert!(lines[1].starts_with("history\t"), "{lines:?}");
    let ended = corbie("classify --json").run("my phone is slow\nhello\n");
    let told: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&told[0]["category"], &told[1]["category"]), (&json!("technology"), &json!("general")));
    assert_eq!(told[0]["probabilities"].as_array().unwrap().len(), 5);
}

#[test]
fn classify_says_what_is_wrong_and_goes_on() {
    let ended = corbie("classify --json").argument(" ").argument("hello").run("");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stdout.lines().next().unwrap().contains("is empty"));
    assert!(ended.stdout.lines().nth(1).unwrap().contains("general"));
    let ended = corbie("classify --method magic hello").run("");
    assert!(ended.stderr.contains("use `hybrid`, `rules`, `embedding` or `model`"), "{}", ended.stderr);
}

#[test]
fn classify_takes_a_taxonomy_and_a_method() {
    for method in ["rules", "hybrid", "embedding", "model"] {
        let ended = corbie("classify --taxonomy t.yaml --method")
            .argument(method)
            .argument("hammer")
            .file("t.yaml", TWO_CATEGORIES)
            .run("");
        assert!(ended.stdout.starts_with("tools\t"), "{method}: {} {}", ended.stdout, ended.stderr);
    }
}

const LABELLED: &str = r#"{"text": "how long is a marathon in miles", "label": "general"}
{"text": "what is the integral of 2x", "label": "math"}
{"text": "who was genghis khan", "label": "history"}
{"text": "why do leaves fall", "label": "science"}
{"text": "blorp snark wibble", "label": null}
"#;

#[test]
fn eval_tells_how_good_the_classifier_is() {
    let setup = corbie("eval texts.jsonl --json --svg diagram.svg").file("texts.jsonl", LABELLED);
    let folder = setup.folder().to_owned();
    let mut running = setup.start();
    let svg = folder.join("diagram.svg");
    let drawn =
        wait_for("the diagram", || std::fs::read_to_string(&svg).ok().filter(|drawn| drawn.ends_with("</svg>\n")));
    assert!(drawn.starts_with("<svg"), "{drawn}");
    running.close_stdin();
    let ended = running.wait();
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&report["in_scope"], &report["out_of_scope"]), (&json!(4), &json!(1)));
    assert!(report["accuracy"].as_f64().unwrap() >= 0.75, "{report}");
    assert!(report["latency_micros"]["p50"].as_f64().unwrap() > 0.0);
    let shown = corbie("eval texts.jsonl --typos 0.1").file("texts.jsonl", LABELLED).run("");
    assert!(shown.stdout.contains("Calibration error"), "{}", shown.stdout);
}

#[test]
fn eval_learns_from_labelled_texts() {
    let train: String = (0..12)
        .map(|number| {
            let (label, word) = [("fruit", "apple"), ("tools", "hammer")][number % 2];
            format!("{{\"text\": \"{word} number {number}\", \"label\": \"{label}\"}}\n")
        })
        .collect();
    let test = "{\"text\": \"a nice apple\", \"label\": \"fruit\"}\n{\"text\": \"the hammer\", \"label\": \"tools\"}\n";
    let ended = corbie("eval test.jsonl --train train.jsonl --json")
        .file("train.jsonl", &train)
        .file("test.jsonl", test)
        .run("");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    assert_eq!(report["accuracy"], 1.0, "{report}");
}

#[test]
fn eval_says_what_is_wrong_with_its_files() {
    let check = |content: &str, expected: &str| {
        let ended = corbie("eval texts.jsonl").file("texts.jsonl", content).run("");
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    };
    check("", "contain no texts");
    check("{\"text\": \"a\", \"label\": \"sports\"}", "texts.jsonl:1: `sports` is not a category");
    check("{\"text\": \"a\"}\nnonsense", "texts.jsonl:2: is not");
    let ended = corbie("eval nowhere.jsonl").run("");
    assert!(ended.stderr.contains("`nowhere.jsonl`: file not found"), "{}", ended.stderr);
}
