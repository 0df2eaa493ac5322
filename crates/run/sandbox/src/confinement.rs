//! Takes away what this process may do, for good.
//!
//! In this order, each before the next would need what it takes away: limits of the system
//! → no new privileges → Landlock → no further descriptors → (the job is read) → seccomp.
//! Landlock and seccomp are Linux's; where the kernel lacks one, [`Confinement`] says so
//! and the operator may refuse to run.

use std::fmt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::job::Limits;

/// Which confinements hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Limits on processor time, memory, files and descriptors.
    pub rlimits: bool,
    /// Landlock, by the version of its interface: no file, no TCP, no signal.
    pub landlock: Option<u32>,
    /// Seccomp: no system call but those of a program that computes.
    pub seccomp: bool,
}

impl Confinement {
    /// All of them hold.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.rlimits && self.landlock.is_some() && self.seccomp
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |holds| if holds { "yes" } else { "no" };
        write!(f, "rlimits {}, landlock ", word(self.rlimits))?;
        match self.landlock {
            Some(version) => write!(f, "version {version}")?,
            None => f.write_str("no")?,
        }
        write!(f, ", seccomp {}", word(self.seccomp))
    }
}

/// Confines this process at once and for good. [`child`](crate::child()) does it in two
/// steps, with the job read between them.
pub fn confine(limits: &Limits) -> std::io::Result<Confinement> {
    Confining::begin()?.finish(limits)
}

/// Processor seconds and memory until the job says how much it is to be.
const INITIAL_CPU_SECONDS: u64 = 60;
const INITIAL_MEMORY_BYTES: u64 = 1 << 30;

/// Memory besides that of a case, for input, output and values that are converted.
const EXTRA_MEMORY_BYTES: u64 = 64 << 20;

/// A process on its way to being confined.
pub(crate) struct Confining {
    /// Bytes of addresses that the program itself takes.
    mapped: u64,
    landlock: Option<u32>,
}

impl Confining {
    /// All that can be done before the job is read.
    pub(crate) fn begin() -> std::io::Result<Self> {
        // Others come first. It is only manners, so nothing hangs on it.
        let _manners = rustix::process::setpriority_process(None, 19);
        limit(Resource::Core, 0)?;
        // This bounds files, even ones that were open before. Pipes are not affected, so answers
        // still get out.
        limit(Resource::Fsize, 0)?;
        // This limit does not bind root: there the filter of system calls forbids it.
        limit(Resource::Nproc, 0)?;
        limit_cpu(INITIAL_CPU_SECONDS)?;
        let mapped = system::mapped()?;
        system::limit_memory(mapped.saturating_add(INITIAL_MEMORY_BYTES))?;
        let landlock = system::landlock()?;
        // This comes last: reading /proc and creating the Landlock ruleset need descriptors.
        limit(Resource::Nofile, 3)?;
        Ok(Self { mapped, landlock })
    }

    /// The rest, once it is known what the job may use.
    pub(crate) fn finish(self, limits: &Limits) -> std::io::Result<Confinement> {
        let memory = u64::try_from(limits.memory_bytes).unwrap_or(u64::MAX);
        let memory = memory.saturating_mul(2).saturating_add(EXTRA_MEMORY_BYTES);
        // This ends later than the deadline that the engines check, which gives a better reason.
        // It is for native code that never checks.
        limit_cpu(limits.time.as_secs().saturating_add(2))?;
        system::limit_memory(self.mapped.saturating_add(memory))?;
        Ok(Confinement {
            rlimits: true,
            landlock: self.landlock,
            seccomp: system::seccomp()?,
        })
    }
}

/// Lowers a limit, never raises one.
fn limit(resource: Resource, to: u64) -> std::io::Result<()> {
    limit_both(resource, to, to)
}

/// Lowers the limit of processor seconds. SIGXCPU, which names the cause, comes a second before
/// SIGKILL, which does not.
fn limit_cpu(to: u64) -> std::io::Result<()> {
    limit_both(Resource::Cpu, to, to.saturating_add(1))
}

