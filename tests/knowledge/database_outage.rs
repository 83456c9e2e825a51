//! Database outages at startup and while the program runs (A-16, X-25, K-102, K-105).

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::Database;
use crate::fixture::{CROWS, path_string, tool_json};
use crate::http::HttpClient;
use crate::process::{TestProcess, corbie, report_skip, request, wait_for};

/// A program, called over REST, with its own directory.
struct OutageServer {
    client: HttpClient,
    _running: TestProcess,
    folder: TempDir,
}

impl OutageServer {
    /// Starts a program with the store at this address.
    fn with_store(address: &str) -> OutageServer {
        let folder = tempfile::tempdir().unwrap();
        let setup = corbie("serve --port 0")
            .variable("CORBIE_KNOWLEDGE__STORE", address)
            .variable("CORBIE_KNOWLEDGE__STORAGE_PATH", path_string(&folder.path().join("kept")));
        let mut running = setup.start();
        OutageServer { client: running.client(), _running: running, folder }
    }

    #[track_caller]
    fn call(&self, tool: &str, arguments: Value) -> Value {
        let reply = self.client.post("/mcp/tools/call", &json!({ "tool": tool, "parameters": arguments }));
        assert_eq!(reply.status, 200, "{reply:?}");
        tool_json(&reply.json())
    }

    #[track_caller]
    fn health(&self) -> Value {
        let status = self.call("knowledge-status", json!({}));
        assert_eq!(status["success"], true, "k100: {status}");
        status["health"].clone()
    }

    fn search(&self) -> Value {
        self.call("knowledge-search", json!({ "query": "clever birds" }))
    }

    fn is_ready_for_knowledge(&self) -> bool {
        self.client.get("/ready?for=knowledge").status == 200
    }

    /// Adds a file and waits for it.
    #[track_caller]
    fn add(&self) -> Value {
        let path = self.folder.path().join("crows.txt");
        std::fs::write(&path, CROWS).unwrap();
        self.call("knowledge-add", json!({ "file_path": path_string(&path), "async": false }))
    }

    /// Everything that needs no documents works; the rest fails with `storage_unavailable` and the reason.
    #[track_caller]
    fn assert_database_unavailable(&self, reason: &str) {
        let health = self.health();
        let flags = ["status", "vector_db_connected", "storage_accessible", "embedding_model_loaded"];
        assert_eq!(flags.map(|flag| health[flag].clone()), [json!("degraded"), json!(false), json!(true), json!(true)]);
        let issues = health["issues"].as_array().unwrap();
        assert_eq!(issues.len(), 1, "{health}");
        let issue = issues[0].as_str().unwrap();
        assert!(issue.contains("unreachable") && issue.contains(reason), "{issue}");
        assert!(!issue.contains("Storage directory"), "the folder is well: {issue}");

        for refused in [self.search(), self.add(), self.call("knowledge-show", json!({}))] {
            assert_eq!(
                (&refused["success"], &refused["error"]),
                (&json!(false), &json!("storage_unavailable")),
                "{refused}"
            );
            let message = refused["message"].as_str().unwrap();
            assert!(message.contains(reason) && message.contains("try again"), "{message}");
        }
        // The task may belong to another instance.
        let cancel = request(1, "tools/cancel", json!({ "taskId": uuid::Uuid::new_v4().to_string() }));
        let cancelled = self.client.post("/mcp", &cancel).json();
        assert_eq!(cancelled["error"]["data"]["error"], "storage_unavailable", "{cancelled}");
        let classified = self.call("classify_text", json!({ "text": "two plus two" }));
        assert!(classified["category"].is_string(), "{classified}");
        let listed = self.client.post("/mcp/resources/list", &json!({})).json();
        assert!(listed["resources"].as_array().is_some_and(|all| !all.is_empty()), "{listed}");

        // Detected by heartbeats, with a short delay.
        wait_for("the balancer to be told", || (!self.is_ready_for_knowledge()).then_some(()));
        let ready = self.client.get("/ready");
        assert_eq!((ready.status, ready.json()), (200, json!({ "status": "degraded", "impaired": ["knowledge"] })));
        let health = self.client.get("/health");
        assert_eq!((health.status, &health.json()["status"]), (200, &json!("degraded")), "{health:?}");
        let why = health.json()["impaired"]["knowledge"].as_str().unwrap().to_owned();
        assert!(why.contains("unreachable") && why.contains(reason), "{why}");
    }

