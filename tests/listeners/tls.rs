//! HTTPS: the certificate and key are loaded, errors are reported, and changes are reloaded (S-08).

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use crate::certificate::{TestCertificate, replace_file, request_on};
use crate::curl::curl;
use crate::http::HttpClient;
use crate::process::{TestCommand, TestProcess, corbie, report_skip, request, wait_for};

const SETTINGS: &str = "server: {tls: {certificate: server.pem, key: server.key}}\n";

fn tls_command() -> TestCommand {
    corbie("serve --port 0").file("corbie.yaml", SETTINGS)
}

/// The port, from a log line with `https`.
#[track_caller]
fn https_port(server: &mut TestProcess) -> u16 {
    let line = server.wait_for_log("listening");
    let port = line.split("https://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
    port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no https port in {line:?}"))
}

#[test]
fn s08_curl_speaks_https_with_every_path() {
    let identity = TestCertificate::new();
    let program = tls_command();
    identity.write(program.folder());
    let authority = program.folder().join("server.pem");
    let mut server = program.start();
    let port = https_port(&mut server);
    let body = request(1, "ping", json!({})).to_string();
    let trusted = ["--cacert", authority.to_str().unwrap()];
    let url = format!("https://127.0.0.1:{port}/mcp");
    let posted = [&trusted[..], &["-H", "content-type: application/json", "-d", &body, &url]].concat();
    let Some((answer, status)) = curl(&posted) else { return report_skip("this machine has no curl") };
    assert_eq!((answer.contains("\"id\":1"), status), (true, 200), "{answer}");
    for version in ["--tls-max=1.2", "--tlsv1.3"] {
        let version = version.split('=').collect::<Vec<_>>();
        let url = format!("https://127.0.0.1:{port}/health");
        let (answer, status) = curl(&[&trusted[..], &version, &["-i", &url]].concat()).unwrap();
        assert_eq!(status, 200);
        assert!(answer.to_lowercase().contains("strict-transport-security: max-age="), "{answer}");
    }
    // Plain HTTP gets a hint.
    let plain = HttpClient::v4(port).get("/health");
    assert_eq!(plain.status, 400);
    assert!(plain.body.contains("https"), "{}", plain.body);
}

#[test]
fn s08_python_speaks_https_too() {
    const WITNESS: &str = "
import json, ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2])
body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}).encode()
request = urllib.request.Request(sys.argv[1], body, {'content-type': 'application/json'})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
print(json.load(opener.open(request, timeout=30))['result'])
";
    let identity = TestCertificate::new();
    let program = tls_command();
    identity.write(program.folder());
    let authority = program.folder().join("server.pem");
    let mut server = program.start();
    let url = format!("https://localhost:{}/mcp", https_port(&mut server));
    let Ok(output) = Command::new("python3").args(["-c", WITNESS, &url]).arg(authority).output() else {
        return report_skip("this machine has no Python");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "{}", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn s08_a_changed_pair_is_read_again_and_a_wrong_one_is_not_taken() {
    let (first, second) = (TestCertificate::new(), TestCertificate::new());
    let program = tls_command();
    first.write(program.folder());
    let folder = program.folder().to_owned();
    let mut server = program.start();
    let port = https_port(&mut server);
    let mut open = first.connect(port).unwrap();
    assert_eq!(request_on(&mut open), "HTTP/1.1 200 OK");

    // A new certificate without its key is rejected.
    replace_file(&folder, "server.pem", &second.chain);
    let refusal = server.wait_for_log("the new TLS certificate is invalid; keeping the current one");
    assert!(refusal.contains("server.key") && refusal.contains("another certificate"), "{refusal}");
    first.connect(port).unwrap();

    replace_file(&folder, "server.key", &second.key);
    server.wait_for_log("TLS certificate reloaded");
    second.connect(port).unwrap();
    assert!(first.connect(port).is_err(), "the old one is gone");
    assert_eq!(request_on(&mut open), "HTTP/1.1 200 OK", "what was open goes on");

    server.signal("HUP");
    server.wait_for_log("TLS certificate unchanged");
    server.terminate();
    assert_eq!(server.wait().code, Some(0));
}

#[test]
fn s08_a_wrong_pair_is_a_mistake_at_the_start_that_names_key_and_file() {
    let (identity, other) = (TestCertificate::new(), TestCertificate::new());
    for (chain, key, named, why) in [
        (
            identity.chain.as_str(),
            other.key.as_str(),
            "server.tls.key: `{}/server.key`",
            "the private key of another certificate",
        ),
        ("", &identity.key, "server.tls.certificate: `{}/server.pem`", "contains no certificate"),
        (&identity.chain[..100], &identity.key, "server.tls.certificate: `{}/server.pem`", "invalid certificate"),
        (&identity.chain, "nothing", "server.tls.key: `{}/server.key`", "contains no private key"),
    ] {
        let program = tls_command();
        TestCertificate { chain: chain.into(), key: key.into() }.write(program.folder());
        let named = named.replace("{}", &program.folder().to_string_lossy());
        let ended = program.run("");
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let line = ended.stderr.lines().last().unwrap_or_default();
        assert!(line.contains("corbie.yaml:1:") && line.contains(&named) && line.contains(why), "{line}");
        assert!(!ended.stderr.contains(identity.key.lines().nth(1).unwrap()), "a key was written to the log");
    }
    let program = tls_command();
    let named = format!("server.tls.certificate: `{}/server.pem` cannot be read", program.folder().display());
    let ended = program.run("");
    assert!(ended.stderr.contains(&named), "{}", ended.stderr);
}

#[test]
fn s08_a_key_that_everybody_can_read_is_warned_of() {
    let program = tls_command();
    TestCertificate::new().write(program.folder());
    let key = program.folder().join("server.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut server = program.start();
    let line = server.wait_for_log("the private key is readable by all users");
    assert!(line.contains("WARN") && line.contains("server.key"), "{line}");
}

/// The key formats of common tools.
#[test]
fn s08_keys_of_every_kind_are_read() {
    let kinds: [&[&str]; 4] = [
        &["genrsa", "-traditional", "-out", "server.key", "2048"],
        &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "server.key"],
        &["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "server.key"],
        &["genpkey", "-algorithm", "ed25519", "-out", "server.key"],
    ];
    for kind in kinds {
        let program = tls_command();
        let openssl = |arguments: &[&str]| {
            let output = Command::new("openssl").args(arguments).current_dir(program.folder()).output();
            output.is_ok_and(|output| output.status.success())
        };
        let certify =
            ["req", "-x509", "-key", "server.key", "-out", "server.pem", "-days", "2", "-subj", "/CN=localhost"];
        let names = ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"];
        if !openssl(kind) || !openssl(&[&certify[..], &names].concat()) {
            report_skip("this machine has no openssl that can do this");
            continue;
        }
        let chain = std::fs::read_to_string(program.folder().join("server.pem")).unwrap();
        let mut server = program.start();
        let port = https_port(&mut server);
        let mut stream =
            TestCertificate { chain, key: String::new() }.connect(port).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        assert_eq!(request_on(&mut stream), "HTTP/1.1 200 OK", "{kind:?}");
    }
}

#[test]
fn s10_handshakes_that_are_never_finished_hold_a_place_only_for_their_time() {
    let identity = TestCertificate::new();
    let program = tls_command()
        .variable("CORBIE_SERVER__LIMITS__MAX_CONNECTIONS", 1)
        .variable("CORBIE_SERVER__LIMITS__REQUEST_READ_TIMEOUT", "500ms");
    identity.write(program.folder());
    let mut server = program.start();
    let port = https_port(&mut server);
    let _silent = HttpClient::v4(port).connect().unwrap();
    wait_for("room", || identity.connect(port).ok());
}
