use proptest::prelude::*;
use serde_json::json;

use super::*;

const JSON: (ClientFileFormat, &str) = (ClientFileFormat::Json, "mcpServers");
const TOML: (ClientFileFormat, &str) = (ClientFileFormat::Toml, "mcp_servers");

fn entry() -> Map<String, Value> {
    let Value::Object(entry) = json!({ "command": "/bin/corbie", "args": ["stdio"] }) else { unreachable!() };
    entry
}

fn add((format, section): (ClientFileFormat, &str), text: &str) -> Result<String, EditError> {
    set(format, text, section, "corbie", &entry())
}

fn take((format, section): (ClientFileFormat, &str), text: &str) -> Result<String, EditError> {
    remove(format, text, section, "corbie")
}

#[track_caller]
fn there_and_back(form: (ClientFileFormat, &str), text: &str, expected: &str) {
    let added = add(form, text).unwrap();
    assert_eq!(added, expected);
    assert_eq!(add(form, &added).unwrap(), added, "a second time changes nothing");
    assert_eq!(take(form, &added).unwrap(), text);
}

#[test]
fn comments_order_and_commas_stay() {
    there_and_back(
        JSON,
        "// mine\n{\n\t\"z\": 1.50, // last\n\t\"mcpServers\": {\n\t\t/* other */ \"a\": { \"command\": \"x\" },\n\t},\n\t\"b\": [],\n}\n",
        "// mine\n{\n\t\"z\": 1.50, // last\n\t\"mcpServers\": {\n\t\t/* other */ \"a\": { \"command\": \"x\" },\n\t\t\"corbie\": {\n\t\t\t\"command\": \"/bin/corbie\",\n\t\t\t\"args\": [\"stdio\"],\n\t\t},\n\t},\n\t\"b\": [],\n}\n",
    );
}

#[test]
fn lines_of_windows_and_the_mark_before_a_text_stay() {
    there_and_back(
        JSON,
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n",
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {},\r\n    \"corbie\": {\r\n      \"command\": \"/bin/corbie\",\r\n      \"args\": [\"stdio\"]\r\n    }\r\n  }\r\n}\r\n",
    );
    there_and_back(
        TOML,
        "\u{feff}# mine\r\nmodel = \"x\" # why\r\n\r\n[mcp_servers.a]\r\ncommand = 'a'\r\n",
        "\u{feff}# mine\r\nmodel = \"x\" # why\r\n\r\n[mcp_servers.a]\r\ncommand = 'a'\r\n\r\n[mcp_servers.corbie]\r\ncommand = \"/bin/corbie\"\r\nargs = [\"stdio\"]\r\n",
    );
}

#[test]
fn a_file_with_nothing_in_it_becomes_one_with_an_entry() {
    for (form, text) in
        [(JSON, ""), (JSON, " \n"), (JSON, "// nothing yet\n"), (JSON, "{}"), (TOML, ""), (TOML, "# nothing\n")]
    {
        let added = add(form, text).unwrap();
        assert_eq!(find(form.0, &added, form.1, "corbie").unwrap(), Some(entry().into()), "{added}");
        assert!(added.contains(text.trim().trim_matches(['{', '}'])), "{added}");
    }
}

#[test]
fn toml_keeps_its_tables_in_their_places() {
    there_and_back(
        TOML,
        "[mcp_servers.a]\ncommand = 'a'\n\n# of b\n[b]\nx = 0x10\n# end\n",
        "[mcp_servers.a]\ncommand = 'a'\n\n[mcp_servers.corbie]\ncommand = \"/bin/corbie\"\nargs = [\"stdio\"]\n\n# of b\n[b]\nx = 0x10\n# end\n",
    );
    let inline = add(TOML, "mcp_servers = { a = { command = 'a' } }\n").unwrap();
    assert!(inline.starts_with("mcp_servers = { a = { command = 'a' }") && inline.contains("corbie = {"), "{inline}");
}

#[test]
fn what_else_an_entry_says_stays_unless_it_contradicts() {
    let text = r#"{"mcpServers": {"corbie": {"url": "http://old", "headers": {}, "type": "http", "disabled": true}}}"#;
    let found = find(JSON.0, &add(JSON, text).unwrap(), JSON.1, "corbie").unwrap();
    assert_eq!(found, Some(json!({ "command": "/bin/corbie", "args": ["stdio"], "disabled": true })));
    let text = "[mcp_servers.corbie]\nurl = 'http://old'\nstartup_timeout_sec = 20 # slow\n[mcp_servers.corbie.env]\nA = '1'\n";
    let added = add(TOML, text).unwrap();
    assert!(added.contains("startup_timeout_sec = 20 # slow") && added.contains("A = '1'"), "{added}");
    assert!(!added.contains("url"), "{added}");
}

