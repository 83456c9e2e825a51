//! Folders that nobody but their owner can look into (S-14).

use std::fs::DirBuilder;
use std::io;
use std::path::Path;

/// Makes a folder, and those it is in, unless they are there.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
