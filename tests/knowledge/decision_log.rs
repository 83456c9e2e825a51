//! Routing decisions are visible on every instance that shares the database.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::Database;
use crate::http::{HttpClient, HttpResponse};
use crate::process::{TestProcess, corbie, report_skip, wait_for};
use crate::upstream::FakeUpstream;

/// Maximum delay until a decision is visible on every instance.
const SYNC_TIMEOUT: Duration = Duration::from_secs(2);

/// Instances that share a database and tokens.
struct SharedDatabase {
    upstream: FakeUpstream,
    database: Database,
    folder: TempDir,
}

impl SharedDatabase {
    fn if_configured() -> Option<SharedDatabase> {
        let Some(database) = Database::if_configured() else {
            report_skip("only a database is shared by several instances");
            return None;
        };
        Some(SharedDatabase { upstream: FakeUpstream::start(), database, folder: tempfile::tempdir().unwrap() })
    }

    fn token(&self, arguments: &str) -> String {
        let create = corbie("tokens create").arguments(arguments);
        let ended = create.variable("XDG_DATA_HOME", self.folder.path().display()).run("");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout.trim().to_owned()
    }

    fn start(&self) -> RoutingInstance {
        self.start_with_limit("1000")
    }

    /// Starts an instance that keeps this many decisions.
    fn start_with_limit(&self, decisions: &str) -> RoutingInstance {
        let mut running = self
            .upstream
            .corbie("serve --port 0")
            .variable("XDG_DATA_HOME", self.folder.path().display())
            .variable("CORBIE_SERVER__AUTH", "bearer")
            .variable("CORBIE_KNOWLEDGE__STORE", self.database.url())
            .variable("CORBIE_ROUTER__MAX_DECISIONS", decisions)
            .start();
        let client = running.client();
        RoutingInstance { client, running }
    }

    fn stored_decisions(&self) -> u64 {
        self.database.query("SELECT count(*) FROM corbie.decisions")[0].parse().unwrap()
    }
}

struct RoutingInstance {
    client: HttpClient,
    running: TestProcess,
}

impl RoutingInstance {
    #[track_caller]
    fn post(&self, token: &str, path: &str, body: &Value) -> HttpResponse {
        self.client.call("POST", path, &[("Authorization", &format!("Bearer {token}"))], &body.to_string())
    }

    /// Sends a prompt and returns the id of the decision.
    #[track_caller]
    fn prompt(&self, token: &str) -> u64 {
        let prompt = json!({ "model": "echo-large", "messages": [{ "role": "user", "content": "hello" }] });
        let reply = self.post(token, "/v1/chat/completions", &prompt);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.header("x-corbie-decision").unwrap().parse().unwrap()
    }

    /// The same, once ids have an instance prefix.
    #[track_caller]
    fn numbered_prompt(&self, token: &str) -> u64 {
        wait_for("the database", || (self.client.get("/ready?for=knowledge").status == 200).then_some(()));
        wait_for("a number among several", || Some(self.prompt(token)).filter(|id| *id > u64::from(u32::MAX)))
    }

    /// Contents of a resource, if the caller may read it.
    fn read_resource(&self, token: &str, uri: &str) -> Option<String> {
        let read = self.post(token, "/mcp/resources/read", &json!({ "uri": uri })).json();
        read["contents"][0]["text"].as_str().map(str::to_owned)
    }

    fn decision(&self, token: &str, id: u64) -> Option<String> {
        self.read_resource(token, &format!("corbie://decisions/{id}"))
    }

    /// Ids of the newest decisions, newest first.
    #[track_caller]
    fn newest(&self, token: &str) -> Vec<u64> {
        let told: Value = serde_json::from_str(&self.read_resource(token, "corbie://decisions").unwrap()).unwrap();
        told["decisions"].as_array().unwrap().iter().map(|decision| decision["id"].as_u64().unwrap()).collect()
    }
}

