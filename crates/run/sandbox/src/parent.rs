//! The parent: starts the child, gives it the job, reads what comes out, and ends it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, timeout_at};

use crate::child::{Line, MAX_JOB, Order};
use crate::confinement::Confinement;
use crate::job::{Job, Limits, Outcome, Stopped};

/// Bytes that are read of the child's error output.
const MAX_COMPLAINT: u64 = 4096;

/// Runs jobs, each in a child process.
#[derive(Debug, Clone)]
pub struct Sandbox {
    program: PathBuf,
    arguments: Vec<OsString>,
    require_all: bool,
}

/// The cases have no outcome: the sandbox is at fault, not the code that it ran.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The child cannot be started.
    #[error("the sandbox cannot be started: {0}")]
    Start(#[source] std::io::Error),
    /// The job is larger than a child reads.
    #[error("the job is too large for the sandbox")]
    TooLarge,
    /// The child would not run it, for a reason of its own.
    #[error("the sandbox refuses to run: {0}")]
    Refused(String),
    /// The child wrote something that is no answer, or ended without one.
    #[error("the sandbox broke: {0}")]
    Broke(String),
}

/// How a child came to its end.
enum End {
    /// By itself.
    Exited(ExitStatus, String),
    /// Its wall-clock time was over.
    Killed,
    /// It wrote more than a line may have.
    TooLong,
}

impl Sandbox {
    /// Runs jobs by this program, which calls [`child`](crate::child()) when it gets these
    /// arguments.
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self {
            program,
            arguments,
            require_all: false,
        }
    }

    /// Whether jobs are refused where a confinement does not hold.
    #[must_use]
    pub fn require(mut self, all: bool) -> Self {
        self.require_all = all;
        self
    }

    /// Runs a job: an outcome for each of its cases. Dropping the future ends the child.
    pub async fn run(&self, job: &Job) -> Result<Vec<Outcome>, SandboxError> {
        let order = Order {
            require_all: self.require_all,
            job: Some(job.clone()),
        };
        Ok(self.order(&order).await?.1)
    }

    /// Returns how a child is confined on this system.
    pub async fn confinement(&self) -> Result<Confinement, SandboxError> {
        let order = Order {
            require_all: false,
            job: None,
        };
        Ok(self.order(&order).await?.0)
    }

    async fn order(&self, order: &Order) -> Result<(Confinement, Vec<Outcome>), SandboxError> {
        let text =
            serde_json::to_vec(order).map_err(|error| SandboxError::Broke(error.to_string()))?;
        if u64::try_from(text.len()).map_or(true, |length| length >= MAX_JOB) {
            return Err(SandboxError::TooLarge);
        }
        let limits = order.job.as_ref().map(|job| job.limits).unwrap_or_default();
        let count = order.job.as_ref().map_or(0, |job| job.program.cases());
        // Starting the child counts as well: on a machine that cannot start one, nobody waits
        // longer.
        let deadline = Instant::now() + limits.wall_time;

        let mut child = self.start().await.map_err(SandboxError::Start)?;
        // Declared after `child`, so dropped before it on every way out: until the child is waited
        // for, its number cannot be another's.
        let mut group = ProcessGroup(child.id());
        let mut lines = Lines::of(child.stdout.take(), &limits);
        let complaint = complaint(child.stderr.take());
        let stdin = child.stdin.take();
        let talk = async {
            // The end of this block closes the pipe, which ends the job for the child.
            if let Some(mut stdin) = stdin {
                // It may be gone: how it went says why.
                drop(stdin.write_all(&text).await);
            }
            lines.read(count).await
        };
        let (talked, complaint) =
            // Both pipes at once: a child that fills one while the parent reads the other would
            // never end.
            match timeout_at(deadline, async { tokio::join!(talk, complaint) }).await {
                Ok((talked, complaint)) => (Some(talked), complaint),
                Err(_) => (None, String::new()),
            };
        let end = match talked {
            None => End::Killed,
            Some(Err(error)) => return Err(error),
            Some(Ok(false)) => End::TooLong,
            Some(Ok(true)) => match timeout_at(deadline, child.wait()).await {
                Ok(status) => {
                    // Its number may be another's by now.
                    group.0 = None;
                    End::Exited(status.map_err(SandboxError::Start)?, complaint)
                }
                Err(_) => End::Killed,
            },
        };
        drop(group);
        reap(&mut child).await;
        lines.end(count, end)
    }

    /// Starts the child. The thread that does so is blocked until that process has a processor
    /// and runs its program, so it is no thread of the runtime.
    async fn start(&self) -> std::io::Result<Child> {
        let mut command = self.command();
        // When nobody waits any more, the child is dropped here, which ends it.
        tokio::task::spawn_blocking(move || command.spawn()).await?
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            // The environment of the server may hold its secrets.
            .env_clear()
            // The server's allocator has a thread of its own, which would be outside of
            // the confinement.
            .env("_RJEM_MALLOC_CONF", "background_thread:false")
            // The same dates on every server: both engines ask the C library for the time zone.
            .env("TZ", "UTC0")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // One signal ends all that it starts, and Ctrl-C at the server's terminal does not
            // reach it.
            .process_group(0)
            .kill_on_drop(true);
        command
    }
}

