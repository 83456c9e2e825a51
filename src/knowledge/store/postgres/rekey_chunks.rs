//! Re-keys the chunks of a renamed document: the file name is part of the indexed text, so their terms change.

use corbie_index::{Chunk, Document, external};

use super::session::Session;
use super::{postings, rows, run_blocking};
use crate::knowledge::chunk_context::DocumentContext;
use crate::knowledge::store::Error;

/// Number of chunks per statement.
const CHUNKS_PER_UPDATE: i32 = 100;

/// Assigns a new content version to a document and rewrites its postings.
pub(super) async fn rekey(
    session: &Session,
    base: i64,
    document: i64,
    writing: i64,
    filename: &str,
    title: Option<&str>,
) -> Result<(), Error> {
    // Analyzing a large document takes a while.
    session.execute_batch("SET LOCAL idle_in_transaction_session_timeout = '120s'").await?;
    let new: i64 = rows::get(&session.row("SELECT nextval('writing')", &[]).await?, 0)?;
    let sql = "SELECT ordinal, text, path FROM chunks WHERE writing = $1 ORDER BY ordinal";
    let (mut chunks, named) = (Vec::new(), DocumentContext::of(filename, title));
    for row in session.rows(sql, &[&writing]).await? {
        let path: Vec<String> = rows::get_json(&row, 2)?;
        let context = named.for_chunk(&path);
        let key = u64::from(rows::get_u32(&row, 0)?);
        chunks.push(Chunk { key, text: rows::get(&row, 1)?, context, vectors: Vec::new() });
    }
    let count = rows::to_i32(chunks.len())?;
    let words =
        run_blocking(move || external::analyze(&Document { key: 0, added: 0, facets: Vec::new(), chunks })).await?;
    session.execute("UPDATE pages SET writing = $2 WHERE writing = $1", &[&writing, &new]).await?;
    // Every moved vector searches its neighbours in the HNSW index again, so moving all in one statement would take
    // too long.
    for from in (0..count).step_by(CHUNKS_PER_UPDATE as usize) {
        for table in ["chunks", "vectors"] {
            let sql = format!(
                "UPDATE {table} SET writing = $2 WHERE writing = $1 AND ordinal >= $3 AND ordinal < $3 + {CHUNKS_PER_UPDATE}"
            );
            session.execute(&sql, &[&writing, &new, &from]).await?;
        }
    }
    let sql = "UPDATE writings SET dead = $2 WHERE key = $1";
    session.execute(sql, &[&writing, &rows::now()]).await?;
    postings::write_postings(session, base, new, &words).await?;
    // The new name may be shorter or longer.
    let length = rows::to_i64(words.stats.length);
    let sql = "INSERT INTO sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
               SELECT base, 0, 0, 0, 0, $2 - length, '{}', $3 FROM documents WHERE key = $1";
    session.execute(sql, &[&document, &length, &rows::now()]).await?;
    let sql = "UPDATE documents SET writing = $2, length = $3 WHERE key = $1";
    session.execute(sql, &[&document, &new, &length]).await?;
    Ok(())
}
