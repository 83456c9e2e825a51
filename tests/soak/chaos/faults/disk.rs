//! Full, slow and read-only disks. The storage is on a small tmpfs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{FaultContext, fault_duration};
use crate::call_outcome::CallOutcome;
use crate::chaos::corpus::{self, Corpus};
use crate::program::ProgramConfig;
use crate::protocols::ProtocolClient;
use crate::rng::SeededRng;
use crate::server::RESPONSE_TIMEOUT;
use crate::system_commands::{has_own_namespace, succeeds};

/// Enough for the writes of the clients; the size of the initial chunks is added.
const BASE_SIZE: usize = 96 << 20;
const BYTES_PER_CHUNK: usize = 20 << 10;
/// How long the tracer has to detach.
const TRACER_DETACH_TIMEOUT: Duration = Duration::from_secs(2);
const BALLAST: &str = "ballast";

#[derive(Debug)]
pub(crate) struct TmpfsDisk {
    mount_point: PathBuf,
}

impl TmpfsDisk {
    /// Mounts the tmpfs if this process is allowed to.
    pub(crate) fn mount(place: &Path, chunks: usize) -> Option<TmpfsDisk> {
        if !has_own_namespace("mnt") {
            return None;
        }
        fs::create_dir_all(place).ok()?;
        let size = format!("size={}", BASE_SIZE + chunks * BYTES_PER_CHUNK);
        let mounted = succeeds(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "corbie-chaos"]).arg(place));
        mounted.then(|| TmpfsDisk { mount_point: place.to_owned() })
    }

    fn fill(&self) -> std::io::Result<()> {
        let mut ballast = File::create(self.mount_point.join(BALLAST))?;
        let block = [0_u8; 4096];
        // Fills the disk until a write fails.
        while ballast.write_all(&block).is_ok() {}
        Ok(())
    }

    fn free(&self) -> std::io::Result<()> {
        fs::remove_file(self.mount_point.join(BALLAST))
    }

    fn remount(&self, how: &str) -> bool {
        succeeds(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.mount_point))
    }
}

impl Drop for TmpfsDisk {
    fn drop(&mut self) {
        succeeds(Command::new("umount").arg("-l").arg(&self.mount_point));
    }
}

fn disk(world: &FaultContext) -> Result<&TmpfsDisk, String> {
    world.disk.as_ref().ok_or_else(|| "there is no disk of its own".to_owned())
}

/// Full disk under load, and occasionally across a kill and restart.
pub(super) fn fill(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    disk(world)?.fill().map_err(|error| format!("the disk cannot be filled: {error}"))?;
    let server = world.server()?;
    let (program, mut face) = (server.program.clone(), crate::protocols::plain_http(server.address()));
    let kept =
        check_search_on_full_disk(face.as_mut(), world.corpus, DiskFullness::NearlyFull, chance).and_then(|()| {
            // Space reserved earlier by the store may still be enough.
            refusal_names_the_disk(face.as_mut(), &program, DiskFullness::NearlyFull)
        });
    std::thread::sleep(fault_duration(chance));
    if kept.is_err() {
        disk(world)?.free().map_err(|error| error.to_string())?;
        return kept;
    }
    if chance.one_in(3) {
        let program = world.server.take().ok_or("there is no server")?.kill()?;
        let child = program.serve().map_err(|error| error.to_string())?;
        std::thread::sleep(fault_duration(chance));
        disk(world)?.free().map_err(|error| error.to_string())?;
        kill_child(child);
        return world.start(program);
    }
    disk(world)?.free().map_err(|error| error.to_string())?;
    world.server()?.wait_for_answer()
}

fn kill_child(mut child: std::process::Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// On a read-only disk the rest of the server works, and searches succeed or fail with a clear error.
pub(super) fn read_only(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    let program = world.server.take().ok_or("there is no server")?.kill()?;
    if !disk(world)?.remount("ro") {
        return Err("the disk cannot be made read-only".to_owned());
    }
    let child = program.serve().map_err(|error| error.to_string())?;
    let until = Instant::now() + RESPONSE_TIMEOUT;
    let mut face = crate::protocols::plain_http(program.address);
    let answer = loop {
        match face.call("classify_text", &json!({ "text": "i was charged twice" }), RESPONSE_TIMEOUT) {
            CallOutcome::Answered(said) => break Ok(said),
            other if Instant::now() > until => break Err(other),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let kept = check_search_on_full_disk(face.as_mut(), world.corpus, DiskFullness::Full, chance)
        .and_then(|()| refusal_names_the_disk(face.as_mut(), &program, DiskFullness::Full));
    std::thread::sleep(fault_duration(chance) / 2);
    kill_child(child);
    if !disk(world)?.remount("rw") {
        return Err("the disk cannot be made writable again".to_owned());
    }
    world.start(program)?;
    answer.map_err(|other| format!("on a disk that cannot be written nothing is classified: {other:?}"))?;
    kept
}

/// Whether writes must fail or may still succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskFullness {
    Full,
    NearlyFull,
}

/// A document of the fixed corpus is found although writes fail. A server started on a read-only disk does not open the
/// store and reports that.
fn check_search_on_full_disk(
    face: &mut dyn ProtocolClient,
    shelf: Corpus,
    full: DiskFullness,
    chance: &mut SeededRng,
) -> Result<(), String> {
    let word = corpus::word(chance.below(shelf.documents));
    let said = face.call("knowledge-search", &json!({ "query": word, "top_k": 3 }), RESPONSE_TIMEOUT);
    match &said {
        CallOutcome::Answered(found) if found["results"].to_string().contains(&word) => Ok(()),
        CallOutcome::Answered(refusal) if full == DiskFullness::Full && refusal["error"] == "storage_read_only" => {
            Ok(())
        }
        other => Err(format!("{word} stands on the shelf, nothing can be written, and it is not found: {other:?}")),
    }
}

/// A write that fails is rejected with an error that names the disk.
fn refusal_names_the_disk(
    face: &mut dyn ProtocolClient,
    program: &ProgramConfig,
    full: DiskFullness,
) -> Result<(), String> {
    let path = program.home.join("files").join("no room.txt");
    fs::write(&path, "a note that nobody has room for").map_err(|error| error.to_string())?;
    let arguments = json!({ "file_path": path, "async": false, "knowledge_base": "no_room" });
    match face.call("knowledge-add", &arguments, RESPONSE_TIMEOUT) {
        CallOutcome::Answered(said) if said["success"] == true && full == DiskFullness::NearlyFull => Ok(()),
        CallOutcome::Answered(said)
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
pub(super) fn slow_down(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
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
    std::thread::sleep(fault_duration(chance));
    // On SIGINT the tracer detaches. It may miss a starting child and hang; SIGKILL makes it detach too.
    let _ = kill_process(Pid::from_child(&tracer), Signal::INT);
    let until = Instant::now() + TRACER_DETACH_TIMEOUT;
    while matches!(tracer.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_child(tracer);
    world.server()?.wait_for_answer()
}
