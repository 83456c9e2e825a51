//! Proxy in front of a database that records, encrypts or rewrites the traffic.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

use crate::database::Database;
use crate::fixture::eventually;

/// `SSLRequest` message of the PostgreSQL protocol.
pub(crate) const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Listens on a local port until dropped.
pub(crate) struct DatabaseProxy {
    port: u16,
    database: String,
    captured: Arc<Mutex<CapturedTraffic>>,
    accept_task: JoinHandle<()>,
}

/// Treatment of client connections.
#[derive(Clone)]
pub(crate) enum ProxyMode {
    /// Without TLS.
    Plain,
    /// Without TLS; replaces the first text by the second, which has the same length.
    Rewrite(&'static str, &'static str),
    Tls(Arc<ServerConfig>),
}

/// Traffic sent by clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct CapturedTraffic {
    /// As seen on the network.
    pub(crate) sent: Vec<u8>,
    /// As received by the database.
    pub(crate) decrypted: Vec<u8>,
    open_connections: usize,
}

impl DatabaseProxy {
    pub(crate) async fn open(database: &Database, manner: ProxyMode) -> DatabaseProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = database.url();
        let name = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
        let seen = Arc::<Mutex<CapturedTraffic>>::default();
        let (socket, watched) = (database.socket(), seen.clone());
        let keeping = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (socket, manner, seen) = (socket.clone(), manner.clone(), watched.clone());
                seen.lock().unwrap().open_connections += 1;
                tokio::spawn(async move {
                    // Rejected clients disconnect in different ways.
                    let _ = relay(client, socket, manner, &seen).await;
                    seen.lock().unwrap().open_connections -= 1;
                });
            }
        });
        DatabaseProxy { port, database: name, captured: seen, accept_task: keeping }
    }

    /// URL of the database through this proxy, with a host name of this machine.
    pub(crate) fn url(&self, host: &str, parameters: &str) -> String {
        format!("postgres://postgres@{host}:{}/{}?{parameters}", self.port, self.database)
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// All traffic, once every client has disconnected.
    pub(crate) async fn captured_after_close(&self) -> CapturedTraffic {
        let is_over = async || Some(self.captured_so_far()).filter(|seen| seen.open_connections == 0);
        eventually("all connections to end", is_over).await
    }

    pub(crate) fn captured_so_far(&self) -> CapturedTraffic {
        self.captured.lock().unwrap().clone()
    }
}

impl Drop for DatabaseProxy {
    fn drop(&mut self) {
        self.accept_task.abort();
    }
}

/// Forwards one connection in both directions.
async fn relay(client: TcpStream, socket: PathBuf, manner: ProxyMode, seen: &Mutex<CapturedTraffic>) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_database, mut to_database) = UnixStream::connect(socket).await?.into_split();
    let mut first = [0; SSL_REQUEST.len()];
    from_client.read_exact(&mut first).await?;
    seen.lock().unwrap().sent.extend(first);
    let mut tls = None;
    match (&manner, first == SSL_REQUEST) {
        (ProxyMode::Tls(config), true) => {
            to_client.write_all(b"S").await?;
            tls = Some(ServerConnection::new(config.clone()).map_err(io::Error::other)?);
        }
        (_, true) => to_client.write_all(b"N").await?,
        (_, false) => {
            seen.lock().unwrap().decrypted.extend(first);
            to_database.write_all(&first).await?;
        }
    }
    let (mut asked, mut answered) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let piece = &asked[..read?];
                if piece.is_empty() {
                    return Ok(());
                }
                seen.lock().unwrap().sent.extend(piece);
                let mut piece = match &mut tls {
                    Some(tls) => decrypt(tls, piece)?,
                    None => piece.to_vec(),
                };
                seen.lock().unwrap().decrypted.extend(&piece);
                if let ProxyMode::Rewrite(word, other) = manner {
                    replace(&mut piece, word, other);
                }
                to_database.write_all(&piece).await?;
            }
            read = from_database.read(&mut answered) => {
                let piece = &answered[..read?];
                if piece.is_empty() {
                    return Ok(());
                }
                match &mut tls {
                    Some(tls) => tls.writer().write_all(piece)?,
                    None => to_client.write_all(piece).await?,
                }
            }
        }
        if let Some(tls) = &mut tls {
            let mut records = Vec::new();
            while tls.wants_write() {
                tls.write_tls(&mut records)?;
            }
            to_client.write_all(&records).await?;
        }
    }
}

/// Decrypts these TLS records as far as they are complete.
fn decrypt(tls: &mut ServerConnection, mut records: &[u8]) -> io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    while !records.is_empty() {
        tls.read_tls(&mut records)?;
        tls.process_new_packets().map_err(io::Error::other)?;
        match tls.reader().read_to_end(&mut piece) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    Ok(piece)
}

fn replace(piece: &mut [u8], word: &str, other: &str) {
    assert_eq!(word.len(), other.len(), "messages keep their lengths");
    if let Some(at) = piece.windows(word.len()).position(|found| found == word.as_bytes()) {
        piece[at..at + word.len()].copy_from_slice(other.as_bytes());
    }
}