    #[track_caller]
    fn assert_healthy(&self) {
        let health = self.health();
        assert_eq!((&health["status"], &health["vector_db_connected"]), (&json!("healthy"), &json!(true)), "{health}");
        for page in ["/ready", "/health"] {
            assert_eq!(self.client.get(page).json()["status"], "ok", "{page}");
        }
    }
}

/// A socket path to a database that can be opened and closed.
struct DatabaseRoute {
    database: Database,
    folder: TempDir,
}

impl DatabaseRoute {
    fn if_configured() -> Option<DatabaseRoute> {
        let Some(database) = Database::if_configured() else {
            report_skip("only a database comes and goes by itself");
            return None;
        };
        Some(DatabaseRoute { database, folder: tempfile::tempdir().unwrap() })
    }

    fn address(&self) -> String {
        let encoded = |path: &std::path::Path| path_string(path).replace('/', "%2F");
        let (there, here) = (encoded(self.database.socket().parent().unwrap()), encoded(self.folder.path()));
        self.database.url().replace(&there, &here)
    }

    fn connect(&self) {
        let socket = self.database.socket();
        symlink(&socket, self.folder.path().join(socket.file_name().unwrap())).unwrap();
    }

    /// Blocks new connections and terminates existing ones.
    fn disconnect(&self) {
        std::fs::remove_file(self.folder.path().join(self.database.socket().file_name().unwrap())).unwrap();
        self.database.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
    }
}

#[test]
fn a16_x25_a_database_that_cannot_be_reached_stops_nothing_else() {
    // Both addresses fail without any database server.
    let nowhere = tempfile::tempdir().unwrap();
    let socket = format!("postgres://nobody@{}/none", path_string(nowhere.path()).replace('/', "%2F"));
    OutageServer::with_store(&socket).assert_database_unavailable("No such file or directory");
    OutageServer::with_store("postgres://nobody@127.0.0.1:9/none").assert_database_unavailable("Connection refused");
}

#[test]
fn k102_k105_a_database_that_comes_and_goes_is_noticed_without_a_restart() {
    let Some(way) = DatabaseRoute::if_configured() else { return };
    let program = OutageServer::with_store(&way.address());
    program.assert_database_unavailable("No such file or directory");
    way.connect();
    // Reconnects on its own, without a call that needs the database.
    wait_for("the database to be found", || program.is_ready_for_knowledge().then_some(()));
    program.assert_healthy();
    let added = program.add();
    assert_eq!(program.search()["results"][0]["document_id"], added["document_id"], "{added}");

    way.disconnect();
    wait_for("the reason to be told", || program.client.get("/health").body.contains("No such file").then_some(()));
    program.assert_database_unavailable("No such file or directory");
    way.connect();
    wait_for("the database to be found again", || program.is_ready_for_knowledge().then_some(()));
    program.assert_healthy();
    assert_eq!(program.search()["results"][0]["document_id"], added["document_id"]);
}

#[test]
fn k105_the_folder_is_measured_apart_from_the_database() {
    let Some(way) = DatabaseRoute::if_configured() else { return };
    way.connect();
    let program = OutageServer::with_store(&way.address());
    wait_for("the database to be found", || program.is_ready_for_knowledge().then_some(()));
    program.assert_healthy();
    let (kept, moved) = (program.folder.path().join("kept"), program.folder.path().join("moved"));
    std::fs::rename(&kept, &moved).unwrap();
    std::fs::write(&kept, "not a folder").unwrap();
    let health = program.health();
    assert_eq!((&health["vector_db_connected"], &health["storage_accessible"]), (&json!(true), &json!(false)));
    let issue = health["issues"][0].as_str().unwrap();
    assert!(issue.starts_with("Storage directory not accessible: "), "{issue}");
    std::fs::remove_file(&kept).unwrap();
    std::fs::rename(&moved, &kept).unwrap();
    program.assert_healthy();
}