#[test]
fn a13_a_decision_of_one_instance_is_told_by_every_other_to_who_may_see_it() {
    let Some(shared) = SharedDatabase::if_configured() else { return };
    let (one, other) = (shared.token("one --trust verified"), shared.token("other --trust verified"));
    let trusted = shared.token("trusted --trust trusted");
    let (a, b) = (shared.start(), shared.start());
    let (of_a, of_b) = (a.numbered_prompt(&one), b.numbered_prompt(&other));
    assert_ne!(of_a >> 32, of_b >> 32, "each instance numbers for itself");
    assert!(of_a < 1 << 53, "readers of JSON know no greater numbers: {of_a}");

    let id = a.prompt(&one);
    let (asked, told) = (Instant::now(), a.decision(&one, id).unwrap());
    let elsewhere = wait_for("the decision elsewhere", || b.decision(&one, id));
    assert!(asked.elapsed() < SYNC_TIMEOUT, "{:?}", asked.elapsed());
    assert_eq!(elsewhere, told, "word for word");
    wait_for("the other decision", || a.decision(&other, of_b));

    assert_eq!(b.newest(&one).first(), Some(&id));
    assert_eq!(a.newest(&trusted).first(), Some(&id), "told once, whether it is written or not");
    assert!([id, of_a, of_b].iter().all(|id| b.newest(&trusted).contains(id)));
    // Callers see only their own prompts, on every instance.
    for instance in [&a, &b] {
        assert!(!instance.newest(&one).contains(&of_b) && !instance.newest(&other).contains(&id));
        assert_eq!((instance.decision(&other, id), instance.decision(&one, of_b)), (None, None));
        assert_eq!(instance.decision(&trusted, id).as_ref(), Some(&told));
    }

    // Prompts never wait for the database; reads wait only briefly.
    let held = shared.database.hold_transaction("LOCK TABLE corbie.decisions");
    let meanwhile = a.prompt(&one);
    assert_eq!(a.newest(&one).first(), Some(&meanwhile));
    assert!(b.newest(&other).contains(&of_b), "what it was asked itself");
    assert_eq!(b.decision(&one, meanwhile), None);
    drop(held);
    wait_for("the decision after the wait", || b.decision(&one, meanwhile));
}

#[test]
fn a13_what_an_instance_was_asked_outlives_it_as_far_as_so_many_are_kept() {
    let Some(shared) = SharedDatabase::if_configured() else { return };
    let trusted = shared.token("trusted --trust trusted");
    let (a, none) = (shared.start_with_limit("3"), shared.start_with_limit("0"));
    let first = a.numbered_prompt(&trusted);
    wait_for("the first to be written", || (shared.stored_decisions() > 0).then_some(()));
    let mut last = a.prompt(&trusted);
    for _ in 0..5 {
        last = a.prompt(&trusted);
        none.prompt(&trusted);
    }
    // Shutdown right after a prompt: pending decisions are flushed.
    let mut running = a.running;
    running.terminate();
    assert_eq!(running.wait_timeout(crate::process::TEST_TIMEOUT).code, Some(0));
    assert_eq!(shared.stored_decisions(), 3);

    let b = shared.start_with_limit("3");
    wait_for("the decisions of one that ended", || b.decision(&trusted, last));
    assert_eq!((b.newest(&trusted).len(), b.newest(&trusted).first()), (3, Some(&last)));
    assert_eq!(b.decision(&trusted, first), None, "forgotten");
    assert_eq!((none.newest(&trusted).len(), none.decision(&trusted, last)), (0, None), "it is to tell none");
}

#[test]
fn a13_what_was_asked_before_the_database_was_reached_stays_with_its_instance() {
    let Some(shared) = SharedDatabase::if_configured() else { return };
    let trusted = shared.token("trusted --trust trusted");
    // Tables of an unknown version, which are not opened.
    shared.database.query(
        "CREATE SCHEMA corbie; CREATE TABLE corbie.meta (name text, value text); \
         INSERT INTO corbie.meta VALUES ('version', '9999')",
    );
    let (a, b) = (shared.start(), shared.start());
    assert_eq!([a.prompt(&trusted), a.prompt(&trusted), b.prompt(&trusted)], [1, 2, 1]);
    assert_eq!(a.newest(&trusted), [2, 1]);
    shared.database.query("DROP SCHEMA corbie CASCADE");
    let (of_a, of_b) = (a.numbered_prompt(&trusted), b.numbered_prompt(&trusted));
    wait_for("the decision elsewhere", || b.decision(&trusted, of_a));
    wait_for("the other decision", || a.decision(&trusted, of_b));
    let newest = a.newest(&trusted);
    assert!([1, 2, of_a, of_b].iter().all(|id| newest.contains(id)), "{newest:?}");
    // The ids are not shared: each instance has its own decision 1.
    assert_ne!(a.decision(&trusted, 1), b.decision(&trusted, 1));
}
