//! Consistency check.

use super::{Store, rows};
use crate::store::{CheckReport, Error};

/// Invariants, each with a query that counts violations.
const INVARIANTS: [(&str, &str); 6] = [
    (
        "documents with a wrong chunk count",
        "SELECT count(*) FROM documents AS d WHERE d.chunk_count <> (SELECT count(*) FROM chunks AS c WHERE c.writing = d.writing)",
    ),
    (
        "documents with a wrong page count",
        "SELECT count(*) FROM documents AS d WHERE d.page_count <> (SELECT count(*) FROM pages AS p WHERE p.writing = d.writing)",
    ),
    (
        "documents with a wrong vector count",
        "SELECT count(*) FROM documents AS d WHERE d.vector_count <> (SELECT count(*) FROM vectors AS v WHERE v.writing = d.writing)",
    ),
    (
        "documents without postings",
        "SELECT count(*) FROM documents AS d WHERE NOT EXISTS (SELECT 1 FROM writings AS w WHERE w.key = d.writing AND w.dead IS NULL)",
    ),
    (
        "orphaned rows of deleted documents",
        "SELECT count(*) FROM (SELECT DISTINCT writing FROM chunks UNION SELECT DISTINCT writing FROM pages UNION \
         SELECT DISTINCT writing FROM vectors) AS p WHERE NOT EXISTS (SELECT 1 FROM documents AS d WHERE d.writing = p.writing)",
    ),
    (
        "knowledge bases with wrong totals",
        "SELECT count(*) FROM (SELECT b.key, (SELECT (count(*), coalesce(sum(chunk_count), 0), coalesce(sum(vector_count), 0), \
         coalesce(sum(size_bytes), 0), coalesce(sum(length), 0))::text FROM documents AS d WHERE d.base = b.key) AS there, \
         (SELECT (coalesce(sum(documents), 0), coalesce(sum(chunks), 0), coalesce(sum(vectors), 0), \
         coalesce(sum(size_bytes), 0), coalesce(sum(length), 0))::text FROM sums AS s WHERE s.base = b.key) AS said \
         FROM bases AS b) AS x WHERE there <> said",
    ),
];

impl Store {
    /// Checks the consistency of the tables.
    pub async fn check(&self) -> Result<CheckReport, Error> {
        let session = self.begin_read().await?;
        session.execute_batch("SET LOCAL statement_timeout = 0").await?;
        let mut report = CheckReport::default();
        let counts = "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM pages), (SELECT count(*) FROM chunks), \
                      (SELECT count(*) FROM vectors), (SELECT count(*) FROM tasks)";
        let row = session.row_without_timeout(counts).await?;
        report.documents = rows::get_u64(&row, 0)?;
        report.pages = rows::get_u64(&row, 1)?;
        report.chunks = rows::get_u64(&row, 2)?;
        report.vectors = rows::get_u64(&row, 3)?;
        report.tasks = rows::get_u64(&row, 4)?;
        for (what, sql) in INVARIANTS {
            let wrong = rows::get_u64(&session.row_without_timeout(sql).await?, 0)?;
            if wrong > 0 {
                report.problems.push(format!("{what}: {wrong}"));
            }
        }
        session.rollback().await?;
        Ok(report)
    }
}