#[test]
fn what_cannot_be_changed_is_refused_with_a_reason() {
    let refused = |form, text: &str| add(form, text).unwrap_err().to_string();
    assert!(
        refused(JSON, "{\n  \"a\": 1\n  \"b\": 2\n}").starts_with("line "),
        "{}",
        refused(JSON, "{\n \"a\": 1\n \"b\": 2}")
    );
    assert!(refused(JSON, "{\"a\": }").starts_with("line 1, column "));
    assert!(refused(JSON, "[]").contains("contains a list instead of an object"));
    assert!(refused(JSON, "null").contains("contains `null`"));
    assert!(refused(JSON, r#"{"mcpServers": []}"#).contains("`mcpServers` is a list"));
    assert!(refused(JSON, r#"{"mcpServers": {}, "mcpServers": {}}"#).contains("duplicate key `mcpServers`"));
    assert!(refused(JSON, r#"{"mcpServers": {"corbie": 1, "corbie": 2}}"#).contains("duplicate key `corbie`"));
    assert!(refused(JSON, &"[".repeat(100_000)).starts_with("line 1"));
    assert!(
        refused(TOML, "a = 1\nb = = 2\n").starts_with("line 2, column 5: "),
        "{}",
        refused(TOML, "a = 1\nb = = 2\n")
    );
    assert!(refused(TOML, "mcp_servers = 5\n").contains("`mcp_servers` is a number"));
    assert!(refused(TOML, "[[mcp_servers]]\na = 1\n").contains("`mcp_servers` is a list"));
    assert_eq!(add(TOML, "a = 1\r\nb = 2\n").unwrap_err(), EditError::MixedLineEnds);
    assert!(refused(TOML, "[a]\n[a]\n").starts_with("line 2"));
}

/// JSON in various styles, with and without other servers.
fn files() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1.50e3".to_owned()),
        Just("12345678901234567890123".to_owned()),
        "[ -~]{0,8}".prop_map(|text| Value::from(text).to_string()),
    ];
    let space = prop::sample::select(vec!["", " ", "\n", "\r\n\t", " /* c */ ", " // c\n"]);
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", ")));
        let key = "[a-z]{1,6}";
        let members = prop::collection::btree_map(key, (space.clone(), inner, space.clone()), 0..4);
        let object = (members, any::<bool>()).prop_map(|(members, comma)| {
            let members: Vec<String> =
                members.iter().map(|(key, (a, value, b))| format!("{a}\"{key}\":{b}{value}")).collect();
            let comma = if comma && !members.is_empty() { "," } else { "" };
            format!("{{{}{comma}}}", members.join(","))
        });
        prop_oneof![list, object]
    });
    let others = prop::collection::btree_map("[a-z]{1,5}", value.clone(), 0..4);
    (prop::option::of(prop::collection::btree_map("[d-z]{1,6}", value, 0..3)), others, any::<bool>()).prop_map(
        |(servers, others, spread)| {
            let (start, between, end) = if spread { ("{\n  ", ",\n  ", "\n}\n") } else { ("{", ",", "}") };
            let object = |members: Vec<String>| format!("{start}{}{end}", members.join(between));
            let member = |(key, value): (&String, &String)| format!("\"{key}\": {value}");
            let mut all: Vec<String> = others.iter().map(member).collect();
            all.extend(
                servers.map(|servers| format!("\"mcpServers\": {}", object(servers.iter().map(member).collect()))),
            );
            object(all)
        },
    )
}

proptest! {
    #[test]
    fn whatever_else_a_file_says_it_says_afterwards(text in files()) {
        let before = value(JSON.0, &text, JSON.1, "corbie").unwrap();
        let added = add(JSON, &text).unwrap();
        let comments = |text: &str| (text.matches("/* c */").count(), text.matches("// c").count());
        prop_assert_eq!(comments(&text), comments(&added));
        let taken = take(JSON, &added).unwrap();
        prop_assert_eq!(comments(&text), comments(&taken));
        let mut after = value(JSON.0, &taken, JSON.1, "corbie").unwrap();
        if !before.contains_key("mcpServers") {
            prop_assert_eq!(after.remove("mcpServers"), Some(json!({})));
        }
        prop_assert_eq!(before, after);
    }

    #[test]
    fn no_text_at_all_makes_it_panic(text in "\\PC{0,80}|[\\[\\]{}\",:/*\\n a1=.#']{0,40}") {
        for form in [JSON, TOML] {
            if let Ok(added) = add(form, &text) {
                prop_assert!(find(form.0, &added, form.1, "corbie").unwrap().is_some());
                take(form, &added).unwrap();
            }
        }
    }
}
