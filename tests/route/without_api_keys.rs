//! without keys most features work, and the remaining ones report the missing key.

use serde_json::json;

use crate::process::{call, corbie, request};

const NO_PROVIDERS: &str = "providers: {detect_ports: []}";
const VARIABLES: [&str; 3] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"];

#[test]
fn x18_p03_it_starts_without_keys_with_a_warning_and_classifies() {
    let mut server = corbie("stdio").file("corbie.yaml", NO_PROVIDERS).start();
    let warning = server.wait_for_log("OPENAI_API_KEY");
    assert!(warning.contains("WARN") && VARIABLES.iter().all(|name| warning.contains(name)), "{warning}");
    assert_eq!(server.send_and_receive(&request(1, "models/list", json!({})))["result"], json!({ "models": [] }));
    let answer = server.send_and_receive(&request(2, "completion/complete", json!({ "prompt": "Hello, world!" })));
    let (code, message) = (&answer["error"]["code"], answer["error"]["message"].as_str().unwrap());
    assert_eq!(*code, -32005, "{answer}");
    assert!(VARIABLES.iter().all(|name| message.contains(name)), "{message}");
    let classified = server.send_and_receive(&call(3, "classify_text", json!({ "text": "What is 2 + 2?" })));
    assert_eq!(classified["result"]["isError"], false, "{classified}");
}

#[test]
fn x18_a_provider_that_is_required_and_missing_is_fatal() {
    for settings in
        ["providers: {detect_ports: [], required: true}", "providers: {detect_ports: [], required: true, openai: {}}"]
    {
        let ended = corbie("stdio").file("corbie.yaml", settings).run("");
        assert_ne!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stdout, "", "stdout belongs to the protocol");
        assert!(ended.stderr.contains("`providers.required` is set"), "{ended:?}");
        assert!(VARIABLES.iter().all(|name| ended.stderr.contains(name)), "{ended:?}");
    }
}

#[test]
fn x18_f01_one_key_is_enough_to_start_where_a_provider_is_required() {
    let setup = corbie("stdio").file("corbie.yaml", "providers: {detect_ports: [], required: true}");
    let ended = setup.variable("ANTHROPIC_API_KEY", "sk-some").run("");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
