//! F-12, A-06: every error has its file, line, column and key.

use crate::ConfigMachine;

#[track_caller]
fn assert_diagnostics(yaml: &str, expected: &[&str]) {
    let mistakes = ConfigMachine::new().project(yaml).diagnostics();
    let bare: Vec<&str> = mistakes.iter().map(|line| line.trim_start_matches("project/corbie.yaml:")).collect();
    assert_eq!(bare, expected);
}

#[test]
fn f12_an_unknown_key_is_told_with_its_line_and_the_nearest_key() {
    assert_diagnostics("server:\n  nmae: x\n", &["2:3: server.nmae: unknown setting; did you mean `name`?"]);
    assert_diagnostics(
        "server:\n  toolTimeouts: {}\n",
        &["2:3: server.toolTimeouts: unknown setting; did you mean `tool_timeouts`?"],
    );
    assert_diagnostics("servers: {}\n", &["1:1: servers: unknown setting; did you mean `server`?"]);
    assert_diagnostics("zebra: 1\n", &["1:1: zebra: unknown setting"]);
}

#[test]
fn f12_a_key_at_the_wrong_level_is_told_where_it_belongs() {
    assert_diagnostics("listen: ['127.0.0.1:1']\n", &["1:1: listen: unknown setting; did you mean `server.listen`?"]);
    assert_diagnostics(
        "server: {max_batch: 5}\n",
        &["1:10: server.max_batch: unknown setting; did you mean `server.limits.max_batch`?"],
    );
}

#[test]
fn s08_half_a_pair_and_a_mode_that_is_none_are_mistakes() {
    assert_diagnostics("server:\n  tls: {certificate: a.pem}\n", &["2:3: server.tls: requires the key `key`"]);
    assert_diagnostics(
        "server: {socket_mode: '0680'}\n",
        &["1:23: server.socket_mode: must be permissions in octal digits such as `0660`"],
    );
    assert_diagnostics(
        "server: {listen: ['unix:corbie.sock']}\n",
        &[
            "1:19: server.listen[0]: must be `host:port`, such as `127.0.0.1:8090` or `[::1]:8090`, or a socket such as \
             `unix:/run/corbie/corbie.sock`",
        ],
    );
}

#[test]
fn f12_sections_of_later_versions_are_unknown() {
    assert_diagnostics("billing: {currency: EUR}\n", &["1:1: billing: unknown setting"]);
}

#[test]
fn f12_unknown_keys_of_classification_and_classifier_are_warned_about() {
    let machine =
        ConfigMachine::new().project("classifier: {any: thing}\nclassification:\n  mcp_server: {any: thing}\n");
    assert_eq!(
        machine.warnings(),
        [
            "project/corbie.yaml:3:16: classification.mcp_server.any: unknown setting",
            "project/corbie.yaml:1:14: classifier.any: unknown setting",
        ]
    );
}

