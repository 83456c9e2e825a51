//! Connection pool, dedicated connections, and sessions: a session is a pooled connection, checked out for one unit of
//! work.
//!
//! A transaction that is neither committed nor rolled back closes its connection: the server then rolls it back, and
//! the pool never hands out a connection in the middle of a transaction. The same applies to a statement with an
//! abandoned response. An error or a dropped future therefore never leaves partial work behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts};
use hyper_rustls::ConfigBuilderExt;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error;
use crate::store::Error;
use corbie_config::postgres_address::{Address, CONNECT_TIMEOUT};

/// Timeout for waiting for a connection from the pool.
const POOL_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that does not answer for this long is considered unavailable; its own statement timeout is shorter.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
/// Timeout of BEGIN, which takes no locks.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of dead connections to skip in sequence, as after a restart of the server.
const MAX_DEAD_CONNECTIONS: usize = 64;

/// Settings of every connection. Statements that may take longer override the timeout. The server detects a lost
/// client machine within seconds and releases its locks, so that other instances can adopt its tasks. A search scans
/// the HNSW indexes of four partitions, each starting with 40 candidates and continuing if more are needed.
const SESSION_SETTINGS: &str = "SET search_path = corbie, public; SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
     SET idle_in_transaction_session_timeout = '10s'; SET client_min_messages = warning; \
     SET tcp_keepalives_idle = 4; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 2; SET tcp_user_timeout = 8000; \
     SET hnsw.ef_search = 40; SET hnsw.iterative_scan = strict_order; SET jit = off; SET plan_cache_mode = force_custom_plan";

/// Creates a connection pool. Connections are opened on demand.
pub(super) fn pool(address: &Address, most: usize) -> Result<Pool, Error> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match address.config().get_ssl_mode() {
        SslMode::Disable => Manager::from_config(address.config().clone(), NoTls, recycling),
        _ => Manager::from_config(address.config().clone(), tls(address)?, recycling),
    };
    let told = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move {
            // The driver has no timeout for this step: a pooler may accept the connection and have no server
            // connection for it.
            let told = tokio::time::timeout(CONNECT_TIMEOUT, client.batch_execute(SESSION_SETTINGS)).await;
            told.map_err(|_| HookError::message("request timed out"))?.map_err(HookError::Backend)
        })
    });
    Pool::builder(manager)
        .max_size(most.max(2))
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts {
            wait: Some(POOL_TIMEOUT),
            create: Some(2 * CONNECT_TIMEOUT),
            recycle: Some(CONNECT_TIMEOUT),
        })
        .post_create(told)
        .build()
        .map_err(|error| Error::Internal(error.to_string()))
}

/// Opens a dedicated connection outside the pool, for LISTEN. Its driver task runs until the client is dropped.
pub(super) async fn connect_dedicated(address: &Address) -> Result<(tokio_postgres::Client, Notifications), Error> {
    let (sender, said) = tokio::sync::mpsc::channel(1024);
    let client = match address.config().get_ssl_mode() {
        SslMode::Disable => {
            let (client, connection) = address.config().connect(NoTls).await.map_err(error::map_error)?;
            tokio::spawn(drive_connection(connection, sender));
            client
        }
        _ => {
            let (client, connection) = address.config().connect(tls(address)?).await.map_err(error::map_error)?;
            tokio::spawn(drive_connection(connection, sender));
            client
        }
    };
    client.batch_execute(SESSION_SETTINGS).await.map_err(error::map_error)?;
    Ok((client, said))
}

fn tls(address: &Address) -> Result<MakeRustlsConnect, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::Internal(error.to_string()))?;
    let config = match address.root_certificates() {
        None => builder.with_webpki_roots(),
        Some(path) => {
            let unreadable = |why: String| Error::Internal(format!("`sslrootcert` {}: {why}", path.display()));
            let mut roots = rustls::RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))? {
                let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
                roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
            }
            builder.with_root_certificates(roots)
        }
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// Notifications of the channels that the connection listens on.
pub(super) type Notifications = tokio::sync::mpsc::Receiver<tokio_postgres::Notification>;

/// Drives a connection and forwards its notifications. A notification that does not fit into the channel is dropped;
/// the receiver also polls.
async fn drive_connection<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    said: tokio::sync::mpsc::Sender<tokio_postgres::Notification>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
        if let tokio_postgres::AsyncMessage::Notification(notification) = message {
            let _ = said.try_send(notification);
        }
    }
}

/// A connection in exclusive use until it is returned to the pool.
#[derive(Debug)]
pub(super) struct Session {
    connection: Option<Object>,
    in_transaction: bool,
    /// Statements that were sent and not yet answered.
    unanswered: AtomicUsize,
}

