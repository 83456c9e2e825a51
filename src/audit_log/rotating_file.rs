//! Log file with rotation by size. Several processes may write to the same file, and external tools may rotate it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    max_rotated_files: usize,
    file: File,
}

/// Maximum attempts to reopen a file that was moved.
const MAX_REOPEN_ATTEMPTS: usize = 5;

impl RotatingFile {
    pub(super) fn open(path: &Path, max_bytes: u64, keep: usize) -> io::Result<RotatingFile> {
        Ok(RotatingFile { path: path.to_owned(), max_bytes, max_rotated_files: keep, file: open(path)? })
    }

    /// Appends whole lines: all of them, or none on failure.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.lock()?;
        let written = self.append_locked(lines);
        let _ = self.file.unlock();
        written
    }

    /// Syncs the file to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Locks the file that is currently at the path.
    fn lock(&mut self) -> io::Result<()> {
        for _ in 0..MAX_REOPEN_ATTEMPTS {
            self.file.lock()?;
            if self.is_current() {
                return Ok(());
            }
            // Moved by another process or by a log rotation tool.
            self.file = open(&self.path)?;
        }
        Err(io::Error::other("the file is moved repeatedly by another process"))
    }

    fn append_locked(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut before = self.file.metadata()?.len();
        if before > 0 && before + lines.len() as u64 > self.max_bytes {
            self.rotate()?;
            before = self.file.metadata()?.len();
        }
        self.file.write_all(lines).inspect_err(|_| {
            // A full disk may leave a partial line, which is removed.
            let _ = self.file.set_len(before);
        })
    }

    /// Renames the full file and creates a new one.
    fn rotate(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if self.max_rotated_files == 0 {
            fs::remove_file(&self.path)?;
        } else {
            for number in (1..self.max_rotated_files).rev() {
                let moved = fs::rename(self.rotated_path(number), self.rotated_path(number + 1));
                moved.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
            }
            let moved = fs::rename(&self.path, self.rotated_path(1));
            // A log rotation tool may have moved it first.
            moved.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
        }
        let new = open(&self.path)?;
        new.lock()?;
        self.file = new;
        Ok(())
    }

    fn rotated_path(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    /// Whether the open file is the one at the path.
    #[cfg(unix)]
    fn is_current(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let which = |found: fs::Metadata| (found.dev(), found.ino());
        let there = fs::metadata(&self.path).map(which).ok();
        there.is_some() && self.file.metadata().map(which).ok() == there
    }

    /// An open file cannot be moved on this platform.
    #[cfg(not(unix))]
    fn is_current(&self) -> bool {
        true
    }
}

/// Opens the file for appending. A new file is accessible only to its owner.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn m98_a_full_file_is_put_aside_and_the_oldest_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut file = RotatingFile::open(&path, 10, 2).unwrap();
        for line in ["one---\n", "two---\n", "three-\n", "four--\n"] {
            file.append(line.as_bytes()).unwrap();
        }
        assert_eq!(text(&path), "four--\n");
        assert_eq!(text(&file.rotated_path(1)), "three-\n");
        assert_eq!(text(&file.rotated_path(2)), "two---\n");
        assert!(!file.rotated_path(3).exists());
    }

    #[test]
    fn m98_two_writers_of_one_file_lose_nothing_between_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut writers = [RotatingFile::open(&path, 50, 100).unwrap(), RotatingFile::open(&path, 50, 100).unwrap()];
        for number in 0..40 {
            writers[number % 2].append(format!("line {number:02}\n").as_bytes()).unwrap();
        }
        let files = fs::read_dir(folder.path()).unwrap().map(|entry| text(&entry.unwrap().path()));
        let mut lines: Vec<String> =
            files.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        lines.sort();
        assert_eq!(lines, (0..40).map(|number| format!("line {number:02}")).collect::<Vec<_>>());
    }

    #[cfg(unix)]
    #[test]
    fn m98_a_file_that_was_moved_away_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut file = RotatingFile::open(&path, 1000, 2).unwrap();
        file.append(b"before\n").unwrap();
        fs::rename(&path, folder.path().join("moved")).unwrap();
        file.append(b"after\n").unwrap();
        assert_eq!((text(&path).as_str(), text(&folder.path().join("moved")).as_str()), ("after\n", "before\n"));
    }
}
