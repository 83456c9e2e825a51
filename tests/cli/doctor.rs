//! `corbie doctor` and `check_setup`: findings and advice.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::process::{ProcessOutput, TestCommand, call, corbie, free_port};

/// Working folder and home are the same, with a port that no other test uses.
fn doctor(flags: &str) -> TestCommand {
    corbie(&format!("doctor {flags}")).variable("CORBIE_SERVER__LISTEN", format!("localhost:{}", free_port()))
}

#[track_caller]
fn report(ended: &ProcessOutput, code: i32) -> Value {
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), ""), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

#[track_caller]
fn find_check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let found = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check `{name}` in {report:#}"))
}

/// Asserts that the check found this problem and gives this advice.
#[track_caller]
fn assert_problem(report: &Value, name: &str, found: &str, advice: &str) {
    let check = find_check(report, name);
    assert_eq!(check["state"], "problem", "{check}");
    assert!(check["message"].as_str().unwrap().contains(found), "{check}");
    assert!(check["advice"].as_str().unwrap().contains(advice), "{check}");
}

#[test]
fn healthy_setup_has_no_problems_and_is_not_changed() {
    let setup = doctor("--json").variable("CORBIE_PROVIDERS__MOCK__TYPE", "mock");
    let (folder, kept) = (setup.folder().to_owned(), tempfile::tempdir().unwrap());
    let setup = setup.variable("XDG_DATA_HOME", kept.path().display());
    assert!(folder.is_dir());
    let report = report(&setup.run(""), 0);
    assert_eq!(report["problems"], 0, "{report:#}");
    let names: Vec<&str> =
        report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    let all = [
        "configuration",
        "ports",
        "access",
        "models",
        "documents",
        "ocr",
        "providers",
        "permissions",
        "disk",
        "clients",
    ];
    assert_eq!(names, all);
    for name in ["configuration", "ports", "access", "models", "ocr", "providers", "permissions"] {
        assert_eq!(find_check(&report, name)["state"], "ok", "{report:#}");
    }
    for check in report["checks"].as_array().unwrap() {
        assert!(check["message"].as_str().is_some_and(|found| !found.is_empty()), "{check}");
        assert_eq!(check.get("advice").is_some(), check["state"] != "ok", "{check}");
    }
    assert_eq!(kept.path().read_dir().unwrap().count(), 0, "looking makes no files");
}

#[test]
fn missing_authentication_is_a_problem() {
    let open = corbie("doctor --json").variable("CORBIE_SERVER__LISTEN", format!("0.0.0.0:{}", free_port()));
    assert_problem(&report(&open.run(""), 1), "access", "the server cannot listen on 0.0.0.0", "corbie tokens create");
    let setup = doctor("--json").file("tokens.json", "junk");
    let path = setup.folder().join("tokens.json").display().to_string();
    let report = report(&setup.variable("CORBIE_SERVER__TOKENS_FILE", &path).run(""), 1);
    assert_problem(&report, "access", &path, "create new tokens");
}

#[test]
fn text_output_has_states_and_advice() {
    let ended = doctor("").run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.lines().any(|line| line.starts_with("ok       ocr ")), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("warning  clients") && ended.stdout.contains("-> run `corbie connect`"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.ends_with("\nNo problems.\n"), "{}", ended.stdout);
    assert!(corbie("doctor --help").run("").stdout.contains("Examples:\n  corbie doctor "));
}

#[test]
fn settings_errors_have_a_position() {
    let setup = corbie("doctor --json").file("corbie.yaml", "server:\n  nmae: x\n");
    let report = report(&setup.run(""), 1);
    assert_problem(&report, "configuration", "corbie.yaml:2", "corbie config validate");
    assert!(
        find_check(&report, "configuration")["message"].as_str().unwrap().contains("did you mean `name`?"),
        "{report:#}"
    );
    assert_eq!(report["checks"].as_array().unwrap().len(), 2, "the rest needs settings: {report:#}");
}

