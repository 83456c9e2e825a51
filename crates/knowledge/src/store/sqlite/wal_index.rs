//! The header of SQLite's shared memory file, which counts the committed frames of the write-ahead log.
//!
//! SQLite writes it after a commit is on disk, and the file stays behind when a process is killed. So a frame that it counts
//! was committed. It is not synced to disk: after a power failure it may count too few.
//!
//! The format is described in section 2 of <https://www.sqlite.org/walformat.html>.

use std::fs::File;
use std::io::{Read, Seek};
use std::mem::ManuallyDrop;
use std::path::Path;

use super::files::{self, StoreFiles};
use super::wal::checksum;

const HEADER: usize = 48;
const VERSION: u32 = 3_007_000;
const CHECKSUM: usize = 40;
/// Two copies of the header, and the number of frames that were written back.
const LENGTH: usize = 2 * HEADER + 4;

/// What the shared memory says of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalIndex {
    /// The salts of the log that it belongs to.
    pub(super) salts: [u8; 8],
    /// Number of committed frames.
    pub(super) committed: u64,
    /// Number of frames that are also in the database file.
    pub(super) backfilled: u64,
}

/// The shared memory file of a database, which may be in use.
///
/// It is never closed: that would release the locks of a store that is open in this process.
pub(super) struct SharedMemory(ManuallyDrop<File>);

impl SharedMemory {
    pub(super) fn open(database: &Path) -> Option<SharedMemory> {
        let file = files::open(&StoreFiles::companion(database, "-shm")).ok()?;
        Some(SharedMemory(ManuallyDrop::new(file)))
    }

    /// None if the header is not valid, also while a commit is under way.
    pub(super) fn read(&mut self) -> Option<WalIndex> {
        let mut bytes = [0; LENGTH];
        self.0.rewind().ok()?;
        self.0.read_exact(&mut bytes).ok()?;
        let (header, copy) = (&bytes[..HEADER], &bytes[HEADER..2 * HEADER]);
        let number = |at: usize| bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let is_whole = header == copy
            && number(0)? == VERSION
            && checksum(u32::from_ne_bytes, (0, 0), &header[..CHECKSUM]) == (number(CHECKSUM)?, number(CHECKSUM + 4)?);
        is_whole.then_some(WalIndex {
            salts: header[32..40].try_into().ok()?,
            committed: number(16)?.into(),
            backfilled: number(2 * HEADER)?.into(),
        })
    }
}
