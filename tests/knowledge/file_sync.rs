//! Files shared by instances on one database, with a copy on each machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::Database;
use crate::fixture::{KnowledgeServer, in_database, path_string, sleep_ms, tool_json};
use crate::process::{self, TestCommand, report_skip, wait_for};

/// One machine with its own storage, taxonomy and tokens.
struct SyncHost {
    folder: TempDir,
    database: Arc<Database>,
}

const BILLS: &str = "categories:\n  - name: bills\n    description: Money\n    words: [invoice]\n";
const BIRDS: &str = "categories:\n  - name: birds\n    description: Feathers\n    words: [raven]\n";
const BOATS: &str = "categories:\n  - name: boats\n    description: Sails\n    words: [mast]\n";

/// A database, if the tests use one: files are shared only through PostgreSQL.
fn database() -> Option<Arc<Database>> {
    let database = Database::if_configured().map(Arc::new);
    if database.is_none() {
        report_skip("instances share files on PostgreSQL only");
    }
    database
}

impl SyncHost {
    fn new(database: &Arc<Database>, taxonomy: &str) -> SyncHost {
        let machine = SyncHost { folder: tempfile::tempdir().unwrap(), database: database.clone() };
        std::fs::write(machine.taxonomy(), taxonomy).unwrap();
        machine
    }

    fn taxonomy(&self) -> PathBuf {
        self.folder.path().join("taxonomy.yaml")
    }

    fn tokens(&self) -> PathBuf {
        self.folder.path().join("tokens.json")
    }

    fn taxonomy_text(&self) -> String {
        std::fs::read_to_string(self.taxonomy()).unwrap()
    }

    /// The recorded sync state of a kind of file.
    fn sync_state_files(&self, kind: &str) -> Vec<PathBuf> {
        let Ok(notes) = std::fs::read_dir(self.folder.path().join("storage/shared")) else { return Vec::new() };
        let is_of = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(kind);
        notes.map(|note| note.unwrap().path()).filter(is_of).collect()
    }

    /// Whether it has synchronized with the database.
    fn has_synced(&self) -> bool {
        !self.sync_state_files("taxonomy-").is_empty()
    }

    /// Whether a backup has this text.
    fn has_backup_of(&self, text: &str) -> bool {
        let path = |number| self.folder.path().join(format!("taxonomy.yaml.bak-{number}"));
        (1..9).any(|number| std::fs::read_to_string(path(number)).is_ok_and(|kept| kept == text))
    }

    fn setup(&self, arguments: &str) -> TestCommand {
        let within = |path: &Path| path_string(path);
        let setup = process::corbie(arguments)
            .variable("CORBIE_KNOWLEDGE__STORAGE_PATH", within(&self.folder.path().join("storage")))
            .variable("CORBIE_CLASSIFICATION__TAXONOMY", within(&self.taxonomy()))
            .variable("CORBIE_SERVER__TOKENS_FILE", within(&self.tokens()));
        in_database(setup, Some(&self.database))
    }

    fn start(&self) -> KnowledgeServer {
        KnowledgeServer::with_database(&self.database, self.setup("serve --stdio --port 0"))
    }

    /// Starts an instance that requires tokens. The operator's token prevents it from refusing to start.
    fn start_with_auth(&self) -> KnowledgeServer {
        // Tokens are polled for more often than an address may try otherwise.
        let setup = self.setup("serve --stdio --port 0").variable("CORBIE_SERVER__AUTH", "bearer");
        let setup = setup.variable("CORBIE_SERVER__RATE_LIMIT__PER_SECOND", 100_000);
        KnowledgeServer::with_database(
            &self.database,
            setup.variable("MCP_API_KEY", "a4d26868017c0ccffe2efe50944ef4211834660c"),
        )
    }

    /// A command that cannot reach the database.
    fn command_without_database(&self, arguments: &str) -> TestCommand {
        self.setup(arguments).variable("CORBIE_KNOWLEDGE__STORE", "postgres://nobody@127.0.0.1:9/none")
    }

