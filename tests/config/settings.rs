//! What the settings mean once they are read.

use std::time::Duration;

use corbie::config::address::{HostPort, Listen};
use corbie::config::duration::{ConfigDuration, Timeout};
use corbie::config::server::{Authentication, AuthenticationError, RateLimit};
use corbie::config::size::ByteSize;
use corbie::config::socket_mode::SocketMode;
use corbie::config::trust::{TrustLevelSetting, Via};
use proptest::prelude::*;

use crate::ConfigMachine;

#[test]
fn f34_durations_are_text_with_units_or_seconds() {
    for (text, milliseconds) in [
        ("2s", 2_000),
        ("5m", 300_000),
        ("100ms", 100),
        ("1h30m", 5_400_000),
        ("1d", 86_400_000),
        ("1.5s", 1_500),
        ("30", 30_000),
        ("0.25", 250),
        ("0s", 0),
        ("366d", 31_622_400_000),
    ] {
        assert_eq!(
            text.parse::<ConfigDuration>().map(ConfigDuration::get),
            Ok(Duration::from_millis(milliseconds)),
            "{text}"
        );
    }
    for text in ["", "s", "5 m", "5x", "m5", "-1s", "1s1m", "1s1s", "1e400", "367d", "1..5s", "inf", "NaN", "5m3"] {
        assert!(text.parse::<ConfigDuration>().is_err(), "{text}");
    }
    assert!("0s".parse::<Timeout>().is_err());
    assert!("0.0001ms".parse::<Timeout>().is_err());
}

#[test]
fn f34_sizes_are_text_with_units_or_bytes() {
    for (text, bytes) in [
        ("4MiB", 4 << 20),
        ("16KiB", 16 << 10),
        ("16 kib", 16 << 10),
        ("1GiB", 1 << 30),
        ("5MB", 5_000_000),
        ("7", 7),
        ("7B", 7),
    ] {
        assert_eq!(text.parse::<ByteSize>().map(ByteSize::bytes), Ok(bytes), "{text}");
    }
    for text in ["", "0", "MiB", "-1", "1.5MiB", "2GiB", "1TiB", "99999999999999999999", "18446744073709551615KiB"] {
        assert!(text.parse::<ByteSize>().is_err(), "{text}");
    }
}

#[test]
fn f34_addresses_are_host_and_port() {
    for text in ["127.0.0.1:8090", "[::1]:3000", "localhost:0", "0.0.0.0:80", "my-host.example:65535"] {
        assert_eq!(text.parse::<HostPort>().map(|address| address.to_string()).as_deref(), Ok(text));
    }
    for text in [
        "8090",
        ":8090",
        "localhost",
        "localhost:",
        "localhost:65536",
        "localhost:+1",
        "::1:80",
        "[x]:1",
        "a b:1",
        "*:1",
    ] {
        assert!(text.parse::<HostPort>().is_err(), "{text}");
    }
}

#[test]
fn f34_a_listener_is_a_port_or_a_socket_file() {
    for text in ["127.0.0.1:8090", "unix:/run/corbie/corbie.sock", "unix:/a b.sock"] {
        assert_eq!(text.parse::<Listen>().map(|listen| listen.to_string()).as_deref(), Ok(text));
    }
    assert!(matches!("unix:/a".parse(), Ok(Listen::Socket(_))));
    for text in ["unix:", "unix:a.sock", "unix:/", "unix:/folder/", "/run/corbie.sock", "unix:8090"] {
        assert!(text.parse::<Listen>().is_err(), "{text}");
    }
}

#[test]
fn f34_the_mode_of_a_socket_file_is_octal() {
    for (text, bits) in [("0600", 0o600), ("660", 0o660), ("0666", 0o666), ("000", 0)] {
        assert_eq!(text.parse::<SocketMode>().map(SocketMode::bits), Ok(bits), "{text}");
    }
    for text in ["", "66", "0680", "1777", "00660", "0o660", "+660", "rw-rw----"] {
        assert!(text.parse::<SocketMode>().is_err(), "{text}");
    }
    assert_eq!(ConfigMachine::new().load().server.socket_mode.bits(), 0o600);
    let server = ConfigMachine::new().project("server: {socket_mode: '0660'}").load().server;
    assert_eq!(server.socket_mode.bits(), 0o660);
}

#[test]
fn s08_tls_needs_both_files() {
    let machine = ConfigMachine::new().project("server: {tls: {certificate: a.pem, key: a.key}}");
    let tls = machine.load().server.tls.unwrap();
    let in_project = |name: &str| machine.sources.folder.join(name);
    assert_eq!((tls.certificate, tls.key), (in_project("a.pem"), in_project("a.key")));
    assert!(ConfigMachine::new().load().server.tls.is_none());
}

#[test]
fn s06_only_loopback_addresses_count_as_loopback() {
    let is_loopback = |text: &str| text.parse::<HostPort>().unwrap().is_loopback();
    for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1", "LocalHost:1"] {
        assert!(is_loopback(text), "{text}");
    }
    for text in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "localhost.evil.example:1", "127.0.0.1.example:1"] {
        assert!(!is_loopback(text), "{text}");
    }
}

