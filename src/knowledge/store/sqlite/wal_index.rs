//! The header of SQLite's shared memory file, which counts the committed frames of the write-ahead log.
//!
//! SQLite writes it after a commit is on disk, and the file stays behind when a process is killed. So a frame that it counts
//! was committed. It is not synced to disk: after a power failure it may count too few.
//!
//! The format is described in section 2 of <https://www.sqlite.org/walformat.html>.

use std::io::Read;
use std::path::Path;

use super::files::{self, Files};
use super::wal::checksum;

const HEADER: usize = 48;
const VERSION: u32 = 3_007_000;
const CHECKSUM: usize = 40;

/// Number of committed frames of the log with these salts. None if the file has none or another header.
pub(super) fn committed_frames(database: &Path, salts: &[u8; 8]) -> Option<u64> {
    let mut file = files::open(&Files::beside(database, "-shm")).ok()?;
    // It has two copies of the header, which are the same unless a commit is under way.
    let mut headers = [0; 2 * HEADER];
    let read = file.read_exact(&mut headers);
    // Closing it would release the locks of a store that is open in this process.
    std::mem::forget(file);
    read.ok()?;
    let (header, copy) = headers.split_at(HEADER);
    let number = |at: usize| header.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
    let is_whole = header == copy
        && number(0)? == VERSION
        && checksum(u32::from_ne_bytes, (0, 0), &header[..CHECKSUM]) == (number(CHECKSUM)?, number(CHECKSUM + 4)?)
        && header[32..40] == *salts;
    is_whole.then_some(number(16)?.into())
}
