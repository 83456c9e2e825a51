//! Verification of the write-ahead log (WAL) file.
//!
//! SQLite ignores all frames from the first invalid one on, because an interrupted transaction leaves such frames
//! behind. A flipped bit therefore drops committed transactions silently. This module tells the two cases apart: each
//! frame has a checksum that continues the checksum of its predecessor, so a commit frame that continues the frame
//! before it, but comes after an invalid frame, was committed and is lost. Frames of an interrupted or rolled back
//! transaction have no commit frame, and frames of an earlier generation have other salts.
//!
//! The last commit frame has no successor. It was committed if a change of one word makes its checksum valid, as no
//! interrupted write leaves that, or if the [shared memory](super::wal_index) of the last process counts it. The shared
//! memory also shows that a log was truncated, overwritten or removed.
//!
//! The format is described in section 4 of <https://www.sqlite.org/fileformat2.html>.

use std::fmt;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::connection;
use super::files::{self, StoreFiles};
use super::wal_index::{SharedMemory, WalIndex};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The salts in the header of the file.
const SALTS: std::ops::Range<usize> = 16..24;
/// The lowest bit of the magic number is set if checksums read words in big-endian order.
const MAGIC: u32 = 0x377f_0682;
/// Number of identical results before damage is reported. Another process may write to the file during a pass.
const PASSES: usize = 3;

/// Damage that makes SQLite ignore committed transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    Header,
    /// Number of the first invalid or missing frame, from 1.
    Frame(u64),
    /// The file was removed or emptied.
    Missing,
    /// The log is intact, but its database is empty, so SQLite removes the log.
    NoDatabase,
}

impl fmt::Display for Damage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Header => to.write_str("the header of the write-ahead log is corrupt")?,
            Damage::Frame(frame) => write!(to, "the write-ahead log is corrupt at frame {frame}")?,
            Damage::Missing => to.write_str("the write-ahead log is missing")?,
            Damage::NoDatabase => {
                return to.write_str("the database is empty, but its write-ahead log contains committed changes");
            }
        }
        to.write_str("; later committed changes may be lost")
    }
}

/// Result of reading a log once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The committed part is intact, as far as the file shows. `committed` is the number of frames in it, and `salts` those
    /// of its header, if that is readable.
    Intact {
        committed: u64,
        salts: Option<[u8; 8]>,
    },
    Damaged(Damage),
}

/// Verifies the WAL of a database, which may be in use. SQLite itself reports a file that cannot be read. SQLite holds
/// no locks on this file, so opening and closing it here releases none.
pub(super) fn damage(database: &Path) -> Option<Damage> {
    let log = StoreFiles::companion(database, "-wal");
    let mut shared = SharedMemory::open(database);
    // The shared memory first: frames that are committed meanwhile are in the log.
    let mut look = || -> io::Result<(Option<WalIndex>, Option<Damage>)> {
        let index = shared.as_mut().and_then(SharedMemory::read);
        let found = match files::open(&log) {
            Ok(mut log) => damage_of(verify(&mut log)?, index, log.metadata()?.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                damage_of(Verdict::Intact { committed: 0, salts: None }, index, 0)
            }
            Err(error) => return Err(error),
        };
        Ok((index, found))
    };
    let first = look().ok()?;
    first.1.filter(|_| (1..PASSES).all(|_| look().is_ok_and(|again| again == first)))
}

/// The damage of a log of this many bytes. `index` is what the shared memory says.
fn damage_of(verdict: Verdict, index: Option<WalIndex>, bytes: u64) -> Option<Damage> {
    let (committed, salts) = match verdict {
        Verdict::Damaged(damage) => return Some(damage),
        Verdict::Intact { committed, salts } => (committed, salts),
    };
    // A log with other salts is a newer one: SQLite begins it after everything was written back.
    let index = index.filter(|index| salts.is_none_or(|salts| salts == index.salts))?;
    let is_lost = index.committed > committed.max(index.backfilled);
    is_lost.then_some(match (salts, bytes) {
        (Some(_), _) => Damage::Frame(committed + 1),
        (None, 0) => Damage::Missing,
        (None, _) => Damage::Header,
    })
}

