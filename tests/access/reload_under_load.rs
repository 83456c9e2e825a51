//! Repeated rewrites of the files, including broken ones, under continuous load.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::fixture::{OperatorHome, call, start_with_client};
use crate::http::HttpClient;
use crate::process::wait_for;

/// Number of rewrites.
const ROUNDS: usize = 40;
/// Number of callers of each kind.
const CALLERS: usize = 4;

/// The files of a server, each in one of many versions.
struct ServerFiles {
    taxonomy: PathBuf,
    settings: PathBuf,
    tokens: PathBuf,
    /// The token file with the guest, and without.
    token_files: [String; 2],
}

/// Results of the callers.
#[derive(Default)]
struct ObservedAnswers {
    answers: AtomicUsize,
    is_stopped: AtomicBool,
    /// The taxonomy versions seen in results.
    versions: Mutex<Vec<usize>>,
}

/// Both categories name a model of the same version, so a result of two versions shows.
fn taxonomy(version: usize) -> String {
    let category = |name: &str, word: &str| {
        format!(
            "  - {{name: {name}, model: gone/v{version}-{name}, words: [{word}], certain: ['^{word}$'], \
             examples: [all about {word}s, {word} and more]}}\n"
        )
    };
    format!("categories:\n{}{}", category("fruit", "apple"), category("tools", "hammer"))
}

/// Every version has one provider, named after it.
fn provider_name(version: usize) -> &'static str {
    ["alpha", "beta", "gamma"][version % 3]
}

fn settings(version: usize) -> String {
    let name = provider_name(version);
    format!("providers: {{{name}: {{type: mock}}}}\ndefaults: {{model: {name}/mock}}\n")
}

impl ServerFiles {
    /// Replaces all files atomically by a valid version, as programs do.
    fn write(&self, version: usize) {
        let all = [
            (&self.taxonomy, taxonomy(version)),
            (&self.settings, settings(version)),
            (&self.tokens, self.token_files[version % 2].clone()),
        ];
        for (path, text) in all {
            let beside = path.with_extension("new");
            fs::write(&beside, text).unwrap();
            fs::rename(&beside, path).unwrap();
        }
    }

    /// Overwrites one file in place with broken contents, as people do; returns its name in the log.
    fn corrupt(&self, number: usize) -> &'static str {
        let (path, text, called) = [
            (&self.taxonomy, "categories: [{name: fruit, patterns: ['(']}]", "taxonomy"),
            (&self.settings, "providers: {alpha: {type: none}}\n", "settings"),
            (&self.tokens, "half", "tokens"),
        ][number % 3];
        fs::write(path, text).unwrap();
        called
    }
}

/// The result of a tool; the token holder must never be rejected.
#[track_caller]
fn tool_result(client: HttpClient, token: &str, tool: &str, arguments: &Value) -> Value {
    let reply = call(client, token, tool, arguments);
    assert_eq!(reply.status, 200, "{tool}: {reply:?}");
    let said = reply.json();
    assert!(!said["isError"].as_bool().unwrap_or(false), "{tool}: {said}");
    said["structuredContent"].clone()
}

/// The version of the models, which must be the same for all.
#[track_caller]
fn version_of(sorted: &Value) -> usize {
    let models: Vec<&str> =
        sorted["results"].as_array().unwrap().iter().map(|result| result["model"].as_str().unwrap()).collect();
    let version = |model: &str| model.strip_prefix("gone/v")?.split_once('-')?.0.parse::<usize>().ok();
    let first = version(models[0]).unwrap_or_else(|| panic!("{sorted}"));
    assert!(models.iter().all(|model| version(model) == Some(first)), "of two versions: {models:?}");
    assert!(models[0].ends_with("fruit") && models[1].ends_with("tools"), "{models:?}");
    first
}

const TEXTS: [&str; 4] = ["apple", "hammer", "apple", "hammer"];

