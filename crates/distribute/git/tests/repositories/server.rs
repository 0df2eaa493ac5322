//! A server of HTTP on loopback, which serves repositories by `git http-backend`, or misbehaves.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a server does with a request.
#[derive(Clone)]
pub(crate) enum Does {
    /// Serves the repositories below a folder.
    Serves(PathBuf),
    /// The same, but a pack comes by so many bytes, each after a while.
    Drips(PathBuf, usize, Duration),
    /// The same, but of a pack only so many bytes come, and then the connection ends.
    Dies(PathBuf, usize),
    /// Redirects to a base.
    Redirects(String),
    /// Lists refs without an end.
    Floods,
    /// Takes the request and says nothing more.
    IsSilent,
    /// Answers with a status and headers.
    Answers(&'static str),
}

pub(crate) struct Server {
    pub(crate) port: u16,
    /// First lines of requests.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    listener: TcpListener,
    thread: Option<JoinHandle<()>>,
    stop: Arc<Mutex<bool>>,
}

impl Server {
    pub(crate) fn start(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(Mutex::new(false));
        let taken = listener.try_clone().expect("a socket");
        let (seen, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in taken.incoming() {
                if *stopped.lock().expect("a lock") {
                    break;
                }
                let Ok(stream) = stream else { break };
                let (does, seen) = (does.clone(), Arc::clone(&seen));
                std::thread::spawn(move || serve(stream, &does, &seen));
            }
        });
        Self {
            port,
            requests,
            listener,
            thread: Some(thread),
            stop,
        }
    }

    pub(crate) fn url(&self, repository: &str) -> String {
        format!("http://127.0.0.1:{}/{repository}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.requests.lock().expect("a lock").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        *self.stop.lock().expect("a lock") = true;
        // Wakes the listener.
        let address = self.listener.local_addr().expect("an address");
        TcpStream::connect(address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// None: the other side went away.
fn serve(stream: TcpStream, does: &Does, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    if first.is_empty() {
        return Some(());
    }
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |name: &str| {
        let mut found = headers.iter().filter(|(header, _)| header == name);
        found.next().map(|(_, value)| value.as_str())
    };
    let length = header("content-length").and_then(|value| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    seen.lock().expect("a lock").push(first.trim().to_owned());
    let mut words = first.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    match does {
        Does::Answers(answer) => stream.write_all(answer.as_bytes()).ok(),
        Does::Redirects(base) => {
            let answer = format!(
                "HTTP/1.1 302 Found\r\nLocation: {base}{target}\r\nContent-Length: 0\r\n\
                 Connection: close\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).ok()
        }
        Does::Floods => {
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\
                        Content-Type: application/x-git-upload-pack-advertisement\r\n\r\n\
                        001e# service=git-upload-pack\n0000";
            let mut stream = std::io::BufWriter::new(stream);
            stream.write_all(head.as_bytes()).ok()?;
            let id = "1234567890123456789012345678901234567890";
            let mut number = 0_u64;
            loop {
                let line = format!("{id} refs/heads/{number:012}");
                let line = if number == 0 {
                    format!("{line}\0shallow agent=x\n")
                } else {
                    format!("{line}\n")
                };
                write!(stream, "{:04x}{line}", line.len() + 4).ok()?;
                number += 1;
            }
        }
        Does::IsSilent => {
            // Until the other side goes.
            stream.read_exact(&mut [0]).ok();
            None
        }
        Does::Serves(root) => {
            let answer = backend(root, method, target, &header, &body)?;
            stream.write_all(&answer).ok()
        }
        Does::Drips(root, bytes, pause) => {
            let answer = backend(root, method, target, &header, &body)?;
            if method == "GET" || !answer.windows(8).any(|some| some == b"packfile") {
                return stream.write_all(&answer).ok();
            }
            for piece in answer.chunks(*bytes) {
                stream.write_all(piece).ok()?;
                std::thread::park_timeout(*pause);
            }
            Some(())
        }
        Does::Dies(root, bytes) => {
            let answer = backend(root, method, target, &header, &body)?;
            let is_pack = method == "POST" && answer.windows(8).any(|some| some == b"packfile");
            let end = if is_pack {
                answer.len().min(*bytes)
            } else {
                answer.len()
            };
            stream.write_all(&answer[..end]).ok()
        }
    }
}

/// What `git http-backend` answers.
fn backend<'a>(
    root: &PathBuf,
    method: &str,
    target: &str,
    header: &dyn Fn(&str) -> Option<&'a str>,
    body: &[u8],
) -> Option<Vec<u8>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let sent = body.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).ok());
    let output = child.wait_with_output().ok()?.stdout;
    writer.join().ok();
    let at = output.windows(4).position(|some| some == b"\r\n\r\n")?;
    let (head, content) = output.split_at(at + 4);
    let head = String::from_utf8_lossy(head);
    let status = head
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let lines = head
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("Status:"));
    let rest = lines.flat_map(|line| [line, "\r\n"]).collect::<String>();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\n{rest}Content-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    )
    .into_bytes();
    answer.extend_from_slice(content);
    Some(answer)
}
