//! Bulk insert with COPY in binary format.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::error;
use super::session::Session;
use crate::store::Error;

/// Rows per COPY statement, so that none takes long. A vector takes much longer than a text row: the insert searches
/// its neighbours in an HNSW index that may not be in memory.
const ROWS_PER_COPY: usize = 1000;
const VECTORS_PER_COPY: usize = 100;
/// Timeout of one COPY statement.
const COPY_TIMEOUT: Duration = Duration::from_secs(120);

/// A row to insert.
pub(super) type CopyRow<'a> = Vec<Box<dyn ToSql + Sync + Send + 'a>>;

/// Inserts rows into the given typed columns of a table.
pub(super) async fn copy_rows(
    session: &Session,
    table: &str,
    columns: &[(&str, Type)],
    lines: Vec<CopyRow<'_>>,
) -> Result<(), Error> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let types: Vec<Type> = columns.iter().map(|(_, of)| of.clone()).collect();
    let sql = format!("COPY {table} ({}) FROM STDIN BINARY", names.join(", "));
    for piece in lines.chunks(if table == "vectors" { VECTORS_PER_COPY } else { ROWS_PER_COPY }) {
        let copied = async {
            let sink = session.connection()?.copy_in(&sql).await.map_err(error::map_error)?;
            let mut writer = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
            for line in piece {
                let values = line.iter().map(|value| &**value as &(dyn ToSql + Sync));
                writer.as_mut().write_raw(values.collect::<Vec<_>>()).await.map_err(error::map_error)?;
            }
            writer.finish().await.map_err(error::map_error).map(drop)
        };
        timeout(COPY_TIMEOUT, copied).await.map_err(|_| Error::Unavailable("request timed out".to_owned()))??;
    }
    Ok(())
}
