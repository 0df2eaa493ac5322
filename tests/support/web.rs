//! An HTTP client that sends what it is told, and nothing else.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of this"
)]

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// A request, to be sent over a connection of its own.
pub struct Ask<'a> {
    url: &'a str,
    request: http::request::Builder,
    body: Bytes,
    host: bool,
}

/// A whole answer.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An answer whose body still comes.
pub struct Running {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    text: String,
}

/// Asks a server (`http://127.0.0.1:1`) for a path.
pub fn ask<'a>(url: &'a str, verb: &str, path: &str) -> Ask<'a> {
    Ask {
        url,
        request: Request::builder().method(verb).uri(path),
        body: Bytes::new(),
        host: true,
    }
}

pub async fn get(url: &str, path: &str) -> Answer {
    ask(url, "GET", path).send().await
}

impl Ask<'_> {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.host &= !name.eq_ignore_ascii_case("host");
        self.request = self.request.header(name, value);
        self
    }

    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .body(body.to_string())
    }

    /// A request of MCP, in the era without sessions.
    pub fn mcp(self, method: &str, mut params: Value) -> Self {
        let version = "2026-07-28";
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = ["name", "uri"].iter().find_map(|key| params[*key].as_str());
        let mut ask = self
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", version)
            .header("mcp-method", method);
        if let Some(name) = name {
            ask = ask.header("mcp-name", name);
        }
        ask.json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends it, and waits for the headers of the answer.
    pub async fn start(mut self) -> Running {
        let address = self.url.strip_prefix("http://").expect("a URL");
        if self.host {
            self.request = self.request.header("host", address);
        }
        let stream = TcpStream::connect(address).await.expect("a connection");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream))
                .await
                .expect("HTTP");
        tokio::spawn(connection);
        let request = self.request.body(Full::new(self.body)).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        Running {
            status: parts.status,
            headers: parts.headers,
            body,
            text: String::new(),
        }
    }

    /// Sends it, and waits for the whole answer.
    pub async fn send(self) -> Answer {
        let answer = self.start().await;
        let body = answer.body.collect().await.expect("a whole body");
        Answer {
            status: answer.status,
            headers: answer.headers,
            body: body.to_bytes(),
        }
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }

    /// Status and code of a problem, whose form is looked at.
    pub fn refusal(&self) -> (u16, String) {
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{}",
            self.text()
        );
        let problem = self.json();
        let code = problem["code"].as_str().expect("a code").to_owned();
        assert_eq!(problem["type"], format!("/errors#{code}"));
        assert_eq!(problem["status"], self.status.as_u16());
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        assert!(problem["number"].is_u64(), "{problem}");
        assert!(problem["recovery_suggestions"].is_array());
        (self.status.as_u16(), code)
    }
}

/// A server-sent event.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: Value,
}

impl Running {
    /// The next event; none at the end.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let mut read = Event::default();
                for line in event.lines() {
                    match line.split_once(": ") {
                        Some(("event", name)) => name.clone_into(&mut read.name),
                        Some(("id", id)) => id.clone_into(&mut read.id),
                        Some(("data", data)) => {
                            read.data = serde_json::from_str(data).expect("JSON");
                        }
                        _ => assert!(line.starts_with(':'), "{line:?} is no field"),
                    }
                }
                if read != Event::default() {
                    return Some(read);
                }
                continue;
            }
            let frame = self.body.frame().await?.expect("a body");
            if let Some(data) = frame.data_ref() {
                self.text.push_str(std::str::from_utf8(data).expect("text"));
            }
        }
    }
}
