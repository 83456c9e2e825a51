//! Sandbox: drops every capability that extraction does not need. This is irreversible.

use std::io;

/// Mapped memory of this process. Opened while the process can still open files.
#[derive(Debug)]
pub(super) struct MappedMemory(Option<std::fs::File>);

impl MappedMemory {
    pub(super) fn open() -> MappedMemory {
        MappedMemory(std::fs::File::open("/proc/self/statm").ok())
    }

    /// In bytes. Includes the embedded models and the thread stacks.
    fn bytes(mut self) -> u64 {
        use std::io::Read;
        let mut text = String::new();
        let read = self.0.as_mut().and_then(|file| file.read_to_string(&mut text).ok());
        let pages = read.and_then(|_| text.split_whitespace().next()?.parse::<u64>().ok());
        pages.unwrap_or_default() * rustix::param::page_size() as u64
    }
}

/// Limits the memory that can be mapped in addition, in bytes.
pub(super) fn limit_memory(bytes: u64, mapped: MappedMemory) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let most = |number| Rlimit { current: Some(number), maximum: Some(number) };
    setrlimit(Resource::As, most(mapped.bytes().saturating_add(bytes)))?;
    // No core dumps, because they may contain document content, and no file writes.
    setrlimit(Resource::Core, most(0))?;
    Ok(setrlimit(Resource::Fsize, most(0))?)
}

/// Sets the hard limit of CPU time until the process ends, in seconds. The kernel kills the process beyond it, and the
/// process cannot raise it again.
pub(super) fn processor_lifetime(seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Cpu);
    let wanted = processor_time().saturating_add(seconds);
    let maximum = limits.maximum.map_or(wanted, |most| most.min(wanted));
    let current = limits.current.map_or(maximum, |current| current.min(maximum));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(current), maximum: Some(maximum) })?)
}

/// Sets the soft limit of CPU time from now on, in seconds, within the hard limit. Beyond it, the kernel terminates the
/// process.
pub(super) fn limit_cpu_time(seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Cpu);
    let wanted = processor_time().saturating_add(seconds).saturating_add(1);
    let most = limits.maximum.map_or(wanted, |most| most.min(wanted));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(most), ..limits })?)
}

/// CPU time used so far, in whole seconds.
fn processor_time() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default()
}

/// Raises or lowers the soft limit by seconds.
pub(super) fn extend_cpu_time(seconds: i64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Cpu);
    let longer = |current: u64| limits.maximum.unwrap_or(u64::MAX).min(current.saturating_add_signed(seconds));
    Ok(setrlimit(Resource::Cpu, Rlimit { current: limits.current.map(longer), ..limits })?)
}

/// Denies file and network access by Landlock as far as the kernel supports it. Returns whether it does. Open files
/// remain usable.
#[cfg(target_os = "linux")]
pub(super) fn deny_files() -> Result<bool, Box<dyn std::error::Error>> {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
    let abi = ABI::V6;
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?;
    Ok(rules.create()?.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Whether Landlock is available. Tried on a temporary thread because it is irreversible.
#[cfg(target_os = "linux")]
pub fn has_landlock() -> std::io::Result<bool> {
    let tried = std::thread::Builder::new().name("landlock".into()).spawn(|| deny_files().unwrap_or(false))?;
    Ok(tried.join().unwrap_or(false))
}

#[cfg(not(target_os = "linux"))]
pub fn has_landlock() -> std::io::Result<bool> {
    Ok(false)
}

/// seccomp filter for all threads: allows only system calls for computation, stdin and stdout. Denies files, network,
/// processes, new threads and inherited file descriptors.
#[cfg(target_os = "linux")]
pub(super) fn restrict_syscalls() -> Result<(), Box<dyn std::error::Error>> {
    use seccompiler::{SeccompAction, SeccompFilter, apply_filter_all_threads};
    let mut rules: std::collections::BTreeMap<_, _> = ALLOWED_SYSCALLS.iter().map(|call| (*call, Vec::new())).collect();
    rules.extend(conditional_syscalls()?);
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    Ok(apply_filter_all_threads(&program)?)
}

#[cfg(target_os = "linux")]
const ALLOWED_SYSCALLS: &[libc::c_long] = &[
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
    // Time, randomness and locks.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_membarrier,
    // Signals and exit.
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

/// System calls that are allowed only with certain arguments.
#[cfg(target_os = "linux")]
fn conditional_syscalls() -> Result<Vec<(libc::c_long, Vec<seccompiler::SeccompRule>)>, seccompiler::BackendError> {
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
        // No executable and no file-backed mappings.
        (libc::SYS_mmap, vec![SeccompRule::new(vec![without(2, libc::PROT_EXEC)?, with(3, libc::MAP_ANONYMOUS)?])?]),
        (libc::SYS_mprotect, vec![SeccompRule::new(vec![without(2, libc::PROT_EXEC)?])?]),
        // The CPU limit of this process is set for every document.
        (libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(0, Eq, 0)?, is(1, Eq, libc::RLIMIT_CPU.into())?])?]),
        // Signals to this process only.
        (libc::SYS_tgkill, vec![SeccompRule::new(vec![is(0, Eq, own)?])?]),
    ])
}

#[cfg(not(target_os = "linux"))]
pub(super) fn deny_files() -> Result<bool, Box<dyn std::error::Error>> {
    Ok(false)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn restrict_syscalls() -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
