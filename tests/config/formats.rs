//! F-11: YAML, JSON and TOML are equivalent.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::ConfigMachine;

const YAML: &str = r#"
server:
  listen: ["127.0.0.1:8090", '[::1]:3000']
  name: wörter 🦀
  limits: {max_message_bytes: 2MiB, max_batch: 0x10, keep_alive_interval: 1.5}
  tool_timeouts:
    knowledge-add: 5m
    chat: 60
trust: &levels
  stdio: verified
log:
  level: debug # as loud as it gets
"#;

const TOML: &str = r#"
[server]
listen = ["127.0.0.1:8090", '[::1]:3000']
name = "wörter 🦀"
limits = {max_message_bytes = "2MiB", max_batch = 0x10, keep_alive_interval = 1.5}

[server.tool_timeouts]
knowledge-add = "5m"
chat = 60

[trust]
stdio = "verified"

[log]
level = "debug"
"#;

const JSON: &str = r#"{
	"$schema": "https://example.org/config.schema.json",
	"server": {
		"listen": ["127.0.0.1:8090", "[::1]:3000"],
		"name": "w\u00f6rter \ud83e\udd80",
		"limits": {"max_message_bytes": "2MiB", "max_batch": 16.0, "keep_alive_interval": 1.5},
		"tool_timeouts": {"knowledge-add": "5m", "chat": 6e1}
	},
	"trust": {"stdio": "verified"},
	"log": {"level": "debug"}
}"#;

fn settings(name: &str, text: &str) -> Value {
    serde_json::to_value(ConfigMachine::new().file(name, text).load()).unwrap()
}

#[test]
fn f11_the_three_formats_give_the_same_settings() {
    let yaml = settings("project/corbie.yaml", YAML);
    assert_eq!(yaml["server"]["listen"], json!(["127.0.0.1:8090", "[::1]:3000"]));
    assert_eq!(yaml["server"]["name"], json!("wörter 🦀"));
    assert_eq!(yaml["server"]["limits"]["max_batch"], json!(16));
    assert_eq!(yaml["server"]["limits"]["keep_alive_interval"], json!("1s500ms"));
    assert_eq!(yaml["server"]["tool_timeouts"], json!({"chat": "1m", "knowledge-add": "5m"}));
    assert_eq!(settings("project/corbie.toml", TOML), yaml);
    assert_eq!(settings("project/corbie.json", JSON), yaml);
}

#[test]
fn f11_json_is_also_yaml() {
    let json = r#"{"server": {"name": "x", "listen": []}, "log": {"level": "warn"}}"#;
    assert_eq!(settings("project/corbie.yml", json), settings("project/corbie.json", json));
}

#[test]
fn f11_an_empty_file_says_nothing() {
    for name in ["project/corbie.yaml", "project/corbie.toml", "project/corbie.json"] {
        for text in ["", " \n", "\u{feff}"] {
            assert_eq!(settings(name, text), settings("project/unused", ""), "{name} {text:?}");
        }
    }
    assert_eq!(settings("project/corbie.yaml", "# only a remark\n---\n"), settings("project/unused", ""));
}

#[test]
fn f11_a_yaml_alias_repeats_what_it_names() {
    let yaml = "trust: {stdio: &level untrusted, loopback: *level}\n";
    let settings = settings("project/corbie.yaml", yaml);
    assert_eq!(settings["trust"]["loopback"], json!("untrusted"));
}

#[test]
fn f11_yaml_words_are_words() {
    for name in ["no", "on", "1.2.3", "0b1", "inf", "nan", "12:30", "1_000"] {
        assert_eq!(
            settings("project/corbie.yaml", &format!("server: {{name: {name}}}"))["server"]["name"],
            json!(name)
        );
    }
}

fn random_settings() -> impl Strategy<Value = Value> {
    let name = "[ -~äß🦀]{1,20}";
    let tools = prop::collection::btree_map("[a-z_./~ 0-9-]{0,8}", 1u32..100_000, 0..5);
    (name, tools, 1usize..10_000, prop::bool::ANY).prop_map(|(name, tools, batch, loud)| {
        // `${` would be a variable.
        let name = name.replace('$', "S");
        json!({
            "server": {"name": name, "tool_timeouts": tools, "limits": {"max_batch": batch}},
            "log": {"level": if loud { "debug" } else { "error" }}
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One configuration, written by a JSON and by a TOML writer, and read three times.
    #[test]
    fn f11_any_settings_come_out_of_every_format_alike(written in random_settings()) {
        let json = serde_json::to_string_pretty(&written).unwrap();
        let toml = toml::to_string(&written).unwrap();
        let from_json = settings("project/corbie.json", &json);
        prop_assert_eq!(&from_json["server"]["name"], &written["server"]["name"]);
        prop_assert_eq!(&settings("project/corbie.yaml", &json), &from_json);
        prop_assert_eq!(&settings("project/corbie.toml", &toml), &from_json);
    }
}
