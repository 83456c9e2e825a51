//! `corbie config show`, `validate`, `list` and `schema`.

use std::process::ExitCode;

use clap::Parser;
use corbie::cli::config::{ConfigCommand, Error, List, Show, Validate, run};
use proptest::prelude::*;

use crate::ConfigMachine;

fn run_command(machine: &ConfigMachine, command: ConfigCommand) -> (ExitCode, String) {
    let mut out = Vec::new();
    let code = run(&command, machine.sources.clone(), &mut out).expect("a command that runs");
    (code, machine.relative(&String::from_utf8(out).expect("text")))
}

#[test]
fn a17_show_prints_the_settings_in_effect_with_secrets_masked() {
    let machine = ConfigMachine::new()
        .project(
            "server: {token: 10f5f77eef9a6b43dc5bf972c7cfd101133e5b73, name: 'a: b', auth: bearer, tool_timeouts: {chat: 60}, allowed_hosts: [a.example]}",
        )
        .variable("CORBIE_SERVER__LISTEN", "0.0.0.0:80,[::1]:81");
    let (code, text) = run_command(&machine, ConfigCommand::Show(Show::default()));
    assert_eq!(code, ExitCode::SUCCESS);
    assert_eq!(
        text,
        "\
server:
  listen:
    - \"0.0.0.0:80\"
    - \"[::1]:81\"
  socket_mode: \"0600\"
  name: \"a: b\"
  auth: bearer
  token: \"***\"
  trusted_proxies: []
  allowed_origins: []
  allowed_hosts:
    - a.example
  limits:
    max_message_bytes: 4MiB
    max_batch: 100
    max_json_depth: 128
    max_header_bytes: 16KiB
    max_connections: 1024
    max_connections_per_address: 256
    max_in_flight: 1024
    max_concurrent: 1000
    max_concurrent_per_caller: 500
    max_queued: 1000
    max_queue_wait: 5s
    max_body_memory: 256MiB
    request_read_timeout: 30s
    idle_timeout: 5m
    write_timeout: 30s
    keep_alive_interval: 15s
    client_response_timeout: 5m
    max_sessions: 10000
    session_idle_timeout: 30m
    page_size: 100
  tool_timeout_seconds: 30
  tool_timeouts:
    chat: 1m
  shutdown_grace_seconds: 30
  console: true
trust:
  stdio: trusted
  loopback: trusted
  remote: verified
  confirm_destructive: false
registry:
  cache_ttl: 300
inference:
  device: auto
  max_queued: 1024
  timeout: 2m
classification:
  method: hybrid
  max_text_length: 32768
  max_batch: 256
  cache_entries: 4096
  watch: true
  stable_indices: true
  fallback_category: general
providers:
  required: false
  detect_ports:
    - 11434
    - 1234
    - 8000
    - 8080
defaults: {}
network:
  allowed_addresses: []
router:
  enabled: true
  system_prompt: before
  reasoning_effort: medium
  failover: true
  replace_pinned: false
  timeout: 5m
  stream_timeout: 30m
  max_decisions: 1000
documents:
  timeout: 5m
  max_cpu_time: 2m
  memory: 768MiB
  max_file: 100MiB
  max_pages: 10000
  max_cells: 2000000
  max_unpacked: 512MiB
  max_pixels: 50000000
ocr:
  engine: builtin
  language: eng
  tesseract: tesseract
  page_timeout: 30s
knowledge:
  enabled: true
  chunk_size: 500
  chunk_overlap: 50
  max_file_size_mb: 100
  max_concurrent_tasks: 3
  max_queued_tasks: 10000
  task_retention: 1d
  ocr:
    enabled: true
  allowed_roots: []
  watch: []
  watch_interval: 2s
  notify_progress: true
  migration_copy: auto
  upload_retention: 1d
  max_uploads_mb: 1024
  max_uploads_mb_per_caller: 512
log:
  level: info
  format: text
audit:
  max_bytes: 64MiB
  max_rotated_files: 8
  on_failure: continue
telemetry: {}
"
    );
}

