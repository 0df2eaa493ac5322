//! A server as a process of its own, and what every test of it needs.

#![allow(unreachable_pub, clippy::pedantic, reason = "a module of tests")]

pub mod client;
pub mod model;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The built program.
pub const BINARY: &str = env!("CARGO_BIN_EXE_repertoire");

/// How long a server may take to start, under a loaded machine.
pub const START_LIMIT: Duration = Duration::from_secs(60);

/// Numbers that look random and are the same for the same seed (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("an index fits")
    }

    /// True in so many cases of a hundred.
    pub fn percent(&mut self, cases: u64) -> bool {
        self.below(100) < cases
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.next().to_le_bytes());
        words
            .take(length.div_ceil(8))
            .flatten()
            .take(length)
            .collect()
    }
}

/// The program with arguments, without the environment of whoever runs the tests.
pub fn repertoire(arguments: &[&str], data: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--data").arg(data);
    clean(&mut command);
    command
}

fn clean(command: &mut Command) {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
}

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    /// None: it was ended, since it took too long.
    pub status: Option<ExitStatus>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }
}

/// Runs a command to its end, or to the end of its time.
pub fn run(mut command: Command, limit: Duration) -> Ran {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let (mut out, mut err) = (
        child.stdout.take().expect("a pipe"),
        child.stderr.take().expect("a pipe"),
    );
    let read_out = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).expect("a readable pipe");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let (done, ended) = channel();
    let read_err = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        err.read_to_end(&mut bytes).expect("a readable pipe");
        // Its end is the end of the process, which holds the other side.
        let _unheard = done.send(());
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let in_time = !matches!(ended.recv_timeout(limit), Err(RecvTimeoutError::Timeout));
    if !in_time {
        child.kill().expect("the child can be ended");
    }
    let status = child.wait().expect("the child ends");
    Ran {
        status: in_time.then_some(status),
        stdout: read_out.join().expect("a reader"),
        stderr: read_err.join().expect("a reader"),
    }
}

/// A server process. Ended with SIGKILL when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: Receiver<String>,
    reader: Option<std::thread::JoinHandle<String>>,
    pub started: Instant,
}

impl Server {
    /// Starts a server on a free port.
    pub fn spawn(data: &Path) -> Self {
        Self::spawn_command(repertoire(
            &["serve", "--listen", "127.0.0.1:0", "--log", "warn"],
            data,
        ))
    }

    /// Starts a server through a shell, after some words to that shell.
    pub fn spawn_after(words: &str, data: &Path) -> Self {
        let mut command = Command::new("bash");
        command
            .arg("-c")
            .arg(format!("{words}; exec \"$@\""))
            .arg("bash");
        command
            .arg(BINARY)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--log",
                "warn",
                "--data",
            ])
            .arg(data);
        clean(&mut command);
        Self::spawn_command(command)
    }

    fn spawn_command(mut command: Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, address) = channel();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            for line in stderr.lines() {
                let Ok(line) = line else { break };
                if let Some(url) = line.strip_prefix("listening on ") {
                    // Nobody listens where the server is to die while it starts.
                    let _unheard = sender.send(url.to_owned());
                }
                text.push_str(&line);
                text.push('\n');
            }
            text
        });
        Self {
            child,
            address,
            reader: Some(reader),
            started: Instant::now(),
        }
    }

    /// Waits for the address, for so long; none: it does not listen (yet).
    pub fn listens(&self, limit: Duration) -> Option<String> {
        self.address.recv_timeout(limit).ok()
    }

    /// Starts a server that must come up.
    pub fn start(data: &Path) -> (Self, String) {
        let mut server = Self::spawn(data);
        match server.listens(START_LIMIT) {
            Some(url) => (server, url),
            None => panic!("the server did not start: {}", server.kill()),
        }
    }

    /// SIGKILL. Gives what the server wrote to stderr.
    pub fn kill(&mut self) -> String {
        // It may have ended by itself.
        let _ended = self.child.kill();
        self.child.wait().expect("the child ends");
        self.stderr()
    }

    fn stderr(&mut self) -> String {
        self.reader
            .take()
            .map(|reader| reader.join().expect("a reader"))
            .unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn terminate(&self) {
        let status = Command::new("kill")
            .arg("-TERM")
            .arg(self.child.id().to_string())
            .status();
        assert!(
            status.expect("`kill` starts").success(),
            "the server takes a signal"
        );
    }

    /// Waits for its end, for so long. Gives how it ended and what it wrote.
    pub fn ended(&mut self, limit: Duration) -> (Option<ExitStatus>, String) {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return (Some(status), self.stderr());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        (None, self.kill())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, mostly.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}