/// One call of each kind of caller, whose result belongs to exactly one version.
fn call_once(kind: usize, client: HttpClient, token: &str, heard: &ObservedAnswers) {
    match kind {
        0 => {
            let version = version_of(&tool_result(client, token, "batch_categorize", &json!({ "texts": TEXTS })));
            heard.versions.lock().unwrap().push(version);
        }
        1 => {
            let route = tool_result(client, token, "explain_route", &json!({ "prompt": "apple" }));
            let names: Vec<&str> =
                route["candidates"].as_array().unwrap().iter().map(|one| one["provider"].as_str().unwrap()).collect();
            assert!(matches!(names[..], ["alpha"] | ["beta"] | ["gamma"]), "one version has one provider: {route}");
            assert_eq!(route["category"], "fruit", "{route}");
        }
        2 => {
            let listed = tool_result(client, token, "list_providers", &json!({}));
            let names = listed["providers"].as_array().unwrap().len();
            assert_eq!(names, 1, "{listed}");
        }
        _ => {
            let found = tool_result(client, token, "knowledge-search", &json!({ "query": "honey of bees" }));
            assert!(found.to_string().contains("nectar"), "{found}");
        }
    }
    heard.answers.fetch_add(1, Ordering::Relaxed);
}

#[cfg(unix)]
#[test]
fn a12_files_that_change_under_load_are_taken_over_whole_and_broken_ones_not_at_all() {
    let operator = OperatorHome::new();
    let (token, guest) = (operator.token("--trust trusted steady"), operator.token("guest"));
    let tokens = operator.folder().join("corbie/tokens.json");
    let with_guest = fs::read_to_string(&tokens).unwrap();
    assert_eq!(operator.run("tokens revoke guest").code, Some(0));
    let guests = [with_guest, fs::read_to_string(&tokens).unwrap()];
    let files = ServerFiles {
        taxonomy: operator.folder().join("t.yaml"),
        settings: operator.folder().join("corbie.yaml"),
        tokens,
        token_files: guests,
    };
    files.write(0);
    let setup = operator.server().variable("CORBIE_CLASSIFICATION__TAXONOMY", files.taxonomy.display());
    let setup = setup.argument("--config").argument(files.settings.display().to_string());
    let (mut server, client) = start_with_client(setup);
    let document = operator.folder().join("bees.txt");
    fs::write(&document, "Bees gather nectar and make honey of it.").unwrap();
    tool_result(client, &token, "knowledge-add", &json!({ "file_path": document, "async": false }));

    let heard = ObservedAnswers::default();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4 * CALLERS)
            .map(|number| {
                let (heard, token) = (&heard, &token);
                scope.spawn(move || {
                    while !heard.is_stopped.load(Ordering::Relaxed) {
                        call_once(number % 4, client, token, heard);
                    }
                })
            })
            .collect();
        let over = StopOnDrop(&heard);
        for round in 1..=ROUNDS {
            files.write(round);
            let spoilt = (round % 2 == 0).then(|| files.corrupt(round / 2));
            server.signal("HUP");
            if let Some(what) = spoilt {
                server.wait_for_log(&format!("rejected the new {what}"));
            }
            // Calls succeed during the reloads.
            let answered = heard.answers.load(Ordering::Relaxed) + 4 * CALLERS;
            wait_for("answers", || {
                let failed = callers.iter().any(|caller| caller.is_finished());
                (failed || heard.answers.load(Ordering::Relaxed) >= answered).then_some(())
            });
            if round % 4 == 1 {
                wait_for("a new version", || heard.versions.lock().unwrap().contains(&round).then_some(()));
            }
        }
        files.write(ROUNDS + 1);
        server.signal("HUP");
        wait_until_applied(client, &token, &guest, ROUNDS + 1);
        drop(over);
    });
    server.terminate();
    let ended = server.wait();
    assert_eq!((ended.code, ended.stderr.contains("panic; set `log.level")), (Some(0), false), "{ended:?}");
}

/// Stops the callers, even if the test has failed.
struct StopOnDrop<'h>(&'h ObservedAnswers);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// Waits until the last version of all files is active.
fn wait_until_applied(client: HttpClient, token: &str, guest: &str, version: usize) {
    wait_for("the last taxonomy", || {
        let sorted = tool_result(client, token, "batch_categorize", &json!({ "texts": TEXTS }));
        (version_of(&sorted) == version).then_some(())
    });
    wait_for("the last providers", || {
        let listed = tool_result(client, token, "list_providers", &json!({}));
        (listed["providers"][0]["name"] == provider_name(version)).then_some(())
    });
    let welcome = if version.is_multiple_of(2) { 200 } else { 401 };
    wait_for("the last tokens", || {
        (call(client, guest, "list_categories", &json!({})).status == welcome).then_some(())
    });
}
