//! Document list with paging, including the documents that queued and running tasks add.

use tokio_postgres::Row;
use uuid::Uuid;

use super::case_folding::{self, Needle};
use super::rows::StoredEnum;
use super::session::{Session, SqlParams};
use super::{Store, rows};
use crate::document::{BaseName, DocumentId};
use crate::store::{DocumentFilter, DocumentList, DocumentListQuery, Error, ListedDocument, SortDirection, SortKey};
use crate::task::TaskId;

/// Number of title characters to search. Real titles are shorter, but metadata may contain anything.
const MAX_TITLE_CHARS: u32 = 1000;

/// Status of a document that does not exist yet, for a task state.
const STATUS_OF_TASK: &str = "CASE t.state WHEN 'queued' THEN 'pending' ELSE 'processing' END";

/// Status of a document, given its last failure.
const STATUS_OF_DOCUMENT: &str = "CASE WHEN f.document IS NULL THEN d.status ELSE 'failed' END";

/// The last failure of each document of the base `$1`: its file was added again without success, and its earlier content
/// is still found.
const FAILURES: &str = "(SELECT DISTINCT ON (document) document, error_message FROM tasks WHERE base = $1 \
     AND state = 'failed' AND document IS NOT NULL ORDER BY document, key DESC)";

/// Tasks of the base `$1` with a document that does not exist yet.
const PENDING_DOCUMENT_TASKS: &str = "FROM tasks AS t WHERE t.base = $1 AND t.state IN ('queued', 'running') \
     AND t.document IS NOT NULL AND NOT EXISTS (SELECT 1 FROM documents AS o WHERE o.id = t.document)";

/// The user's title, or else the document's title. An escaped NUL in the metadata is not valid text for the server, so
/// it is replaced.
const TITLE_EXPRESSION: &str = "coalesce(CASE WHEN strpos(d.metadata, '\"title\"') > 0 \
     THEN replace(d.metadata, '\\u0000', '\\ufffd')::json ->> 'title' END, d.title)";

/// Filter values for the parameters `$2` to `$6`.
struct Conditions {
    needle: Option<Needle>,
    format: Option<String>,
    status: Option<&'static str>,
}

impl Store {
    /// Returns one page of the document list. A queued or running task is listed until its document exists. A failed task
    /// is no document.
    pub async fn documents(&self, base: &BaseName, listing: DocumentListQuery) -> Result<DocumentList, Error> {
        let nothing = DocumentList { documents: Vec::new(), total: 0 };
        let Some(conditions) = Conditions::of(&listing.filter) else { return Ok(nothing) };
        let session = self.begin_read().await?;
        let listed = match rows::base_key(&session, base).await? {
            Some(base) => DocumentList {
                total: total(&session, base, &listing.filter, &conditions).await?,
                documents: page(&session, base, &listing, &conditions).await?,
            },
            None => nothing,
        };
        session.rollback().await?;
        Ok(listed)
    }
}

impl Conditions {
    /// None if no document can match.
    fn of(only: &DocumentFilter) -> Option<Conditions> {
        let needle = match &only.name_contains {
            Some(named) => Some(Needle::of(named)?),
            None => None,
        };
        let format = only.format.as_deref().map(|format| rows::without_nul(format).into_owned());
        Some(Conditions { needle, format, status: only.status.map(StoredEnum::stored_name) })
    }

    /// The three parameters of the needle.
    fn parts(&self) -> [Option<&str>; 3] {
        let needle = self.needle.as_ref();
        [
            needle.map(|needle| needle.text.as_str()),
            needle.map(|needle| needle.uppercase.as_str()),
            needle.map(|needle| needle.lowercase.as_str()),
        ]
    }
}

/// Documents of the base `$1`.
fn documents_sql() -> String {
    let has = |text: &str| case_folding::contains_sql(text, ["$2", "$3", "$4"]);
    let (filename, title) = (has("d.filename"), has(&format!("left({TITLE_EXPRESSION}, {MAX_TITLE_CHARS})")));
    format!(
        "SELECT d.id, d.filename, d.path, d.title, d.format, d.size_bytes, d.date_added, d.page_count, d.chunk_count, \
         {STATUS_OF_DOCUMENT}, d.method, coalesce(f.error_message, d.warning), NULL::uuid AS task, d.metadata, d.key \
         FROM documents AS d LEFT JOIN {FAILURES} AS f ON f.document = d.id WHERE d.base = $1 \
         AND ($2::text IS NULL OR {filename} OR {title}) AND ($5::text IS NULL OR d.format = $5) \
         AND ($6::text IS NULL OR {STATUS_OF_DOCUMENT} = $6)"
    )
}

