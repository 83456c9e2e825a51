//! The dashboard and the alerts use only existing metrics.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::metrics::UsedServer;

fn file(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/grafana").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The corbie metrics in an expression.
fn metric_names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    words.filter(|word| word.starts_with("corbie_") || word.starts_with("process_"))
}

/// Every `expr` anywhere in the file.
fn expressions<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("expr").and_then(Value::as_str));
            members.values().for_each(|member| expressions(member, found));
        }
        Value::Array(members) => members.iter().for_each(|member| expressions(member, found)),
        _ => {}
    }
}

#[test]
fn m88_the_dashboard_and_the_alerts_ask_for_metrics_that_there_are() {
    let dashboard: Value = serde_json::from_str(&file("corbie.json")).expect("the dashboard is JSON");
    let alerts = file("alerts.yaml");
    let mut asked = Vec::new();
    expressions(&dashboard, &mut asked);
    let of_alerts: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert!(asked.len() > 20 && of_alerts.len() > 4, "{} panels, {} alerts", asked.len(), of_alerts.len());
    let asked: BTreeSet<&str> = asked.into_iter().chain(of_alerts).flat_map(metric_names).collect();
    let used = UsedServer::start();
    let missing: Vec<_> = asked.difference(&used.names()).copied().collect();
    assert!(missing.is_empty(), "{missing:?} are not in\n{}", used.text);
}

#[test]
fn m88_the_dashboard_can_be_imported_anywhere() {
    let dashboard: Value = serde_json::from_str(&file("corbie.json")).expect("the dashboard is JSON");
    assert!(dashboard["id"].is_null() && dashboard["uid"].is_string() && dashboard["schemaVersion"].is_u64());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert!(variables.iter().any(|variable| variable["type"] == "datasource" && variable["query"] == "prometheus"));
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        assert!(panel["targets"].as_array().is_some_and(|targets| !targets.is_empty()), "{}", panel["title"]);
    }
}
