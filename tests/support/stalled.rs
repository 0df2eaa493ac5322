//! Peers that stop: at every stage of a call, of every rpc and every route.
//!
//! They come from an address of their own, so that the shares of peers are tried too.

#![allow(unreachable_pub, reason = "a module of a test")]

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, Value};
use serde_json::Value as Json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

use crate::support::web::get;

/// Where peers that stall come from: this machine, but not the address of the others.
pub const ADDRESS: [u8; 4] = [127, 0, 0, 2];
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Where a peer stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It connects and says nothing.
    Connect,
    /// It says a part of what it begins with.
    Preface,
    /// It sends the headers of a call, or a part of them.
    Headers,
    /// It sends half of the body that it announced.
    HalfBody,
    /// It calls, and takes nothing of the answer.
    Unread,
    /// It calls, closes its side, and takes nothing of the answer.
    HalfClosed,
}

impl Stage {
    pub const ALL: [Self; 6] = [
        Self::Connect,
        Self::Preface,
        Self::Headers,
        Self::HalfBody,
        Self::Unread,
        Self::HalfClosed,
    ];
}

/// What is called.
#[derive(Debug, Clone)]
pub enum Target {
    /// An rpc, with a message that it takes.
    Rpc { path: String, message: Bytes },
    /// A route of REST, an endpoint of MCP, or an rpc by gRPC-Web.
    Route {
        verb: String,
        path: String,
        body: String,
        /// It streams for as long as its client likes.
        streams: bool,
    },
}

/// A peer that has stopped; it goes when it is dropped.
pub struct Stalled {
    _kept: Box<dyn std::any::Any + Send>,
}

/// Every rpc that the server has, and every route: what is new in the contract is here
/// when it is written.
pub async fn targets(url: &str) -> Vec<Target> {
    let mut targets = rpcs();
    let document = get(url, "/openapi.json").await.json();
    for (path, verbs) in document["paths"].as_object().expect("paths") {
        for (verb, operation) in verbs.as_object().expect("verbs") {
            let events = operation["responses"]["200"]["content"]["text/event-stream"].is_object();
            targets.push(Target::Route {
                verb: verb.to_uppercase(),
                path: filled(path),
                body: "{}".to_owned(),
                streams: events,
            });
        }
    }
    let listed = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    for (verb, path, body) in [
        ("POST", "/mcp", listed),
        ("GET", "/mcp", ""),
        ("POST", "/mcp/agent", listed),
        ("GET", "/healthz", ""),
        ("GET", "/metrics", ""),
        ("GET", "/openapi.json", ""),
        ("GET", "/.well-known/agent-skills/index.json", ""),
    ] {
        targets.push(Target::Route {
            verb: verb.to_owned(),
            path: path.to_owned(),
            body: body.to_owned(),
            streams: false,
        });
    }
    targets
}

/// A path with something in the places of its parameters.
fn filled(path: &str) -> String {
    let mut filled = String::new();
    for part in path.split_inclusive('}') {
        match part.split_once('{') {
            Some((before, name)) => {
                filled.push_str(before);
                filled.push_str(match name {
                    "skill_id}" => "write_sql",
                    _ => "1",
                });
            }
            None => filled.push_str(part),
        }
    }
    filled
}

fn rpcs() -> Vec<Target> {
    let mut pool = DescriptorPool::decode(contract::FILE_DESCRIPTOR_SET).expect("the contract");
    for more in [
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
    ] {
        pool.decode_file_descriptor_set(more).expect("a service");
    }
    let methods = pool.services().flat_map(|service| {
        let methods: Vec<_> = service.methods().collect();
        methods
    });
    let targets: Vec<_> = methods
        .map(|method| Target::Rpc {
            path: format!("/{}/{}", method.parent_service().full_name(), method.name()),
            message: framed(&message(&method.input()).encode_to_vec()),
        })
        .collect();
    assert!(targets.len() > 40, "the contract has more rpcs than that");
    targets
}

/// A request that has a skill's name wherever one goes.
fn message(descriptor: &MessageDescriptor) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    for field in descriptor.fields() {
        let value = match (field.name(), field.kind()) {
            ("skill_id" | "command", Kind::String) => Value::String("write_sql".to_owned()),
            ("uri", Kind::String) => Value::String("skill://write_sql".to_owned()),
            ("path", Kind::String) => Value::String("SKILL.md".to_owned()),
            ("query", Kind::String) => Value::String("sql".to_owned()),
            _ => continue,
        };
        if !field.is_list() {
            message.set_field(&field, value);
        }
    }
    message
}

/// A message as gRPC sends it.
pub fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("a length");
    [&[0][..], &length.to_be_bytes(), message].concat().into()
}

/// A connection from the address of those who stall.
pub async fn connect(url: &str) -> std::io::Result<TcpStream> {
    let server: SocketAddr = url
        .strip_prefix("http://")
        .expect("a URL")
        .parse()
        .expect("an address");
    let socket = TcpSocket::new_v4()?;
    socket.bind((ADDRESS, 0).into()).unwrap_or_else(|error| {
        panic!("the harness needs 127.0.0.2, a second address of this machine: {error}")
    });
    socket.connect(server).await
}

