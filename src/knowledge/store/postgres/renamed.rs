//! Re-keys the chunks of a renamed document: the file name is part of the indexed text, so their terms change.

use corbie_index::{Chunk, Document, apart};

use super::session::Session;
use super::{aside, postings, rows};
use crate::knowledge::named::Named;
use crate::knowledge::store::Error;

/// Number of chunks per statement.
const AT_ONCE: i32 = 100;

/// Assigns a new content version to a document and rewrites its postings.
pub(super) async fn renew(
    session: &Session,
    base: i64,
    document: i64,
    writing: i64,
    filename: &str,
    title: Option<&str>,
) -> Result<(), Error> {
    // Analyzing a large document takes a while.
    session.batch("SET LOCAL idle_in_transaction_session_timeout = '120s'").await?;
    let new: i64 = rows::get(&session.row("SELECT nextval('writing')", &[]).await?, 0)?;
    let sql = "SELECT ordinal, text, path FROM chunks WHERE writing = $1 ORDER BY ordinal";
    let (mut chunks, named) = (Vec::new(), Named::of(filename, title));
    for row in session.rows(sql, &[&writing]).await? {
        let path: Vec<String> = rows::json(&row, 2)?;
        let context = named.context(&path);
        let key = u64::from(rows::small(&row, 0)?);
        chunks.push(Chunk { key, text: rows::get(&row, 1)?, context, vectors: Vec::new() });
    }
    let count = rows::count(chunks.len())?;
    let words = aside(move || apart::words(&Document { key: 0, added: 0, facets: Vec::new(), chunks })).await?;
    session.execute("UPDATE pages SET writing = $2 WHERE writing = $1", &[&writing, &new]).await?;
    // Every moved vector searches its neighbours in the HNSW index again, so moving all in one statement would take
    // too long.
    for from in (0..count).step_by(AT_ONCE as usize) {
        for table in ["chunks", "vectors"] {
            let sql = format!(
                "UPDATE {table} SET writing = $2 WHERE writing = $1 AND ordinal >= $3 AND ordinal < $3 + {AT_ONCE}"
            );
            session.execute(&sql, &[&writing, &new, &from]).await?;
        }
    }
    let sql = "UPDATE writings SET dead = $2 WHERE key = $1";
    session.execute(sql, &[&writing, &rows::now()]).await?;
    postings::write(session, base, new, &words).await?;
    // The new name may be shorter or longer.
    let length = rows::signed(words.sums.length);
    let sql = "INSERT INTO sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
               SELECT base, 0, 0, 0, 0, $2 - length, '{}', $3 FROM documents WHERE key = $1";
    session.execute(sql, &[&document, &length, &rows::now()]).await?;
    let sql = "UPDATE documents SET writing = $2, length = $3 WHERE key = $1";
    session.execute(sql, &[&document, &new, &length]).await?;
    Ok(())
}