#[test]
fn f12_every_mistake_is_told_in_reading_order() {
    assert_diagnostics(
        "\
server:
  listen: 127.0.0.1:8090
  name: 12
  auth: barer
  allowed_origins: ['https://ok.example', '*']
  allowed_hosts: ['*.example.org']
  limits:
    max_batch: 0
    max_message_bytes: 4 potatoes
    keep_alive_interval: 0s
    idle_timeout: [5]
    page_size: 1.5
  tool_timeouts: {chat: soon}
  rate_limit: 500
trust:
  remote: trustd
log: debug
",
        &[
            "2:11: server.listen: must be a list of `host:port`, such as `127.0.0.1:8090` or `[::1]:8090`, or a socket such as \
             `unix:/run/corbie/corbie.sock`, not text",
            "3:9: server.name: must be a string of 1 to 128 characters, not a number; put it in quotes",
            "4:9: server.auth: must be `none` or `bearer`; did you mean `bearer`?",
            "5:43: server.allowed_origins[1]: must be an origin such as `https://example.org`, without a path and \
             without `*`",
            "6:19: server.allowed_hosts[0]: must be a host name such as `example.org` or `example.org:8090`, without `*`",
            "8:16: server.limits.max_batch: must be an integer from 1 to 10000",
            "9:24: server.limits.max_message_bytes: must be a size such as `16KiB` or `4MiB`, up to `1GiB`, or a \
             number of bytes",
            "10:26: server.limits.keep_alive_interval: must be a duration greater than zero such as `2s`, `5m` or `100ms`, or a \
             number of seconds",
            "11:19: server.limits.idle_timeout: must be a duration greater than zero such as `2s`, `5m` or `100ms`, or \
             a number of seconds, not a list",
            "12:16: server.limits.page_size: must be an integer from 1 to 10000, not a decimal number",
            "13:25: server.tool_timeouts.chat: must be a duration greater than zero such as `2s`, `5m` or `100ms`, or \
             a number of seconds",
            "14:15: server.rate_limit: must be a section (mapping), not a number",
            "16:11: trust.remote: must be `untrusted`, `verified` or `trusted`; did you mean `trusted`?",
            "17:6: log: must be a section (mapping), not text",
        ],
    );
}

#[test]
fn f12_mistakes_in_policies_and_in_the_cache_are_told() {
    assert_diagnostics(
        "\
router:
  policies:
    cheap: {modles: {}, enabled: perhaps, default_model: ''}
    careful: {restricted_categories: [law]}
  cache:
    exactly: true
    threshold: 2
    ttl: 0s
    max_bytes: some
",
        &[
            "3:13: router.policies.cheap.modles: unknown setting; did you mean `models`?",
            "3:34: router.policies.cheap.enabled: must be `true` or `false`, not text",
            "3:58: router.policies.cheap.default_model: must be a string of 1 to 256 characters",
            "4:15: router.policies.careful.restricted_categories: unknown setting; did you mean `router.restricted_categories`?",
            "6:5: router.cache.exactly: unknown setting; did you mean `exact`?",
            "7:16: router.cache.threshold: must be a number from 0.5 to 1.0",
            "8:10: router.cache.ttl: must be a duration greater than zero such as `2s`, `5m` or `100ms`, or a number of \
             seconds",
            "9:16: router.cache.max_bytes: must be a size such as `16KiB` or `4MiB`, up to `1GiB`, or a number of bytes",
        ],
    );
    assert_diagnostics(
        "router: {cache: {threshold: 0.4}}\n",
        &["1:29: router.cache.threshold: must be a number from 0.5 to 1.0"],
    );
}

#[test]
fn f12_mistakes_of_all_sources_are_told_together() {
    let machine = ConfigMachine::new()
        .file("etc/corbie/corbie.toml", "[server]\nnaem = 1\n")
        .file("home/corbie/corbie.json", "{\n  \"log\": {\"levle\": 1}\n}")
        .project("trust: {sdtio: trusted}")
        .flag("registry.cache_tll", 5);
    assert_eq!(
        machine.diagnostics(),
        [
            "etc/corbie/corbie.toml:2:1: server.naem: unknown setting; did you mean `name`?",
            "home/corbie/corbie.json:2:11: log.levle: unknown setting; did you mean `level`?",
            "project/corbie.yaml:1:9: trust.sdtio: unknown setting; did you mean `stdio`?",
            "command line: registry.cache_tll: unknown setting; did you mean `cache_ttl`?",
        ]
    );
}

