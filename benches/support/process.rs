//! Servers as child processes, and what the system says of them.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

/// A child that said where it listens.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// From the start of the process until it said so.
    pub started: Duration,
}

impl Server {
    /// The release binary over a data directory.
    pub fn repertoire(data: &Path) -> Self {
        Self::repertoire_with(data, &[])
    }

    /// The same with more arguments.
    pub fn repertoire_with(data: &Path, more: &[&OsStr]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_repertoire"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(more);
        for name in [
            "REPERTOIRE_CONFIG",
            "REPERTOIRE_LOG",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ] {
            command.env_remove(name);
        }
        Self::spawn(command)
    }

    /// A process whose stderr has a line `listening on http://ADDRESS`.
    pub fn spawn(mut command: Command) -> Self {
        let start = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a child process");
        let mut lines = BufReader::new(child.stderr.take().expect("its stderr")).lines();
        let address = lines
            .by_ref()
            .map(|line| line.expect("a line"))
            .find_map(|line| line.strip_prefix("listening on http://")?.parse().ok())
            .expect("the server did not start");
        let started = start.elapsed();
        std::thread::spawn(move || {
            for line in lines
                .map_while(Result::ok)
                .filter(|line| line.contains("ERROR") || line.contains("WARN"))
            {
                eprintln!("server: {line}");
            }
        });
        Self {
            child,
            address,
            started,
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("a signal to a child");
    }

    /// Asks it to stop; returns how long that took.
    pub fn terminate(mut self) -> Duration {
        let start = Instant::now();
        self.signal(Signal::TERM);
        assert!(
            self.child.wait().expect("its end").success(),
            "the server did not stop in time"
        );
        start.elapsed()
    }

    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("its end");
    }

    /// A line of `/proc/PID/status` in bytes: `VmRSS`, `VmHWM`.
    pub fn memory(&self, name: &str) -> u64 {
        memory(self.child.id(), name)
    }

    /// Time on a processor so far, of all its threads.
    pub fn cpu(&self) -> Duration {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("its stat");
        let rest = stat.rsplit_once(") ").expect("a name in brackets").1;
        let ticks: u64 = rest
            .split(' ')
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u64>().expect("ticks"))
            .sum();
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `terminate` and `kill` it is gone already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A line of `/proc/PID/status` in bytes: `VmRSS`, `VmHWM`.
pub fn memory(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("a number of kB") * 1024
}

/// Runs this thread, and what it starts from here on, on one processor. Does
/// nothing on a machine that has no such processor.
pub fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    // How many there are cannot be asked of a thread that is pinned already: it is told one.
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        eprintln!("not pinned to processor {processor}: {error}");
    }
}

/// Time that this thread was on a processor so far.
pub fn thread_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("its times");
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("nanoseconds"))
}

/// Bytes that a directory takes on disk.
pub fn allocated(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    walkdir::WalkDir::new(directory)
        .into_iter()
        .map(|entry| {
            entry
                .expect("an entry")
                .metadata()
                .expect("its size")
                .blocks()
                * 512
        })
        .sum()
}
