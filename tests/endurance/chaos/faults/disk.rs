//! Full, slow and read-only disks. The storage is on a small tmpfs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{World, a_while};
use crate::chance::Chance;
use crate::chaos::shelf::{self, Shelf};
use crate::commands::{has_own_namespace, succeeds};
use crate::faces::Face;
use crate::outcome::Outcome;
use crate::program::Program;
use crate::server::PATIENCE;

/// Enough for the writes of the clients; the size of the initial chunks is added.
const SIZE: usize = 96 << 20;
const SIZE_OF_A_CHUNK: usize = 20 << 10;
/// How long the tracer has to detach.
const LETS_GO: Duration = Duration::from_secs(2);
const BALLAST: &str = "ballast";

#[derive(Debug)]
pub(crate) struct Disk {
    place: PathBuf,
}

impl Disk {
    /// Mounts the tmpfs if this process is allowed to.
    pub(crate) fn mount(place: &Path, chunks: usize) -> Option<Disk> {
        if !has_own_namespace("mnt") {
            return None;
        }
        fs::create_dir_all(place).ok()?;
        let size = format!("size={}", SIZE + chunks * SIZE_OF_A_CHUNK);
        let mounted = succeeds(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "corbie-chaos"]).arg(place));
        mounted.then(|| Disk { place: place.to_owned() })
    }

    fn fill(&self) -> std::io::Result<()> {
        let mut ballast = File::create(self.place.join(BALLAST))?;
        let block = [0_u8; 4096];
        // Fills the disk until a write fails.
        while ballast.write_all(&block).is_ok() {}
        Ok(())
    }

    fn make_room(&self) -> std::io::Result<()> {
        fs::remove_file(self.place.join(BALLAST))
    }

    fn remount(&self, how: &str) -> bool {
        succeeds(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.place))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        succeeds(Command::new("umount").arg("-l").arg(&self.place));
    }
}

fn disk(world: &World) -> Result<&Disk, String> {
    world.disk.as_ref().ok_or_else(|| "there is no disk of its own".to_owned())
}

/// Full disk under load, and occasionally across a kill and restart.
pub(super) fn fill(world: &mut World, chance: &mut Chance) -> Result<(), String> {
    disk(world)?.fill().map_err(|error| format!("the disk cannot be filled: {error}"))?;
    let server = world.server()?;
    let (program, mut face) = (server.program.clone(), crate::faces::plain(server.address()));
    let kept = what_is_known_is_found(face.as_mut(), world.shelf, Full::Perhaps, chance).and_then(|()| {
        // Space reserved earlier by the store may still be enough.
        refusal_names_the_disk(face.as_mut(), &program, Full::Perhaps)
    });
    std::thread::sleep(a_while(chance));
    if kept.is_err() {
        disk(world)?.make_room().map_err(|error| error.to_string())?;
        return kept;
    }
    if chance.once_in(3) {
        let program = world.server.take().ok_or("there is no server")?.kill()?;
        let child = program.serve().map_err(|error| error.to_string())?;
        std::thread::sleep(a_while(chance));
        disk(world)?.make_room().map_err(|error| error.to_string())?;
        drop_now(child);
        return world.start(program);
    }
    disk(world)?.make_room().map_err(|error| error.to_string())?;
    world.server()?.wait_for_answer()
}

fn drop_now(mut child: std::process::Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// On a read-only disk the rest of the server works, and searches succeed or fail with a clear error.
pub(super) fn read_only(world: &mut World, chance: &mut Chance) -> Result<(), String> {
    let program = world.server.take().ok_or("there is no server")?.kill()?;
    if !disk(world)?.remount("ro") {
        return Err("the disk cannot be made read-only".to_owned());
    }
    let child = program.serve().map_err(|error| error.to_string())?;
    let until = Instant::now() + PATIENCE;
    let mut face = crate::faces::plain(program.address);
    let answer = loop {
        match face.call("classify_text", &json!({ "text": "i was charged twice" }), PATIENCE) {
            Outcome::Said(said) => break Ok(said),
            other if Instant::now() > until => break Err(other),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let kept = what_is_known_is_found(face.as_mut(), world.shelf, Full::Surely, chance)
        .and_then(|()| refusal_names_the_disk(face.as_mut(), &program, Full::Surely));
    std::thread::sleep(a_while(chance) / 2);
    drop_now(child);
    if !disk(world)?.remount("rw") {
        return Err("the disk cannot be made writable again".to_owned());
    }
    world.start(program)?;
    answer.map_err(|other| format!("on a disk that cannot be written nothing is classified: {other:?}"))?;
    kept
}

/// Whether writes must fail or may still succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    Surely,
    Perhaps,
}

/// A document of the fixed corpus is found although writes fail. A server started on a read-only disk does not open the
/// store and reports that.
fn what_is_known_is_found(face: &mut dyn Face, shelf: Shelf, full: Full, chance: &mut Chance) -> Result<(), String> {
    let word = shelf::word(chance.below(shelf.documents));
    let said = face.call("knowledge-search", &json!({ "query": word, "top_k": 3 }), PATIENCE);
    match &said {
        Outcome::Said(found) if found["results"].to_string().contains(&word) => Ok(()),
        Outcome::Said(refusal) if full == Full::Surely && refusal["error"] == "storage_read_only" => Ok(()),
        other => Err(format!("{word} stands on the shelf, nothing can be written, and it is not found: {other:?}")),
    }
}

/// A write that fails is rejected with an error that names the disk.
fn refusal_names_the_disk(face: &mut dyn Face, program: &Program, full: Full) -> Result<(), String> {
    let path = program.home.join("files").join("no room.txt");
    fs::write(&path, "a note that nobody has room for").map_err(|error| error.to_string())?;
    let arguments = json!({ "file_path": path, "async": false, "knowledge_base": "no_room" });
    match face.call("knowledge-add", &arguments, PATIENCE) {
        Outcome::Said(said) if said["success"] == true && full == Full::Perhaps => Ok(()),
        Outcome::Said(said)
            if said["success"] == false && said["error"].as_str().is_some_and(|why| why.starts_with("storage")) =>
        {
            Ok(())
        }
        other => Err(format!("nothing can be written, and a document is told: {other:?}")),
    }
}

pub(super) fn can_trace() -> bool {
    succeeds(Command::new("strace").args(["-o", "/dev/null", "true"]))
}

/// Delays every blocking disk call while the tracer is attached.
pub(super) fn slow(world: &mut World, chance: &mut Chance) -> Result<(), String> {
    let pid = world.server()?.pid().as_raw_nonzero().to_string();
    let delay = 2_000 + chance.below(80_000);
    let mut tracer = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync,pwrite64"])
        .args(["-e", &format!("inject=fsync,fdatasync:delay_enter={delay}")])
        .args(["-e", &format!("inject=pwrite64:delay_enter={}:when=1+7", delay / 20)])
        .args(["-p", &pid])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("strace: {error}"))?;
    std::thread::sleep(a_while(chance));
    // On SIGINT the tracer detaches. It may miss a starting child and hang; SIGKILL makes it detach too.
    let _ = kill_process(Pid::from_child(&tracer), Signal::INT);
    let until = Instant::now() + LETS_GO;
    while matches!(tracer.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop_now(tracer);
    world.server()?.wait_for_answer()
}
