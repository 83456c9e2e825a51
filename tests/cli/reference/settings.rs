//! `docs/reference/settings.md`: every settings key, from the schema used for validation.

use serde_json::{Value, json};

use super::{check, prose};

/// One key of the reference.
struct SettingKey<'a> {
    path: Vec<String>,
    schema: &'a Value,
    required: bool,
}

#[test]
fn the_reference_has_every_setting() {
    check("settings.md", &page(corbie::config::schema()));
}

fn page(schema: &Value) -> String {
    let mut page = String::from("# Settings\n\n");
    page += "All keys of `corbie.yaml` (or `.yml`, `.toml`, `.json`), and the environment variables that set them.\n";
    page += "Environment variables override files, and command line flags override variables; `corbie config show` prints the effective settings, `corbie config list` the files in use.\n";
    page += "`<name>` is a name that you choose, `[]` each entry of a list; in variables, lists and sections are written as YAML or JSON.\n";
    page += "JSON Schema for editors: [`schema/config.schema.json`](../../schema/config.schema.json), or `corbie config schema`.\n\n";
    let sections = members(schema);
    for (section, _) in &sections {
        page += &format!("- [`{section}`](#{section})\n");
    }
    for (section, schema) in sections {
        page += &format!("\n## {section}\n");
        let mut keys = Vec::new();
        collect(&[section.to_owned()], schema, false, &mut keys);
        page.extend(keys.iter().map(entry));
    }
    page
}

/// The keys below a section in declaration order, each object before its members.
fn collect<'a>(path: &[String], schema: &'a Value, required: bool, found: &mut Vec<SettingKey<'a>>) {
    found.push(SettingKey { path: path.to_vec(), schema, required });
    let below = |name: &str| [path, &[name.to_owned()]].concat();
    for (name, member) in members(schema) {
        collect(&below(name), member, is_required(schema, name), found);
    }
    if schema["additionalProperties"].is_object() && has_members(&schema["additionalProperties"]) {
        collect(&below("<name>"), &schema["additionalProperties"], false, found);
    }
    if has_members(&schema["items"]) {
        let mut path = path.to_vec();
        path.last_mut().expect("a section at least").push_str("[]");
        for (name, member) in members(&schema["items"]) {
            let required = is_required(&schema["items"], name);
            collect(&[&path[..], &[name.to_owned()]].concat(), member, required, found);
        }
    }
}

pub(super) fn members(schema: &Value) -> Vec<(&str, &Value)> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, schema)| (name.as_str(), schema)).collect()
}

pub(super) fn has_members(schema: &Value) -> bool {
    schema["properties"].is_object()
}

pub(super) fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name))
}

fn entry(key: &SettingKey) -> String {
    let SettingKey { path, schema, required } = key;
    let mut text = String::new();
    if path.len() > 1 {
        text += &format!("\n### `{}`\n", path.join("."));
        let mut facts = vec![if has_members(schema) { "section".into() } else { kind(schema) }];
        if *required {
            facts.push("required".into());
        }
        match schema.get("default") {
            Some(default) => facts.push(format!("default `{}`", yaml_value(default))),
            None if !has_members(schema) && !*required => facts.push("optional".into()),
            None => {}
        }
        if let Some(variable) = variable(path) {
            facts.push(format!("`{variable}`"));
        }
        text += &format!("\n{}\n", facts.join(" · "));
    }
    if let Some(description) = schema["description"].as_str() {
        text += &format!("\n{}\n", prose(description));
    }
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        if let (Some(name), Some(description)) = (choice["const"].as_str(), choice["description"].as_str()) {
            text += &format!(
                "{}- `{name}`: {}\n",
                if text.ends_with(".\n") && !text.contains("\n- ") { "\n" } else { "" },
                prose(description)
            );
        }
    }
    text
}

/// The environment variable of a key with a fixed path.
fn variable(path: &[String]) -> Option<String> {
    let fixed = path.iter().all(|part| !part.contains(['<', '[']));
    fixed.then(|| format!("CORBIE_{}", path.join("__").to_uppercase()))
}

/// A value in single-line YAML, which JSON is.
pub(super) fn yaml_value(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}

/// The type of a value, in words.
pub(super) fn kind(schema: &Value) -> String {
    let choices: Vec<String> = [&schema["oneOf"], &schema["enum"]].into_iter().flat_map(choices).collect();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    let words = match schema["format"].as_str() {
        Some("timeout" | "non-negative-duration") => "duration such as `30s` or `5m`, or seconds".into(),
        Some("byte-size") => "size such as `64MiB`, or bytes".into(),
        Some("token" | "header-value") => "string, secret".into(),
        Some("http-url" | "server-identifier" | "origin") => "URL".into(),
        _ => match schema["type"].as_str() {
            Some("integer") => format!("integer{}", range(schema)),
            Some("number") => format!("number{}", range(schema)),
            Some("boolean") => "boolean".into(),
            Some("array") => format!("list of: {}", kind(&schema["items"])),
            Some("object") if has_members(&schema["additionalProperties"]) => "mapping of names to sections".into(),
            Some("object") if schema["additionalProperties"].is_object() => {
                format!("mapping of names to: {}", kind(&schema["additionalProperties"]))
            }
            Some("object") => "object".into(),
            Some("string") => "string".into(),
            _ => "any value".to_owned(),
        },
    };
    match schema["examples"][0].as_str() {
        Some(example) => format!("{words} such as `{example}`"),
        None => words,
    }
}

fn choices(list: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for choice in list.as_array().into_iter().flatten() {
        match (choice, &choice["const"], &choice["enum"]) {
            (Value::String(name), ..) | (_, Value::String(name), _) => found.push(format!("`{name}`")),
            (.., inner) => found.extend(choices(inner)),
        }
    }
    found
}

fn range(schema: &Value) -> String {
    let number = |value: &Value| {
        let number = value.as_f64()?;
        // Bounds that only reflect the integer type are of no use to a reader.
        (number.abs() < 1e12).then(|| number.to_string())
    };
    match (number(&schema["minimum"]), number(&schema["maximum"])) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    }
}

#[test]
fn a_key_is_told_with_its_kind_default_and_variable() {
    let schema = json!({ "properties": { "server": { "type": "object", "description": "Who serves.", "properties": {
        "most": { "type": "integer", "minimum": 1, "maximum": 9, "default": 5, "description": "How many\nat once." },
        "mode": { "oneOf": [{ "const": "fast", "description": "Quick." }, { "const": "safe" }], "description": "How." },
        "wait": { "type": ["string", "number"], "format": "timeout", "default": "30s", "description": "How long." },
        "by": { "type": "object", "description": "Whom.", "additionalProperties": { "type": "object", "properties": {
            "key": { "type": "string", "format": "token", "description": "Its key." } } } },
    } } } });
    let page = page(&schema);
    let expected = "## server\n\nWho serves.\n\n### `server.most`\n\ninteger, 1 to 9 · default `5` · `CORBIE_SERVER__MOST`\n\nHow many at once.\n";
    assert!(page.contains(expected), "{page}");
    assert!(page.contains("`fast`, `safe` · optional · `CORBIE_SERVER__MODE`\n\nHow.\n\n- `fast`: Quick.\n"), "{page}");
    assert!(page.contains("duration such as `30s` or `5m`, or seconds · default `30s`"), "{page}");
    assert!(page.contains("### `server.by.<name>.key`\n\nstring, secret · optional\n\nIts key.\n"), "{page}");
}