#[test]
fn port_of_another_program_is_reported_with_its_process() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
        // Kept open until the check is done.
        other
    });
    let setup = corbie("doctor --json").variable("CORBIE_SERVER__LISTEN", format!("127.0.0.1:{port}"));
    let report = report(&setup.run(""), 1);
    drop(answering.join().unwrap());
    assert_problem(&report, "ports", &format!("127.0.0.1:{port} is in use by "), "server.listen");
    #[cfg(target_os = "linux")]
    assert_problem(&report, "ports", &format!("(process {})", std::process::id()), "stop it");
}

#[test]
fn port_of_corbie_is_ok() {
    for token in ["", "72f4be89d6ebab1496e21e38bcd7c8ca0a68928a"] {
        let mut serving = corbie("serve --port 0");
        if !token.is_empty() {
            serving = serving.variable("MCP_API_KEY", token).variable("CORBIE_SERVER__AUTH", "bearer");
        }
        let mut serving = serving.start();
        let setup = corbie("doctor --json").variable("CORBIE_SERVER__LISTEN", format!("127.0.0.1:{}", serving.port()));
        let report = report(&setup.run(""), 0);
        assert!(
            find_check(&report, "ports")["message"].as_str().unwrap().starts_with("corbie responds at"),
            "{report:#}"
        );
    }
}

/// Works for root too, who may write anywhere: a file blocks the path of the folder.
#[test]
fn unwritable_data_folder_is_a_problem() {
    let setup = doctor("--json").file("data", "in the way");
    let storage = setup.folder().join("data").join("knowledge");
    let setup = setup.variable("CORBIE_KNOWLEDGE__STORAGE_PATH", storage.display());
    assert_problem(&report(&setup.run(""), 1), "disk", "data/knowledge", "knowledge.storage_path");
}

