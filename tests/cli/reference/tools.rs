//! `docs/reference/tools.md`: every tool as the running server lists it.

use serde_json::{Value, json};

use super::settings::{has_members, is_required, kind, members, yaml_value};
use super::{anchor, cell, check, prose};
use crate::process::{corbie, request};

#[test]
fn the_reference_has_every_tool() {
    let mut server = corbie("").start();
    let listed = server.send_and_receive(&request(1, "tools/list", json!({})))["result"].clone();
    assert!(listed.get("nextCursor").is_none(), "the list has more than one page");
    let tools = listed["tools"].as_array().expect("a list of tools");
    check("tools.md", &page(tools));
}

fn page(tools: &[Value]) -> String {
    let mut tools: Vec<&Value> = tools.iter().collect();
    tools.sort_by_key(|tool| tool["name"].as_str().unwrap_or_default().to_owned());
    let mut page = String::from("# Tools\n\n");
    page += "All tools, as listed by `tools/list`. `corbie tools call NAME JSON` calls a tool without a client; in names, `-` and `_` are interchangeable.\n";
    page += "The required trust level depends on the effect of a tool ([Access](../access.md)); some tools require a higher level because of their cost or the data they return.\n\n";
    page += "| tool | effect | required trust level | description |\n|---|---|---|---|\n";
    for tool in &tools {
        let (effect, trust) = effect(tool);
        let first = text(tool, "description").split_inclusive(". ").next().unwrap_or_default().trim();
        page += &format!(
            "| [`{0}`](#{1}) | {effect} | {trust} | {2} |\n",
            text(tool, "name"),
            anchor(text(tool, "name")),
            cell(first)
        );
    }
    page.extend(tools.into_iter().map(section));
    page
}

fn section(tool: &Value) -> String {
    let (effect, trust) = effect(tool);
    let mut section = format!("\n## `{}`\n\n{}\n\n", text(tool, "name"), prose(text(tool, "description")));
    section += &format!("Effect: {effect}. Required trust level: {trust}");
    section += match trust {
        "untrusted" => " (all callers).\n",
        "trusted" => ".\n",
        _ => " or higher.\n",
    };
    if let Some(release) = tool["metadata"]["deprecated_in"].as_str() {
        section += &format!("Deprecated in {release}.\n");
    }
    let mut rows = Vec::new();
    collect("", &tool["inputSchema"], &mut rows);
    match rows.is_empty() {
        true => section += "\nNo arguments.\n",
        false => section += &format!("\n| argument | type | description |\n|---|---|---|\n{}", rows.concat()),
    }
    section
}

/// A row for each argument, and for each member of object arguments.
fn collect(before: &str, schema: &Value, rows: &mut Vec<String>) {
    for (name, argument) in members(schema) {
        let mut about = cell(argument["description"].as_str().unwrap_or_default());
        if is_required(schema, name) {
            about = format!("**Required.** {about}");
        }
        if let Some(default) = argument.get("default").filter(|default| !default.is_null()) {
            let stop = if about.is_empty() || about.ends_with('.') { "" } else { "." };
            about += &format!("{stop} Default: `{}`.", yaml_value(default));
        }
        rows.push(format!("| `{before}{name}` | {} | {} |\n", cell(&kind(argument)), about.trim()));
        collect(&format!("{before}{name}."), argument, rows);
        if has_members(&argument["items"]) {
            collect(&format!("{before}{name}[]."), &argument["items"], rows);
        }
    }
}

/// The effect of a tool and the trust level it requires; some tools require more than their effect implies.
fn effect(tool: &Value) -> (&'static str, &str) {
    let (effect, level) = match (&tool["annotations"]["readOnlyHint"], &tool["annotations"]["destructiveHint"]) {
        (Value::Bool(true), _) => ("read-only", "untrusted"),
        (_, Value::Bool(true)) => ("destroys data", "trusted"),
        _ => ("changes state or costs money", "verified"),
    };
    (effect, tool["metadata"]["trust"].as_str().unwrap_or(level))
}

fn text<'a>(tool: &'a Value, member: &str) -> &'a str {
    tool[member].as_str().unwrap_or_default()
}

#[test]
fn a_tool_is_told_with_its_arguments_and_who_may_call_it() {
    let tool = json!({
        "name": "wipe_it", "description": "Wipe a place. Nothing is left.",
        "annotations": { "readOnlyHint": false, "destructiveHint": true },
        "inputSchema": { "type": "object", "required": ["place"], "properties": {
            "place": { "type": "string", "description": "Which | one." },
            "how": { "type": "object", "properties": { "fast": { "type": "boolean", "default": true } } } } },
    });
    let page = page(&[tool]);
    assert!(page.contains("| [`wipe_it`](#wipe_it) | destroys data | trusted | Wipe a place. |"), "{page}");
    assert!(page.contains("| `place` | string | **Required.** Which \\| one. |\n"), "{page}");
    assert!(page.contains("| `how` | object |"), "{page}");
    assert!(page.contains("| `how.fast` | boolean | Default: `true`. |\n"), "{page}");
}