/// The process group of a child, which ends with it.
struct ProcessGroup(Option<u32>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let leader = self.0.and_then(|id| i32::try_from(id).ok());
        if let Some(leader) = leader.and_then(Pid::from_raw) {
            // Most often nobody of it is left.
            let _gone = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Ends the child, and takes its status, so that nothing is left of it.
async fn reap(child: &mut Child) {
    // It may have ended by itself.
    drop(child.start_kill());
    drop(child.wait().await);
}

/// Reads the error output of the child, as far as it is worth reading.
async fn complaint(stderr: Option<impl AsyncRead + Unpin>) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = stderr {
        // After a read error the text before it is all there is.
        drop(stderr.take(MAX_COMPLAINT).read_to_end(&mut text).await);
    }
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// The lines that a child has written.
struct Lines {
    stdout: Option<BufReader<ChildStdout>>,
    max: usize,
    confinement: Option<Confinement>,
    outcomes: Vec<Outcome>,
}

impl Lines {
    fn of(stdout: Option<ChildStdout>, limits: &Limits) -> Self {
        Self {
            stdout: stdout.map(BufReader::new),
            max: limits.line_bytes(),
            confinement: None,
            outcomes: Vec::new(),
        }
    }

    /// Reads to the end. False: a line was longer than any outcome.
    async fn read(&mut self, count: usize) -> Result<bool, SandboxError> {
        let broke = |text: String| Err(SandboxError::Broke(text));
        let Some(mut stdout) = self.stdout.take() else {
            return broke("it has no output".to_owned());
        };
        let mut text = Vec::new();
        loop {
            text.clear();
            let max = u64::try_from(self.max).unwrap_or(u64::MAX);
            // Whatever the child writes, no more than one line of it is in memory.
            let read = (&mut stdout).take(max).read_until(b'\n', &mut text).await;
            if let Err(error) = read {
                return broke(error.to_string());
            }
            if text.last() != Some(&b'\n') {
                // The end, or that of a process that was ended in the middle of a line.
                return Ok(text.len() < self.max);
            }
            match serde_json::from_slice(&text) {
                Ok(Line::Refused(reason)) => return Err(SandboxError::Refused(reason)),
                // The child may have been taken over by what it runs. It can then lie about
                // outcomes, but not answer before it is confined, nor for more cases than there
                // are.
                Ok(Line::Confined(confinement)) if self.confinement.is_none() => {
                    self.confinement = Some(confinement);
                }
                Ok(Line::Outcome(outcome))
                    if self.confinement.is_some() && self.outcomes.len() < count =>
                {
                    self.outcomes.push(outcome);
                }
                Ok(_) => return broke("it answered out of order".to_owned()),
                Err(error) => return broke(format!("it answered what cannot be read: {error}")),
            }
        }
    }

    /// Fills in the cases that have no outcome, by the way in which the child ended.
    fn end(mut self, count: usize, end: End) -> Result<(Confinement, Vec<Outcome>), SandboxError> {
        let missing = self.outcomes.len() < count;
        let stopped = match end {
            // Not told apart: a loop without an end, and a machine so busy that the child got no
            // processor.
            End::Killed => Stopped::Time,
            End::TooLong => Stopped::Output,
            End::Exited(status, complaint) => match stopped(status, &complaint) {
                Some(stopped) => stopped,
                None if self.confinement.is_none() || missing => {
                    let complaint = if complaint.is_empty() {
                        status.to_string()
                    } else {
                        format!("{status}: {complaint}")
                    };
                    return Err(SandboxError::Broke(complaint));
                }
                // Unused: each case has an outcome.
                None => Stopped::Time,
            },
        };
        let Some(confinement) = self.confinement else {
            return Err(SandboxError::Broke(format!(
                "it was ended before it began: {stopped:?}"
            )));
        };
        self.outcomes.resize(count, Outcome::Stopped(stopped));
        Ok((confinement, self.outcomes))
    }
}

/// Returns the limit that ended a process, if it was one.
fn stopped(status: ExitStatus, complaint: &str) -> Option<Stopped> {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().and_then(Signal::from_named_raw)?;
    // The filter of system calls ends a process with it.
    if signal == Signal::SYS {
        // No solution in JavaScript or SQL can do that: an engine has a hole, or the filter lacks
        // a call.
        Some(Stopped::Forbidden)
    } else if signal == Signal::XCPU {
        // The soft limit of processor seconds, for native code that never checks the time.
        Some(Stopped::Time)
    } else if signal == Signal::KILL {
        // Not by us, so by the kernel, whose memory was short.
        Some(Stopped::Memory)
    } else if signal == Signal::ABORT && complaint.contains("memory allocation of") {
        Some(Stopped::Memory)
    } else {
        None
    }
}
