//! S-10: parsing any file has bounded cost, and returns settings or errors.

use corbie::config::MAX_FILE_BYTES;
use proptest::prelude::*;

use crate::ConfigMachine;

#[test]
fn s10_a_file_over_the_limit_is_refused() {
    let fits = format!("#{}", " ".repeat(MAX_FILE_BYTES - 1));
    ConfigMachine::new().project(&fits).load();
    assert_eq!(
        ConfigMachine::new().file("home/corbie/corbie.yaml", format!("{fits} ")).diagnostics(),
        ["home/corbie/corbie.yaml: is larger than 1 MiB, the maximum for a configuration file"]
    );
}

#[test]
fn s10_deep_nesting_is_refused_and_does_not_overflow_the_stack() {
    let deep = 100_000;
    for yaml in ["- ".repeat(deep), "[".repeat(deep), "{a: ".repeat(deep), "? ".repeat(deep)] {
        assert_eq!(ConfigMachine::new().project(&yaml).diagnostics().len(), 1);
    }
    for json in ["[".repeat(deep), "{\"a\":".repeat(deep), "[".repeat(deep) + &"]".repeat(deep)] {
        assert_eq!(ConfigMachine::new().file("project/corbie.json", json).diagnostics().len(), 1);
    }
    for toml in ["a.".repeat(deep) + "a = 1", format!("a = {}", "[".repeat(deep)), format!("[{}a]", "a.".repeat(deep))]
    {
        assert!(!ConfigMachine::new().file("project/corbie.toml", toml).diagnostics().is_empty());
    }
}

#[test]
fn s10_yaml_aliases_cannot_blow_up_a_file() {
    let mut laughs = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(8);
        laughs += &format!("a{level}: &a{level} [{below}]\n");
    }
    assert!(ConfigMachine::new().project(&laughs).diagnostics()[0].ends_with("expands too much through aliases"));

    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), "*a, ".repeat(100));
    assert!(ConfigMachine::new().project(&long).diagnostics()[0].ends_with("expands too much through aliases"));

    let mut ladder = String::from("a0: &a0 [1]\n");
    for level in 1..200 {
        ladder += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
    }
    assert!(ConfigMachine::new().project(&ladder).diagnostics()[0].contains("nested too deeply by an alias"));

    let own = ConfigMachine::new().project("a: &a [*a]\n").diagnostics();
    assert_eq!(own, ["project/corbie.yaml:1:8: has a recursive alias"]);
}

#[test]
fn s10_variables_cannot_blow_up_a_file() {
    let machine = ConfigMachine::new()
        .project(&format!("server: {{name: '{}'}}", "${BIG}".repeat(1000)))
        .variable("BIG", &"x".repeat(100_000));
    assert!(machine.diagnostics()[0].ends_with("server.name: is too large after variable expansion"));
}

#[test]
fn s10_text_that_is_not_utf_8_is_refused_where_it_breaks() {
    let machine = ConfigMachine::new().file("project/corbie.yaml", b"server:\n  name: \xff\n");
    assert_eq!(machine.diagnostics(), ["project/corbie.yaml:2:9: is not UTF-8 text"]);
}

#[test]
fn s10_a_hundred_thousand_mistakes_are_told_without_delay() {
    let json = format!("{{{}}}", (0..60_000).map(|key| format!("\"k{key}\":1")).collect::<Vec<_>>().join(","));
    assert_eq!(ConfigMachine::new().file("project/corbie.json", json).diagnostics().len(), 60_000);
}

fn yaml_fragments() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "server",
        "log",
        "level",
        "name",
        "limits",
        ": ",
        ":",
        "\n",
        "\n  ",
        "\n\t",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\"",
        "'",
        "&a ",
        "*a",
        "!!str ",
        "!x ",
        "|\n",
        ">-\n",
        "# ",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "? ",
        "${A}",
        "${",
        "}",
        "= ",
        ".",
        "[[",
        "]]",
        "5",
        "-1.5e3",
        "null",
        "true",
        "\\u00",
        "\\",
        "ä",
        "🦀",
        "\u{feff}",
        "\r\n",
        "<<: ",
    ]);
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn s10_no_text_makes_a_parser_panic(text in prop_oneof![yaml_fragments(), any::<String>()]) {
        for name in ["home/corbie/corbie.yaml", "home/corbie/corbie.toml", "home/corbie/corbie.json"] {
            let _ = ConfigMachine::new().file(name, &text).variable("A", "1").try_load();
        }
    }
}
