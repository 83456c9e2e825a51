//! A program with an empty knowledge base, and the three transports to call its tools. The base is in files or, if the
//! tests use PostgreSQL, in a separate database.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use corbie::knowledge::store::{Options, Store, sqlite};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::Database;
use crate::http::HttpClient;
use crate::process::{self, TestCommand, TestProcess, wait_for};

/// A minimal document text.
pub(crate) const CROWS: &str = "Crows are clever birds. They remember the faces of people who were unkind to them.";

/// Transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallTransport {
    Stdio,
    Http,
    Rest,
}

/// A running program with a folder for files to add.
pub(crate) struct KnowledgeServer {
    pub(crate) running: TestProcess,
    pub(crate) client: HttpClient,
    pub(crate) transport: CallTransport,
    /// Unclaimed messages on stdout.
    pub(crate) notifications: Vec<Value>,
    calls: u64,
    files: TempDir,
    /// The database of the documents, if not in files.
    database: Option<Arc<Database>>,
}

/// Document storage that outlives a program.
pub(crate) struct Storage {
    folder: TempDir,
    database: Option<Arc<Database>>,
}

/// A store opened by another process. Field order matters: the store is dropped before its runtime.
pub(crate) struct StoreHandle {
    store: Store,
    runtime: tokio::runtime::Runtime,
}

/// Runs a test over all transports in turn. Each starts with an empty base.
pub(crate) fn each_transport(test: impl Fn(&mut KnowledgeServer)) {
    each_transport_with(&[], test);
}

