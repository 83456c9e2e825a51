//! Cached results are invalidated when another instance changes the taxonomy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::database::Database;
use crate::fixture::{KnowledgeServer, path_string, tool_json};
use crate::process::{corbie, report_skip, wait_for};

/// The guarantee is one second; the remainder is slack for slow machines.
const INVALIDATION_TIMEOUT: Duration = Duration::from_secs(3);

const TEXT: &str = "What does the raven say?";

/// A taxonomy of two categories with one word each.
fn taxonomy(birds: &str, ships: &str) -> String {
    format!(
        "categories:\n  - name: birds\n    description: Feathers\n    words: [{birds}]\n  \
         - name: ships\n    description: Sails\n    words: [{ships}]\n"
    )
}

fn start(database: &Arc<Database>, folder: &TempDir) -> KnowledgeServer {
    let file = folder.path().join("taxonomy.yaml");
    std::fs::write(&file, taxonomy("raven", "mast")).unwrap();
    let setup = corbie("serve --stdio --port 0")
        .variable("CORBIE_KNOWLEDGE__STORAGE_PATH", path_string(&folder.path().join("storage")))
        .variable("CORBIE_CLASSIFICATION__TAXONOMY", path_string(&file))
        // Other methods use more than words.
        .variable("CORBIE_CLASSIFICATION__METHOD", "rules");
    let started = KnowledgeServer::with_database(database, setup);
    let noted = || Some(std::fs::read_dir(folder.path().join("storage/shared")).ok()?.flatten());
    let is_taxonomy = |note: std::fs::DirEntry| note.file_name().to_string_lossy().starts_with("taxonomy");
    wait_for("it to know what all use", || noted()?.any(is_taxonomy).then_some(()));
    started
}

fn category(corbie: &mut KnowledgeServer) -> String {
    let told = tool_json(&corbie.result("classify_text", &json!({ "text": TEXT })));
    told["category"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[test]
fn a13_a_text_is_classified_anew_once_another_instance_has_saved_a_taxonomy() {
    let Some(database) = Database::if_configured().map(Arc::new) else {
        return report_skip("instances share files on PostgreSQL only");
    };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut one = start(&database, &folders[0]);
    // Instances poll the sum of all versions. A trigger keeps the sum constant from here on, so that only notifications
    // reveal a change.
    database.query(
        "INSERT INTO corbie.files (name, version, content, places, host) VALUES ('ballast', 1000, '', '{}', 'here'); \
         CREATE FUNCTION public.balance() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         UPDATE corbie.files SET version = version - 1 WHERE name = 'ballast'; RETURN NULL; END $$; \
         CREATE TRIGGER balance AFTER INSERT ON corbie.files FOR EACH ROW EXECUTE FUNCTION public.balance()",
    );
    let mut other = start(&database, &folders[1]);
    assert_eq!([category(&mut other), category(&mut other)], ["birds", "birds"]);
    for (text, wanted) in [(taxonomy("feather", "raven"), "ships"), (taxonomy("raven", "mast"), "birds")] {
        let version = tool_json(&one.result("get_taxonomy", &json!({})))["version"].clone();
        let saved = tool_json(&one.result("save_taxonomy", &json!({ "text": text, "version": version })));
        assert_eq!(saved["saved"], true, "{saved}");
        let began = Instant::now();
        wait_for("another answer", || (category(&mut other) == wanted).then_some(()));
        assert!(began.elapsed() < INVALIDATION_TIMEOUT, "{:?}", began.elapsed());
    }
}