/// A connection of HTTP/2, whose client takes so many bytes of each answer.
pub async fn connect_h2(url: &str, window: u32) -> SendRequest<Bytes> {
    let stream = connect(url).await.expect("a connection");
    let (sender, connection) = h2::client::Builder::new()
        .initial_window_size(window)
        .handshake(stream)
        .await
        .expect("HTTP/2");
    tokio::spawn(connection);
    sender.ready().await.expect("a stream")
}

pub fn grpc(path: &str) -> Request<()> {
    Request::post(format!("http://server{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request")
}

/// Calls something up to a stage, and stops there.
pub async fn stall(url: &str, target: &Target, stage: Stage) -> Stalled {
    let kept: Box<dyn std::any::Any + Send> = match (stage, target) {
        (Stage::Connect, _) => Box::new(connect(url).await.ok()),
        (Stage::Preface, Target::Rpc { .. }) => Box::new(sent(url, &PREFACE[..20]).await),
        (Stage::Preface, Target::Route { verb, .. }) => {
            Box::new(sent(url, &verb.as_bytes()[..2]).await)
        }
        (Stage::HalfClosed, Target::Rpc { path, message }) => {
            let mut stream = sent(url, &raw_call(path, message)).await;
            let _gone = stream.shutdown().await;
            Box::new(stream)
        }
        (Stage::HalfClosed, target) => {
            let mut stream = sent(url, whole(url, target).as_bytes()).await;
            let _gone = stream.shutdown().await;
            Box::new(stream)
        }
        (Stage::Unread, target @ Target::Route { .. }) => {
            Box::new(sent(url, whole(url, target).as_bytes()).await)
        }
        (Stage::Headers, Target::Route { verb, path, .. }) => {
            let head = format!("{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-le");
            Box::new(sent(url, head.as_bytes()).await)
        }
        (Stage::HalfBody, Target::Route { verb, path, .. }) => {
            let head = format!(
                "{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
                 content-length: 200000\r\n\r\n{}",
                " ".repeat(100_000)
            );
            Box::new(sent(url, head.as_bytes()).await)
        }
        (_, Target::Rpc { path, message }) => {
            let window = if stage == Stage::Unread { 0 } else { 65_535 };
            let mut sender = connect_h2(url, window).await;
            let (answer, mut body) = sender.send_request(grpc(path), false).expect("a call");
            // The server may have answered already (a worker without a token), and then
            // the stream takes nothing more.
            let _refused = match stage {
                Stage::HalfBody => {
                    // It says that it is twice as long as it is.
                    let mut half = framed(&vec![0; 40_000]).to_vec();
                    half.truncate(20_000);
                    body.send_data(half.into(), false)
                }
                Stage::Unread => body.send_data(message.clone(), true),
                _ => Ok(()),
            };
            Box::new((sender, answer, body))
        }
    };
    Stalled { _kept: kept }
}

async fn sent(url: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(url).await.expect("a connection");
    // The server may have closed it already, which is its answer.
    let _refused = stream.write_all(bytes).await;
    stream
}

fn whole(url: &str, target: &Target) -> String {
    let Target::Route {
        verb, path, body, ..
    } = target
    else {
        unreachable!("routes are written as text")
    };
    let host = url.trim_start_matches("http://");
    let kind = if path.starts_with("/repertoire.v1.") {
        "grpc-web+proto"
    } else {
        "json"
    };
    // What the newest protocol of MCP has beside a message.
    let message: Json = serde_json::from_str(body).unwrap_or_default();
    let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let mut more = String::new();
    for (name, value) in [
        ("mcp-protocol-version", version),
        ("mcp-method", &message["method"]),
        ("mcp-name", &message["params"]["uri"]),
    ] {
        if let (Some(_), Some(value)) = (version.as_str(), value.as_str()) {
            more.extend([name, ": ", value, "\r\n"]);
        }
    }
    format!(
        "{verb} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/{kind}\r\n\
         accept: application/json, text/event-stream\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The frames of a call, from the preface to its end, as bytes.
fn raw_call(path: &str, message: &[u8]) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).expect("a length");
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    };
    // HPACK: `:method: POST` and `:scheme: http` by their places in the static table,
    // the others as they are.
    let mut head = vec![0x83, 0x86];
    for (name, value) in [
        (":path", path),
        (":authority", "server"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        head.push(0);
        for text in [name, value] {
            head.push(u8::try_from(text.len()).expect("a short text"));
            head.extend(text.as_bytes());
        }
    }
    [
        PREFACE.to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &head),
        frame(0, 1, 1, message),
    ]
    .concat()
}

/// What the server says of itself at `/metrics`, by name.
pub async fn gauge(url: &str, name: &str) -> u64 {
    let page = get(url, "/metrics").await.text();
    let line = page.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix(' ')?;
        rest.parse().ok()
    });
    line.unwrap_or_else(|| panic!("there is no {name}:\n{page}"))
}

/// Resident memory of a process, in KiB.
pub fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse().ok()).expect("its memory")
}

/// A message of MCP, posted to an endpoint.
pub fn mcp(method: &str, params: &Json) -> Json {
    serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}