#[test]
fn x45_loopback_needs_no_token_and_other_addresses_do() {
    let open = ConfigMachine::new().load().server;
    assert!(matches!(open.authentication(true, false), Ok(Authentication::None)));
    assert!(matches!(open.authentication(false, false), Err(AuthenticationError::NoToken)));

    // A token alone does not switch authentication on for loopback.
    let with_token = ConfigMachine::new().variable("MCP_API_KEY", "key").load().server;
    assert!(matches!(with_token.authentication(true, true), Ok(Authentication::None)));
    assert!(matches!(with_token.authentication(false, true), Ok(Authentication::Bearer)));
}

#[test]
fn s05_bearer_asks_for_the_token_everywhere() {
    let server = ConfigMachine::new()
        .project("server: {auth: bearer, token: cde0fb0dec1400c54a0f7e7eafa73624c53e4da2}")
        .load()
        .server;
    assert!(matches!(server.authentication(true, true), Ok(Authentication::Bearer)));
    let server = ConfigMachine::new().project("server: {auth: bearer}").load().server;
    assert!(matches!(server.authentication(true, false), Err(AuthenticationError::NoToken)));
}

#[test]
fn s06_none_is_refused_where_other_machines_can_reach() {
    let server = ConfigMachine::new().project("server: {auth: none, token: key}").load().server;
    assert!(matches!(server.authentication(true, true), Ok(Authentication::None)));
    assert!(matches!(server.authentication(false, true), Err(AuthenticationError::ExposedWithoutAuth)));
}

#[test]
fn x20_z13_the_rate_limit_is_on_where_other_machines_can_reach_and_high_enough() {
    let usual = RateLimit { per_second: 500, burst: None };
    assert_eq!(usual.burst(), 1000);
    let server = ConfigMachine::new().load().server;
    assert_eq!((server.rate_limit(true), server.rate_limit(false)), (None, Some(usual)));

    let set = ConfigMachine::new().project("server: {rate_limit: {per_second: 5}}").load().server;
    let five = RateLimit { per_second: 5, burst: None };
    assert_eq!(five.burst(), 10, "twice the rate, as for tokens");
    assert_eq!((set.rate_limit(true), set.rate_limit(false)), (Some(five), Some(five)));

    let off = ConfigMachine::new().project("server: {rate_limit: {per_second: 0}}").load().server;
    assert_eq!((off.rate_limit(true), off.rate_limit(false)), (None, None));
}

#[test]
fn x16_trust_belongs_to_the_way_a_caller_came() {
    let levels =
        |machine: ConfigMachine| [Via::Stdio, Via::Loopback, Via::Remote].map(|via| machine.load().trust.level(via));
    assert_eq!(
        levels(ConfigMachine::new()),
        [TrustLevelSetting::Trusted, TrustLevelSetting::Trusted, TrustLevelSetting::Verified]
    );
    assert_eq!(levels(ConfigMachine::new().flag("trust.all", "untrusted")), [TrustLevelSetting::Untrusted; 3]);
    let remote = ConfigMachine::new().project("trust: {remote: trusted, stdio: untrusted}");
    assert_eq!(levels(remote), [TrustLevelSetting::Untrusted, TrustLevelSetting::Trusted, TrustLevelSetting::Trusted]);
}

#[test]
fn f34_a_tools_own_timeout_yields_to_the_configured_one() {
    let config = ConfigMachine::new().project("server: {tool_timeouts: {chat: 2m}, tool_timeout_seconds: 10}").load();
    let (limits, own) = (corbie::app::limits(&config), Some(Duration::from_secs(300)));
    assert_eq!(limits.timeout_of("chat", own).as_secs(), 120);
    assert_eq!(limits.timeout_of("knowledge-add", own).as_secs(), 300);
    assert_eq!(limits.timeout_of("other", None).as_secs(), 10);
}

proptest! {
    #[test]
    fn f34_a_duration_reads_back_as_it_is_written(milliseconds in 0u64..=31_622_400_000) {
        let period: ConfigDuration = format!("{milliseconds}ms").parse().unwrap();
        prop_assert_eq!(period.get(), Duration::from_millis(milliseconds));
        prop_assert_eq!(period.to_string().parse::<ConfigDuration>(), Ok(period));
    }

    #[test]
    fn f34_a_size_reads_back_as_it_is_written(bytes in 1u64..=1 << 30) {
        let size: ByteSize = bytes.to_string().parse().unwrap();
        prop_assert_eq!(size.bytes() as u64, bytes);
        prop_assert_eq!(size.to_string().parse::<ByteSize>(), Ok(size));
    }

    #[test]
    fn f34_no_text_makes_a_value_panic(text in "[0-9a-zA-Z.:\\[\\] +-]{0,12}|\\PC{0,8}") {
        let _ = (text.parse::<ConfigDuration>(), text.parse::<ByteSize>(), text.parse::<HostPort>());
    }
}

#[test]
fn f38_taxonomy_method_and_text_length_of_classification_are_settings() {
    let built_in = ConfigMachine::new().try_load().unwrap().config.classification;
    assert_eq!((built_in.taxonomy, built_in.method.as_str()), (None, "hybrid"));

    for method in ["hybrid", "rules", "embedding", "model"] {
        let classification = ConfigMachine::new()
            .project(&format!("classification: {{taxonomy: birds.yaml, method: {method}, max_text_length: 77}}"))
            .try_load()
            .unwrap()
            .config
            .classification;
        assert!(classification.taxonomy.is_some_and(|path| path.ends_with("birds.yaml")));
        assert_eq!((classification.method.as_str(), classification.max_text_length), (method, 77));
    }
    assert!(ConfigMachine::new().project("classification: {method: tarot}").try_load().is_err());
}
