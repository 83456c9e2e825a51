//! A storage folder or a socket under the control of another user is not used.

use std::fs::{Permissions, create_dir, set_permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::knowledge::KnowledgeFixture;
use crate::process::{report_skip, wait_for};

fn set_mode(folder: impl AsRef<Path>, mode: u32) {
    set_permissions(folder, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn s14_a_storage_folder_that_others_can_write_to_is_refused_with_what_to_do() {
    let place = KnowledgeFixture::with_documents();
    for mode in [0o777, 0o1702] {
        set_mode(place.storage(), mode);
        for command in ["show", "search bees", "add .", "knowledge check", "tasks"] {
            let ended = place.run(command);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{command}: {ended:?}");
            assert!(ended.stderr.contains("is writable by other users"), "{command}: {ended:?}");
            assert!(ended.stderr.contains(&format!("chmod 700 '{}'", place.storage())), "{command}: {ended:?}");
        }
    }
    assert_eq!(place.json("show --json")["error"], "storage_exposed");
    set_mode(place.storage(), 0o700);
    assert_eq!(place.json("show --json")["total_count"], 2);
}

#[test]
fn s14_an_empty_storage_folder_that_others_can_write_to_is_made_private() {
    let place = KnowledgeFixture::new();
    create_dir(place.storage()).unwrap();
    set_mode(place.storage(), 0o777);
    place.write("bees.md", "Bees gather nectar and make honey.");
    let ended = place.run("add .");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mode = Path::new(&place.storage()).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn s14_a_link_in_the_place_of_a_storage_subfolder_is_refused_with_what_to_do() {
    let place = KnowledgeFixture::with_documents();
    let foreign = tempfile::tempdir().unwrap();
    create_dir(foreign.path().join("documents")).unwrap();
    for name in ["uploads", "index"] {
        let (folder, before) =
            (PathBuf::from(place.storage()).join(name), PathBuf::from(place.storage()).join("before"));
        std::fs::rename(&folder, &before).unwrap();
        std::os::unix::fs::symlink(foreign.path(), &folder).unwrap();
        let refused = place.json("show --json");
        assert_eq!(refused["error"], "storage_exposed", "{refused}");
        let message = refused["message"].as_str().unwrap();
        let told = format!("folder `{}` is a symbolic link", folder.display());
        for part in [told.as_str(), "mount the disk there", "`knowledge.storage_path`"] {
            assert!(message.contains(part), "{message}");
        }
        std::fs::remove_file(&folder).unwrap();
        std::fs::rename(&before, &folder).unwrap();
    }
    assert_eq!(foreign.path().read_dir().unwrap().count(), 1, "nothing is written or deleted there");
    // An operator may name a link for the storage folder itself.
    let linked = place.documents().join("linked");
    std::os::unix::fs::symlink(place.storage(), &linked).unwrap();
    let shown = place.corbie("show --json").variable("CORBIE_KNOWLEDGE__STORAGE_PATH", linked.display()).run("");
    assert_eq!(shown.messages()[0]["total_count"], 2, "{shown:?}");
}

/// Two users that are neither this one nor root.
const USER: u32 = 54_321;
const OTHER: u32 = 54_322;

/// Folders of other users, which only root can create.
struct Users(TempDir);

impl Users {
    fn new() -> Option<Users> {
        if !rustix::process::geteuid().is_root() {
            report_skip(
                "only root can act as other users; the rules themselves are tested in `util::fs::dir_permissions` and `control_socket`",
            );
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o755);
        Some(Users(folder))
    }

    /// A private folder of a user.
    fn folder(&self, name: &str, user: u32) -> PathBuf {
        let folder = self.0.path().join(name);
        create_dir(&folder).unwrap();
        set_mode(&folder, 0o700);
        chown(&folder, Some(user), Some(user)).unwrap();
        folder
    }

    /// The program as a user.
    fn corbie(&self, user: u32, storage: &Path, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_corbie"));
        command.args(arguments.split_whitespace()).uid(user).gid(user).current_dir("/").env_clear();
        command.env("CORBIE_KNOWLEDGE__STORAGE_PATH", storage).env("CORBIE_PROVIDERS__DETECT_PORTS", "[]");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, user: u32, storage: &Path, arguments: &str) -> Output {
        self.corbie(user, storage, arguments).output().unwrap()
    }
}

/// A server that is killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn s14_a_storage_folder_of_another_user_is_refused() {
    let Some(users) = Users::new() else { return };
    let storage = users.folder("storage", OTHER);
    set_mode(&storage, 0o755);
    let refused = users.run(USER, &storage, "show --json");
    assert!(told(&refused).contains("is owned by another user"), "{refused:?}");
    assert!(users.run(OTHER, &storage, "show --json").status.success());
    // Root may administer the data of other users.
    let looked = Command::new(env!("CARGO_BIN_EXE_corbie"))
        .args(["show", "--json"])
        .env("CORBIE_KNOWLEDGE__STORAGE_PATH", &storage)
        .output()
        .unwrap();
    assert!(looked.status.success(), "{looked:?}");
}

#[test]
fn s14_nothing_is_sent_to_a_socket_that_another_user_serves() {
    let Some(users) = Users::new() else { return };
    let (trap, storage) = (users.folder("trap", OTHER), users.folder("storage", USER));
    assert!(users.run(OTHER, &trap, "show --json").status.success());
    let _server = Server(users.corbie(OTHER, &trap, "serve --stdio").spawn().unwrap());
    let served = wait_for("a socket", || {
        let sockets = trap.join("sockets").read_dir().ok()?;
        let is_socket = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "socket");
        sockets.flatten().map(|entry| entry.path()).find(is_socket)
    });
    let sockets = users.folder("storage/sockets", USER);
    let planted = sockets.join("1.socket");
    std::fs::rename(served, &planted).unwrap();
    let refused = users.run(USER, &storage, "show --json");
    let expected = format!("is owned by another user (uid {OTHER}); nothing was sent");
    assert!(!refused.status.success() && told(&refused).contains(&expected), "{refused:?}");
    // As if the other user were allowed to change the owner of a file.
    chown(&planted, Some(USER), Some(USER)).unwrap();
    let refused = users.run(USER, &storage, "show --json");
    let expected = format!("runs as another user (uid {OTHER}); nothing was sent");
    assert!(!refused.status.success() && told(&refused).contains(&expected), "{refused:?}");
    assert!(told(&refused).contains("socket_not_trusted"), "{refused:?}");
}