/// The damage of a copy that was made because of it.
pub(super) fn damage_of_copy(copy: &Path) -> io::Result<Damage> {
    let mut log = files::open(copy)?;
    Ok(match verify(&mut log)? {
        Verdict::Damaged(damage) => damage,
        Verdict::Intact { salts: Some(_), committed } => Damage::Frame(committed + 1),
        Verdict::Intact { salts: None, .. } if log.metadata()?.len() == 0 => Damage::Missing,
        Verdict::Intact { salts: None, .. } => Damage::Header,
    })
}

/// The salts in the header of a log.
pub(super) fn salts(log: &Path) -> Option<[u8; 8]> {
    let mut header = [0; HEADER];
    files::open(log).ok()?.read_exact(&mut header).ok()?;
    header[SALTS].try_into().ok()
}

/// Whether a log holds a committed transaction that is intact.
pub(super) fn has_commit(log: &Path) -> bool {
    let mut found = false;
    let _ =
        files::open(log).and_then(|mut log| read(&mut log, &mut |frame| found |= frame.is_valid && frame.is_commit));
    found
}

/// One frame of a log.
pub(super) struct Frame<'a> {
    pub(super) page: u32,
    pub(super) is_commit: bool,
    /// It continues the valid frames before it, so SQLite uses it.
    pub(super) is_valid: bool,
    pub(super) content: &'a [u8],
}