#[test]
fn a17_show_prints_policies_and_the_cache_where_there_are_any() {
    let router =
        "router:\n  policies: {cheap: {enabled: false, default_model: small}}\n  cache: {semantic: true, ttl: 90s}\n";
    let machine = ConfigMachine::new().project(router);
    let (_, text) = run_command(&machine, ConfigCommand::Show(Show::default()));
    let shown = "  policies:
    cheap:
      enabled: false
      default_model: small
  cache:
    exact: false
    semantic: true
    threshold: 0.95
    ttl: 1m30s
    max_bytes: 64MiB
";
    assert!(text.contains(shown), "{text}");
    let again = ConfigMachine::new().project(&text).load();
    assert_eq!(serde_json::to_value(again).unwrap(), serde_json::to_value(machine.load()).unwrap());
}

#[test]
fn a17_show_prints_json_when_asked() {
    let (_, text) = run_command(&ConfigMachine::new(), ConfigCommand::Show(Show { json: true }));
    let settings: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(settings["server"]["limits"]["max_batch"], 100);
}

#[test]
fn a17_show_of_a_bad_configuration_prints_nothing_and_tells_the_mistakes() {
    let machine = ConfigMachine::new().project("log: {level: loud}");
    let mut out = Vec::new();
    let error = run(&ConfigCommand::Show(Show::default()), machine.sources.clone(), &mut out).unwrap_err();
    assert!(matches!(error, Error::Config(_)));
    assert!(out.is_empty());
}

#[test]
fn a17_validate_prints_ok_after_the_warnings() {
    let machine = ConfigMachine::new().project("classifier: {category_modle: {}}\n");
    let (code, text) = run_command(&machine, ConfigCommand::Validate(Validate::default()));
    assert_eq!(code, ExitCode::SUCCESS);
    assert_eq!(
        text,
        "warning: project/corbie.yaml:1:14: classifier.category_modle: unknown setting; \
         did you mean `category_model`?\nOK\n"
    );
}

#[test]
fn a17_validate_prints_every_mistake_and_fails() {
    let machine = ConfigMachine::new().file("project/other.yaml", "log: {level: loud}\nserver: {nmae: x}\n");
    let (code, text) =
        run_command(&machine, ConfigCommand::Validate(Validate { path: Some("other.yaml".into()), json: false }));
    assert_eq!(code, ExitCode::FAILURE);
    assert_eq!(
        text,
        "project/other.yaml:1:14: log.level: must be `debug`, `info`, `warn` or `error`\n\
         project/other.yaml:2:10: server.nmae: unknown setting; did you mean `name`?\n"
    );
}

/// What each of these would stop, and all of them at once.
#[test]
fn a17_validate_finds_everything_that_serve_would_refuse() {
    let machine = ConfigMachine::new().file("project/taxonomy.yaml", "categories: [{name: billing}, {name: other}]\n").file(
        "project/other.yaml",
        "server:\n  listen: ['0.0.0.0:8090']\nproviders: {required: true}\nrouter:\n  restricted_categories: [biling]\n\
         classification:\n  taxonomy: taxonomy.yaml\n  fallback_category: general\nknowledge: {chunk_sise: 100}\n",
    );
    let validate = || ConfigCommand::Validate(Validate { path: Some("other.yaml".into()), json: false });
    let (code, text) = run_command(&machine, validate());
    assert_eq!(code, ExitCode::FAILURE);
    let mut lines = text.lines();
    for expected in [
        "project/other.yaml:2:3: server.listen: asks for 0.0.0.0:8090, and `server.auth` requires a token; create one with",
        "project/other.yaml:3:13: providers.required: is set, and no provider is usable",
        "project/other.yaml:5:3: router.restricted_categories: names the category `biling`, which the taxonomy does not \
         have; did you mean `billing`?",
        "project/other.yaml:8:3: classification.fallback_category: names the category `general`, which the taxonomy does \
         not have",
        "project/other.yaml:9:13: knowledge.chunk_sise: unknown setting; did you mean `chunk_size`?",
    ] {
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(expected), "{expected}: {text}");
    }
    assert_eq!(lines.next(), None, "{text}");

    let machine = machine.file("project/other.yaml", "classification: {taxonomy: missing.yaml}\n");
    let (code, text) = run_command(&machine, validate());
    assert_eq!(code, ExitCode::FAILURE);
    assert!(text.contains("project/missing.yaml") && text.contains("file not found"), "{text}");
}