/// Documents that do not exist yet.
fn pending_documents_sql() -> String {
    let filename = case_folding::contains_sql("t.filename", ["$2", "$3", "$4"]);
    format!(
        "SELECT t.document, coalesce(t.filename, ''), NULL, NULL, coalesce(t.format, ''), coalesce(t.size_bytes, 0), \
         t.created, 0, 0, {STATUS_OF_TASK}, NULL, NULL, t.id, '{{}}', t.key {PENDING_DOCUMENT_TASKS} \
         AND ($2::text IS NULL OR {filename}) AND ($5::text IS NULL OR t.format = $5) \
         AND ($6::text IS NULL OR {STATUS_OF_TASK} = $6)"
    )
}

async fn total(session: &Session, base: i64, only: &DocumentFilter, conditions: &Conditions) -> Result<u64, Error> {
    // Without a filter, counting does not need to read the rows.
    if only.matches_all() {
        let sql = format!(
            "SELECT (SELECT count(*) FROM documents WHERE base = $1) + (SELECT count(*) {PENDING_DOCUMENT_TASKS})"
        );
        return rows::get_u64(&session.row(&sql, &[&base]).await?, 0);
    }
    let sql = format!("SELECT count(*) FROM ({} UNION ALL {}) AS l", documents_sql(), pending_documents_sql());
    let [needle, capitals, small] = conditions.parts();
    let row = session.row(&sql, &[&base, &needle, &capitals, &small, &conditions.format, &conditions.status]).await?;
    rows::get_u64(&row, 0)
}

async fn page(
    session: &Session,
    base: i64,
    listing: &DocumentListQuery,
    conditions: &Conditions,
) -> Result<Vec<ListedDocument>, Error> {
    let by = match listing.sort {
        SortKey::DateAdded => "date_added",
        SortKey::Filename => "lower(filename COLLATE \"C\")",
        SortKey::Size => "size_bytes",
    };
    let order = match listing.order {
        SortDirection::Ascending => "ASC",
        SortDirection::Descending => "DESC",
    };
    // There are many documents, and they have an index, so only as many are read as fit on this page and the pages
    // before it. The key breaks ties, so the order is stable across pages.
    let sql = format!(
        "SELECT * FROM (({} ORDER BY {by} {order}, d.key {order} LIMIT $7::bigint + $8::bigint) UNION ALL ({})) AS l \
         ORDER BY {by} {order}, key {order}, id {order} LIMIT $7 OFFSET $8",
        documents_sql(),
        pending_documents_sql()
    );
    let (limit, [needle, capitals, small]) = (i64::from(listing.limit), conditions.parts());
    let offset = rows::to_i64(listing.offset).min(i64::MAX - limit);
    let Conditions { format, status, .. } = conditions;
    let given: SqlParams<'_> = &[&base, &needle, &capitals, &small, format, status, &limit, &offset];
    session.rows(&sql, given).await?.iter().map(read_listed).collect()
}

fn read_listed(row: &Row) -> Result<ListedDocument, Error> {
    Ok(ListedDocument {
        id: DocumentId(rows::get(row, 0)?),
        filename: rows::get(row, 1)?,
        path: rows::get(row, 2)?,
        title: rows::get(row, 3)?,
        format: rows::get(row, 4)?,
        size_bytes: rows::get_u64(row, 5)?,
        date_added: rows::get(row, 6)?,
        page_count: rows::get_u32(row, 7)?,
        chunk_count: rows::get_u32(row, 8)?,
        status: rows::get_enum(row, 9)?,
        method: rows::get(row, 10)?,
        warning: rows::get(row, 11)?,
        task: rows::get::<Option<Uuid>>(row, 12)?.map(TaskId),
        metadata: rows::get_metadata(row, 13)?,
    })
}
