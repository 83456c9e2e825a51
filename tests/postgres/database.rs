//! A separate database for each test, on the server that `tests/postgres/server` has started.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use tokio_postgres::config::Host;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

/// Selects the store of the tests: `postgres`, or `embedded`, the default.
const STORE_VARIABLE: &str = "CORBIE_TEST_STORE";
/// URL of the server.
const SERVER_VARIABLE: &str = "CORBIE_TEST_POSTGRES";

/// An empty database. It is dropped with the test, even if clients are still connected.
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Creates a database if the tests use PostgreSQL.
    pub(crate) fn if_configured() -> Option<Database> {
        match std::env::var(STORE_VARIABLE).as_deref() {
            Err(_) | Ok("" | "embedded") => return None,
            Ok("postgres") => {}
            Ok(other) => panic!("{STORE_VARIABLE} is `{other}`; it can be `embedded` or `postgres`"),
        }
        let server = std::env::var(SERVER_VARIABLE).unwrap_or_else(|_| {
            panic!(
                "{SERVER_VARIABLE} is not set; run the tests with `{STORE_VARIABLE}=postgres tests/postgres/server -- cargo nextest run`"
            )
        });
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        query(&server, &format!("CREATE DATABASE {name}"));
        Some(Database { server, name })
    }

    /// The URL of the database.
    pub(crate) fn url(&self) -> String {
        let (server, options) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let (server, _) = server.rsplit_once('/').unwrap();
        let question = if options.is_empty() { "" } else { "?" };
        format!("{server}/{}{question}{options}", self.name)
    }

    /// The server's socket file, for tests that redirect the program to another path.
    #[allow(dead_code, reason = "not all who share this lead anybody")]
    pub(crate) fn socket(&self) -> PathBuf {
        let config: Config = self.url().parse().unwrap();
        let [Host::Unix(folder)] = config.get_hosts() else { panic!("the server listens on no file") };
        folder.join(format!(".s.PGSQL.{}", config.get_ports().first().unwrap_or(&5432)))
    }

    /// The first column of the result.
    #[allow(dead_code, reason = "not all who share this ask")]
    #[track_caller]
    pub(crate) fn query(&self, sql: &str) -> Vec<String> {
        query(&self.url(), sql)
    }

    /// Starts a transaction with this statement and keeps it open.
    #[allow(dead_code, reason = "not all who share this hold anything")]
    pub(crate) fn hold_transaction(&self, sql: &str) -> OpenTransaction {
        let (url, sql) = (self.url(), format!("BEGIN; {sql}"));
        let (until, ended) = mpsc::channel::<()>();
        let (ready, is_ready) = mpsc::channel();
        let holding = thread::spawn(move || {
            runtime().block_on(async {
                let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
                tokio::spawn(connection);
                client.batch_execute(&sql).await.unwrap();
                ready.send(()).unwrap();
                let _ = ended.recv();
                client.batch_execute("ROLLBACK").await.unwrap();
            });
        });
        is_ready.recv().unwrap();
        OpenTransaction { release: until, holding: Some(holding) }
    }
}

/// Keeps a transaction open until it is dropped.
#[allow(dead_code, reason = "not all who share this hold anything")]
pub(crate) struct OpenTransaction {
    release: mpsc::Sender<()>,
    holding: Option<thread::JoinHandle<()>>,
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        let _ = self.release.send(());
        if let Some(holding) = self.holding.take() {
            let _ = holding.join();
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        query(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs on a separate thread, so that it can be called with or without a runtime.
#[track_caller]
fn query(url: &str, sql: &str) -> Vec<String> {
    let answered = thread::scope(|scope| {
        scope
            .spawn(|| {
                runtime().block_on(async {
                    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
                    let driver = tokio::spawn(connection);
                    let messages = client.simple_query(sql).await?;
                    drop(client);
                    let _ = driver.await;
                    Ok::<_, tokio_postgres::Error>(messages)
                })
            })
            .join()
            .unwrap()
    });
    let messages = answered.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    rows.collect()
}