/// The default need not exist.
#[test]
fn f29_a_fallback_category_that_is_set_exists() {
    let taxonomy = "categories: [{name: billing}, {name: other}]\n";
    for (setting, is_valid) in [("", true), ("fallback_category: other", true), ("fallback_category: othr", false)] {
        let machine = ConfigMachine::new()
            .file("project/taxonomy.yaml", taxonomy)
            .project(&format!("classification: {{taxonomy: taxonomy.yaml, {setting}}}"));
        let (code, text) = run_command(&machine, ConfigCommand::Validate(Validate::default()));
        assert_eq!(code == ExitCode::SUCCESS, is_valid, "{setting}: {text}");
        let started = corbie::app::build_loaded(&machine.try_load().expect("the settings themselves are valid"));
        match is_valid {
            true => drop(started.expect("a server")),
            false => {
                let error = started.expect_err("refused").to_string();
                assert!(error.contains("classification.fallback_category") && error.contains("`other`"), "{error}");
            }
        }
    }
}

#[test]
fn a17_list_tells_the_search_order_and_what_is_active() {
    let machine = ConfigMachine::new()
        .file("project/corbie.yml", "")
        .file("project/corbie.json", "{}")
        .file("home/corbie/corbie.toml", "");
    let (_, text) = run_command(&machine, ConfigCommand::List(List::default()));
    assert_eq!(
        text,
        "\
flags and environment variables win over files; the first of these wins over the next:
project   absent    project/corbie.yaml
project   active    project/corbie.yml (approved)
project   absent    project/corbie.toml
project   shadowed  project/corbie.json
user      absent    home/corbie/corbie.yaml
user      absent    home/corbie/corbie.yml
user      active    home/corbie/corbie.toml
user      absent    home/corbie/corbie.json
system    absent    etc/corbie/corbie.yaml
system    absent    etc/corbie/corbie.yml
system    absent    etc/corbie/corbie.toml
system    absent    etc/corbie/corbie.json
"
    );
    let (_, text) = run_command(&machine.config("mine.yaml"), ConfigCommand::List(List::default()));
    assert!(text.contains("--config  absent    project/mine.yaml\n"));
    assert!(text.contains("project   skipped   project/corbie.yml\n"));
}

#[test]
fn a17_the_commands_are_typed_as_documented() {
    #[derive(Parser)]
    struct CommandLine {
        #[command(subcommand)]
        command: ConfigCommand,
    }
    let parse = |line: &str| CommandLine::try_parse_from(line.split(' ')).map(|line| line.command);
    assert!(matches!(parse("config show --json"), Ok(ConfigCommand::Show(Show { json: true }))));
    assert!(matches!(parse("config validate"), Ok(ConfigCommand::Validate(Validate { path: None, json: false }))));
    assert!(matches!(
        parse("config validate a.yaml"),
        Ok(ConfigCommand::Validate(Validate { path: Some(_), json: false }))
    ));
    assert!(matches!(parse("config list"), Ok(ConfigCommand::List(List { json: false }))));
    assert!(matches!(parse("config schema"), Ok(ConfigCommand::Schema)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What `show` prints is a configuration file that gives the same settings again.
    #[test]
    fn a17_what_show_prints_reads_back(name in any::<String>(), tool in any::<String>(), seconds in 1u32..100_000) {
        let name: String = name.chars().filter(|c| *c != '$').take(40).chain(['x']).collect();
        let machine = ConfigMachine::new()
            .file("home/corbie/corbie.json", serde_json::json!({
                "server": {"name": name, "tool_timeouts": {tool: seconds}}
            }).to_string());
        let (_, shown) = run_command(&machine, ConfigCommand::Show(Show::default()));
        let again = ConfigMachine::new().file("home/corbie/corbie.yaml", &shown).load();
        prop_assert_eq!(serde_json::to_value(again).unwrap(), serde_json::to_value(machine.load()).unwrap());
    }
}
