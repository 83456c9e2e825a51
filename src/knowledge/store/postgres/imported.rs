//! What an unfinished import has stored.
//!
//! After a restart an import begins again, and finds what it stored before as if it had always been there. These rows tell
//! it apart. They go with the end of the task.

use std::collections::HashMap;

use super::session::Session;
use super::{Store, rows};
use crate::knowledge::document::DocumentId;
use crate::knowledge::store::Error;
use crate::knowledge::task::{TaskId, Work};

impl Store {
    /// The documents that an unfinished import has stored, and whether they took the place of others.
    pub async fn imported(&self, task: TaskId) -> Result<HashMap<DocumentId, bool>, Error> {
        let sql = "SELECT i.document, i.replaced FROM imported AS i JOIN tasks AS t ON t.key = i.task WHERE t.id = $1";
        let rows = self.ask(sql, &[&task.0]).await?;
        rows.iter().map(|row| Ok((DocumentId(rows::get(row, 0)?), rows::get(row, 1)?))).collect()
    }
}

/// Notes a document that was stored as a part of a task. The task gets further, so it is not one that only ends processes.
/// Its row is locked already.
pub(super) async fn note(session: &Session, work: &Work, document: DocumentId, replaced: bool) -> Result<(), Error> {
    let Work::PartOf(task) = work else { return Ok(()) };
    // What it brought and then brought anew was not there before.
    let sql = "INSERT INTO imported (task, document, replaced) SELECT key, $2::uuid, $3::boolean FROM tasks WHERE id = $1 \
               ON CONFLICT (task, document) DO NOTHING";
    session.execute(sql, &[&task.0, &document.0, &replaced]).await?;
    session.execute("UPDATE tasks SET attempts = 0 WHERE id = $1 AND attempts > 0", &[&task.0]).await?;
    Ok(())
}

/// Forgets what tasks have stored, as they have ended.
pub(super) async fn forget(session: &Session, tasks: &[i64]) -> Result<(), Error> {
    session.execute("DELETE FROM imported WHERE task = ANY($1)", &[&tasks]).await?;
    Ok(())
}
