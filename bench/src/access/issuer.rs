//! Mock authorization server that serves a JWKS.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use anyhow::Result;
use serde_json::json;

use super::signer::Signer;
use crate::stdio::RESPONSE_TIMEOUT;

/// Runs until this program ends.
#[derive(Debug)]
pub(super) struct Issuer {
    url: String,
}

impl Issuer {
    pub(super) fn start(signers: &[Signer]) -> Result<Issuer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        let keys = json!({ "keys": signers.iter().map(Signer::jwk).collect::<Vec<_>>() }).to_string();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // Clients may disconnect early.
                let _ = respond(connection, &keys);
            }
        });
        Ok(Issuer { url })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn keys_url(&self) -> String {
        format!("{}/keys", self.url)
    }
}

fn respond(connection: TcpStream, keys: &str) -> std::io::Result<()> {
    connection.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    // The head ends with an empty line.
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let length = keys.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}");
    write!(reader.get_mut(), "{head}\r\nconnection: close\r\n\r\n{keys}")
}
