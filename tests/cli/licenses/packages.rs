//! Packages compiled into the program, as cargo resolves them: with every feature and for every platform.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A package that is compiled into the program or used at compile time.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: String,
    pub(super) folder: PathBuf,
}

/// All third-party packages, sorted by name and version.
pub(super) fn packages() -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // Not `--offline`: packages for other platforms may not be downloaded yet.
    command.args(["metadata", "--format-version=1", "--locked", "--all-features"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();

    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let nodes: BTreeMap<String, Vec<Value>> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), list(&node["deps"]))).collect();
    let mut reached = BTreeSet::new();
    let mut waiting = vec![text(&metadata["resolve"]["root"])];
    while let Some(id) = waiting.pop() {
        // Development and build dependencies are not included.
        let is_inside = |dependency: &&Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        if reached.insert(id.clone()) {
            waiting.extend(nodes[&id].iter().filter(is_inside).map(|dependency| text(&dependency["pkg"])));
        }
    }
    let mut packages: Vec<Package> = list(&metadata["packages"])
        .iter()
        .filter(|package| reached.contains(&text(&package["id"])) && !package["source"].is_null())
        .map(|package| Package {
            name: text(&package["name"]),
            version: text(&package["version"]),
            // `/` is the old form of `OR`.
            license: text(&package["license"]).replace('/', " OR "),
            folder: PathBuf::from(text(&package["manifest_path"])).parent().expect("a folder").to_owned(),
        })
        .collect();
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    packages
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
