//! Configuration reload of a running server.

use std::collections::BTreeMap;
use std::fs;

use corbie::config::ApprovalFile;
use serde_json::json;

use crate::fixture::{OperatorHome, call, start_with_client};
use crate::process::{call as message, wait_for};

#[test]
fn a12_m96_trust_is_taken_over_and_a_file_with_mistakes_is_not() {
    let operator = OperatorHome::new();
    let file = operator.folder().join("corbie.yaml");
    fs::write(&file, "trust: {loopback: untrusted}\n").unwrap();
    let setup = operator.corbie("serve --port 0").argument("--config").argument(file.display().to_string());
    let (mut server, client) = start_with_client(setup);
    let trust = || {
        call(client, "", "inspect_server", &json!({})).json()["structuredContent"]["trust"].as_str().unwrap().to_owned()
    };
    assert_eq!(trust(), "UNTRUSTED");
    fs::write(&file, "trust: {loopback: verified}\n").unwrap();
    wait_for("the new level", || (trust() == "VERIFIED").then_some(()));
    fs::write(&file, "trust: {loopback: everything}\n").unwrap();
    server.wait_for_log("rejected the new settings and kept the previous ones");
    assert_eq!(trust(), "VERIFIED");
    // A missing or temporarily empty file must not raise the trust to the default.
    fs::write(&file, "").unwrap();
    server.wait_for_log("missing or empty");
    assert_eq!(trust(), "VERIFIED");
    // An unreadable token file must not prevent the trust from being lowered.
    fs::create_dir_all(operator.folder().join("corbie")).unwrap();
    fs::write(operator.folder().join("corbie/tokens.json"), "half").unwrap();
    fs::write(&file, "trust: {loopback: untrusted}\n").unwrap();
    wait_for("less trust", || (trust() == "UNTRUSTED").then_some(()));
    fs::remove_file(operator.folder().join("corbie/tokens.json")).unwrap();
    fs::write(&file, "trust: {loopback: trusted}\nserver: {name: other}\n").unwrap();
    wait_for("the mended file", || (trust() == "TRUSTED").then_some(()));
    assert!(server.wait_for_log("take effect after a restart").contains("server"));
}

#[test]
fn s05_a12_a_token_that_can_be_guessed_is_refused_by_a_reload_and_the_old_one_stays() {
    let operator = OperatorHome::new();
    let file = operator.folder().join("corbie.yaml");
    let strong = "6f9a1c03be5d4e7288d1f04ac97b3e652a10d8c4";
    let written = |auth: &str, token: &str| fs::write(&file, format!("server: {{{auth}token: {token}}}\n")).unwrap();
    written("auth: bearer, ", strong);
    let setup = operator.corbie("serve --port 0").argument("--config").argument(file.display().to_string());
    let (mut server, client) = start_with_client(setup);
    let is_accepted = |token: &str| call(client, token, "inspect_server", &json!({})).status == 200;
    assert!(is_accepted(strong));
    // The listener requires a token also if the new settings do not.
    for (auth, weak) in [("auth: bearer, ", "changeme-changeme-changeme"), ("", "changeme-changeme-2024")] {
        written(auth, weak);
        let logged = server.wait_for_log("rejected the new settings and kept the previous ones");
        assert!(!logged.contains(weak), "{logged}");
        assert!(is_accepted(strong) && !is_accepted(weak));
    }
    let other = "0c5e92d7718fa36b4db0e1957c2a8f4463b9d05e";
    written("auth: bearer, ", other);
    wait_for("the new token", || is_accepted(other).then_some(()));
    assert!(!is_accepted(strong));
}

#[cfg(unix)]
#[test]
fn a12_a_hangup_reads_settings_again_for_the_client_on_stdin_too() {
    let operator = OperatorHome::new();
    let file = operator.folder().join("corbie.yaml");
    fs::write(&file, "trust: {stdio: untrusted}\n").unwrap();
    let mut server = operator.corbie("stdio").argument("--config").argument(file.display().to_string()).start();
    let trust = |server: &mut crate::process::TestProcess| {
        server.send_and_receive(&message(1, "inspect_server", json!({})))["result"]["structuredContent"]["trust"]
            .clone()
    };
    assert_eq!(trust(&mut server), "UNTRUSTED");
    fs::write(&file, "trust: {stdio: trusted}\n").unwrap();
    server.signal("HUP");
    wait_for("the new level", || (trust(&mut server) == "TRUSTED").then_some(()));
}

#[test]
fn a12_providers_come_and_go_without_a_restart() {
    let operator = OperatorHome::new();
    let file = operator.folder().join("corbie.yaml");
    fs::write(&file, "providers: {one: {type: mock}}\n").unwrap();
    let setup = operator.corbie("serve --port 0").argument("--config").argument(file.display().to_string());
    let (_server, client) = start_with_client(setup);
    let names = || -> Vec<String> {
        let listed = call(client, "", "list_providers", &json!({})).json();
        let listed = listed["structuredContent"]["providers"].as_array().unwrap();
        listed.iter().map(|provider| provider["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(), ["one"]);
    fs::write(&file, "providers: {one: {type: mock}, two: {type: mock}}\ndefaults: {provider: two}\n").unwrap();
    wait_for("the second provider", || (names() == ["two", "one"]).then_some(()));
    fs::write(&file, "providers: {three: {type: mock}}\n").unwrap();
    wait_for("the third alone", || (names() == ["three"]).then_some(()));
    let answer = call(client, "", "chat_completion", &json!({ "messages": [{ "role": "user", "content": "hello" }] }));
    assert_eq!(answer.json()["isError"], false, "{}", answer.body);
}

#[test]
fn x46_a12_settings_whose_approval_is_withdrawn_go_with_their_file() {
    let operator = OperatorHome::new();
    let setup = operator.corbie("serve --port 0").variable("XDG_CONFIG_HOME", operator.folder().display());
    let setup = setup.file("corbie.yaml", "trust: {loopback: untrusted}\n");
    let project = setup.folder().canonicalize().unwrap();
    let (mut server, client) = start_with_client(setup);
    let trust = || {
        call(client, "", "inspect_server", &json!({})).json()["structuredContent"]["trust"].as_str().unwrap().to_owned()
    };
    assert_eq!(trust(), "UNTRUSTED");
    fs::remove_file(project.join("corbie.yaml")).unwrap();
    server.wait_for_log("missing or empty");
    assert_eq!(trust(), "UNTRUSTED", "the approval still counts");
    let variables = BTreeMap::from([("XDG_CONFIG_HOME".to_owned(), operator.folder().display().to_string())]);
    let withdrawn = ApprovalFile::of(&variables).unwrap().withdraw(&project).unwrap();
    assert_eq!(withdrawn, [project.join("corbie.yaml")]);
    wait_for("the default level", || (trust() == "TRUSTED").then_some(()));
}