    #[track_caller]
    fn run_command(&self, arguments: &str) -> String {
        let ended = self.setup(arguments).run("");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    }
}

fn has_tables(database: &Database) -> bool {
    database.query("SELECT to_regclass('corbie.files') IS NOT NULL") == ["t"]
}

/// Whether the taxonomy is in the database.
fn is_shared(database: &Database) -> Option<()> {
    let shared = has_tables(database) && database.query("SELECT count(*) FROM corbie.files") == ["1"];
    shared.then_some(())
}

/// The names of the active categories.
fn categories(corbie: &mut KnowledgeServer) -> Vec<String> {
    let listed = tool_json(&corbie.result("list_categories", &json!({})));
    listed["categories"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn version(corbie: &mut KnowledgeServer) -> Value {
    tool_json(&corbie.result("get_taxonomy", &json!({})))["version"].clone()
}

fn save(corbie: &mut KnowledgeServer, text: &str, version: &Value) -> Value {
    tool_json(&corbie.result("save_taxonomy", &json!({ "text": text, "version": version })))
}

fn has_category(corbie: &mut KnowledgeServer, category: &str) -> Option<()> {
    categories(corbie).iter().any(|name| name == category).then_some(())
}

#[test]
fn a13_a_taxonomy_that_is_saved_on_one_instance_is_used_by_all() {
    let Some(database) = database() else { return };
    let (here, there) = (SyncHost::new(&database, BILLS), SyncHost::new(&database, BILLS));
    let (mut one, mut other) = (here.start(), there.start());
    let old = version(&mut one);
    wait_for("both to agree", || is_shared(&database));
    let saved = wait_for("the database to be open", || {
        let saved = save(&mut one, BIRDS, &old);
        (saved["reason"] != "unavailable").then_some(saved)
    });
    assert_eq!(saved["saved"], true, "{saved}");
    assert!(has_category(&mut one, "birds").is_some());
    wait_for("the other to use it", || has_category(&mut other, "birds"));
    assert_eq!(there.taxonomy_text(), BIRDS);
    // A save based on an old version would undo the changes of other clients.
    let refused = save(&mut other, BOATS, &old);
    assert_eq!((&refused["saved"], &refused["reason"]), (&json!(false), &json!("conflict")), "{refused}");
    let now = version(&mut other);
    assert_eq!(now, saved["version"]);
    assert_eq!(save(&mut other, BOATS, &now)["saved"], true);
    wait_for("the first to use that", || has_category(&mut one, "boats"));
    assert!(there.has_backup_of(BIRDS), "what was there before is kept where it was saved");
    assert_eq!(database.query("SELECT max(version) FROM corbie.files WHERE name = 'taxonomy'"), ["3"]);
}

#[test]
fn a13_of_two_who_save_at_once_one_is_told_to_look_again() {
    let Some(database) = database() else { return };
    let machines: Vec<_> = (0..3).map(|_| SyncHost::new(&database, BILLS)).collect();
    let mut running: Vec<_> = machines.iter().map(SyncHost::start).collect();
    let version = version(&mut running[0]);
    wait_for("all to be there", || running.iter_mut().all(|one| one.status()["success"] == true).then_some(()));
    wait_for("all to agree", || is_shared(&database));
    let saved: Vec<Value> = std::thread::scope(|scope| {
        let saving: Vec<_> = running
            .iter_mut()
            .enumerate()
            .map(|(number, one)| {
                let (text, version) = (BIRDS.replace("birds", &format!("birds{number}")), &version);
                scope.spawn(move || save(one, &text, version))
            })
            .collect();
        saving.into_iter().map(|saving| saving.join().unwrap()).collect()
    });
    let won: Vec<usize> = (0..3).filter(|number| saved[*number]["saved"] == true).collect();
    assert_eq!(won.len(), 1, "{saved:?}");
    assert!(saved.iter().all(|told| told["saved"] == true || told["reason"] == "conflict"), "{saved:?}");
    let winner = format!("birds{}", won[0]);
    for one in &mut running {
        wait_for("all to use what was saved", || has_category(one, &winner));
    }
}

#[test]
fn a13_a_taxonomy_that_is_edited_by_hand_reaches_the_others_unless_it_has_mistakes() {
    let Some(database) = database() else { return };
    let (here, there) = (SyncHost::new(&database, BILLS), SyncHost::new(&database, BILLS));
    let (mut one, mut other) = (here.start(), there.start());
    wait_for("both to agree", || (here.has_synced() && there.has_synced()).then_some(()));
    std::fs::write(here.taxonomy(), BIRDS).unwrap();
    for corbie in [&mut one, &mut other] {
        wait_for("both to use it", || has_category(corbie, "birds"));
    }
    std::fs::write(here.taxonomy(), "categories: 7\n").unwrap();
    one.running.wait_for_log("file is not synced");
    assert_eq!(there.taxonomy_text(), BIRDS);
    assert!(
        has_category(&mut one, "birds").is_some() && has_category(&mut other, "birds").is_some(),
        "what was right stays in use"
    );
    std::fs::write(here.taxonomy(), BOATS).unwrap();
    wait_for("the other to use what was mended", || has_category(&mut other, "boats"));
}

#[test]
fn a13_who_comes_later_uses_what_all_use_and_keeps_its_own_beside() {
    let Some(database) = database() else { return };
    let (here, there) = (SyncHost::new(&database, BIRDS), SyncHost::new(&database, BOATS));
    let mut one = here.start();
    wait_for("the first to share it", || is_shared(&database));
    let mut other = there.start();
    wait_for("the second to use it", || has_category(&mut other, "birds"));
    assert!(there.has_backup_of(BOATS));
    // Changes made while an instance was down are fetched when it starts.
    drop(other);
    let saved = version(&mut one);
    assert_eq!(save(&mut one, BILLS, &saved)["saved"], true);
    let mut other = there.start();
    wait_for("it to use what was changed meanwhile", || has_category(&mut other, "bills"));
    assert!(!there.has_backup_of(BIRDS), "nobody had changed it there");
}

#[test]
fn a13_c55_a_category_has_the_same_number_on_an_instance_that_never_knew_those_before_it() {
    let Some(database) = database() else { return };
    let both = format!("{BIRDS}{}", BOATS.trim_start_matches("categories:\n"));
    let (here, there) = (SyncHost::new(&database, &both), SyncHost::new(&database, BOATS));
    let mut one = here.start();
    wait_for("the first to share it", || is_shared(&database));
    let old = version(&mut one);
    assert_eq!(save(&mut one, BOATS, &old)["saved"], true);
    let mut other = there.start();
    for corbie in [&mut one, &mut other] {
        wait_for("boats to be the second", || (categories(corbie) == ["birds", "boats"]).then_some(()));
    }
    let [one, other] = [one, other].map(|mut corbie| {
        let classified = tool_json(&corbie.result("classify_text", &json!({ "text": "the mast of a boat" })));
        (classified["class"].clone(), tool_json(&corbie.result("list_categories", &json!({}))))
    });
    assert_eq!(one, other);
    assert_eq!(one.0, 1);
}

#[test]
fn a13_a_token_counts_on_all_instances_until_it_is_revoked_on_one() {
    let Some(database) = database() else { return };
    let (here, there) = (SyncHost::new(&database, BILLS), SyncHost::new(&database, BILLS));
    let (one, other) = (here.start_with_auth(), there.start_with_auth());
    let lets_in = |corbie: &KnowledgeServer, token: &str| {
        let known = format!("Bearer {token}");
        let reply = corbie.client.call(
            "POST",
            "/mcp/tools/list",
            &[("Authorization", &known), ("Content-Type", "application/json")],
            "{}",
        );
        match reply.status {
            200 => true,
            401 => false,
            _ => panic!("{reply:?}"),
        }
    };
    wait_for("the tables", || {
        (database.query("SELECT to_regclass('corbie.files') IS NOT NULL") == ["t"]).then_some(())
    });
    let laptop = here.run_command("tokens create laptop").trim().to_owned();
    for corbie in [&one, &other] {
        wait_for("all to know it", || lets_in(corbie, &laptop).then_some(()));
    }
    let phone = there.run_command("tokens create phone").trim().to_owned();
    assert!(here.run_command("tokens list --json").contains("phone"), "who lists them asks the others");
    there.run_command("tokens revoke laptop");
    for corbie in [&one, &other] {
        wait_for("all to have forgotten it", || (!lets_in(corbie, &laptop)).then_some(()));
        wait_for("all to know the second", || lets_in(corbie, &phone).then_some(()));
    }
    // Token names are unique across machines.
    let taken = here.setup("tokens create phone").run("");
    assert!(taken.code == Some(1) && taken.stderr.contains("already exists"), "{}", taken.stderr);
    // A late instance knows all tokens before it accepts callers.
    let third = SyncHost::new(&database, BILLS);
    std::fs::remove_file(third.taxonomy()).unwrap();
    let late = third.start_with_auth();
    assert!(lets_in(&late, &phone) && !lets_in(&late, &laptop));
    assert_eq!(third.taxonomy_text(), BILLS, "a machine without a taxonomy gets the one of all");
    // Without the database a new token is valid locally, and the server publishes it later.
    let alone = here.command_without_database("tokens create tablet").run("");
    assert!(alone.code == Some(0) && alone.stderr.contains("other instances are unreachable"), "{}", alone.stderr);
    let tablet = alone.stdout.trim().to_owned();
    for corbie in [&one, &other] {
        wait_for("all to know the third", || lets_in(corbie, &tablet).then_some(()));
    }
    let alone = there.command_without_database("tokens revoke phone").run("");
    assert!(alone.code == Some(1) && alone.stdout.contains("on this machine only"), "{alone:?}");
    for corbie in [&one, &other] {
        wait_for("all to have forgotten the second", || (!lets_in(corbie, &phone)).then_some(()));
    }
}

#[test]
fn a13_s05_a_token_that_was_revoked_elsewhere_does_not_come_back() {
    let Some(database) = database() else { return };
    let (here, there) = (SyncHost::new(&database, BILLS), SyncHost::new(&database, BILLS));
    let one = here.start();
    wait_for("the tables", || has_tables(&database).then_some(()));
    drop(one);
    here.run_command("tokens create old");
    // The sync state is lost, and then the token is revoked on another machine.
    here.sync_state_files("tokens-").iter().for_each(|noted| std::fs::remove_file(noted).unwrap());
    there.run_command("tokens revoke old");
    there.run_command("tokens create new");
    here.run_command("tokens create newer");
    for machine in [&here, &there] {
        let listed = machine.run_command("tokens list --json");
        assert!(listed.contains("newer") && listed.contains("\"new\"") && !listed.contains("\"old\""), "{listed}");
    }
    assert!(!std::fs::read_to_string(here.tokens()).unwrap().contains("\"old\""));
}

#[test]
fn a13_s05_what_one_file_of_tokens_has_heard_says_nothing_of_another_in_the_same_storage() {
    let Some(database) = database() else { return };
    let here = SyncHost::new(&database, BILLS);
    let mut one = here.start();
    wait_for("the tables", || has_tables(&database).then_some(()));
    here.run_command("tokens create old");
    // The same user and server storage with a different token file.
    let beside = here.folder.path().join("beside.json");
    let command = |arguments: &str| {
        let setup = here.setup(arguments).variable("CORBIE_SERVER__TOKENS_FILE", path_string(&beside));
        let ended = setup.run("");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    };
    command("tokens revoke old");
    let is_revoked = || !std::fs::read_to_string(here.tokens()).unwrap().contains("\"old\"");
    wait_for("the server to have forgotten it", || is_revoked().then_some(()));
    command("tokens create new");
    wait_for("the server to know it", || {
        std::fs::read_to_string(here.tokens()).unwrap().contains("\"new\"").then_some(())
    });
    // All polls have completed: no instance publishes the revoked token.
    let versions = || database.query("SELECT count(*) FROM corbie.files WHERE name = 'tokens'");
    let before = versions();
    categories(&mut one);
    sleep_ms(2500);
    assert!(is_revoked());
    assert_eq!(versions(), before, "nobody sends what it has, over and over");
}

#[test]
fn a13_s05_what_was_revoked_in_a_database_that_went_back_stays_revoked() {
    let Some(database) = database() else { return };
    let (here, there) = (SyncHost::new(&database, BILLS), SyncHost::new(&database, BILLS));
    let one = here.start();
    wait_for("the tables", || has_tables(&database).then_some(()));
    drop(one);
    for name in ["kept", "revoked"] {
        here.run_command(&format!("tokens create {name}"));
    }
    there.run_command("tokens list");
    // A backup of this state is restored after further changes, and another machine continues from there.
    here.run_command("tokens create lost");
    here.run_command("tokens create last");
    database.query("DELETE FROM corbie.files WHERE name = 'tokens' AND version > 2");
    there.run_command("tokens revoke revoked");
    here.run_command("tokens create after");
    for machine in [&here, &there] {
        let listed = machine.run_command("tokens list --json");
        for name in ["kept", "lost", "last", "after"] {
            assert!(listed.contains(&format!("\"{name}\"")), "{name} in {listed}");
        }
        assert!(!listed.contains("\"revoked\""), "{listed}");
    }
}

#[test]
fn a13_a_database_that_went_back_gets_what_was_saved_since() {
    let Some(database) = database() else { return };
    let (here, there) = (SyncHost::new(&database, BILLS), SyncHost::new(&database, BILLS));
    let (mut one, mut other) = (here.start(), there.start());
    wait_for("both to agree", || (here.has_synced() && there.has_synced()).then_some(()));
    for text in [BIRDS, BOATS] {
        let old = version(&mut one);
        assert_eq!(save(&mut one, text, &old)["saved"], true);
    }
    wait_for("the other to use it", || has_category(&mut other, "boats"));
    here.run_command("tokens create laptop");
    wait_for("the other to know it", || there.tokens().exists().then_some(()));
    // As after restoring an earlier backup.
    database.query("DELETE FROM corbie.files WHERE version > 1 OR name = 'tokens'; NOTIFY corbie, 'files'");
    wait_for("it to be there again", || {
        let sql =
            "SELECT version FROM corbie.files WHERE content = convert_to($t$TEXT$t$, 'UTF8') ORDER BY 1 DESC LIMIT 1";
        let newest = database.query(&sql.replace("TEXT", BOATS));
        let tokens = database.query("SELECT count(*) FROM corbie.files WHERE name = 'tokens'");
        (newest.first().is_some_and(|number| number == "4") && tokens != ["0"]).then_some(())
    });
    assert!(has_category(&mut one, "boats").is_some() && has_category(&mut other, "boats").is_some());
    assert!(here.taxonomy_text() == BOATS && there.taxonomy_text() == BOATS);
}

#[test]
fn a13_what_was_edited_on_two_machines_is_kept_beside_and_mistakes_are_mended_by_saving() {
    let Some(database) = database() else { return };
    let (here, there) = (SyncHost::new(&database, BILLS), SyncHost::new(&database, BILLS));
    let (mut one, mut other) = (here.start(), there.start());
    wait_for("both to agree", || (here.has_synced() && there.has_synced()).then_some(()));
    drop(other);
    std::fs::write(there.taxonomy(), BOATS).unwrap();
    let old = version(&mut one);
    assert_eq!(save(&mut one, BIRDS, &old)["saved"], true);
    other = there.start();
    wait_for("the other to use it", || has_category(&mut other, "birds"));
    assert!(there.has_backup_of(BOATS));
    std::fs::write(there.taxonomy(), "categories: 7\n").unwrap();
    other.running.wait_for_log("file is not synced");
    let client = other.client;
    wait_for("health to tell", || client.get("/health").json().to_string().contains("shared_files").then_some(()));
    let broken = version(&mut other);
    assert_eq!(save(&mut other, BOATS, &broken)["saved"], true);
    for corbie in [&mut one, &mut other] {
        wait_for("both to use what was mended", || has_category(corbie, "boats"));
    }
}
