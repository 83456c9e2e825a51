//! Reads rows of `documents` from a single page of a database, without the rest of the file.
//!
//! A page does not name its table, so rows are recognized by the types of their columns. The format is described in sections
//! 1.6 and 2 of <https://www.sqlite.org/fileformat2.html>.

use crate::document::DocumentId;
use uuid::Uuid;

/// Columns that identify a document and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentRow {
    pub(super) id: DocumentId,
    pub(super) filename: String,
    pub(super) path: Option<String>,
    /// SHA-256 of the file.
    pub(super) sha256: Vec<u8>,
}

/// Type of a page with rows of a table.
const TABLE_LEAF: u8 = 13;
/// SQLite has no smaller pages.
const MIN_PAGE: usize = 512;
/// Number of columns of `documents` in the first schema version. Later ones add some.
const MIN_COLUMNS: usize = 20;
const MAX_COLUMNS: usize = 40;

/// The documents on a page; none if it is a page of another kind or table.
pub(super) fn documents(page: &[u8]) -> Vec<DocumentRow> {
    if page.first() != Some(&TABLE_LEAF) || page.len() < MIN_PAGE {
        return Vec::new();
    }
    let count = number(page, 3).unwrap_or(0);
    (0..count).filter_map(|cell| document(page, number(page, 8 + 2 * cell)?)).collect()
}

/// The row of a cell.
fn document(page: &[u8], cell: usize) -> Option<DocumentRow> {
    let mut rest = page.get(cell..)?;
    let length = usize::try_from(varint(&mut rest)?).ok()?;
    let _key = varint(&mut rest)?;
    // A long row continues on other pages, which hold its last columns.
    let mut values = rest.get(..local_length(page.len(), length))?;
    let whole = values;
    let header = usize::try_from(varint(&mut values)?).ok()?;
    let mut types = whole.get(whole.len() - values.len()..header)?;
    let mut columns = Vec::new();
    while !types.is_empty() && columns.len() <= MAX_COLUMNS {
        columns.push(varint(&mut types)?);
    }
    // Key, ID, base, file name, path, origin, title, format, size and SHA-256. The key is not stored in the row.
    let is_document = (MIN_COLUMNS..=MAX_COLUMNS).contains(&columns.len())
        && (columns[0], columns[1], columns[9]) == (0, blob(16), blob(32))
        && is_number(columns[2])
        && is_text(columns[3])
        && (columns[4] == 0 || is_text(columns[4]))
        && is_text(columns[5])
        && is_text(columns[7])
        && is_number(columns[8]);
    if !is_document {
        return None;
    }
    let mut values = whole.get(header..)?;
    let mut taken = columns.iter().map(|kind| {
        let (value, after) = values.split_at_checked(size(*kind)?)?;
        values = after;
        Some(value)
    });
    let mut next = || taken.next().flatten();
    let (_key, id, _base) = (next()?, next()?, next()?);
    let filename = String::from_utf8(next()?.to_vec()).ok()?;
    let path = next()?;
    let path = String::from_utf8(path.to_vec()).ok().filter(|path| !path.is_empty());
    let (_origin, _title, _format, _size) = (next(), next(), next(), next());
    let sha256 = next().unwrap_or_default().to_vec();
    Some(DocumentRow { id: DocumentId(Uuid::from_slice(id).ok()?), filename, path, sha256 })
}

/// How many bytes of a row are on its page.
fn local_length(page: usize, length: usize) -> usize {
    let most = page - 35;
    if length <= most {
        return length;
    }
    let least = (page - 12) * 32 / 255 - 23;
    let local = least + (length - least) % (page - 4);
    if local <= most { local } else { least }
}

/// A big-endian number of two bytes.
fn number(page: &[u8], at: usize) -> Option<usize> {
    page.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes).into())
}

/// Takes a number of one to nine bytes.
fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for index in 0..9 {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        if index == 8 {
            return Some(number << 8 | u64::from(*byte));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

/// Bytes of a value of a type.
fn size(kind: u64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => Some(kind as usize),
        5 => Some(6),
        6 | 7 => Some(8),
        10 | 11 => None,
        _ => usize::try_from((kind - 12) / 2).ok(),
    }
}

fn blob(bytes: u64) -> u64 {
    12 + 2 * bytes
}

fn is_number(kind: u64) -> bool {
    matches!(kind, 1..=6 | 8 | 9)
}

fn is_text(kind: u64) -> bool {
    kind >= 13 && kind % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    /// A file with documents with metadata of this many bytes.
    fn database(metadata: usize) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "page_size", 8192).unwrap();
        connection.execute_batch(include_str!("migrations/0001_first.sql")).unwrap();
        connection.execute_batch("INSERT INTO bases VALUES (1, 'default', 1, 2);").unwrap();
        for number in 0..3u8 {
            let row =
                (DocumentId(Uuid::from_u128(number.into())), format!("{number}.pdf"), [number; 32], metadata as i64);
            let path = (number > 0).then(|| format!("/home/ada/{number}.pdf"));
            let sql = "INSERT INTO documents VALUES (NULL, ?1, 1, ?2, ?5, 'added', NULL, 'pdf', 300, ?3, 5, 6, 'completed', \
                'ocr', hex(zeroblob(?4)), 'minilm', 0, 1, 0, NULL)";
            connection.execute(sql, (row.0, row.1, row.2, row.3, path)).unwrap();
        }
        drop(connection);
        std::fs::read(path).unwrap()
    }

    #[test]
    fn documents_are_recognized_on_a_page_also_if_their_rows_are_long() {
        for metadata in [0, 100, 5_000, 50_000] {
            let file = database(metadata);
            let mut rows: Vec<DocumentRow> = file.chunks(8192).flat_map(documents).collect();
            rows.sort_by_key(|row| row.id);
            let names: Vec<_> = rows.iter().map(|row| (row.filename.as_str(), row.path.as_deref())).collect();
            let expected = [("0.pdf", None), ("1.pdf", Some("/home/ada/1.pdf")), ("2.pdf", Some("/home/ada/2.pdf"))];
            assert_eq!(names, expected, "{metadata}");
            assert!(rows.iter().zip(0u8..).all(|(row, number)| row.sha256 == [number; 32]));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let file = database(5_000);
        let mut state = 7u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (page, at, byte) = (state >> 60, state >> 40 & 0x1fff, (state >> 30) as u8);
            let mut page = file.chunks(8192).cycle().nth(page as usize).unwrap().to_vec();
            page[(at % 300) as usize] = byte;
            page[at as usize] ^= byte;
            page[0] = TABLE_LEAF;
            documents(&page);
        }
        documents(&[TABLE_LEAF]);
        documents(&[]);
    }
}
