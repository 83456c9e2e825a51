//! F-03, F-04, F-05: settings from variables.

use crate::ConfigMachine;

#[test]
fn f05_capitals_and_double_underscores_name_a_key() {
    let config = ConfigMachine::new()
        .variable("CORBIE_SERVER__LIMITS__MAX_BATCH", "7")
        .variable("CORBIE_SERVER__LIMITS__MAX_MESSAGE_BYTES", "64KiB")
        .variable("CORBIE_SERVER__LIMITS__KEEP_ALIVE_INTERVAL", "2s")
        .variable("CORBIE_REGISTRY__CACHE_TTL", "0")
        .variable("CORBIE_TRUST__ALL", "untrusted")
        .load();
    assert_eq!(config.server.limits.max_batch, 7);
    assert_eq!(config.server.limits.max_message_bytes.bytes(), 65_536);
    assert_eq!(config.server.limits.keep_alive_interval.get().as_secs(), 2);
    assert!(config.registry.cache_ttl.get().is_zero());
    assert_eq!(config.trust.all, Some(corbie::config::trust::TrustLevelSetting::Untrusted));
}

#[test]
fn f05_lists_are_json_or_separated_by_commas() {
    for text in [r#"["[::1]:1", "localhost:2"]"#, "[::1]:1,localhost:2", " [::1]:1 , localhost:2, "] {
        let listen = ConfigMachine::new().variable("CORBIE_SERVER__LISTEN", text).load().server.listen;
        assert_eq!(listen.iter().map(ToString::to_string).collect::<Vec<_>>(), ["[::1]:1", "localhost:2"], "{text}");
    }
    assert!(ConfigMachine::new().variable("CORBIE_SERVER__LISTEN", "").load().server.listen.is_empty());
}

#[test]
fn f05_a_section_can_be_given_as_json_and_a_key_in_it_wins() {
    let config = ConfigMachine::new()
        .variable("CORBIE_SERVER", r#"{"name": "whole", "tool_timeout_seconds": 3}"#)
        .variable("CORBIE_SERVER__NAME", "part")
        .load();
    assert_eq!((config.server.name.as_str(), config.server.tool_timeout_seconds.get().as_secs()), ("part", 3));
}

#[test]
fn f05_a_section_can_be_given_as_a_map_of_yaml() {
    for text in ["{semantic: true, threshold: 0.9, ttl: 5m}", " { semantic : true , threshold: 0.9, ttl: '5m' } "] {
        let cache = ConfigMachine::new().variable("CORBIE_ROUTER__CACHE", text).load().router.cache;
        assert_eq!((cache.semantic, cache.threshold, cache.ttl.get().as_secs()), (true, 0.9, 300), "{text}");
    }
    let machine = ConfigMachine::new().variable("CORBIE_ROUTER__CACHE", "{semantc: true}");
    assert_eq!(
        machine.diagnostics(),
        ["environment variable CORBIE_ROUTER__CACHE: router.cache.semantc: unknown setting; did you mean `semantic`?"]
    );
    for wrong in ["{semantic: true", "semantic", "{semantic: true} x"] {
        let [mistake] = ConfigMachine::new().variable("CORBIE_ROUTER__CACHE", wrong).diagnostics().try_into().unwrap();
        assert!(mistake.starts_with("environment variable CORBIE_ROUTER__CACHE: router.cache: must be"), "{mistake}");
    }
}

#[test]
fn f05_the_type_comes_from_the_key_and_not_from_the_look_of_the_text() {
    let config =
        ConfigMachine::new().variable("CORBIE_SERVER__NAME", "123").variable("CORBIE_SERVER__TOKEN", "456").load();
    assert_eq!(config.server.name, "123");
    assert_eq!(config.server.token.unwrap().expose(), "456");
}

#[test]
fn f05_a_timeout_set_by_a_variable_counts_for_the_tool_with_a_hyphen() {
    let server = ConfigMachine::new().variable("CORBIE_SERVER__TOOL_TIMEOUTS__KNOWLEDGE_ADD", "90").load();
    let limits = corbie::app::limits(&server);
    assert_eq!(limits.timeout_of("knowledge-add", None).as_secs(), 90);
    assert_eq!(limits.timeout_of("knowledge-remove", None).as_secs(), 30);
}

#[test]
fn f05_a_misspelt_variable_is_a_mistake() {
    let machine = ConfigMachine::new()
        .variable("CORBIE_SERVER__NMAE", "x")
        .variable("CORBIE_SERVR__NAME", "x")
        .variable("CORBIE_SERVER__LIMITS__MAX_BATCH", "many");
    assert_eq!(
        machine.diagnostics(),
        [
            "environment variable CORBIE_SERVER__LIMITS__MAX_BATCH: server.limits.max_batch: \
             must be an integer from 1 to 10000, not text",
            "environment variable CORBIE_SERVER__NMAE: server.nmae: unknown setting; did you mean `name`?",
            "environment variable CORBIE_SERVR__NAME: servr: unknown setting; did you mean `server`?",
        ]
    );
}

#[test]
fn f05_what_kubernetes_sets_for_a_service_of_our_name_does_not_stop_us() {
    let machine = ConfigMachine::new().variable("CORBIE_PORT", "tcp://10.0.0.1:8090").variable("CORBIE_", "x");
    assert_eq!(machine.warnings(), ["environment variable CORBIE_PORT: is not a known setting and is ignored"]);
}

#[test]
fn f03_log_level_is_read() {
    for level in ["debug", "info", "warn", "error"] {
        assert_eq!(ConfigMachine::new().variable("LOG_LEVEL", level).load().log.level.to_string(), level);
    }
    assert_eq!(ConfigMachine::new().load().log.level.to_string(), "info");
    assert_eq!(ConfigMachine::new().variable("LOG_LEVEL", "").load().log.level.to_string(), "info");
}

#[test]
fn a11_another_log_level_is_a_mistake() {
    for level in ["trace", "DEBUG", "2", "verbose", " info"] {
        let mistakes = ConfigMachine::new().variable("LOG_LEVEL", level).diagnostics();
        let expected = "environment variable LOG_LEVEL: log.level: must be `debug`, `info`, `warn` or `error`";
        assert!(mistakes.len() == 1 && mistakes[0].starts_with(expected), "{level}: {mistakes:?}");
    }
    assert!(ConfigMachine::new().variable("LOG_LEVEL", "Info").diagnostics()[0].ends_with("did you mean `info`?"));
}

#[test]
fn f03_our_own_variable_wins_over_log_level() {
    let machine = ConfigMachine::new().variable("LOG_LEVEL", "warn").variable("CORBIE_LOG__LEVEL", "error");
    assert_eq!(machine.load().log.level.to_string(), "error");
}

#[test]
fn f04_mcp_api_key_is_the_token_and_wins_over_the_file() {
    let machine = ConfigMachine::new().project("server: {token: from-file}").variable("MCP_API_KEY", "from-variable");
    assert_eq!(machine.load().server.token.unwrap().expose(), "from-variable");
}

#[test]
fn f04_an_empty_mcp_api_key_is_not_set() {
    assert!(ConfigMachine::new().variable("MCP_API_KEY", "").load().server.token.is_none());
}
