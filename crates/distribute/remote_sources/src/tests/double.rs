//! A server for tests: what it answers is a function of what it is asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    manner: Manner,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    Whole,
    /// A byte at a time, for ever.
    Drip,
    Silent,
    /// Half of the body, and then the end.
    Half,
    Endless,
}

impl Reply {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            manner: Manner::Whole,
        }
    }

    pub(super) fn fine(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body)
    }

    pub(super) fn json(json: &serde_json::Value) -> Self {
        Self::fine(json.to_string())
    }

    pub(super) fn missing() -> Self {
        Self::new(404, "nothing")
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.headers.push((name.to_owned(), value.into().0));
        self
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub(super) fn drips(mut self) -> Self {
        self.manner = Manner::Drip;
        self
    }

    pub(super) fn silent(mut self) -> Self {
        self.manner = Manner::Silent;
        self
    }

    pub(super) fn half(mut self) -> Self {
        self.manner = Manner::Half;
        self
    }

    pub(super) fn endless(mut self) -> Self {
        self.manner = Manner::Endless;
        self
    }
}

fn content_length(bytes: usize) -> String {
    format!("content-length: {bytes}\r\n")
}

/// The value of a header.
pub(super) struct Value(String);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

/// A request: its path with its query, and its headers.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    head: String,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

type Answers = dyn Fn(&Asked) -> Reply + Send + Sync;

/// The server.
pub(super) struct Double {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Mutex<Arc<Answers>>>,
}

impl Double {
    pub(super) async fn start(answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: Arc<Answers> = Arc::new(answers);
        let answers = Arc::new(Mutex::new(answers));
        let double = Self {
            url: format!("http://{address}"),
            asked: Arc::clone(&asked),
            answers: Arc::clone(&answers),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, answers) = (Arc::clone(&asked), Arc::clone(&answers));
                tokio::spawn(serve(stream, asked, answers));
            }
        });
        double
    }

    /// From now on it answers otherwise.
    pub(super) fn now(&self, answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) {
        *self.answers.lock().expect("a lock") = Arc::new(answers);
    }

    /// What it was asked since this was asked last.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().expect("a lock"))
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    all: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Mutex<Arc<Answers>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let path = head.split(' ').nth(1).expect("a path").to_owned();
    let asked = Asked { path, head };
    all.lock().expect("a lock").push(asked.clone());
    let answers = Arc::clone(&answers.lock().expect("a lock"));
    let reply = answers(&asked);
    let mut text = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    if matches!(reply.manner, Manner::Whole | Manner::Half) && reply.status != 304 {
        text.push_str(&content_length(reply.body.len()));
    }
    if reply.manner == Manner::Silent {
        // Until the other side has enough.
        stream.read_exact(&mut [0]).await.ok();
        return;
    }
    text += "\r\n";
    if stream.write_all(text.as_bytes()).await.is_err() {
        return;
    }
    match reply.manner {
        Manner::Whole => _ = stream.write_all(&reply.body).await,
        Manner::Half => {
            let half = &reply.body[..reply.body.len() / 2];
            stream.write_all(half).await.ok();
        }
        Manner::Drip => {
            let mut ticks = tokio::time::interval(Duration::from_millis(10));
            while stream.write_all(b" ").await.is_ok() {
                ticks.tick().await;
            }
        }
        Manner::Endless => {
            let piece = vec![b' '; 1 << 16];
            while stream.write_all(&piece).await.is_ok() {}
        }
        Manner::Silent => {}
    }
    stream.shutdown().await.ok();
}