/// Passes the frames of the current generation to `each`: those that SQLite uses, and those that are intact or one word
/// from it after the first invalid one.
pub(super) fn frames(log: &Path, each: &mut dyn FnMut(Frame<'_>)) -> io::Result<()> {
    read(&mut files::open(log)?, each).map(drop)
}

fn verify(log: &mut (impl Read + Seek)) -> io::Result<Verdict> {
    read(log, &mut |_| {})
}

/// Reads a WAL once, one frame at a time.
fn read(log: &mut (impl Read + Seek), each: &mut dyn FnMut(Frame<'_>)) -> io::Result<Verdict> {
    log.rewind()?;
    let mut header = [0; HEADER];
    if !fill(log, &mut header)? {
        return Ok(Verdict::Intact { committed: 0, salts: None });
    }
    let (magic, size) = (word(&header, 0), word(&header, 8));
    let order: WordOrder = if magic & 1 == 1 { u32::from_be_bytes } else { u32::from_le_bytes };
    let has_size = size.is_power_of_two() && (512..=65536).contains(&size);
    let page = if has_size { size } else { connection::PAGE_SIZE };
    if magic & !1 == MAGIC && has_size && checksum(order, (0, 0), &header[..24]) == stored_checksum(&header, 24) {
        return scan(log, &header, page, order, None, each);
    }
    // The byte order may be the damaged part.
    for order in [u32::from_be_bytes as WordOrder, u32::from_le_bytes] {
        log.seek(SeekFrom::Start(HEADER as u64))?;
        let found = scan(log, &header, page, order, Some(Damage::Header), each)?;
        if matches!(found, Verdict::Damaged(_)) {
            return Ok(found);
        }
    }
    Ok(Verdict::Intact { committed: 0, salts: None })
}

/// Reads the frames. The damage counts if a committed transaction is behind it. `damage` is the damage of the header.
fn scan(
    log: &mut impl Read,
    header: &[u8; HEADER],
    page: u32,
    order: WordOrder,
    mut damage: Option<Damage>,
    each: &mut dyn FnMut(Frame<'_>),
) -> io::Result<Verdict> {
    let has_salts = damage.is_none();
    let mut frame = vec![0; FRAME_HEADER + page as usize];
    // The checksum in the previous frame, and the one that its content has. They differ in a damaged frame.
    let (mut stored, mut computed) = (stored_checksum(header, 24), checksum(order, (0, 0), &header[..24]));
    let (mut number, mut committed, mut is_lost) = (0, 0, false);
    while fill(log, &mut frame)? {
        number += 1;
        let continued = |seed| checksum(order, checksum(order, seed, &frame[..8]), &frame[FRAME_HEADER..]);
        let own = stored_checksum(&frame, 16);
        let next = continued(stored);
        let is_current = !has_salts || frame[8..16] == header[SALTS];
        let is_intact = next == own || continued(computed) == own;
        let is_commit = word(&frame, 4) != 0;
        let is_valid = damage.is_none() && is_current && next == own;
        let mut is_known = is_valid || is_current && is_intact;
        if is_valid && is_commit {
            committed = number;
        }
        if damage.is_none() && !is_valid {
            damage = Some(Damage::Frame(number));
            // The checksum covers the salts of the header, so a frame with other salts and this checksum is a current one.
            let nearly = if next == own { Some(is_commit) } else { nearly_commits(&frame, order, next) };
            is_known = next == own || is_current && nearly.is_some();
            is_lost |= is_known && nearly == Some(true);
        } else if damage.is_some() && is_known {
            is_lost |= is_commit;
        }
        if is_known {
            each(Frame { page: word(&frame, 0), is_commit, is_valid, content: &frame[FRAME_HEADER..] });
        }
        (stored, computed) = (own, next);
    }
    Ok(match damage.filter(|_| is_lost) {
        Some(damage) => Verdict::Damaged(damage),
        None => Verdict::Intact { committed, salts: header[SALTS].try_into().ok().filter(|_| has_salts) },
    })
}

/// Whether a frame commits a transaction, if a change of one word makes its checksum valid. `computed` is the checksum of
/// its content.
fn nearly_commits(frame: &[u8], order: WordOrder, computed: (u32, u32)) -> Option<bool> {
    let stored = stored_checksum(frame, 16);
    let is_commit = word(frame, 4) != 0;
    let missing = (stored.0.wrapping_sub(computed.0), stored.1.wrapping_sub(computed.1));
    // One word of the checksum itself.
    if missing.0 == 0 || missing.1 == 0 {
        return Some(is_commit);
    }
    // The checksum is linear. Backwards over all words: the factors by which a change of the word changes the checksum.
    let count = (8 + frame.len() - FRAME_HEADER) / 4;
    let (mut first, mut second) = ((1u32, 0u32), (0u32, 1u32));
    let sum = |a: (u32, u32), b: (u32, u32)| (a.0.wrapping_add(b.0), a.1.wrapping_add(b.1));
    for pair in (0..count / 2).rev() {
        let both = sum(first, second);
        for (index, factors) in [(2 * pair + 1, second), (2 * pair, both)] {
            let Some(change) = quotient(missing, factors) else { continue };
            // The word in the frame that decides whether it is a commit frame.
            return Some(match index {
                1 => order(word(frame, 4).to_be_bytes()).wrapping_add(change) != 0,
                _ => is_commit,
            });
        }
        (first, second) = (both, sum(both, second));
    }
    None
}

/// The number that gives `product` if both factors are multiplied by it. One of the factors is odd.
fn quotient(product: (u32, u32), factors: (u32, u32)) -> Option<u32> {
    // Newton's iteration for the inverse modulo 2^32: each step doubles the number of correct bits, from three.
    let inverse =
        |odd: u32| (0..4).fold(odd, |inverse, _| inverse.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(inverse))));
    let quotient = match factors.0 & 1 {
        1 => product.0.wrapping_mul(inverse(factors.0)),
        _ => product.1.wrapping_mul(inverse(factors.1)),
    };
    let is_right = (factors.0.wrapping_mul(quotient), factors.1.wrapping_mul(quotient)) == product;
    is_right.then_some(quotient)
}

pub(super) type WordOrder = fn([u8; 4]) -> u32;

/// Continues a checksum with some bytes, whose number is a multiple of eight.
pub(super) fn checksum(order: WordOrder, seed: (u32, u32), bytes: &[u8]) -> (u32, u32) {
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

    const FRAME: usize = FRAME_HEADER + connection::PAGE_SIZE as usize;

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
        connection.pragma_update(None, "page_size", connection::PAGE_SIZE).unwrap();
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
        match verify(&mut Cursor::new(log)).unwrap() {
            Verdict::Damaged(damage) => Some(damage),
            Verdict::Intact { .. } => None,
        }
    }

    fn flipped(log: &[u8], byte: usize, bit: usize) -> Vec<u8> {
        let mut log = log.to_vec();
        log[byte] ^= 1u8 << bit;
        log
    }

    #[test]
    fn a_flipped_bit_is_found_also_in_the_last_commit_frame() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        (0..4).for_each(|_| insert(&connection));
        let log = log(folder.path());
        assert!((log.len() - HEADER).is_multiple_of(FRAME));
        assert_eq!((verified(&log), damage(&folder.path().join("test.db"))), (None, None));
        for byte in 0..HEADER {
            for bit in 0..8 {
                assert_eq!(verified(&flipped(&log, byte, bit)), Some(Damage::Header), "{byte} {bit}");
            }
        }
        let mut random = Random(7);
        let frames = (log.len() - HEADER) / FRAME;
        for frame in 1..=frames {
            let start = HEADER + (frame - 1) * FRAME;
            // Each byte of the frame's header, and some of its page.
            let offsets = (0..FRAME_HEADER).chain((0..8).map(|_| FRAME_HEADER + random.below(FRAME - FRAME_HEADER)));
            for offset in offsets.collect::<Vec<_>>() {
                let damaged = flipped(&log, start + offset, random.below(8));
                assert_eq!(verified(&damaged), Some(Damage::Frame(frame as u64)), "{offset}");
            }
        }
        let byte = HEADER + random.below(frames * FRAME);
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
        assert_eq!(verified(&flipped(&log, HEADER + 100, 0)), Some(Damage::Frame(1)));
    }

    #[test]
    fn a_damaged_byte_or_word_in_the_last_commit_frame_is_found_and_a_torn_write_is_not_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        (0..3).for_each(|_| insert(&connection));
        let log = log(folder.path());
        let (last, mut random) = (log.len() - FRAME, Random(13));
        let number = ((log.len() - HEADER) / FRAME) as u64;
        for _ in 0..200 {
            let mut damaged = log.clone();
            let byte = last + random.below(FRAME);
            damaged[byte] ^= 1 + random.below(255) as u8;
            assert_eq!(verified(&damaged), Some(Damage::Frame(number)), "{}", byte - last);
            let word = last + random.below(FRAME / 4) * 4;
            let mut damaged = log.clone();
            damaged[word..word + 4].copy_from_slice(&(random.below(1 << 32) as u32).to_le_bytes());
            let is_same = damaged == log;
            assert_eq!(verified(&damaged), (!is_same).then_some(Damage::Frame(number)), "{}", word - last);
        }
        // The sectors from some position on are zero, or from another write.
        for sectors in 0..FRAME / 512 {
            let mut torn = log.clone();
            torn[last + sectors * 512..].fill(0);
            assert_eq!(verified(&torn), None, "{sectors}");
            let mut torn = log.clone();
            for byte in &mut torn[last + FRAME_HEADER + sectors * 512..] {
                *byte = random.below(256) as u8;
            }
            assert_eq!(verified(&torn), None, "{sectors}");
        }
    }

    /// As a process that was killed leaves it.
    #[test]
    fn a_last_commit_frame_that_the_shared_memory_counts_is_damaged_and_not_torn() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        (0..3).for_each(|_| insert(&connection));
        let mut torn = log(folder.path());
        let (last, end) = (torn.len() - FRAME, torn.len());
        torn[end - 4096..].fill(0);
        let copy = |name: &str| folder.path().join(name);
        std::fs::write(copy("copy.db-wal"), &torn).unwrap();
        assert_eq!(damage(&copy("copy.db")), None, "without shared memory, it may be an interrupted write");
        std::fs::copy(copy("test.db-shm"), copy("copy.db-shm")).unwrap();
        let found = damage(&copy("copy.db"));
        assert!(matches!(found, Some(Damage::Frame(_))), "{found:?}");
        assert_eq!(damage_of_copy(&copy("copy.db-wal")).ok(), found);
        // A transaction that was interrupted after that is not counted.
        let mut interrupted = log(folder.path());
        interrupted.extend_from_within(last..);
        std::fs::write(copy("copy.db-wal"), &interrupted).unwrap();
        assert_eq!(damage(&copy("copy.db")), None);
        // The shared memory of another generation.
        let mut shared = std::fs::read(copy("copy.db-shm")).unwrap();
        for byte in [32, 32 + 48] {
            shared[byte] ^= 1;
        }
        std::fs::write(copy("copy.db-shm"), &shared).unwrap();
        std::fs::write(copy("copy.db-wal"), &torn).unwrap();
        assert_eq!(damage(&copy("copy.db")), None);
    }

    /// A process was killed, and then the log was lost in some way.
    #[test]
    fn a_log_that_the_shared_memory_counts_is_missed_if_it_is_removed_truncated_or_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        (0..4).for_each(|_| insert(&connection));
        let copy = |name: &str| folder.path().join(name);
        let whole = log(folder.path());
        std::fs::copy(copy("test.db-shm"), copy("copy.db-shm")).unwrap();
        let found = |log: &[u8]| {
            std::fs::write(copy("copy.db-wal"), log).unwrap();
            damage(&copy("copy.db"))
        };
        assert_eq!(found(&whole), None);
        assert_eq!(damage(&copy("copy.db")), None);
        let mut salted = whole.clone();
        (0..(whole.len() - HEADER) / FRAME).for_each(|frame| salted[HEADER + frame * FRAME + 8] ^= 1);
        for (log, expected) in [
            (&whole[..0], Damage::Missing),
            (&whole[..20], Damage::Header),
            (&whole[..HEADER + 100], Damage::Frame(1)),
            (&vec![0; whole.len()][..], Damage::Header),
            (&vec![7; whole.len()][..], Damage::Header),
            (&salted[..], Damage::Frame(1)),
        ] {
            assert_eq!(found(log), Some(expected), "{} bytes", log.len());
            assert_eq!(damage_of_copy(&copy("copy.db-wal")).unwrap(), expected);
        }
        assert!(matches!(found(&whole[..HEADER + 9 * FRAME]), Some(Damage::Frame(_))));
        std::fs::remove_file(copy("copy.db-wal")).unwrap();
        assert_eq!(damage(&copy("copy.db")), Some(Damage::Missing));
        // What was written back is in the database.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        assert_eq!(damage(&copy("test.db")), None);
        insert(&connection);
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
        std::fs::copy(copy("test.db-shm"), copy("copy.db-shm")).unwrap();
        assert_eq!(damage(&copy("copy.db")), None);
    }

    #[test]
    fn frames_before_and_after_the_damage_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database(folder.path());
        (0..3).for_each(|_| insert(&connection));
        let log = log(folder.path());
        let count = (log.len() - HEADER) / FRAME;
        let path = folder.path().join("damaged");
        std::fs::write(&path, flipped(&log, HEADER + 4 * FRAME + 77, 3)).unwrap();
        let (mut valid, mut other, mut commits) = (0, 0, 0);
        frames(&path, &mut |frame| {
            assert_eq!(frame.content.len(), connection::PAGE_SIZE as usize);
            commits += u64::from(frame.is_commit);
            assert_eq!(frame.is_valid, valid + other < 4, "the fifth frame is damaged");
            if frame.is_valid { valid += 1 } else { other += 1 }
        })
        .unwrap();
        assert_eq!((valid, other), (4, count - 4));
        // The table, and three rows.
        assert_eq!(commits, 4);
    }
}
