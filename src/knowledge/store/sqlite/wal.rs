//! Verification of the write-ahead log (WAL) file.
//!
//! SQLite ignores all frames from the first invalid one on, because an interrupted transaction leaves such frames
//! behind. A flipped bit therefore drops committed transactions silently. This module tells the two cases apart: each
//! frame has a checksum that continues the checksum of its predecessor, so a commit frame that continues the frame
//! before it, but comes after an invalid frame, was committed and is lost. Frames of an interrupted or rolled back
//! transaction have no commit frame, and frames of an earlier generation have other salts.
//!
//! The format is described in section 4 of <https://www.sqlite.org/fileformat2.html>.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::connection;
use super::files::Files;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The lowest bit of the magic number is set if checksums read words in big-endian order.
const MAGIC: u32 = 0x377f_0682;
/// Number of identical results before damage is reported. Another process may write to the file during a pass.
const PASSES: usize = 3;

/// Damage that makes SQLite ignore committed transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damage {
    /// Number of the first invalid frame; 0 is the header of the file.
    frame: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the write-ahead log is damaged ")?;
        match self.frame {
            0 => to.write_str("in its header")?,
            frame => write!(to, "at frame {frame}")?,
        }
        to.write_str(", and committed changes from there on may be lost")
    }
}

/// Verifies the WAL of a database, which may be in use. SQLite itself reports a file that cannot be read. SQLite holds
/// no locks on this file, so opening and closing it here releases none.
pub(super) fn damage(database: &Path) -> Option<Damage> {
    let mut log = File::open(Files::beside(database, "-wal")).ok()?;
    let found = verify(&mut log).ok()??;
    let is_stable = (1..PASSES).all(|_| verify(&mut log).is_ok_and(|again| again == Some(found)));
    is_stable.then_some(found)
}

/// Reads a WAL once, one frame at a time.
fn verify(log: &mut (impl Read + Seek)) -> io::Result<Option<Damage>> {
    log.rewind()?;
    let mut header = [0; HEADER];
    if !fill(log, &mut header)? {
        return Ok(None);
    }
    let (magic, size) = (word(&header, 0), word(&header, 8));
    let order: WordOrder = if magic & 1 == 1 { u32::from_be_bytes } else { u32::from_le_bytes };
    let has_size = size.is_power_of_two() && (512..=65536).contains(&size);
    let page = if has_size { size } else { connection::PAGE };
    if magic & !1 == MAGIC && has_size && checksum(order, (0, 0), &header[..24]) == stored_checksum(&header, 24) {
        return scan(log, &header, page, order, None);
    }
    // The byte order may be the damaged part.
    if let Some(damage) = scan(log, &header, page, u32::from_be_bytes, Some(Damage { frame: 0 }))? {
        return Ok(Some(damage));
    }
    log.seek(SeekFrom::Start(HEADER as u64))?;
    scan(log, &header, page, u32::from_le_bytes, Some(Damage { frame: 0 }))
}

/// Reads the frames and returns the first damage that a commit frame follows. `damage` is the damage of the header.
fn scan(
    log: &mut impl Read,
    header: &[u8; HEADER],
    page: u32,
    order: WordOrder,
    mut damage: Option<Damage>,
) -> io::Result<Option<Damage>> {
    let has_salts = damage.is_none();
    let mut frame = vec![0; FRAME_HEADER + page as usize];
    // The checksum in the previous frame, and the one that its content has. They differ in a damaged frame.
    let (mut stored, mut computed) = (stored_checksum(header, 24), checksum(order, (0, 0), &header[..24]));
    let mut number = 0;
    while fill(log, &mut frame)? {
        number += 1;
        let continued = |seed| checksum(order, checksum(order, seed, &frame[..8]), &frame[FRAME_HEADER..]);
        let own = stored_checksum(&frame, 16);
        let next = continued(stored);
        let is_current = !has_salts || frame[8..16] == header[16..24];
        let is_commit = word(&frame, 4) != 0;
        match damage {
            None if !is_current || next != own => damage = Some(Damage { frame: number }),
            Some(_) if is_current && is_commit && (next == own || continued(computed) == own) => return Ok(damage),
            _ => {}
        }
        (stored, computed) = (own, next);
    }
    Ok(None)
}

type WordOrder = fn([u8; 4]) -> u32;

/// Continues a checksum with some bytes, whose number is a multiple of eight.
fn checksum(order: WordOrder, seed: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let (mut first, mut second) = seed;
    for pair in bytes.as_chunks::<4>().0.as_chunks::<2>().0 {
        first = first.wrapping_add(order(pair[0])).wrapping_add(second);
        second = second.wrapping_add(order(pair[1])).wrapping_add(first);
    }
    (first, second)
}