/// The same with settings, such as `("MAX_FILE_SIZE_MB", "1")`.
pub(crate) fn each_transport_with(settings: &[(&str, &str)], test: impl Fn(&mut KnowledgeServer)) {
    let mut corbie = KnowledgeServer::with(settings);
    for way in [CallTransport::Stdio, CallTransport::Http, CallTransport::Rest] {
        let _ = writeln!(std::io::stderr(), "over {way:?}");
        corbie.transport = way;
        test(&mut corbie);
        corbie.call("knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
    }
}

impl KnowledgeServer {
    pub(crate) fn start() -> KnowledgeServer {
        KnowledgeServer::with(&[])
    }

    /// With settings of `knowledge`.
    pub(crate) fn with(settings: &[(&str, &str)]) -> KnowledgeServer {
        KnowledgeServer::from_command(server_command(settings))
    }

    pub(crate) fn from_command(setup: TestCommand) -> KnowledgeServer {
        KnowledgeServer::launch(setup, Database::if_configured().map(Arc::new))
    }

    /// On an existing storage, which another program may still use.
    pub(crate) fn with_storage(storage: &Storage, settings: &[(&str, &str)]) -> KnowledgeServer {
        KnowledgeServer::with_storage_and_command(storage, server_command(settings))
    }

    pub(crate) fn with_storage_and_command(storage: &Storage, setup: TestCommand) -> KnowledgeServer {
        let setup = setup.variable("CORBIE_KNOWLEDGE__STORAGE_PATH", path_string(storage.path()));
        KnowledgeServer::launch(setup, storage.database.clone())
    }

    /// On a database shared with other programs, but with separate files. The setup already contains its URL.
    pub(crate) fn with_database(database: &Arc<Database>, setup: TestCommand) -> KnowledgeServer {
        KnowledgeServer::launch(setup, Some(database.clone()))
    }

    fn launch(setup: TestCommand, database: Option<Arc<Database>>) -> KnowledgeServer {
        let mut running = in_database(setup, database.as_deref()).start();
        let client = running.client();
        let files = tempfile::tempdir().unwrap();
        KnowledgeServer {
            running,
            client,
            transport: CallTransport::Stdio,
            notifications: Vec::new(),
            calls: 0,
            files,
            database,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.files.path()
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.folder().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path_string(&path)
    }

    /// A request over the current transport, with the full reply.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let request = process::request(self.calls, method, params);
        match self.transport {
            CallTransport::Stdio => {
                self.running.send(&request);
                loop {
                    let message = self.running.receive();
                    if message["id"] == self.calls {
                        return message;
                    }
                    self.notifications.push(message);
                }
            }
            _ => self.client.post("/mcp", &request).json(),
        }
    }

    /// The full result of a tool.
    #[track_caller]
    pub(crate) fn result(&mut self, tool: &str, arguments: &Value) -> Value {
        match self.transport {
            CallTransport::Rest => {
                let body = json!({ "tool": tool, "parameters": arguments });
                let reply = self.client.post("/mcp/tools/call", &body);
                assert_eq!(reply.status, 200, "{reply:?}");
                reply.json()
            }
            _ => {
                let mut answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
                assert_eq!(answer.get("error"), None, "{answer}");
                answer["result"].take()
            }
        }
    }

    /// The decoded result of a tool. It must be a single text with a JSON object, and `isError` must agree with
    /// `success`.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, &arguments);
        let said = tool_json(&result);
        let success = said["success"].as_bool().unwrap_or_else(|| panic!("no `success` in {said}"));
        assert_eq!(result["isError"].as_bool().unwrap_or(false), !success, "{result}");
        if !success {
            let code = said["error"].as_str().unwrap_or_else(|| panic!("no `error` in {said}"));
            let is_snake = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(is_snake, "{said}");
            assert!(said["message"].as_str().is_some_and(|message| message.len() > 5), "{said}");
        }
        said
    }

    /// A call that must fail with this error; returns the result.
    #[track_caller]
    pub(crate) fn expect_error(&mut self, tool: &str, arguments: Value, error: &str) -> Value {
        let said = self.call(tool, arguments.clone());
        assert_eq!(said["error"], error, "{arguments:.300} gives {said}");
        said
    }

    /// A call with an invalid argument.
    #[track_caller]
    pub(crate) fn expect_invalid(&mut self, tool: &str, arguments: Value, parameter: &str) {
        let said = self.expect_error(tool, arguments.clone(), "invalid_parameter");
        assert_eq!(said["parameter"], parameter, "{arguments:.300} gives {said}");
    }

    /// Adds a new file and waits for it.
    #[track_caller]
    pub(crate) fn add(&mut self, name: &str, content: impl AsRef<[u8]>) -> Value {
        let path = self.file(name, content);
        self.add_path(&path, json!({}))
    }

    /// Adds a file and waits for it.
    #[track_caller]
    pub(crate) fn add_path(&mut self, path: &str, metadata: Value) -> Value {
        let added = self.call("knowledge-add", json!({ "file_path": path, "metadata": metadata, "async": false }));
        assert_eq!(added["success"], true, "{path}: {added}");
        added
    }

    /// Starts a task.
    #[track_caller]
    pub(crate) fn start_task(&mut self, path: &str) -> String {
        let begun = self.call("knowledge-add", json!({ "file_path": path }));
        begun["task_id"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned()
    }

    #[track_caller]
    pub(crate) fn task_status(&mut self, id: &str) -> Value {
        self.call("knowledge-task-status", json!({ "task_id": id }))
    }

    /// Waits until a task has ended and returns its status.
    #[track_caller]
    pub(crate) fn wait_for_task(&mut self, id: &str) -> Value {
        wait_for("the end of a task", || {
            let told = self.task_status(id);
            (!["queued", "running"].contains(&told["status"].as_str().unwrap())).then_some(told)
        })
    }

    #[track_caller]
    pub(crate) fn search(&mut self, query: &str) -> Value {
        let found = self.call("knowledge-search", json!({ "query": query }));
        assert_eq!(found["success"], true, "{found}");
        found
    }

    #[track_caller]
    pub(crate) fn show(&mut self) -> Value {
        self.call("knowledge-show", json!({}))
    }

    #[track_caller]
    pub(crate) fn status(&mut self) -> Value {
        self.call("knowledge-status", json!({}))
    }

    /// Storage path reported by the program.
    pub(crate) fn storage(&mut self) -> PathBuf {
        PathBuf::from(self.status()["knowledge_base"]["storage_path"].as_str().unwrap())
    }

    /// Its database, if it uses one.
    pub(crate) fn database(&self) -> Option<&Database> {
        self.database.as_deref()
    }

    /// Its store, opened by another process.
    pub(crate) fn open_store(&mut self) -> StoreHandle {
        let folder = self.storage();
        StoreHandle::open(&folder, self.database.as_deref())
    }
}

impl Storage {
    pub(crate) fn new() -> Storage {
        Storage { folder: tempfile::tempdir().unwrap(), database: Database::if_configured().map(Arc::new) }
    }

    /// The folder, used with every backend.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The store, opened by another process.
    pub(crate) fn open_store(&self) -> StoreHandle {
        StoreHandle::open(self.path(), self.database.as_deref())
    }
}

impl StoreHandle {
    fn open(folder: &Path, database: Option<&Database>) -> StoreHandle {
        // A worker thread runs even when no call is pending: the store may have to send heartbeats.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let store = match database {
            Some(database) => runtime.block_on(Store::connect(&database.url(), Options::default())).unwrap(),
            None => sqlite::Store::open(folder, Options::default()).unwrap().into(),
        };
        StoreHandle { store, runtime }
    }

    pub(crate) fn run<T>(&self, work: impl AsyncFnOnce(&Store) -> T) -> T {
        self.runtime.block_on(work(&self.store))
    }
}

