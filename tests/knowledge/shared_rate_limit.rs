//! Rate limits per caller across programs that share a database (S-09, A-13).

use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{KnowledgeServer, Storage, path_string, server_command, sleep_ms};
use crate::http::HttpClient;
use crate::process::{corbie, report_skip, request, wait_for};

/// Two programs on one database that require tokens, and two token holders.
struct TwoInstances {
    programs: [KnowledgeServer; 2],
    ann: TokenCaller,
    ben: TokenCaller,
    /// Keeps the token file, as programs drop the tokens of a deleted file.
    _files: (Storage, TempDir),
}

impl TwoInstances {
    /// `None` without a shared database.
    fn start(per_second: u32, burst: u32) -> Option<TwoInstances> {
        let (storage, tokens) = (Storage::new(), tempfile::tempdir().unwrap());
        // Before the programs start: an unknown token would count as a guess.
        let (ann, ben) = (TokenCaller::new("ann", &tokens), TokenCaller::new("ben", &tokens));
        let limit = json!({ "per_second": per_second, "burst": burst }).to_string();
        let start = || {
            let setup = server_command(&[])
                .variable("CORBIE_SERVER__AUTH", "bearer")
                .variable("CORBIE_SERVER__RATE_LIMIT", &limit)
                .variable("XDG_DATA_HOME", path_string(tokens.path()));
            KnowledgeServer::with_storage_and_command(&storage, setup)
        };
        let one = start();
        if one.database().is_none() {
            report_skip("who shares files shares no rates");
            return None;
        }
        let two = TwoInstances { programs: [one, start()], ann, ben, _files: (storage, tokens) };
        for client in two.clients() {
            wait_for("the database", || (client.get("/ready?for=knowledge").status == 200).then_some(()));
        }
        Some(two)
    }

    fn clients(&self) -> [HttpClient; 2] {
        [self.programs[0].client, self.programs[1].client]
    }
}

struct TokenCaller(String);

impl TokenCaller {
    /// Creates a token and returns its holder.
    fn new(name: &str, folder: &TempDir) -> TokenCaller {
        let create = corbie(&format!("tokens create {name}")).variable("XDG_DATA_HOME", path_string(folder.path()));
        let ended = create.run("");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        TokenCaller(format!("Bearer {}", ended.stdout.trim()))
    }

    fn send(&self, client: HttpClient) -> u16 {
        let ping = request(1, "ping", json!({})).to_string();
        client.call("POST", "/mcp", &[("Authorization", &self.0)], &ping).status
    }

    /// How many of this many back-to-back requests are served.
    fn served_count(&self, client: HttpClient, sent: usize) -> usize {
        (0..sent).filter(|_| self.send(client) == 200).count()
    }
}

#[test]
fn s09_a13_who_takes_turns_between_instances_has_one_allowance() {
    const PER_SECOND: u32 = 5;
    const BURST: u32 = 20;
    let Some(two) = TwoInstances::start(PER_SECOND, BURST) else { return };
    let (begun, mut served) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(6) {
        served += two.clients().iter().filter(|client| two.ann.send(**client) == 200).count();
        sleep_ms(5);
    }
    let allowance = f64::from(BURST) + f64::from(PER_SECOND) * begun.elapsed().as_secs_f64();
    // Each instance may admit a burst before it learns of the usage on the other: one burst more than with a single
    // instance.
    let most = allowance + f64::from(BURST);
    assert!(served as f64 <= most, "{served} were served, more than {most}; each alone would have served {allowance}");
    let least = 0.7 * allowance;
    assert!(served as f64 >= least, "{served} were served of {allowance}");
    for client in two.clients() {
        let statuses: Vec<u16> = (0..8).map(|_| two.ben.send(client)).collect();
        assert_eq!(statuses, [200; 8], "who sends little pays for nobody");
    }
}

#[test]
fn s09_a13_what_was_spent_on_one_instance_is_known_to_the_next_after_one_request() {
    let Some(two) = TwoInstances::start(1, 60) else { return };
    let (caller, [one, next]) = (&two.ann, two.clients());
    assert!(caller.served_count(one, 60) >= 50);
    sleep_ms(1000);
    caller.send(next);
    sleep_ms(1000);
    let served = caller.served_count(next, 60);
    assert!(served <= 30, "{served} were served by the next");
}

#[test]
fn s09_a13_while_the_database_is_away_each_instance_goes_on_and_tells_it_later() {
    let Some(two) = TwoInstances::start(1, 30) else { return };
    let (caller, [one, next]) = (&two.ann, two.clients());
    let held = two.programs[0].database().unwrap().hold_transaction("LOCK TABLE corbie.rates IN ACCESS EXCLUSIVE MODE");
    let begun = Instant::now();
    for client in [one, next] {
        let served = caller.served_count(client, 40);
        assert!(served >= 20, "{served} were served; each has its own allowance now");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "nobody waits for the database: {:?}", begun.elapsed());
    drop(held);
    // A caller within its limit is not charged twice.
    sleep_ms(1500);
    for client in [one, next] {
        let statuses: Vec<u16> = (0..5).map(|_| two.ben.send(client)).collect();
        assert_eq!(statuses, [200; 5]);
    }
    // Each instance alone would have tokens in the bucket by now, but both know the total usage.
    wait_for("what was spent to be known", || {
        sleep_ms(2000);
        [one, next].iter().all(|client| caller.send(*client) == 429).then_some(())
    });
}