fn stored_checksum(bytes: &[u8], at: usize) -> (u32, u32) {
    (word(bytes, at), word(bytes, at + 4))
}

/// The number at an offset, which is big-endian everywhere but in checksummed content.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Fills a buffer. Returns false at the end of the file, also if it ends within the buffer.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use rusqlite::Connection;

    use super::*;

    const FRAME: usize = FRAME_HEADER + connection::PAGE as usize;

    /// The same numbers each time (splitmix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) % bound as u64) as usize
        }
    }

    /// A database with a table, whose WAL is not written back by itself.
    fn database(folder: &Path) -> Connection {
        let connection = Connection::open(folder.join("test.db")).unwrap();
        connection.pragma_update(None, "page_size", connection::PAGE).unwrap();
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
        connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
        connection.execute_batch("CREATE TABLE texts (text BLOB)").unwrap();
        connection
    }

    /// Inserts a row that takes several pages.
    fn insert(connection: &Connection) {
        connection.execute("INSERT INTO texts VALUES (randomblob(30000))", []).unwrap();
    }

    fn log(folder: &Path) -> Vec<u8> {
        std::fs::read(folder.join("test.db-wal")).unwrap()
    }

    fn verified(log: &[u8]) -> Option<Damage> {
        verify(&mut Cursor::new(log)).unwrap()
    }

    fn flipped(log: &[u8], byte: usize, bit: usize) -> Vec<u8> {
        let mut log = log.to_vec();
        log[byte] ^= 1u8 << bit;
        log
    }

    #[test]
    fn a_flipped_bit_before_the_last_commit_frame_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        (0..4).for_each(|_| insert(&connection));
        let log = log(folder.path());
        assert!((log.len() - HEADER).is_multiple_of(FRAME));
        assert_eq!((verified(&log), damage(&folder.path().join("test.db"))), (None, None));
        for byte in 0..HEADER {
            for bit in 0..8 {
                assert_eq!(verified(&flipped(&log, byte, bit)), Some(Damage { frame: 0 }), "{byte} {bit}");
            }
        }
        let mut random = Random(7);
        let frames = (log.len() - HEADER) / FRAME;
        for frame in 1..frames {
            let start = HEADER + (frame - 1) * FRAME;
            // Each byte of the frame's header, and some of its page.
            let offsets = (0..FRAME_HEADER).chain((0..8).map(|_| FRAME_HEADER + random.below(FRAME - FRAME_HEADER)));
            for offset in offsets.collect::<Vec<_>>() {
                let damaged = flipped(&log, start + offset, random.below(8));
                assert_eq!(verified(&damaged), Some(Damage { frame: frame as u64 }), "{offset}");
            }
        }
        let byte = HEADER + random.below((frames - 1) * FRAME);
        std::fs::write(folder.path().join("copy.db-wal"), flipped(&log, byte, 3)).unwrap();
        assert!(damage(&folder.path().join("copy.db")).is_some());
    }

    #[test]
    fn a_truncated_or_empty_file_is_not_reported() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        (0..3).for_each(|_| insert(&connection));
        let log = log(folder.path());
        let mut random = Random(11);
        for _ in 0..100 {
            assert_eq!(verified(&log[..random.below(log.len())]), None);
        }
        assert_eq!((verified(&[]), verified(&[0; HEADER + 3 * FRAME])), (None, None));
        assert_eq!(damage(&folder.path().join("missing.db")), None);
        // A torn last frame.
        let mut torn = log.clone();
        torn[log.len() - 4096..].fill(0);
        assert_eq!(verified(&torn), None);
    }

    #[test]
    fn frames_of_an_earlier_generation_are_not_reported() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        (0..5).for_each(|_| insert(&connection));
        let before = log(folder.path());
        connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        insert(&connection);
        let after = log(folder.path());
        assert_eq!(after.len(), before.len());
        assert_ne!(after[16..24], before[16..24]);
        assert_eq!(verified(&after), None);
    }

    #[test]
    fn remains_of_a_rolled_back_transaction_are_not_reported() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        insert(&connection);
        let before = log(folder.path()).len();
        // Pages that exceed the cache are written to the log before the commit.
        connection.pragma_update(None, "cache_size", 10).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        (0..20).for_each(|_| insert(&connection));
        connection.execute_batch("ROLLBACK").unwrap();
        let spilled = log(folder.path()).len();
        assert!(spilled > before + 20 * FRAME);
        insert(&connection);
        let log = log(folder.path());
        assert_eq!((log.len(), verified(&log)), (spilled, None));
        // The same file with damage in the committed part.
        assert_eq!(verified(&flipped(&log, HEADER + 100, 0)), Some(Damage { frame: 1 }));
    }
}