fn limit_both(resource: Resource, current: u64, maximum: u64) -> std::io::Result<()> {
    // A process can lower a hard limit but not raise it, so one that is lower already stays.
    let now = getrlimit(resource).maximum;
    let lower = |to: u64| Some(now.map_or(to, |now| now.min(to)));
    let new = Rlimit {
        current: lower(current),
        maximum: lower(maximum),
    };
    Ok(setrlimit(resource, new)?)
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod system {
    use std::collections::BTreeMap;
    use std::io::{Error, ErrorKind};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
        RulesetAttr, RulesetStatus, Scope,
    };
    use rustix::process::Resource;
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    /// Calls of a program that computes, and ends.
    const CALLS: &[i64] = &[
        libc::SYS_close,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_mprotect,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_sigaltstack,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_getrandom,
        libc::SYS_sched_yield,
        // `abort` needs these two and `tgkill` to raise its signal, by which a failed allocation
        // is reported.
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_restart_syscall,
    ];

    /// And these, on the descriptors that the parent gave: the process that started the server
    /// may have left others open.
    const CALLS_ON_DESCRIPTORS: &[i64] = &[libc::SYS_read, libc::SYS_write];
    const MAX_STANDARD_DESCRIPTOR: u64 = 2;

    /// Bytes of addresses that are mapped now.
    pub(super) fn mapped() -> std::io::Result<u64> {
        let text = std::fs::read_to_string("/proc/self/statm")?;
        let pages = text.split(' ').next().and_then(|word| word.parse().ok());
        let pages: u64 = pages.ok_or(ErrorKind::InvalidData)?;
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        Ok(pages.saturating_mul(page))
    }

    pub(super) fn limit_memory(bytes: u64) -> std::io::Result<()> {
        super::limit(Resource::As, bytes)
    }

    /// Takes every file, connection and signal, as far as the kernel knows how.
    pub(super) fn landlock() -> std::io::Result<Option<u32>> {
        // Both confinements are of one thread: another would be outside of them.
        if std::fs::read_dir("/proc/self/task")?.count() != 1 {
            return Err(Error::other("the child has a second thread"));
        }
        rustix::thread::set_no_new_privs(true)?;
        let newest = ABI::V6;
        let status = Ruleset::default()
            // An older kernel enforces what it knows, and `Confinement` says which version that
            // was.
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(newest))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(newest)))
            .and_then(|rules| rules.scope(Scope::from_all(newest)))
            .and_then(Ruleset::create)
            .and_then(landlock::RulesetCreated::restrict_self)
            .map_err(Error::other)?;
        Ok(match (status.ruleset, status.landlock) {
            (
                RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
                LandlockStatus::Available { effective_abi, .. },
            ) => Some(effective_abi as u32),
            _ => None,
        })
    }

    /// Ends the process at any call but these. False: the kernel has no seccomp.
    pub(super) fn seccomp() -> std::io::Result<bool> {
        let program = filter().map_err(Error::other)?;
        match seccompiler::apply_filter_all_threads(&program) {
            Ok(()) => Ok(true),
            Err(seccompiler::Error::Prctl(_) | seccompiler::Error::Seccomp(_)) => Ok(false),
            Err(error) => Err(Error::other(error)),
        }
    }

    fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            CALLS.iter().map(|call| (*call, Vec::new())).collect();
        for call in CALLS_ON_DESCRIPTORS {
            let condition = SeccompCondition::new(
                0,
                // The kernel reads a descriptor from the lower 32 bits alone, so the upper ones
                // must not decide.
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::Le,
                MAX_STANDARD_DESCRIPTOR,
            )?;
            rules.insert(*call, vec![SeccompRule::new(vec![condition])?]);
        }
        // Landlock keeps signals inside only on kernels that know its sixth version. On an older
        // one, native code that took over the child could end the server by this call.
        let own = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            std::process::id().into(),
        )?;
        rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![own])?]);
        SeccompFilter::new(
            rules,
            // With an error code, an attacker could probe for calls that are let through. This way
            // there is one attempt, and the parent learns why the case ended.
            SeccompAction::KillProcess,
            SeccompAction::Allow,
            std::env::consts::ARCH.try_into()?,
        )?
        .try_into()
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod system {
    //! Elsewhere: what every system has.

    pub(super) fn mapped() -> std::io::Result<u64> {
        Ok(0)
    }

    /// The mapped size is unknown, so a limit would be a guess; the engines have limits of their
    /// own.
    pub(super) fn limit_memory(_bytes: u64) -> std::io::Result<()> {
        Ok(())
    }

    pub(super) fn landlock() -> std::io::Result<Option<u32>> {
        Ok(None)
    }

    pub(super) fn seccomp() -> std::io::Result<bool> {
        Ok(false)
    }
}
