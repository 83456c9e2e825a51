//! Gives up everything that reading a document does not need. There is no way back.

use std::io;

/// What is mapped, as the system tells it. Opened while files can be.
#[derive(Debug)]
pub(super) struct Mapped(Option<std::fs::File>);

impl Mapped {
    pub(super) fn open() -> Mapped {
        Mapped(std::fs::File::open("/proc/self/statm").ok())
    }

    /// In bytes. This program has its models inside, and its threads have room of their own.
    fn now(mut self) -> u64 {
        use std::io::Read;
        let mut text = String::new();
        let read = self.0.as_mut().and_then(|file| file.read_to_string(&mut text).ok());
        let pages = read.and_then(|_| text.split_whitespace().next()?.parse::<u64>().ok());
        pages.unwrap_or_default() * rustix::param::page_size() as u64
    }
}

/// How much memory it may map from now on, in bytes.
pub(super) fn memory(bytes: u64, mapped: Mapped) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let most = |number| Rlimit { current: Some(number), maximum: Some(number) };
    setrlimit(Resource::As, most(mapped.now().saturating_add(bytes)))?;
    // What was in memory when it crashed is nobody's business, and it has nothing to write.
    setrlimit(Resource::Core, most(0))?;
    Ok(setrlimit(Resource::Fsize, most(0))?)
}

/// How much processor time it may take from now on until its end, in seconds. The system kills it beyond that, and it cannot
/// raise the limit again.
pub(super) fn processor_lifetime(seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Cpu);
    let wanted = processor_time().saturating_add(seconds);
    let maximum = limits.maximum.map_or(wanted, |most| most.min(wanted));
    let current = limits.current.map_or(maximum, |current| current.min(maximum));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(current), maximum: Some(maximum) })?)
}

/// How much more of a processor it may take from now on, in seconds, within its lifetime. Beyond it, the system ends it.
pub(super) fn processor(seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Cpu);
    let wanted = processor_time().saturating_add(seconds).saturating_add(1);
    let most = limits.maximum.map_or(wanted, |most| most.min(wanted));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(most), ..limits })?)
}

/// What it has taken so far, in whole seconds.
fn processor_time() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default()
}

/// Lets it take so many seconds of a processor more than that, or fewer.
pub(super) fn longer(seconds: i64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Cpu);
    let longer = |current: u64| limits.maximum.unwrap_or(u64::MAX).min(current.saturating_add_signed(seconds));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: limits.current.map(longer), ..limits })?)
}

/// No files, by Landlock, as far as this kernel has it; whether it has. What is open already stays open.
#[cfg(target_os = "linux")]
pub(super) fn files() -> Result<bool, Box<dyn std::error::Error>> {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
    let abi = ABI::V6;
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?;
    Ok(rules.create()?.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Whether files can be given up on this machine. Tried on a thread that ends with it, since there is no way back.
#[cfg(target_os = "linux")]
pub fn has_landlock() -> std::io::Result<bool> {
    let tried = std::thread::Builder::new().name("landlock".into()).spawn(|| files().unwrap_or(false))?;
    Ok(tried.join().unwrap_or(false))
}

#[cfg(not(target_os = "linux"))]
pub fn has_landlock() -> std::io::Result<bool> {
    Ok(false)
}

/// Of all system calls only those that a program needs which computes, reads its input and writes its output, in all
/// threads there are: no files, no network, no programs, no further threads, nothing that was open by accident.
#[cfg(target_os = "linux")]
pub(super) fn calls() -> Result<(), Box<dyn std::error::Error>> {
    use seccompiler::{SeccompAction, SeccompFilter, apply_filter_all_threads};
    let mut rules: std::collections::BTreeMap<_, _> = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    rules.extend(conditional()?);
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    Ok(apply_filter_all_threads(&program)?)
}

#[cfg(target_os = "linux")]
const CALLS: &[libc::c_long] = &[
    // Input and output.
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Time, chance and locks.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_membarrier,
    // Crashing and ending.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls that are allowed with some arguments only.
#[cfg(target_os = "linux")]
fn conditional() -> Result<Vec<(libc::c_long, Vec<seccompiler::SeccompRule>)>, seccompiler::BackendError> {
    use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
    use seccompiler::{SeccompCmpArgLen, SeccompCondition, SeccompRule};
    let is = |argument, operator, value: i64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, u64::from(value as u32))
    };
    let without = |argument, bit: i32| is(argument, MaskedEq(u64::from(bit.unsigned_abs())), 0);
    let with = |argument, bit: i32| is(argument, MaskedEq(u64::from(bit.unsigned_abs())), bit.into());
    let input = || SeccompRule::new(vec![is(0, Eq, 0)?]);
    let output = |number| SeccompRule::new(vec![is(0, Eq, number)?]);
    let own = i64::from(std::process::id());
    Ok(vec![
        (libc::SYS_read, vec![input()?]),
        (libc::SYS_readv, vec![input()?]),
        (libc::SYS_write, vec![output(1)?, output(2)?]),
        (libc::SYS_writev, vec![output(1)?, output(2)?]),
        // Memory is never a program, nor a file.
        (libc::SYS_mmap, vec![SeccompRule::new(vec![without(2, libc::PROT_EXEC)?, with(3, libc::MAP_ANONYMOUS)?])?]),
        (libc::SYS_mprotect, vec![SeccompRule::new(vec![without(2, libc::PROT_EXEC)?])?]),
        // Its own processor time is limited anew for every document.
        (libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(0, Eq, 0)?, is(1, Eq, libc::RLIMIT_CPU.into())?])?]),
        // It may end itself.
        (libc::SYS_tgkill, vec![SeccompRule::new(vec![is(0, Eq, own)?])?]),
    ])
}

#[cfg(not(target_os = "linux"))]
pub(super) fn files() -> Result<bool, Box<dyn std::error::Error>> {
    Ok(false)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn calls() -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
