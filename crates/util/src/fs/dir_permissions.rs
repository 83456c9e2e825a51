//! Whether a folder can be trusted with private data: who owns it, and who else can write to it (S-14).
//!
//! An account with write permission can put a database, a socket or links into the storage folder, which corbie then
//! uses. Therefore a folder that is writable for other accounts is refused; an empty one is made private instead,
//! because it contains nothing yet. The owner must be this user or root, who has every permission anyway. Root may use
//! the folder of any user: an administrator manages the data of users, and root in a container gets folders of the
//! host.
//!
//! The group may write if no other account is in it, see [`super::accounts`]: many systems create a group per user, and
//! Kubernetes gives volumes to root and to a group (`fsGroup`) of the pod's processes.
//!
//! A parent folder that is writable for other accounts is reported and not refused. They can replace our folder, but
//! they own the replacement, and so it is refused.

use std::io;
use std::path::{Path, PathBuf};

pub use crate::fs::accounts::Membership;
#[cfg(unix)]
use crate::fs::accounts::{Accounts, Users};

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "folder `{}` is owned by another user (uid {owner}), who could modify its content; run corbie as that user, or \
         set `knowledge.storage_path` to a folder that you own",
        .folder.display()
    )]
    ForeignOwner { folder: PathBuf, owner: u32 },
    #[error(
        "folder `{0}` is writable by other users (mode {mode:04o}); check that its files are yours, then run `chmod \
         700 '{0}'`, or set `knowledge.storage_path` to a new folder, which corbie creates with private permissions",
        .folder.display()
    )]
    Writable { folder: PathBuf, mode: u32 },
    #[error(
        "folder `{0}` is writable by other users (mode {mode:04o}), because {reason}; check that its files are yours, \
         then run `chmod g-w '{0}'`, or use a group without other members (in Kubernetes, a dedicated `fsGroup`)",
        .folder.display()
    )]
    SharedGroup { folder: PathBuf, mode: u32, reason: Membership },
    #[error(
        "`{}` is a symbolic link, which is not allowed in the storage folder; replace it with its target, or set \
         `knowledge.storage_path` to the folder of the target",
        .path.display()
    )]
    Link { path: PathBuf },
    #[error(
        "folder `{}` is a symbolic link, which is not allowed in the storage folder; to store it on another disk, \
         replace the link with a folder and mount the disk there, or set `knowledge.storage_path` to a folder on that \
         disk",
        .folder.display()
    )]
    LinkedFolder { folder: PathBuf },
    #[error("`{}`: {error}; check the path and its permissions", .folder.display())]
    Io { folder: PathBuf, error: io::Error },
}

/// Creates a missing folder, and makes an empty writable one private.
#[cfg(unix)]
pub fn prepare(folder: &Path) -> Result<(), Error> {
    crate::fs::private_dir::create_private_dir(folder).map_err(io_error(folder))?;
    match check(folder) {
        Err(refused @ (Error::Writable { .. } | Error::SharedGroup { .. })) => make_private(folder, refused)?,
        checked => checked?,
    }
    for parent in exposed_parents(folder) {
        tracing::warn!(
            folder = %folder.display(),
            parent = %parent.display(),
            "other users can replace this folder, because its parent folder is writable by other users; run `chmod \
             o-w` on the parent"
        );
    }
    Ok(())
}

/// Creates a missing folder in the storage folder. Refuses a symbolic link in its place: another user may own the
/// storage folder that root uses, and the link would make root create and delete files elsewhere.
pub fn create_private_subdir(folder: &Path) -> Result<(), Error> {
    let created = crate::fs::private_dir::create_private_dir(folder);
    // Creating a folder does not follow a link in its place, so one check afterwards is enough.
    refuse_link(folder)?;
    created.map_err(io_error(folder))
}

/// Fails if a symbolic link is in the place of a folder. Passes if nothing is there.
pub fn refuse_link(folder: &Path) -> Result<(), Error> {
    match folder.is_symlink() {
        true => Err(Error::LinkedFolder { folder: folder.to_owned() }),
        false => Ok(()),
    }
}

/// Whether the content of the folder can be trusted.
#[cfg(unix)]
pub fn check(folder: &Path) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    let found = folder.metadata().map_err(io_error(folder))?;
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    if !may_own(effective_uid(), owner) {
        return Err(Error::ForeignOwner { folder: folder.to_owned(), owner });
    }
    const WORLD_WRITABLE: u32 = 0o002;
    const GROUP_WRITABLE: u32 = 0o020;
    if mode & WORLD_WRITABLE != 0 {
        return Err(Error::Writable { folder: folder.to_owned(), mode });
    }
    if mode & GROUP_WRITABLE != 0 {
        let shared = |reason| Error::SharedGroup { folder: folder.to_owned(), mode, reason };
        Accounts::read().must_be_private(found.gid(), &Users::of(owner)).map_err(shared)?;
    }
    Ok(())
}

/// Effective user of this process.
#[cfg(unix)]
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this user accepts a folder of this owner.
#[cfg(unix)]
fn may_own(user: u32, owner: u32) -> bool {
    const ROOT: u32 = 0;
    user == ROOT || owner == user || owner == ROOT
}

