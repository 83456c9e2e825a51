//! Rate limits per caller across programs that share a database (S-09, A-13).

use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{Corbie, Storage, pause, setup, shown};
use crate::http::Client;
use crate::process::{corbie, request, skip, wait_for};

/// Two programs on one database that require tokens, and two token holders.
struct Two {
    programs: [Corbie; 2],
    ann: Caller,
    ben: Caller,
    /// Keeps the token file, as programs drop the tokens of a deleted file.
    _files: (Storage, TempDir),
}

impl Two {
    /// `None` without a shared database.
    fn start(per_second: u32, burst: u32) -> Option<Two> {
        let (storage, tokens) = (Storage::new(), tempfile::tempdir().unwrap());
        // Before the programs start: an unknown token would count as a guess.
        let (ann, ben) = (Caller::new("ann", &tokens), Caller::new("ben", &tokens));
        let limit = json!({ "per_second": per_second, "burst": burst }).to_string();
        let start = || {
            let setup = setup(&[])
                .variable("CORBIE_SERVER__AUTH", "bearer")
                .variable("CORBIE_SERVER__RATE_LIMIT", &limit)
                .variable("XDG_DATA_HOME", shown(tokens.path()));
            Corbie::over_with(&storage, setup)
        };
        let one = start();
        if one.database().is_none() {
            skip("who shares files shares no rates");
            return None;
        }
        let two = Two { programs: [one, start()], ann, ben, _files: (storage, tokens) };
        for client in two.clients() {
            wait_for("the database", || (client.get("/ready?for=knowledge").status == 200).then_some(()));
        }
        Some(two)
    }

    fn clients(&self) -> [Client; 2] {
        [self.programs[0].client, self.programs[1].client]
    }
}

struct Caller(String);

impl Caller {
    /// Creates a token and returns its holder.
    fn new(name: &str, folder: &TempDir) -> Caller {
        let create = corbie(&format!("tokens create {name}")).variable("XDG_DATA_HOME", shown(folder.path()));
        let ended = create.run("");
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        Caller(format!("Bearer {}", ended.out.trim()))
    }

    fn send(&self, client: Client) -> u16 {
        let ping = request(1, "ping", json!({})).to_string();
        client.call("POST", "/mcp", &[("Authorization", &self.0)], &ping).status
    }

    /// How many of this many back-to-back requests are served.
    fn served(&self, client: Client, sent: usize) -> usize {
        (0..sent).filter(|_| self.send(client) == 200).count()
    }
}

#[test]
fn s09_a13_who_takes_turns_between_instances_has_one_allowance() {
    const PER_SECOND: u32 = 5;
    const BURST: u32 = 20;
    let Some(two) = Two::start(PER_SECOND, BURST) else { return };
    let (begun, mut served) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(6) {
        served += two.clients().iter().filter(|client| two.ann.send(**client) == 200).count();
        pause(5);
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
    let Some(two) = Two::start(1, 60) else { return };
    let (caller, [one, next]) = (&two.ann, two.clients());
    assert!(caller.served(one, 60) >= 50);
    pause(1000);
    caller.send(next);
    pause(1000);
    let served = caller.served(next, 60);
    assert!(served <= 30, "{served} were served by the next");
}

#[test]
fn s09_a13_while_the_database_is_away_each_instance_goes_on_and_tells_it_later() {
    let Some(two) = Two::start(1, 30) else { return };
    let (caller, [one, next]) = (&two.ann, two.clients());
    let held = two.programs[0].database().unwrap().hold("LOCK TABLE corbie.rates IN ACCESS EXCLUSIVE MODE");
    let begun = Instant::now();
    for client in [one, next] {
        let served = caller.served(client, 40);
        assert!(served >= 20, "{served} were served; each has its own allowance now");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "nobody waits for the database: {:?}", begun.elapsed());
    drop(held);
    // A caller within its limit is not charged twice.
    pause(1500);
    for client in [one, next] {
        let statuses: Vec<u16> = (0..5).map(|_| two.ben.send(client)).collect();
        assert_eq!(statuses, [200; 5]);
    }
    // Each instance alone would have tokens in the bucket by now, but both know the total usage.
    wait_for("what was spent to be known", || {
        pause(2000);
        [one, next].iter().all(|client| caller.send(*client) == 429).then_some(())
    });
}
