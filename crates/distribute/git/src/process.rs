//! Programs that speak Git's protocol: `ssh` with one on the other side, and `git` itself for
//! folders of this machine.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::git::ConnectMode;
use gix::protocol::transport::client::git::blocking_io::Connection;

use super::guard::Guard;
use super::{Error, Remote};

/// Of what a program complains, so much is kept.
const MAX_COMPLAINT: usize = 4096;
/// And so much is told.
const MAX_ERROR_CHARS: usize = 300;
/// What programs find where the machine says nothing.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a program wrote, watched.
pub(super) struct Answers {
    guard: Arc<Guard>,
    stdout: ChildStdout,
}

impl Read for Answers {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.guard.wait();
        let bytes = self.stdout.read(to)?;
        self.guard.receive(bytes)?;
        Ok(bytes)
    }
}

/// Of what a program complained.
pub(super) struct Complaint {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

/// The two ends of a program.
pub(super) type Transport = Connection<Answers, ChildStdin>;

/// Starts `git` on a folder of this machine.
pub(super) fn local(guard: &Arc<Guard>, folder: &Path) -> Result<(Transport, Complaint), Error> {
    if !folder.is_dir() {
        return Err(Error::Refused(format!(
            "there is no folder `{}`",
            folder.display()
        )));
    }
    let mut command = program("git");
    command.arg("upload-pack").arg(folder);
    start(guard, command, "git")
}

/// Starts `ssh`. The name is resolved here, so that only what was checked is called.
pub(super) fn ssh(
    guard: &Arc<Guard>,
    remote: &Remote,
    (user, host, port, path): (Option<&str>, &str, u16, &str),
) -> Result<(Transport, Complaint), Error> {
    let addresses = remote.egress.resolve(host, port)?;
    let Some(address) = addresses.first() else {
        return Err(Error::Unavailable(format!(
            "the host `{host}` has no address"
        )));
    };
    let mut command = program("ssh");
    for name in ["HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let alias = if port == 22 {
        host.to_owned()
    } else {
        format!("[{host}]:{port}")
    };
    let silence = guard.limits.silence.as_secs().max(1);
    let mut option = |text: String| {
        command.arg("-o").arg(text);
    };
    option("BatchMode=yes".to_owned());
    option("StrictHostKeyChecking=yes".to_owned());
    option("UpdateHostKeys=no".to_owned());
    option("CheckHostIP=no".to_owned());
    option("ClearAllForwardings=yes".to_owned());
    option("ForwardAgent=no".to_owned());
    option("PermitLocalCommand=no".to_owned());
    option("SendEnv=GIT_PROTOCOL".to_owned());
    option(format!("ConnectTimeout={silence}"));
    option(format!("HostKeyAlias={alias}"));
    if let Some(file) = &remote.known_hosts {
        option(format!("UserKnownHostsFile={}", quoted(file)?));
        option("GlobalKnownHostsFile=/dev/null".to_owned());
    }
    if let Some(file) = &remote.ssh_key {
        command
            .arg("-i")
            .arg(file)
            .args(["-o", "IdentitiesOnly=yes"]);
    }
    // No file of the machine's adds to this.
    command
        .args(["-F", "none", "-T", "-p"])
        .arg(port.to_string());
    if let Some(user) = user {
        command.arg("-l").arg(user);
    }
    command.arg("--").arg(address.ip().to_string());
    let path = path.replace('\'', "'\\''");
    command.arg(format!("git-upload-pack '{path}'"));
    start(guard, command, "ssh")
}

/// A path as ssh reads it in an option.
fn quoted(file: &Path) -> Result<String, Error> {
    match file.to_str() {
        Some(text) if !text.contains(['"', '\n', '%']) => Ok(format!("\"{text}\"")),
        _ => Err(Error::Invalid(format!(
            "ssh cannot be given the file `{}`: its name has a character that is not taken",
            file.display()
        ))),
    }
}

/// A program that knows nothing of this process.
fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(PATH));
    command
        .env_clear()
        .env("PATH", path)
        .env("LC_ALL", "C")
        .env("GIT_PROTOCOL", "version=2")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(
    guard: &Arc<Guard>,
    mut command: Command,
    name: &str,
) -> Result<(Transport, Complaint), Error> {
    guard.check()?;
    let missing = || Error::Unavailable(format!("the program `{name}` cannot be talked to"));
    let mut child: Child = command.spawn().map_err(|error| {
        Error::Unavailable(format!(
            "the program `{name}` is needed for this URL, and cannot be started: {error}"
        ))
    })?;
    let ends = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    guard.adopt(child);
    let (Some(stdin), Some(stdout), Some(mut stderr)) = ends else {
        return Err(missing());
    };
    let text = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&text);
    let reader = std::thread::spawn(move || {
        let mut some = [0; 512];
        while let Ok(bytes @ 1..) = stderr.read(&mut some) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < MAX_COMPLAINT {
                kept.extend_from_slice(some.get(..bytes).unwrap_or_default());
            }
        }
    });
    let answers = Answers {
        guard: Arc::clone(guard),
        stdout,
    };
    let connection = Connection::new(
        answers,
        stdin,
        Protocol::V2,
        "",
        None::<(String, Option<u16>)>,
        ConnectMode::Process,
        false,
    );
    let complaint = Complaint {
        text,
        reader: Some(reader),
    };
    Ok((connection, complaint))
}

impl Complaint {
    /// What the program said, as an error; none: nothing. The program has ended.
    pub(super) fn into_error(mut self) -> Option<Error> {
        if let Some(reader) = self.reader.take() {
            // It only reads.
            reader.join().ok();
        }
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let said = lines.collect::<Vec<_>>().join("; ");
        if said.is_empty() {
            return None;
        }
        let has = |word: &str| said.contains(word);
        let shown = model::shown(&said, MAX_ERROR_CHARS);
        if has("Host key verification failed") || has("REMOTE HOST IDENTIFICATION") {
            let message = "the host's key is none that is known; add it to the file of known hosts";
            return Some(Error::Refused(format!("{message} ({shown})")));
        }
        let is_refused = has("Permission denied")
            || has("does not appear to be a git repository")
            || has("not a git repository")
            || has("dubious ownership")
            || has("not found")
            || has("does not exist");
        Some(if is_refused {
            Error::Refused(format!("the other side refused: {shown}"))
        } else {
            Error::Unavailable(format!("the server answered: {shown}"))
        })
    }
}
