//! S-01: no error message or output contains a secret.

use corbie::cli::config::{ConfigCommand, Show, Validate, run};
use corbie::config::secret::Secret;

use crate::ConfigMachine;

const MARKER: &str = "sk-marker-0123456789";

#[test]
fn s01_a_secret_shows_as_stars() {
    let secret = Secret::new(MARKER);
    assert_eq!(format!("{secret:?}"), "***");
    assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
    assert_eq!(secret.expose(), MARKER);
}

#[test]
fn s01_nothing_that_can_be_printed_holds_the_token() {
    let machine =
        ConfigMachine::new().project("server: {token: '${KEY}'}").variable("KEY", MARKER).flag("server.token", MARKER);
    let loaded = machine.try_load().unwrap();
    assert_eq!(loaded.config.server.token.as_ref().map(Secret::expose), Some(MARKER));
    for text in [format!("{loaded:?}"), format!("{:?}", machine.sources), format!("{:?}", loaded.config)] {
        assert!(!text.contains(MARKER), "{text}");
    }
    for command in [
        ConfigCommand::Show(Show::default()),
        ConfigCommand::Show(Show { json: true }),
        ConfigCommand::Validate(Validate::default()),
    ] {
        let mut out = Vec::new();
        run(&command, machine.sources.clone(), &mut out).unwrap();
        assert!(!String::from_utf8(out).unwrap().contains(MARKER));
    }
}

/// The token in every wrong place: not one of the mistakes repeats it.
#[test]
fn s01_a_mistake_never_repeats_a_value() {
    for key in [
        "server",
        "log",
        "zebra",
        "server.auth",
        "server.listen",
        "server.limits",
        "server.zebra",
        "server.limits.max_batch",
        "server.limits.keep_alive_interval",
        "server.limits.max_message_bytes",
        "server.tool_timeouts.x",
        "server.rate_limit.burst",
        "trust.all",
        "log.level",
    ] {
        let mistakes = ConfigMachine::new().flag(key, MARKER).diagnostics().join("\n");
        assert!(!mistakes.contains(MARKER), "{mistakes}");
    }
    for file in ["corbie.yaml", "corbie.toml", "corbie.json"] {
        let text = format!("server: {{token: \"{MARKER}\n[ {MARKER} = '{MARKER}");
        let mistakes = ConfigMachine::new().file(&format!("project/{file}"), text).diagnostics().join("\n");
        assert!(!mistakes.contains(MARKER), "{mistakes}");
    }
}

#[test]
fn s01_a_token_that_could_not_be_sent_or_would_let_everybody_in_is_refused() {
    for token in ["", "a b", "a\n", "ä"] {
        let machine = ConfigMachine::new()
            .file("project/corbie.json", serde_json::json!({"server": {"token": token}}).to_string());
        assert_eq!(
            machine.diagnostics(),
            ["project/corbie.json:1:20: server.token: must be one or more visible ASCII characters without spaces"]
        );
    }
}