/// Makes a folder private if it is empty. Otherwise returns `refused`.
#[cfg(unix)]
fn make_private(folder: &Path, refused: Error) -> Result<(), Error> {
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    // One handle, because the folder can be replaced between two operations on its path.
    let opened = File::open(folder).map_err(io_error(folder))?;
    let before = opened.metadata().map_err(io_error(folder))?.mode() & 0o7777;
    // Private first, so that the content cannot change after the check. Only the owner can change permissions.
    if opened.set_permissions(Permissions::from_mode(0o700)).is_err() {
        return Err(refused);
    }
    let is_empty = folder.read_dir().map_err(io_error(folder))?.next().is_none();
    if !is_empty {
        opened.set_permissions(Permissions::from_mode(before)).map_err(io_error(folder))?;
        return Err(refused);
    }
    check(folder)?;
    tracing::info!(folder = %folder.display(), "restricted permissions of the empty storage folder");
    Ok(())
}

/// Parent folders in which every account can rename entries of other accounts.
#[cfg(unix)]
fn exposed_parents(folder: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    const WORLD_WRITABLE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let Ok(resolved) = folder.canonicalize() else { return Vec::new() };
    let is_exposed = |parent: &&Path| {
        parent.metadata().is_ok_and(|found| found.mode() & (WORLD_WRITABLE | STICKY) == WORLD_WRITABLE)
    };
    resolved.ancestors().skip(1).filter(is_exposed).map(Path::to_owned).collect()
}

fn io_error(folder: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Io { folder: folder.to_owned(), error }
}

#[cfg(not(unix))]
pub fn prepare(folder: &Path) -> Result<(), Error> {
    crate::fs::private_dir::create_private_dir(folder).map_err(io_error(folder))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    fn mode(folder: &Path) -> u32 {
        folder.metadata().unwrap().permissions().mode() & 0o7777
    }

    fn folder_with_mode(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("storage");
        create_dir(&folder).unwrap();
        set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        (place, folder)
    }

    #[test]
    fn s14_a_folder_belongs_to_its_user_or_to_root() {
        assert!(may_own(1000, 1000) && may_own(1000, 0));
        assert!(!may_own(1000, 1001));
        assert!(may_own(0, 0) && may_own(0, 1000), "root can do everything anyway");
    }

    #[test]
    fn s14_a_folder_that_others_can_write_to_is_refused_and_left_as_it_is() {
        for exposed in [0o777, 0o1777, 0o702] {
            let (_place, folder) = folder_with_mode(exposed);
            write(folder.join("knowledge.db"), "from somebody else").unwrap();
            let refused = prepare(&folder).unwrap_err();
            assert!(matches!(refused, Error::Writable { mode, .. } if mode == exposed), "{refused}");
            assert!(refused.to_string().contains("chmod 700"), "{refused}");
            assert_eq!(mode(&folder), exposed);
            set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
            prepare(&folder).unwrap();
        }
    }

    #[test]
    fn s14_an_empty_folder_that_others_can_write_to_is_made_private() {
        let (_place, folder) = folder_with_mode(0o777);
        prepare(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
    }

    #[test]
    fn s14_a_folder_that_is_missing_is_made_private_and_one_that_others_can_only_read_is_used() {
        let (place, folder) = folder_with_mode(0o755);
        prepare(&folder).unwrap();
        assert_eq!(mode(&folder), 0o755);
        let new = place.path().join("a/b");
        prepare(&new).unwrap();
        assert_eq!(mode(&new), 0o700);
    }

    #[test]
    fn s14_a_link_in_the_place_of_a_storage_subfolder_is_refused_with_what_to_do() {
        let (place, storage) = folder_with_mode(0o700);
        let target = place.path().join("target");
        create_dir(&target).unwrap();
        for (name, target) in [("linked", target.as_path()), ("dangling", &place.path().join("missing"))] {
            let folder = storage.join(name);
            std::os::unix::fs::symlink(target, &folder).unwrap();
            let refused = create_private_subdir(&folder).unwrap_err();
            assert!(matches!(&refused, Error::LinkedFolder { folder: refused } if *refused == folder), "{refused}");
            for part in ["symbolic link", "mount the disk there", "knowledge.storage_path"] {
                assert!(refused.to_string().contains(part), "{refused}");
            }
        }
        assert!(!place.path().join("missing").exists());
        for _ in 0..2 {
            create_private_subdir(&storage.join("uploads")).unwrap();
        }
        assert_eq!(mode(&storage.join("uploads")), 0o700);
        // A file is no link.
        write(storage.join("file"), "").unwrap();
        assert!(matches!(create_private_subdir(&storage.join("file")).unwrap_err(), Error::Io { .. }));
    }

    #[test]
    fn s14_a_parent_without_the_sticky_bit_that_everybody_can_write_to_is_found() {
        let (_place, parent) = folder_with_mode(0o777);
        let folder = parent.join("storage");
        prepare(&folder).unwrap();
        assert_eq!(exposed_parents(&folder), [parent.canonicalize().unwrap()]);
        set_permissions(&parent, Permissions::from_mode(0o1777)).unwrap();
        assert!(exposed_parents(&folder).is_empty());
    }
}
