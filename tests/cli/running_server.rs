//! Commands that find the running server of the user, wherever it listens.

use std::path::Path;

use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestCommand, corbie, free_port};
use crate::upstream::FakeUpstream;

const QUESTION: &str = "what is the derivative of x squared plus three times x";

/// A command of the user with this home.
fn at_home(command: TestCommand, home: &Path) -> TestCommand {
    command.variable("HOME", home.display())
}

fn decisions(port: u16) -> Vec<Value> {
    let body = json!({ "uri": "corbie://decisions" });
    let reply: Value = serde_json::from_str(&HttpClient::v4(port).post("/mcp/resources/read", &body).body).unwrap();
    let text = reply["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("no decisions: {reply}"));
    serde_json::from_str::<Value>(text).unwrap()["decisions"].as_array().unwrap().clone()
}

#[test]
fn health_finds_the_server_on_any_port() {
    let home = tempfile::tempdir().unwrap();
    let mut server = at_home(corbie("serve --port 0"), home.path()).start();
    let port = server.port();
    let ended = at_home(corbie("health"), home.path()).run("");
    assert_eq!(
        (ended.code, ended.stdout),
        (Some(0), format!("http://127.0.0.1:{port}/ is ready (status ok)\n")),
        "{}",
        ended.stderr
    );
    // Another user does not see it.
    let configured = format!("[\"127.0.0.1:{}\"]", free_port());
    let ended = corbie("health").variable("CORBIE_SERVER__LISTEN", &configured).run("");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    server.terminate();
    server.wait();
    let ended = at_home(corbie("health"), home.path()).variable("CORBIE_SERVER__LISTEN", &configured).run("");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let left = home.path().join(".local/share/corbie/servers").read_dir().unwrap().count();
    assert_eq!(left, 0, "the server has removed its file");
}

#[test]
fn doctor_reports_the_server_on_any_port() {
    let home = tempfile::tempdir().unwrap();
    let mut server = at_home(corbie("serve --port 0"), home.path()).start();
    let (port, id) = (server.port(), server.id());
    std::fs::create_dir(home.path().join(".cursor")).unwrap();
    let entry = json!({ "mcpServers": { "corbie": { "url": format!("http://127.0.0.1:{}/mcp", free_port()) } } });
    std::fs::write(home.path().join(".cursor/mcp.json"), entry.to_string()).unwrap();
    let ended = at_home(corbie("doctor --json"), home.path())
        .variable("CORBIE_SERVER__LISTEN", format!("127.0.0.1:{}", free_port()))
        .run("");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let check = |name: &str| report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap();
    let ports = check("ports")["message"].as_str().unwrap();
    assert!(ports.contains(&format!("corbie (process {id}) responds at http://127.0.0.1:{port}/mcp")), "{ports}");
    let advice = check("clients")["advice"].as_str().unwrap();
    assert!(advice.contains(&format!("corbie is running at http://127.0.0.1:{port}/mcp")), "{advice}");
}

#[test]
fn connect_uses_the_url_of_the_running_server() {
    let home = tempfile::tempdir().unwrap();
    let url = |arguments: &str| {
        let ended = at_home(corbie(arguments), home.path()).run("");
        let told: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        told["entry"]["url"].as_str().unwrap().to_owned()
    };
    assert_eq!(url("connect cursor --json --url"), "http://localhost:8090/mcp");
    let mut server = at_home(corbie("serve --port 0"), home.path()).start();
    let port = server.port();
    assert_eq!(url("connect cursor --json --url"), format!("http://127.0.0.1:{port}/mcp"));
    assert_eq!(url("connect cursor --json --url http://localhost:1"), "http://localhost:1/mcp");
    let shown = at_home(corbie("connect cursor --url"), home.path()).run("").stdout;
    assert!(
        shown.contains(&format!("--url 'http://127.0.0.1:{port}/mcp' --write"))
            || shown.contains(&format!("--url http://127.0.0.1:{port}/mcp --write")),
        "{shown}"
    );
}

#[test]
fn ask_goes_through_the_running_server_and_shows_in_its_decisions() {
    let (upstream, home) = (FakeUpstream::start(), tempfile::tempdir().unwrap());
    let mut server = at_home(upstream.corbie("serve --port 0"), home.path()).start();
    let port = server.port();
    let ask =
        |arguments: &str| at_home(upstream.corbie("ask"), home.path()).arguments(arguments).arguments(QUESTION).run("");
    let ended = ask("");
    assert_eq!((ended.code, ended.stdout, ended.stderr), (Some(0), format!("echo: {QUESTION}\n"), String::new()));
    let [decision] = &decisions(port)[..] else { panic!("not one decision") };
    assert_eq!((&decision["provider"], &decision["classified"]["category"]), (&json!("acme"), &json!("math")));

    let ended = ask("--json --model acme/other --max-tokens 3");
    let told: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!((&told["provider"], &told["model"]), (&json!("acme"), &json!("other")), "{told}");
    assert_eq!(told["decision"]["outcome"], "answered", "{told}");
    assert_eq!(told["decision"]["id"], decisions(port)[0]["id"]);
    let tokens = |name: &str| told["usage"][name].as_u64().unwrap();
    assert!(tokens("totalTokens") > 0 && tokens("totalTokens") == tokens("promptTokens") + tokens("completionTokens"));

    // Failures have the same message and code as without a server.
    let failed = ask("--json --model acme/status-401");
    let told: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!((failed.code, &told["error"]), (Some(1), &json!("authentication")), "{failed:?}");
    assert!(told["message"].as_str().unwrap().starts_with("acme, model `status-401`: "), "{told}");
    assert_eq!(decisions(port).len(), 3);

    // With other settings for routing, the prompt does not go through this server.
    let setup = at_home(upstream.corbie("ask hello"), home.path());
    assert_eq!(setup.variable("CORBIE_ROUTER__TIMEOUT", "77s").run("").code, Some(0));
    assert_eq!(decisions(port).len(), 3);
    server.terminate();
    server.wait();
    assert_eq!(ask("").code, Some(0), "without a server the command runs alone");
}

#[test]
fn ask_runs_alone_if_the_server_requires_a_token_it_does_not_have() {
    let (upstream, home) = (FakeUpstream::start(), tempfile::tempdir().unwrap());
    let token = "72f4be89d6ebab1496e21e38bcd7c8ca0a68928a";
    let serve = at_home(upstream.corbie("serve --port 0"), home.path()).variable("CORBIE_SERVER__AUTH", "bearer");
    let mut server = serve.variable("MCP_API_KEY", token).start();
    server.port();
    let ask = || at_home(upstream.corbie("ask --model acme/echo-small hello"), home.path());
    assert_eq!(ask().run("").stdout, "echo: hello\n");
    let ended = ask().variable("MCP_API_KEY", token).run("");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "echo: hello\n"), "{ended:?}");
}

#[test]
fn connect_warns_about_settings_that_the_client_does_not_get() {
    let settings = "log: {level: info}\n";
    for file in ["corbie.yaml", "corbie.yml"] {
        let ended = corbie("connect cursor").file(file, settings).run("");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.starts_with("corbie: warning: the settings in `"), "{ended:?}");
        assert!(ended.stderr.contains("do not apply to the client") && ended.stderr.contains("--config "), "{ended:?}");
    }
    let ended = corbie("connect cursor --json").file("corbie.yaml", settings).run("");
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(told["warning"].as_str().unwrap().contains("corbie.yaml"), "{told}");
    assert_eq!(ended.stderr, "");
    // The file is passed to the client, or the client uses a running server.
    let with_file = corbie("connect cursor --config corbie.yaml").file("corbie.yaml", settings).run("");
    let with_url = corbie("connect cursor --url").file("corbie.yaml", settings).run("");
    assert_eq!((with_file.stderr.as_str(), with_url.stderr.as_str()), ("", ""));
    assert_eq!(corbie("connect cursor").run("").stderr, "");
}