#[test]
fn damaged_database_is_a_problem_and_not_changed() {
    let setup = doctor("--json");
    let storage = setup.folder().join("kept");
    fs::create_dir(&storage).unwrap();
    fs::write(storage.join("knowledge.db"), "this is no database at all, however long it is looked at").unwrap();
    #[cfg(unix)]
    fs::set_permissions(&storage, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let setup = setup.variable("CORBIE_KNOWLEDGE__STORAGE_PATH", storage.display());
    assert_problem(&report(&setup.run(""), 1), "disk", "knowledge base", "corbie knowledge check");
}

#[test]
fn provider_without_a_key_is_a_problem_and_remote_ones_are_not_contacted() {
    let settings = json!({ "providers": {
        "anthropic": {},
        "far": { "type": "openai-compatible", "base_url": "https://models.example.org/v1" },
        "near": { "type": "openai-compatible", "base_url": format!("http://127.0.0.1:{}/v1", free_port()) },
    }});
    let setup = doctor("--json").file("corbie.json", &settings.to_string());
    let report = report(&setup.run(""), 1);
    assert_problem(&report, "providers", "`anthropic` has no API key", "providers.anthropic");
    assert_problem(&report, "providers", "`near` does not respond", "start it");
    assert!(!find_check(&report, "providers")["message"].as_str().unwrap().contains("far"), "nobody asked: {report:#}");
}

#[test]
fn expired_certificate_is_a_problem() {
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2019, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2020, 2, 3);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = parameters.self_signed(&key).unwrap().pem();
    let setup = doctor("--json").file("server.pem", &pem).file("server.key", &key.serialize_pem());
    let setup = setup.file("corbie.yaml", "server: {tls: {certificate: server.pem, key: server.key}}\n");
    #[cfg(unix)]
    fs::set_permissions(setup.folder().join("server.key"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .unwrap();
    #[cfg(unix)]
    let advice = format!("chmod 600 {}/server.key", setup.folder().display());
    let report = report(&setup.run(""), 1);
    assert_problem(&report, "certificate", "expired on 2020-02-03", "replace it with a new certificate");
    #[cfg(unix)]
    assert_problem(&report, "permissions", "server.key", &advice);
}

#[test]
fn client_with_a_missing_program_is_a_problem() {
    let setup = doctor("--json");
    fs::create_dir(setup.folder().join(".cursor")).unwrap();
    let entry = json!({ "mcpServers": { "corbie": { "command": "/nowhere/corbie" } } });
    let setup = setup.file(".cursor/mcp.json", &entry.to_string());
    assert_problem(
        &report(&setup.run(""), 1),
        "clients",
        "Cursor starts `/nowhere/corbie`",
        "corbie connect cursor --write",
    );
}

/// With a Cursor entry that has a URL.
fn with_client_url(url: &str) -> TestCommand {
    let setup = doctor("--json");
    fs::create_dir(setup.folder().join(".cursor")).unwrap();
    let entry = json!({ "mcpServers": { "corbie": { "url": url } } });
    setup.file(".cursor/mcp.json", &entry.to_string())
}

#[test]
fn client_with_a_local_url_is_probed() {
    // Also if it sends unauthenticated clients only its status.
    for token in ["", "72f4be89d6ebab1496e21e38bcd7c8ca0a68928a"] {
        let mut serving = corbie("serve --port 0");
        if !token.is_empty() {
            serving = serving.variable("MCP_API_KEY", token).variable("CORBIE_SERVER__AUTH", "bearer");
        }
        let mut serving = serving.start();
        let url = format!("http://localhost:{}/mcp", serving.port());
        let told = report(&with_client_url(&url).run(""), 0);
        let found = find_check(&told, "clients")["message"].as_str().unwrap();
        assert_eq!(found, format!("set up: Cursor at {url}"), "{told:#}");
        for path in ["", "/foo", "/mcp/", "/a/b/c"] {
            let url = format!("http://localhost:{}{path}", serving.port());
            let told = report(&with_client_url(&url).run(""), 1);
            assert_problem(&told, "clients", "where corbie does not serve MCP", "use a URL that ends with `/mcp`");
        }
    }
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let told = report(&with_client_url(&format!("{url}?key=secret")).run(""), 1);
    assert_problem(&told, "clients", &format!("Cursor uses {url}, where no server responds"), "start `corbie serve`");
    assert_problem(&told, "clients", "Cursor", "corbie connect cursor --write");
    assert!(!told.to_string().contains("secret"), "{told:#}");
}

#[test]
fn client_with_the_url_of_another_program_is_a_problem() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/mcp", other.local_addr().unwrap().port());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let read = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi");
        // Kept open until the check is done.
        (other, read)
    });
    let told = report(&with_client_url(&url).run(""), 1);
    drop(answering.join().unwrap());
    assert_problem(&told, "clients", &format!("Cursor uses {url}, where "), "start `corbie serve`");
    assert_problem(&told, "clients", "instead of corbie", "corbie connect cursor --write");
}

/// The wildcard address, which is not loopback.
#[test]
fn client_with_a_remote_url_is_not_probed() {
    let elsewhere = TcpListener::bind("0.0.0.0:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let url = format!("http://0.0.0.0:{}/mcp", elsewhere.local_addr().unwrap().port());
    let told = report(&with_client_url(&url).run(""), 0);
    assert_eq!(find_check(&told, "clients")["message"], format!("set up: Cursor at {url} (not probed)"));
    assert_eq!(elsewhere.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody came");
}

#[test]
fn check_setup_requires_trusted_callers() {
    let answer = |trust: &str| {
        let mut server = corbie("stdio").variable("CORBIE_TRUST__STDIO", trust).start();
        server.send_and_receive(&call(1, "check_setup", json!({})))
    };
    for trust in ["untrusted", "verified"] {
        assert_eq!(answer(trust)["error"]["code"], -32010, "{trust}");
    }
    let answer = answer("trusted");
    let told = &answer["result"]["structuredContent"];
    assert_eq!(told["problems"], 0, "{answer:#}");
    assert_eq!(find_check(told, "models")["state"], "ok");
    for left_out in ["ports", "clients"] {
        assert!(told["checks"].as_array().unwrap().iter().all(|check| check["name"] != left_out), "{told:#}");
    }
}
