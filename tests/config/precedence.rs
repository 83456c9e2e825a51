//! F-10: flags, then variables, then the project's, the user's and the system's file, then defaults.

use corbie::config::{Scope, State};
use proptest::prelude::*;

use crate::ConfigMachine;

fn machine() -> ConfigMachine {
    ConfigMachine::new()
        .file("etc/corbie/corbie.yaml", "server: {name: system, tool_timeout_seconds: 11}\nlog: {level: error}")
        .file("home/corbie/corbie.toml", "[server]\nname = 'user'\nshutdown_grace_seconds = 12")
        .file("project/corbie.json", r#"{"server": {"name": "project"}}"#)
}

#[test]
fn f10_without_any_source_the_defaults_hold() {
    let config = ConfigMachine::new().load();
    assert_eq!(config.server.name, "corbie");
    assert_eq!(config.server.limits.max_message_bytes.bytes(), 4 * 1024 * 1024);
    assert_eq!(config.registry.cache_ttl.get().as_secs(), 300);
}

#[test]
fn f10_the_user_file_wins_over_the_system_file() {
    let machine = ConfigMachine::new()
        .file("etc/corbie/corbie.yaml", "server: {name: system}")
        .file("home/corbie/corbie.yaml", "server: {name: user}");
    assert_eq!(machine.load().server.name, "user");
}

#[test]
fn f10_the_project_file_wins_over_the_user_file() {
    assert_eq!(machine().load().server.name, "project");
}

#[test]
fn f10_a_variable_wins_over_the_project_file() {
    assert_eq!(machine().variable("CORBIE_SERVER__NAME", "variable").load().server.name, "variable");
}

#[test]
fn f10_a_flag_wins_over_a_variable() {
    let machine = machine().variable("CORBIE_SERVER__NAME", "variable").flag("server.name", "flag");
    assert_eq!(machine.load().server.name, "flag");
}

#[test]
fn f10_the_later_of_two_flags_wins() {
    let machine = ConfigMachine::new().flag("server.name", "one").flag("server.name", "two");
    assert_eq!(machine.load().server.name, "two");
}

#[test]
fn f10_what_a_stronger_file_does_not_say_is_kept_from_the_weaker_ones() {
    let config = machine().load();
    assert_eq!(config.server.tool_timeout_seconds.get().as_secs(), 11);
    assert_eq!(config.server.shutdown_grace_seconds.get().as_secs(), 12);
    assert_eq!(config.log.level.to_string(), "error");
}

#[test]
fn f10_lists_are_replaced_and_not_joined() {
    let machine = ConfigMachine::new()
        .file("etc/corbie/corbie.yaml", "server: {listen: ['127.0.0.1:1', '127.0.0.1:2']}")
        .project("server: {listen: ['127.0.0.1:3']}");
    let listen = machine.load().server.listen;
    assert_eq!(listen.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:3"]);
}

#[test]
fn f10_a_key_without_a_value_says_nothing() {
    let machine = ConfigMachine::new()
        .file("etc/corbie/corbie.yaml", "server: {name: system}")
        .project("server:\n  # name: project\nlog:\n  level:\n");
    assert_eq!(machine.load().server.name, "system");
}

#[test]
fn f10_with_config_of_the_users_own_file_the_systems_file_still_applies_and_the_projects_does_not() {
    let config = machine().config("../home/corbie/corbie.toml").load();
    assert_ne!(config.server.name, "project");
    assert_eq!(config.server.tool_timeout_seconds.get().as_secs(), 11, "from the system's file");
    assert_eq!(config.log.level.to_string(), "error", "from the system's file");
}

#[test]
fn f10_with_config_no_other_file_is_read() {
    let machine = machine().file("project/other/my.yml", "server: {tool_timeout_seconds: 7}").config("other/my.yml");
    let config = machine.load();
    assert_eq!((config.server.name.as_str(), config.server.tool_timeout_seconds.get().as_secs()), ("corbie", 7));
}

#[test]
fn f10_with_config_variables_still_win() {
    let machine =
        machine().file("project/my.yml", "server: {name: named}").config("my.yml").variable("CORBIE_SERVER__NAME", "v");
    assert_eq!(machine.load().server.name, "v");
}

#[test]
fn f10_layers_are_told_strongest_first() {
    let layers = machine().try_load().unwrap().layers;
    let active: Vec<Scope> =
        layers.iter().filter(|layer| layer.state == State::Active).map(|layer| layer.scope).collect();
    assert_eq!(active, [Scope::Project, Scope::User, Scope::System]);
}

#[test]
fn f10_of_two_files_in_one_folder_the_yaml_is_read_and_the_other_is_warned_about() {
    let machine =
        ConfigMachine::new().project("server: {name: yaml}").file("project/corbie.toml", "server.name = 'toml'");
    assert_eq!(machine.load().server.name, "yaml");
    assert_eq!(
        machine.warnings(),
        ["project/corbie.toml: is ignored, because another file in this folder takes precedence"]
    );
}

#[test]
fn f10_the_user_folder_falls_back_to_the_home_folder_and_a_relative_one_does_not_count() {
    let mut machine = ConfigMachine::new().file("person/.config/corbie/corbie.yaml", "server: {name: person}");
    let home = machine.root.path().join("person").display().to_string();
    machine.sources.variables = [("HOME".into(), home), ("XDG_CONFIG_HOME".into(), "relative".into())].into();
    if cfg!(target_os = "linux") {
        assert_eq!(machine.load().server.name, "person");
    }
}

#[test]
fn the_taxonomy_of_the_user_folder_is_the_default_and_without_one_it_is_where_a_first_one_is_saved() {
    let bare = ConfigMachine::new();
    let own = bare.root.path().join("home/corbie/taxonomy.yaml");
    let classification = bare.load().classification;
    assert_eq!((classification.taxonomy, classification.new_taxonomy), (None, Some(own)));

    let machine = ConfigMachine::new().file("home/corbie/taxonomy.yaml", "categories: []");
    let own = machine.root.path().join("home/corbie/taxonomy.yaml");
    let classification = machine.load().classification;
    assert_eq!((classification.taxonomy, classification.new_taxonomy), (Some(own), None));

    let named = machine.project("classification: {taxonomy: named.yaml}").load().classification;
    assert!(named.taxonomy.is_some_and(|path| path.ends_with("project/named.yaml")));

    let shared = ConfigMachine::new()
        .file("home/corbie/taxonomy.yaml", "categories: []")
        .project("knowledge: {store: 'postgresql://localhost/corbie'}");
    let classification = shared.load().classification;
    assert_eq!((classification.taxonomy, classification.new_taxonomy), (None, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any subset of the sources that set a key, the one with the highest precedence decides.
    #[test]
    fn f10_the_strongest_source_that_speaks_decides(speaks in prop::array::uniform5(any::<bool>())) {
        let [system, user, project, variable, flag] = speaks;
        let mut machine = ConfigMachine::new();
        let mut expected = "corbie";
        if system {
            machine = machine.file("etc/corbie/corbie.yml", "server: {name: system}");
            expected = "system";
        }
        if user {
            machine = machine.file("home/corbie/corbie.json", r#"{"server": {"name": "user"}}"#);
            expected = "user";
        }
        if project {
            machine = machine.file("project/corbie.toml", "server.name = 'project'");
            expected = "project";
        }
        if variable {
            machine = machine.variable("CORBIE_SERVER__NAME", "variable");
            expected = "variable";
        }
        if flag {
            machine = machine.flag("server.name", "flag");
            expected = "flag";
        }
        prop_assert_eq!(machine.load().server.name, expected);
    }
}