/// Parameters of a statement.
pub(super) type SqlParams<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Session {
    /// A session for single statements.
    pub(super) async fn autocommit(pool: &Pool) -> Result<Session, Error> {
        let connection = pool.get().await.map_err(error::map_pool_error)?;
        Ok(Session { connection: Some(connection), in_transaction: false, unanswered: AtomicUsize::new(0) })
    }

    /// Begins a read-only transaction on one snapshot.
    pub(super) async fn begin_read(pool: &Pool) -> Result<Session, Error> {
        Session::begin(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    /// Begins a write transaction. Its changes are invisible until [`commit`](Session::commit).
    pub(super) async fn begin_write(pool: &Pool) -> Result<Session, Error> {
        Session::begin(pool, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await
    }

    /// Pooled connections may be dead; no work has been done on them, so the next connection is tried. All attempts
    /// share one timeout: if one connection hangs, the rest would hang too.
    async fn begin(pool: &Pool, how: &str) -> Result<Session, Error> {
        let (mut tried, mut left) = (0, BEGIN_TIMEOUT);
        loop {
            let mut session = Session::autocommit(pool).await?;
            session.in_transaction = true;
            let asked = Instant::now();
            let begun = session.with_timeout(left, session.connection()?.batch_execute(how)).await;
            left = left.saturating_sub(asked.elapsed());
            match begun {
                Err(Error::Unavailable(why))
                    if why != error::STANDBY_MESSAGE && tried < MAX_DEAD_CONNECTIONS && !left.is_zero() =>
                {
                    tried += 1
                }
                begun => return begun.map(|()| session),
            }
        }
    }

    /// Commits the transaction.
    pub(super) async fn commit(mut self) -> Result<(), Error> {
        self.execute_batch("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Rolls back a transaction without relevant writes, and returns the connection to the pool.
    pub(super) async fn rollback(mut self) -> Result<(), Error> {
        self.execute_batch("ROLLBACK").await?;
        self.in_transaction = false;
        Ok(())
    }

    pub(super) async fn rows(&self, sql: &str, given: SqlParams<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql).await?;
        self.run(&statement, given).await
    }

    /// The same with a longer timeout. The caller raises the server's timeout.
    pub(super) async fn rows_with_timeout(
        &self,
        sql: &str,
        given: SqlParams<'_>,
        most: Duration,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql).await?;
        self.with_timeout(most, self.connection()?.query(&statement, given)).await
    }

    pub(super) async fn row(&self, sql: &str, given: SqlParams<'_>) -> Result<Row, Error> {
        self.opt_row(sql, given).await?.ok_or_else(|| Error::Internal("a row was expected".to_owned()))
    }

    pub(super) async fn opt_row(&self, sql: &str, given: SqlParams<'_>) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql, given).await?.into_iter().next())
    }

    /// Executes a statement and returns the number of changed rows.
    pub(super) async fn execute(&self, sql: &str, given: SqlParams<'_>) -> Result<u64, Error> {
        let statement = self.prepare(sql).await?;
        self.with_answer_timeout(self.connection()?.execute(&statement, given)).await
    }

    /// Executes statements without parameters.
    pub(super) async fn execute_batch(&self, sql: &str) -> Result<(), Error> {
        self.with_answer_timeout(self.connection()?.batch_execute(sql)).await
    }

    /// Executes statements without a timeout.
    pub(super) async fn execute_batch_without_timeout(&self, sql: &str) -> Result<(), Error> {
        self.connection()?.batch_execute(sql).await.map_err(error::map_error)
    }

    /// Queries a single row without a timeout.
    pub(super) async fn row_without_timeout(&self, sql: &str) -> Result<Row, Error> {
        self.connection()?.query_one(sql, &[]).await.map_err(error::map_error)
    }

    /// Prepares a statement, cached for the lifetime of the connection.
    pub(super) async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        self.with_answer_timeout(self.connection()?.prepare_cached(sql)).await
    }

    /// Runs a prepared statement. Concurrent calls are pipelined.
    pub(super) async fn run(&self, statement: &Statement, given: SqlParams<'_>) -> Result<Vec<Row>, Error> {
        self.with_answer_timeout(self.connection()?.query(statement, given)).await
    }

    /// Waits for the server with a timeout. A connection that has not answered is not reused.
    async fn with_answer_timeout<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.with_timeout(ANSWER_TIMEOUT, answer).await
    }

    async fn with_timeout<T>(
        &self,
        most: Duration,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = timeout(most, answer).await.map_err(|_| Error::Unavailable("request timed out".to_owned()))?;
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        answer.map_err(error::map_error)
    }

    /// The driver's client, for operations such as COPY that are not a simple request and response.
    pub(super) fn connection(&self) -> Result<&Object, Error> {
        self.connection.as_ref().ok_or(Error::Closed)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if (self.in_transaction || self.unanswered.load(Ordering::Relaxed) > 0)
            && let Some(connection) = self.connection.take()
        {
            drop(Object::take(connection));
        }
    }
}
