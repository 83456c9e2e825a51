//! Ownership of a file that replaces another.

use std::fs::{File, Metadata};
use std::io;

/// Gives a new file the owner and group of the file it will replace. Calls `fchown` only if they differ: most users
/// lack the permission, and do not need it.
#[cfg(unix)]
pub fn copy_owner(new: &File, before: &Metadata) -> io::Result<()> {
    use rustix::fs::{Gid, Uid, fchown};
    use std::os::unix::fs::MetadataExt;
    let made = new.metadata()?;
    let user = (made.uid() != before.uid()).then(|| Uid::from_raw(before.uid()));
    let group = (made.gid() != before.gid()).then(|| Gid::from_raw(before.gid()));
    if user.is_some() || group.is_some() {
        fchown(new, user, group)?;
    }
    Ok(())
}

#[cfg(not(unix))]
pub fn copy_owner(_new: &File, _before: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_owner_stays_where_we_may_say_so() {
        let (before, new) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempfile().unwrap());
        let wanted = 54_321;
        match std::os::unix::fs::chown(before.path(), Some(wanted), Some(wanted)) {
            Ok(()) => {
                copy_owner(&new, &before.as_file().metadata().unwrap()).unwrap();
                let kept = new.metadata().unwrap();
                assert_eq!((kept.uid(), kept.gid()), (wanted, wanted));
            }
            // A user who may not change ownership has no files of other users.
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                copy_owner(&new, &before.as_file().metadata().unwrap()).unwrap();
            }
        }
    }
}
