//! Many rows at once, in PostgreSQL's binary form.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::failure;
use super::session::Session;
use crate::knowledge::store::Error;

/// So many rows go in one statement, so that none takes long, however many there are. A vector takes much longer than a row
/// of text: it finds its neighbours in an index that may not be in memory.
const PIECE: usize = 1000;
const VECTORS: usize = 100;
/// The longest that one may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A row to write.
pub(super) type Line<'a> = Vec<Box<dyn ToSql + Sync + Send + 'a>>;

/// Writes rows to some columns of a table, of these types.
pub(super) async fn rows(
    session: &Session,
    table: &str,
    columns: &[(&str, Type)],
    lines: Vec<Line<'_>>,
) -> Result<(), Error> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let types: Vec<Type> = columns.iter().map(|(_, of)| of.clone()).collect();
    let sql = format!("COPY {table} ({}) FROM STDIN BINARY", names.join(", "));
    for piece in lines.chunks(if table == "vectors" { VECTORS } else { PIECE }) {
        let copied = async {
            let sink = session.connection()?.copy_in(&sql).await.map_err(failure::of)?;
            let mut writer = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
            for line in piece {
                let values = line.iter().map(|value| &**value as &(dyn ToSql + Sync));
                writer.as_mut().write_raw(values.collect::<Vec<_>>()).await.map_err(failure::of)?;
            }
            writer.finish().await.map_err(failure::of).map(drop)
        };
        timeout(PATIENCE, copied).await.map_err(|_| Error::Away("it does not answer".to_owned()))??;
    }
    Ok(())
}