/// Configures the program to use a database, if there is one.
pub(crate) fn in_database(setup: TestCommand, database: Option<&Database>) -> TestCommand {
    match database {
        Some(database) => setup.variable("CORBIE_KNOWLEDGE__STORE", database.url()),
        None => setup,
    }
}

/// A program that serves stdio and a port, with its own storage.
pub(crate) fn server_command(settings: &[(&str, &str)]) -> TestCommand {
    let setup = process::corbie("serve --stdio --port 0");
    settings.iter().fold(setup, |setup, (name, value)| setup.variable(&format!("CORBIE_KNOWLEDGE__{name}"), value))
}

/// Decodes the single text of a tool result.
#[track_caller]
pub(crate) fn tool_json(result: &Value) -> Value {
    let content = result["content"].as_array().unwrap_or_else(|| panic!("no content in {result}"));
    assert!(content.len() == 1 && content[0]["type"] == "text", "{result}");
    let text = content[0]["text"].as_str().unwrap();
    let said: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    assert!(said.is_object(), "{said}");
    said
}

/// A document that takes long enough to be observed while it is processed; tests do not wait for it.
pub(crate) fn long_text() -> String {
    let sentence = |number: usize| format!("Entry {number} tells of the {number}th crow that came to the farm. ");
    (0..20_000).map(sentence).collect()
}

pub(crate) fn path_string(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Whether a value is a version 4 UUID in canonical form.
pub(crate) fn is_uuid(value: &Value) -> bool {
    let parsed = value.as_str().map(|text| (text, uuid::Uuid::parse_str(text)));
    matches!(parsed, Some((text, Ok(id))) if id.get_version_num() == 4 && id.hyphenated().to_string() == text)
}

/// Whether a value is a timestamp such as `2025-10-26T10:00:00Z`.
pub(crate) fn is_timestamp(value: &Value) -> bool {
    value.as_str().is_some_and(|time| time.ends_with('Z') && humantime::parse_rfc3339(time).is_ok())
}

/// The keys of an object, sorted.
#[track_caller]
pub(crate) fn member_names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Waits to verify that no event occurs.
pub(crate) fn sleep_ms(milliseconds: u64) {
    let until = Instant::now() + Duration::from_millis(milliseconds);
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}
