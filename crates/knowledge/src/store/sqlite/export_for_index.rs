//! Export of documents for building an index, one at a time.

use std::ops::ControlFlow;

use rusqlite::{Connection, Row};
use serde_json::{Map, Value};

use super::{Store, change_log, rows, scalar_quantization};
use crate::document::{BaseName, DocumentId, Millis};
use crate::store::Error;

/// A document with all searchable data.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedDocument {
    pub document: LiveDocument,
    /// The chunks of `about.chunks` with their content.
    pub chunks: Vec<LoadedChunk>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoadedChunk {
    pub key: u64,
    pub text: String,
    pub headings: Vec<String>,
    /// One per window; see [`FAITHFUL`](super::MIN_COSINE_SIMILARITY).
    pub vectors: Vec<Vec<f32>>,
}

/// The data of a document that a search needs before it reads any text.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveDocument {
    pub key: u64,
    pub id: DocumentId,
    pub base: BaseName,
    pub filename: String,
    pub title: Option<String>,
    pub format: String,
    pub date_added: Millis,
    pub metadata: Map<String, Value>,
    pub model: String,
    /// The keys of its chunks, in order.
    pub chunks: Vec<u64>,
}

/// All documents of one snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSnapshot {
    /// The last change that is included.
    pub sequence: u64,
    pub documents: Vec<LiveDocument>,
}

impl Store {
    /// Passes documents with their chunks and vectors to `with`, in key order: all documents, those of a base, or the
    /// ones with the given keys, some of which may be removed. Runs on a thread where `with` may block and holds one
    /// document in memory at a time, until `with` breaks. All documents come from one snapshot; returns the last
    /// change that it includes.
    pub async fn for_each_document(
        &self,
        base: Option<&BaseName>,
        documents: &[u64],
        mut with: impl FnMut(LoadedDocument) -> ControlFlow<()> + Send + 'static,
    ) -> Result<u64, Error> {
        let (base, mut keys) = (base.cloned(), documents.to_vec());
        keys.sort_unstable();
        keys.dedup();
        self.read(move |transaction| {
            let sequence = change_log::last_sequence(transaction)?;
            let keys = if keys.is_empty() { vec![None] } else { keys.into_iter().map(Some).collect() };
            for key in keys {
                if export_documents(transaction, base.as_ref(), key, &mut with)?.is_break() {
                    break;
                }
            }
            Ok(sequence)
        })
        .await
    }

    /// All documents with the keys of their chunks, without their text.
    pub async fn live_snapshot(&self) -> Result<LiveSnapshot, Error> {
        self.read(|transaction| {
            Ok(LiveSnapshot {
                sequence: change_log::last_sequence(transaction)?,
                documents: live_documents(transaction)?,
            })
        })
        .await
    }
}

fn export_documents(
    connection: &Connection,
    base: Option<&BaseName>,
    key: Option<u64>,
    with: &mut dyn FnMut(LoadedDocument) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Error> {
    let condition = if key.is_some() { "d.key = ?2" } else { "?2 IS NULL" };
    let mut documents = connection.prepare_cached(&format!(
        "SELECT {LIVE_COLUMNS} FROM documents AS d JOIN bases AS b ON b.key = d.base WHERE (?1 IS NULL OR b.name = ?1) AND {condition} \
         ORDER BY d.key"
    ))?;
    let mut chunks = connection.prepare_cached(
        "SELECT c.key, c.text, c.path, v.dimensions, v.windows, v.codes FROM chunks AS c \
         LEFT JOIN vectors AS v ON v.chunk = c.key WHERE c.document = ?1 ORDER BY c.ordinal",
    )?;
    let mut rows = documents.query((base, key))?;
    while let Some(row) = rows.next()? {
        let mut about = live_document(row)?;
        let mut loaded = Vec::new();
        let mut rows = chunks.query([about.key])?;
        while let Some(row) = rows.next()? {
            loaded.push(chunk(row)?);
        }
        about.chunks = loaded.iter().map(|chunk| chunk.key).collect();
        if with(LoadedDocument { document: about, chunks: loaded }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn chunk(row: &Row<'_>) -> Result<LoadedChunk, Error> {
    Ok(LoadedChunk {
        key: row.get(0)?,
        text: row.get(1)?,
        headings: rows::get_json(row, 2)?,
        vectors: vectors(row, 3)?,
    })
}

/// The vectors of a chunk, from three columns starting at `first`: `dimensions`, `windows` and `codes`.
pub(super) fn vectors(row: &Row<'_>, first: usize) -> Result<Vec<Vec<f32>>, Error> {
    let unreadable = || Error::unreadable("vectors");
    match row.get_ref(first + 2)?.as_blob_or_null().map_err(|_| unreadable())? {
        Some(codes) => scalar_quantization::decode(row.get(first)?, row.get(first + 1)?, codes).ok_or_else(unreadable),
        None => Ok(Vec::new()),
    }
}

/// Columns for [`live_document`].
const LIVE_COLUMNS: &str = "d.key, d.id, b.name, d.filename, d.title, d.format, d.date_added, d.metadata, d.model";

fn live_document(row: &Row<'_>) -> rusqlite::Result<LiveDocument> {
    Ok(LiveDocument {
        key: row.get(0)?,
        id: row.get(1)?,
        base: row.get(2)?,
        filename: row.get(3)?,
        title: row.get(4)?,
        format: row.get(5)?,
        date_added: row.get(6)?,
        metadata: rows::get_metadata(row, 7)?,
        model: row.get(8)?,
        chunks: Vec::new(),
    })
}

/// Reads the chunk keys from a covering index, so no text is read.
fn live_documents(connection: &Connection) -> Result<Vec<LiveDocument>, Error> {
    let mut documents = connection.prepare_cached(&format!(
        "SELECT {LIVE_COLUMNS} FROM documents AS d JOIN bases AS b ON b.key = d.base ORDER BY d.key"
    ))?;
    let mut live = documents.query_map([], live_document)?.collect::<Result<Vec<_>, _>>()?;
    let mut chunks = connection.prepare_cached("SELECT document, key FROM chunks ORDER BY document, ordinal")?;
    let mut rows = chunks.query([])?;
    let mut place = live.iter_mut().peekable();
    while let Some(row) = rows.next()? {
        let (document, key): (u64, u64) = (row.get(0)?, row.get(1)?);
        while place.next_if(|live| live.key < document).is_some() {}
        if let Some(live) = place.peek_mut().filter(|live| live.key == document) {
            live.chunks.push(key);
        }
    }
    Ok(live)
}