#[test]
fn f12_positions_are_right_in_toml_and_json() {
    let toml = "# ä\n[server.limits]\n\"max_batch\" = \"ä\"\n\n[log]\nlevel = 'loud'\n";
    assert_eq!(
        ConfigMachine::new().file("project/corbie.toml", toml).diagnostics(),
        [
            "project/corbie.toml:3:15: server.limits.max_batch: must be an integer from 1 to 10000, not text",
            "project/corbie.toml:6:9: log.level: must be `debug`, `info`, `warn` or `error`",
        ]
    );
    let json =
        "{\"server\": {\"name\": \"ä\\\"\", \"limits\": {\n\t\"max_batch\" :\t[ ] } }, \"log\":{\"level\":\"loud\"}}";
    assert_eq!(
        ConfigMachine::new().file("project/corbie.json", json).diagnostics(),
        [
            "project/corbie.json:2:16: server.limits.max_batch: must be an integer from 1 to 10000, not a list",
            "project/corbie.json:2:40: log.level: must be `debug`, `info`, `warn` or `error`",
        ]
    );
}

#[test]
fn f12_a_key_written_twice_is_a_mistake() {
    assert_diagnostics("server:\n  name: a\n  limits: {}\n  name: b\n", &["4:3: server.name: duplicate key"]);
    let json = ConfigMachine::new().file("project/corbie.json", r#"{"log": {"level": "info", "level": "warn"}}"#);
    assert_eq!(json.diagnostics(), ["project/corbie.json:1:27: log.level: duplicate key"]);
    let toml = ConfigMachine::new().file("project/corbie.toml", "[log]\nlevel = 'info'\nlevel = 'warn'\n");
    assert!(toml.diagnostics()[0].starts_with("project/corbie.toml:3:1: is not valid TOML: duplicate key"));
}

#[test]
fn a06_what_is_not_yaml_toml_or_json_is_told_with_its_line() {
    assert_diagnostics(
        "server:\n  name: 'open\n",
        &["2:9: is not valid YAML: while scanning a quoted scalar, found unexpected end of stream"],
    );
    assert_diagnostics("- a\n", &["1:1: must be a mapping, such as `name: value`"]);
    assert_diagnostics("a: 1\n---\nb: 1\n", &["2:1: contains a second YAML document; only one per file is supported"]);
    assert_diagnostics("server: !secret x\n", &["1:9: has an unsupported tag; remove the word that begins with `!`"]);
    assert_diagnostics("server: {limits: {max_batch: .inf}}\n", &["1:30: is not a finite number"]);
    assert_diagnostics("? [a]\n: b\n", &["1:3: has a list or mapping as a key; keys must be plain scalars"]);
    let toml = ConfigMachine::new().file("project/corbie.toml", "a = \nb = 1\nc = {\n");
    assert_eq!(toml.diagnostics().len(), 2, "{:?}", toml.diagnostics());
    assert!(toml.diagnostics()[0].starts_with("project/corbie.toml:1:"));
    let json = ConfigMachine::new().file("project/corbie.json", "{\n  \"a\": 1,\n}");
    assert_eq!(json.diagnostics(), ["project/corbie.json:3:1: is not valid JSON: trailing comma"]);
}

#[test]
fn a06_a_named_file_must_exist_and_have_a_known_format() {
    assert_eq!(
        ConfigMachine::new().config("missing.yaml").diagnostics(),
        ["project/missing.yaml: file not found; check the path"]
    );
    assert_eq!(
        ConfigMachine::new().file("project/corbie.conf", "").config("corbie.conf").diagnostics(),
        ["project/corbie.conf: is not a configuration file; use `.yaml`, `.yml`, `.toml` or `.json`"]
    );
    assert_eq!(
        ConfigMachine::new().file("project/folder.yaml/x", "").config("folder.yaml").diagnostics(),
        ["project/folder.yaml: is not a regular file"]
    );
}

#[test]
fn a06_one_mistake_is_one_line_even_when_a_key_holds_line_breaks() {
    let json = r#"{"server": {"a\nb\u001b[31m": 1}}"#;
    assert_eq!(
        ConfigMachine::new().file("project/corbie.json", json).diagnostics(),
        [r#"project/corbie.json:1:13: server."a\nb\u{1b}[31m": unknown setting"#]
    );
}

#[test]
fn a06_keys_with_odd_characters_are_found_again() {
    let yaml =
        "log: {a/b: 1, c~d: 1, '0': 1, 'e.f': 1, '': 1}\nserver: {tool_timeouts: {a/b: x, '~1': x, '0': x, '': x}}\n";
    let timeout = "must be a duration greater than zero such as `2s`, `5m` or `100ms`, or a number of seconds";
    assert_diagnostics(
        yaml,
        &[
            "1:7: log.\"a/b\": unknown setting",
            "1:15: log.\"c~d\": unknown setting",
            "1:23: log.0: unknown setting",
            "1:31: log.\"e.f\": unknown setting",
            "1:41: log.\"\": unknown setting",
            &format!("2:31: server.tool_timeouts.\"a/b\": {timeout}"),
            &format!("2:40: server.tool_timeouts.\"~1\": {timeout}"),
            &format!("2:48: server.tool_timeouts.0: {timeout}"),
            &format!("2:55: server.tool_timeouts.\"\": {timeout}"),
        ],
    );
}

#[test]
fn a06_a_mistake_met_later_names_the_key_and_where_it_is_written() {
    let machine = ConfigMachine::new().project("server:\n  listen: ['127.0.0.1:8090']\n");
    let loaded = machine.try_load().unwrap();
    assert_eq!(
        machine.relative(&loaded.error_at("server.listen", "cannot be opened").to_string()),
        "project/corbie.yaml:2:3: server.listen: cannot be opened"
    );
    assert_eq!(loaded.error_at("server.auth", "requires a token").to_string(), "server.auth: requires a token");
}

#[test]
fn f12_an_embedding_model_that_is_not_in_use_is_told_with_the_one_that_is() {
    let rest = "remove it, or set `inference.embedding.path` to the folder of another model";
    assert_diagnostics(
        "knowledge: {embedding_model: text-embedding-3-small}\n",
        &[&format!("1:13: knowledge.embedding_model: must be `all-MiniLM-L6-v2`, the built-in model; {rest}")],
    );
    let folder = "inference: {embedding: {path: /models/bge-m3}}\n";
    assert_diagnostics(
        &format!("{folder}knowledge: {{embedding_model: all-MiniLM-L6-v2}}\n"),
        &[&format!(
            "2:13: knowledge.embedding_model: must be `bge-m3`, the model of `inference.embedding.path`; {rest}"
        )],
    );
    for good in [
        "knowledge: {embedding_model: all-MiniLM-L6-v2}\n".to_owned(),
        "knowledge: {embedding_model: all-MiniLM-L6-v2-int8}\n".to_owned(),
        "knowledge: {embedding_model: sentence-transformers/all-MiniLM-L6-v2}\n".to_owned(),
        format!("{folder}knowledge: {{embedding_model: bge-m3}}\n"),
    ] {
        ConfigMachine::new().project(&good).try_load().unwrap();
    }
}

#[test]
fn f12_tools_that_do_not_exist_are_mistakes_with_a_suggestion() {
    let diagnostics = |yaml: &str| ConfigMachine::new().project(yaml).diagnostics();
    let unknown = |line_and_column: &str, near: &str| {
        format!(
            "project/corbie.yaml:{line_and_column}: server.tools: has a name that is neither a profile nor a tool; did you \
             mean `{near}`?"
        )
    };
    assert_eq!(diagnostics("server: {tools: knowlege}"), [unknown("1:10", "knowledge")]);
    assert_eq!(diagnostics("server: {tools: [gateway, classify_txt]}"), [unknown("1:10", "classify_text")]);
    for (yaml, tools) in
        [("{tools: all}", None), ("{tools: gateway}", Some(4)), ("{tools: [gateway, classify]}", Some(11))]
    {
        let config = ConfigMachine::new().project(&format!("server: {yaml}")).load();
        assert_eq!(config.server.tools.names().map(|names| names.len()), tools, "{yaml}");
    }
    let config = ConfigMachine::new().variable("CORBIE_SERVER__TOOLS", "gateway, classify").load();
    assert_eq!(config.server.tools.names().map(|names| names.len()), Some(11));
}
