//! A client that writes requests which were encoded once.

use std::fmt::Write as _;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use http::StatusCode;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::TOOL;
use super::support::process::Server;
use super::support::{Bar, sample};

/// Callers, each with one call at a time.
const CALLERS: usize = 32;
/// HTTP/2 connections that they share; with HTTP/1.1 each has its own.
const CONNECTIONS: usize = 4;

/// One way of calling.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) http2: bool,
    /// A session of 2025-11-25; else 2026-07-28, which has none.
    session: bool,
    pub(super) bar: Option<Bar>,
}

pub(super) const WAYS: [Way; 3] = [
    Way {
        name: "2026-07-28 over HTTP/1.1",
        http2: false,
        session: false,
        bar: Some(Bar::AtLeast(0.7)),
    },
    Way {
        name: "2026-07-28 over HTTP/2",
        http2: true,
        session: false,
        bar: Some(Bar::AtLeast(0.7)),
    },
    Way {
        name: "2025-11-25 over HTTP/1.1",
        http2: false,
        session: true,
        bar: None,
    },
];

enum Connection {
    One { stream: TcpStream, answer: Vec<u8> },
    Two(SendRequest<Bytes>),
}

impl Connection {
    async fn open(address: SocketAddr, http2: bool) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        if !http2 {
            let answer = Vec::new();
            return Self::One { stream, answer };
        }
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(1 << 20)
            .initial_connection_window_size(1 << 24);
        let (sender, connection) = builder.handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        Self::Two(sender)
    }

    /// Sends a request; what comes back, with its head where it is HTTP/1.1.
    async fn send(&mut self, request: &Request) -> Bytes {
        match self {
            Self::One { stream, answer } => {
                stream.write_all(&request.bytes).await.expect("to send");
                answer.clear();
                while !is_whole(answer) {
                    let count = stream.read_buf(answer).await.expect("an answer");
                    assert_ne!(count, 0, "the answer broke off");
                }
                assert!(answer.starts_with(b"HTTP/1.1 20"), "{}", lossy(answer));
                Bytes::copy_from_slice(answer)
            }
            Self::Two(sender) => {
                let mut ready = sender.clone().ready().await.expect("a connection");
                let head = request.head.clone();
                let (answer, mut sending) = ready.send_request(head, false).expect("a stream");
                let body = Bytes::copy_from_slice(&request.bytes[request.body..]);
                sending.send_data(body, true).expect("to send");
                let answer = answer.await.expect("an answer");
                assert_eq!(answer.status(), StatusCode::OK);
                let mut body = answer.into_body();
                let mut all = BytesMut::new();
                while let Some(data) = body.data().await {
                    let data = data.expect("bytes");
                    body.flow_control()
                        .release_capacity(data.len())
                        .expect("room");
                    all.extend_from_slice(&data);
                }
                all.freeze()
            }
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A header of an answer of HTTP/1.1, by its name in lower case, and where the
/// head ends.
fn header<'a>(answer: &'a [u8], name: &str) -> Option<(&'a str, usize)> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).expect("text");
    let found = head.lines().find_map(|line| {
        let (named, value) = line.split_once(": ")?;
        named.eq_ignore_ascii_case(name).then_some(value)
    });
    Some((found.unwrap_or_default(), end + 4))
}

/// Nothing of an answer of HTTP/1.1 is still to come.
fn is_whole(answer: &[u8]) -> bool {
    header(answer, "content-length").is_some_and(|(length, end)| match length.parse::<usize>() {
        Ok(length) => answer.len() == end + length,
        // In chunks, the last of them empty.
        Err(_) => answer.ends_with(b"\r\n0\r\n\r\n"),
    })
}

/// A request, encoded once. Its id has a fixed length, and is written over.
struct Request {
    /// For HTTP/2.
    head: http::Request<()>,
    /// For HTTP/1.1: head and body.
    bytes: Vec<u8>,
    /// Where the body begins.
    body: usize,
}

impl Request {
    fn new(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &Json) -> Self {
        let body = body.to_string();
        let mut request = http::Request::post(format!("http://{address}{path}"))
            .header("content-length", body.len());
        let mut bytes = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n",
            body.len()
        );
        let always = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (name, value) in always.iter().chain(headers) {
            request = request.header(*name, *value);
            write!(bytes, "{name}: {value}\r\n").expect("text");
        }
        bytes.push_str("\r\n");
        let at = bytes.len();
        bytes.push_str(&body);
        Self {
            head: request.body(()).expect("a request"),
            bytes: bytes.into_bytes(),
            body: at,
        }
    }
}

/// Id of the first call.
const FIRST: &str = "00000000";

/// Calls the tool, once and again.
pub(super) struct Caller {
    connection: Connection,
    request: Request,
    /// Where the id is.
    id: usize,
    pub(super) calls: u32,
}

impl Caller {
    /// As many as there are, over their connections.
    pub(super) async fn all(server: &Server, path: &str, way: Way) -> Vec<Self> {
        let mut callers: Vec<Self> = Vec::with_capacity(CALLERS);
        for at in 0..CALLERS {
            let shared = callers.get(at % CONNECTIONS).map(|other| &other.connection);
            let mut connection = match shared {
                Some(Connection::Two(shared)) => Connection::Two(shared.clone()),
                _ => Connection::open(server.address, way.http2).await,
            };
            let mut call = json!({
                "jsonrpc": "2.0",
                "id": FIRST,
                "method": "tools/call",
                "params": {"name": TOOL, "arguments": {"skill_id": sample::ID}},
            });
            let request = if way.session {
                let session = begin(&mut connection, server.address, path).await;
                let headers = [
                    ("mcp-protocol-version", "2025-11-25"),
                    ("mcp-session-id", session.as_str()),
                ];
                Request::new(server.address, path, &headers, &call)
            } else {
                call["params"]["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let headers = [
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", TOOL),
                ];
                Request::new(server.address, path, &headers, &call)
            };
            let text = std::str::from_utf8(&request.bytes).expect("text");
            callers.push(Self {
                connection,
                id: text.find(FIRST).expect("an id"),
                request,
                calls: 0,
            });
        }
        callers
    }

    /// Calls once; the answer.
    pub(super) async fn call(&mut self) -> Bytes {
        self.calls += 1;
        let id = format!("{:08}", self.calls);
        self.request.bytes[self.id..][..id.len()].copy_from_slice(id.as_bytes());
        self.connection.send(&self.request).await
    }
}

/// Begins a session; its name.
async fn begin(connection: &mut Connection, address: SocketAddr, path: &str) -> String {
    let initialize = json!({
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    });
    let initialize = Request::new(address, path, &[], &initialize);
    let answer = connection.send(&initialize).await;
    let (session, _) = header(&answer, "mcp-session-id").expect("a head");
    let headers = [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", session),
    ];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let initialized = Request::new(address, path, &headers, &initialized);
    connection.send(&initialized).await;
    session.to_owned()
}

/// The JSON of an answer: a line of its own, whatever stands around it.
pub(super) fn answer(bytes: &[u8]) -> Json {
    let text = std::str::from_utf8(bytes).expect("text");
    let mut lines = text.lines().rev();
    let json = lines.find_map(|line| {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        line.starts_with('{').then_some(line)
    });
    serde_json::from_str(json.expect("JSON")).expect("JSON")
}
