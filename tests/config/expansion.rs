//! S-02: `${VAR}` in the values of files, and `~` in paths.

#[cfg(unix)]
use std::path::PathBuf;

use crate::ConfigMachine;

#[track_caller]
fn expanded_name(written: &str) -> String {
    ConfigMachine::new()
        .file("project/corbie.json", serde_json::json!({"server": {"name": written}}).to_string())
        .variable("WHO", "crow")
        .variable("NOBODY", "")
        .variable("INNER", "${WHO}")
        .load()
        .server
        .name
}

#[test]
fn s02_a_variable_is_put_in() {
    assert_eq!(expanded_name("${WHO}"), "crow");
    assert_eq!(expanded_name("a ${WHO} and a ${WHO}."), "a crow and a crow.");
}

#[test]
fn s02_a_default_stands_in_for_a_missing_or_empty_variable() {
    assert_eq!(expanded_name("${MISSING:-raven}"), "raven");
    assert_eq!(expanded_name("${NOBODY:-raven}"), "raven");
    assert_eq!(expanded_name("${WHO:-raven}"), "crow");
    assert_eq!(expanded_name("x${MISSING:-}"), "x");
}

#[test]
fn s02_two_dollars_make_a_plain_one() {
    assert_eq!(expanded_name("$${WHO}"), "${WHO}");
    assert_eq!(expanded_name("$WHO $ $$ {WHO}"), "$WHO $ $$ {WHO}");
}

#[test]
fn s02_what_a_variable_holds_is_not_expanded_again() {
    assert_eq!(expanded_name("${INNER}"), "${WHO}");
}

#[test]
fn s02_an_expanded_value_takes_the_type_of_its_key() {
    let config = ConfigMachine::new()
        .project("server:\n  limits: {max_batch: '${BATCH}'}\n  listen: '${LISTEN}'\n  name: ${BATCH}\n")
        .variable("BATCH", "5")
        .variable("LISTEN", "127.0.0.1:1,127.0.0.1:2")
        .load();
    assert_eq!((config.server.limits.max_batch, config.server.listen.len()), (5, 2));
    assert_eq!(config.server.name, "5");
}

#[test]
fn s02_a_missing_variable_is_a_mistake_that_names_it() {
    let machine =
        ConfigMachine::new().project("server:\n  token: ${MCP_TOKEN}\n  name: '${A}${B}'\nlog: {level: '${'}\n");
    assert_eq!(
        machine.diagnostics(),
        [
            "project/corbie.yaml:2:10: server.token: references the environment variable `MCP_TOKEN`, which is not set",
            "project/corbie.yaml:3:9: server.name: references the environment variable `A`, which is not set",
            "project/corbie.yaml:3:9: server.name: references the environment variable `B`, which is not set",
            "project/corbie.yaml:4:14: log.level: has `${` without `}`; use `$${` for a literal `${`",
            "project/corbie.yaml:4:14: log.level: must be `debug`, `info`, `warn` or `error`",
        ]
    );
}

#[test]
fn s02_odd_references_are_mistakes() {
    for (written, expected) in [
        ("${}", "has `${` without a variable name"),
        ("${9A}", "has `${` without a variable name"),
        ("${A B}", "has `${` without a variable name"),
        ("${A:-${B}}", "has `${` in the default of `${A}`"),
    ] {
        let mistakes = ConfigMachine::new().project(&format!("server: {{name: '{written}'}}")).diagnostics();
        assert!(mistakes[0].contains(expected), "{written}: {mistakes:?}");
    }
}

#[test]
fn s02_variables_and_flags_are_not_expanded() {
    let machine = ConfigMachine::new().variable("CORBIE_SERVER__NAME", "${HOME}");
    assert_eq!(machine.load().server.name, "${HOME}");
    assert_eq!(ConfigMachine::new().flag("server.name", "${HOME}").load().server.name, "${HOME}");
}

#[test]
fn s02_a_header_of_the_classification_server_takes_its_token_from_a_variable() {
    let snippet =
        "classification:\n  type: mcp\n  mcp_server:\n    headers:\n      Authorization: \"Bearer ${MCP_API_KEY}\"\n";
    let machine = ConfigMachine::new().project(snippet);
    assert_eq!(
        machine.diagnostics(),
        [
            "project/corbie.yaml:5:22: classification.mcp_server.headers.Authorization: references the environment variable `MCP_API_KEY`, which is not set"
        ]
    );
    let config = machine.variable("MCP_API_KEY", "sk-1").load();
    assert_eq!(config.classification.mcp_server.headers["Authorization"].expose(), "Bearer sk-1");
}

/// A path of the user's home means the same in a file as in a shell.
#[cfg(unix)]
#[test]
fn s02_a_path_that_begins_with_a_tilde_is_in_the_users_home() {
    let machine = ConfigMachine::new().project(
        "knowledge:\n  storage_path: ~/data\n  allowed_roots: ['~/a', '/srv/~/b', '~other/c', 'd~', '~']\n  watch:\n    \
         - path: ~/notes\n",
    );
    let without = machine.load().knowledge;
    let in_project = |path: &str| machine.sources.folder.join(path);
    assert_eq!(without.storage_path, Some(in_project("~/data")), "without a home folder it is an ordinary path");
    let (other, ordinary) = (in_project("~other/c"), in_project("d~"));
    let machine = machine.variable("HOME", "/home/ada").variable("CORBIE_KNOWLEDGE__VECTOR_DB_PATH", "~/index");
    let knowledge = machine.load().knowledge;
    assert_eq!(knowledge.storage_path, Some(PathBuf::from("/home/ada/data")));
    assert_eq!(knowledge.vector_db_path, Some(PathBuf::from("/home/ada/index")));
    let roots = ["/home/ada/a".into(), "/srv/~/b".into(), other, ordinary, "/home/ada".into()];
    assert_eq!(knowledge.allowed_roots, roots);
    assert_eq!(knowledge.watch[0].path, PathBuf::from("/home/ada/notes"));
}
