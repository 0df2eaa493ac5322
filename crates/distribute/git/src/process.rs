//! Programs that speak Git's protocol: `ssh` to one on another machine, and `git` for folders of
//! this machine.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::git::ConnectMode;
use gix::protocol::transport::client::git::blocking_io::Connection;

use super::guard::Guard;
use super::{Error, Remote};

/// Bytes of a program's standard error that are held.
const MAX_COMPLAINT: usize = 4096;
/// Characters of it in an error.
const MAX_ERROR_CHARS: usize = 300;
/// The path of programs where the environment has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The standard output of a program, within the bounds.
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

/// The standard error of a program.
pub(super) struct Complaint(JoinHandle<Vec<u8>>);

pub(super) type Transport = Connection<Answers, ChildStdin>;

/// Starts `git` on a folder of this machine.
pub(super) fn local(
    guard: &Arc<Guard>,
    remote: &Remote,
    folder: &Path,
) -> Result<(Transport, Complaint), Error> {
    if !folder.is_dir() {
        return Err(Error::Refused(format!(
            "there is no folder `{}`",
            folder.display()
        )));
    }
    let mut command = program("git");
    command.arg("upload-pack").arg(folder);
    start(guard, remote, command, "git")
}

pub(super) fn ssh(
    guard: &Arc<Guard>,
    remote: &Remote,
    (user, host, port, path): (Option<&str>, &str, u16, &str),
) -> Result<(Transport, Complaint), Error> {
    // Here and not by ssh, which would call an address that nobody checked.
    let addresses = remote.options.egress.resolve(host, port)?;
    let Some(address) = addresses.first() else {
        return Err(Error::Unavailable(format!(
            "the host `{host}` has no address"
        )));
    };
    let mut command = program("ssh");
    // For its keys, its known hosts and its agent.
    for name in ["HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    // ssh is given an address. It looks up the key of the host by this name instead, in the form
    // that known_hosts has for ports other than 22.
    let alias = if port == 22 {
        host.to_owned()
    } else {
        format!("[{host}]:{port}")
    };
    let silence = guard.limits.silence.as_secs().max(1);
    let mut option = |text: String| {
        command.arg("-o").arg(text);
    };
    // No question: there is nobody to answer it, and the sync would hang until its limit.
    option("BatchMode=yes".to_owned());
    // A key that is not known is an attack or a mistake; the operator adds keys, not the server.
    option("StrictHostKeyChecking=yes".to_owned());
    option("UpdateHostKeys=no".to_owned());
    option("CheckHostIP=no".to_owned());
    // The other side gets nothing of this machine: no port, no agent with other keys.
    option("ClearAllForwardings=yes".to_owned());
    option("ForwardAgent=no".to_owned());
    option("PermitLocalCommand=no".to_owned());
    option("SendEnv=GIT_PROTOCOL".to_owned());
    option(format!("ConnectTimeout={silence}"));
    option(format!("HostKeyAlias={alias}"));
    if let Some(file) = &remote.options.known_hosts {
        option(format!("UserKnownHostsFile={}", quoted(file)?));
        option("GlobalKnownHostsFile=/dev/null".to_owned());
    }
    if let Some(file) = &remote.options.ssh_key {
        command
            .arg("-i")
            .arg(file)
            // Else keys of an agent are tried first, and may use up the attempts of the server.
            .args(["-o", "IdentitiesOnly=yes"]);
    }
    // `-F none`: a config file could run programs (`ProxyCommand`) or name other hosts.
    command
        .args(["-F", "none", "-T", "-p"])
        .arg(port.to_string());
    if let Some(user) = user {
        command.arg("-l").arg(user);
    }
    command.arg("--").arg(address.ip().to_string());
    // A shell runs this on the other side: in single quotes, where a quote is `'\''`.
    let path = path.replace('\'', "'\\''");
    command.arg(format!("git-upload-pack '{path}'"));
    start(guard, remote, command, "ssh")
}

/// A path as ssh reads it in an option. It expands `%`, and knows no escape for a quote.
fn quoted(file: &Path) -> Result<String, Error> {
    match file.to_str() {
        Some(text) if !text.contains(['"', '\n', '%']) => Ok(format!("\"{text}\"")),
        _ => Err(Error::Invalid(format!(
            "ssh cannot be given the file `{}`: its name has a character that is not taken",
            file.display()
        ))),
    }
}

/// A program with an empty environment: variables of the server may hold secrets, and those of Git
/// (`GIT_SSH_COMMAND`, `GIT_CONFIG_COUNT`) would run others' programs.
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
    remote: &Remote,
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
    // The guard has the child before anything can fail, and ends it then.
    let ends = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    guard.adopt(child);
    let (Some(stdin), Some(stdout), Some(mut stderr)) = ends else {
        return Err(missing());
    };
    // Read to its end, also beyond what is held: a program whose pipe is full would stop.
    let reader = std::thread::spawn(move || {
        let (mut text, mut some) = (Vec::new(), [0; 512]);
        while let Ok(bytes @ 1..) = stderr.read(&mut some) {
            if text.len() < MAX_COMPLAINT {
                text.extend_from_slice(some.get(..bytes).unwrap_or_default());
            }
        }
        text
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
    let connection = connection.custom_url(Some(remote.url().as_str().into()));
    Ok((connection, Complaint(reader)))
}

impl Complaint {
    /// The error that the program wrote; none: it wrote nothing. The program has ended.
    pub(super) fn into_error(self) -> Option<Error> {
        let text = self.0.join().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let text = lines.collect::<Vec<_>>().join("; ");
        if text.is_empty() {
            return None;
        }
        // Exit codes do not tell these apart: ssh has 255 for all of its own. The texts are those
        // of the C locale.
        let has = |word: &str| text.contains(word);
        let shown = model::shown(&text, MAX_ERROR_CHARS);
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
