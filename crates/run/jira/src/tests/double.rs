//! A Jira on this machine, in the shapes that Atlassian publishes: Cloud or Data
//! Center, with pages, and with whatever goes wrong that a test orders.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::data;

/// What the double was asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) authorization: String,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn parameter(&self, name: &str) -> String {
        let found = self.query.iter().find(|(known, _)| known == name);
        match found {
            Some((_, value)) => value.clone(),
            None => match &self.body[name] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            },
        }
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.parameter(name).parse().unwrap_or(default)
    }
}

/// What it answers.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// After the body, which is said to be longer, nothing comes.
    hangs: bool,
}

impl Reply {
    pub(super) fn new(status: u16, body: &Value) -> Self {
        Self::raw(
            status,
            "application/json;charset=UTF-8",
            body.to_string().as_bytes(),
        )
    }

    pub(super) fn raw(status: u16, kind: &str, body: &[u8]) -> Self {
        Self {
            status,
            headers: vec![("Content-Type".to_owned(), kind.to_owned())],
            body: body.to_vec(),
            hangs: false,
        }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn hang(mut self) -> Self {
        self.hangs = true;
        self
    }
}

/// The double. It ends with the runtime of its test.
#[derive(Debug, Clone)]
pub(super) struct Double {
    pub(super) url: String,
    is_cloud: bool,
    asked: Arc<Mutex<Vec<Asked>>>,
    orders: Arc<Mutex<VecDeque<Reply>>>,
}

impl Double {
    pub(super) async fn start(is_cloud: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let double = Self {
            url: format!("http://{address}"),
            is_cloud,
            asked: Arc::default(),
            orders: Arc::default(),
        };
        let server = double.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        double
    }

    /// The next requests are answered with these, whatever they ask.
    pub(super) fn next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.orders.lock().expect("no panic").extend(replies);
    }

    /// What was asked since the last time.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().expect("no panic"))
    }

    async fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Some(asked) = read(&mut stream).await {
            self.asked.lock().expect("no panic").push(asked.clone());
            let order = self.orders.lock().expect("no panic").pop_front();
            let reply = order.unwrap_or_else(|| self.answer(&asked));
            let more = usize::from(reply.hangs);
            let mut head = format!(
                "HTTP/1.1 {} Said\r\nContent-Length: {}\r\n",
                reply.status,
                reply.body.len() + more
            );
            for (name, value) in &reply.headers {
                writeln!(head, "{name}: {value}\r").ok();
            }
            head.push_str("\r\n");
            if stream.write_all(head.as_bytes()).await.is_err()
                || stream.write_all(&reply.body).await.is_err()
                || stream.flush().await.is_err()
            {
                return;
            }
            if reply.hangs {
                std::future::pending::<()>().await;
            }
        }
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let expected = if self.is_cloud {
            data::BASIC
        } else {
            data::BEARER
        };
        if asked.authorization != expected {
            return Reply::new(
                401,
                &json!({"message": "Client must be authenticated", "status-code": 401}),
            );
        }
        if asked.path.starts_with("/rest/agile/1.0/board/") {
            return sprints(asked);
        }
        if self.is_cloud {
            cloud(asked)
        } else {
            data_center(asked)
        }
    }
}

fn errors(status: u16, message: &str) -> Reply {
    Reply::new(status, &json!({"errorMessages": [message], "errors": {}}))
}

fn refused_jql(asked: &Asked) -> Option<Reply> {
    asked.parameter("jql").contains("nonsense").then(|| {
        errors(
            400,
            "Field 'nonsense' does not exist or you do not have permission to view it.",
        )
    })
}

fn cloud(asked: &Asked) -> Reply {
    match (asked.method.as_str(), asked.path.as_str()) {
        (_, "/rest/api/3/search") => errors(410, "The requested API has been removed."),
        ("GET" | "POST", "/rest/api/3/search/jql") => refused_jql(asked).unwrap_or_else(|| {
            // The token names a page in words, as no number can.
            let token = asked.parameter("nextPageToken");
            let start: usize = token
                .strip_prefix("page-from-")
                .map_or(0, |at| at.parse().expect("a place"));
            let (values, end) = part(data::issues(true), start, asked.number("maxResults", 50));
            let mut answer = json!({"issues": values, "isLast": end.is_none()});
            if let Some(end) = end {
                answer["nextPageToken"] = format!("page-from-{end}").into();
            }
            Reply::new(200, &answer)
        }),
        ("GET", "/rest/api/3/issue/ABC-1") => Reply::new(200, &data::issue(true)),
        ("GET", "/rest/api/3/issue/ABC-1/changelog") => {
            Reply::new(200, &page(asked, data::changes(), 100, true))
        }
        ("GET", "/rest/api/3/project/search") => {
            Reply::new(200, &page(asked, data::projects(), 50, true))
        }
        ("GET", "/rest/api/3/myself") => Reply::new(
            200,
            &json!({"accountId": "5b10", "displayName": "Ada Lovelace", "active": true}),
        ),
        (_, path) if path.contains("/issue/") => errors(
            404,
            "Issue does not exist or you do not have permission to see it.",
        ),
        _ => Reply::raw(404, "text/html", b"<html>Not here</html>"),
    }
}

fn data_center(asked: &Asked) -> Reply {
    match (asked.method.as_str(), asked.path.as_str()) {
        ("GET" | "POST", "/rest/api/2/search") => refused_jql(asked).unwrap_or_else(|| {
            let all = data::issues(false);
            let total = all.len();
            let start = asked.number("startAt", 0);
            let size = asked.number("maxResults", 50);
            let (values, _) = part(all, start, size);
            Reply::new(
                200,
                &json!({"startAt": start, "maxResults": size, "total": total, "issues": values}),
            )
        }),
        ("GET", "/rest/api/2/issue/ABC-1") => {
            let mut issue = data::issue(false);
            if asked.parameter("expand").contains("changelog") {
                let changes = data::changes();
                issue["changelog"] = json!({"startAt": 0, "maxResults": changes.len(), "total": changes.len(), "histories": changes});
            }
            Reply::new(200, &issue)
        }
        ("GET", "/rest/api/2/project") => Reply::new(200, &data::projects().into()),
        ("GET", "/rest/api/2/myself") => Reply::new(
            200,
            &json!({"key": "ada", "name": "ada", "displayName": "Ada Lovelace"}),
        ),
        (_, path) if path.contains("/issue/") => errors(404, "Issue Does Not Exist"),
        _ => Reply::raw(404, "text/html", b"<html>Not here</html>"),
    }
}

fn sprints(asked: &Asked) -> Reply {
    if asked.path != "/rest/agile/1.0/board/7/sprint" {
        return match asked.path.as_str() {
            "/rest/agile/1.0/board/8/sprint" => errors(400, "The board does not support sprints"),
            _ => errors(
                404,
                "The requested board cannot be viewed because it either does not exist or you do not have permission to view it.",
            ),
        };
    }
    let states = asked.parameter("state");
    let mut all = data::sprints();
    all.retain(|sprint| {
        states.is_empty() || states.split(',').any(|state| sprint["state"] == state)
    });
    Reply::new(200, &page(asked, all, 50, false))
}

/// A page that counts, as most of Jira's do.
fn page(asked: &Asked, all: Vec<Value>, max: usize, with_total: bool) -> Value {
    let total = all.len();
    let start = asked.number("startAt", 0);
    let size = asked.number("maxResults", max).min(max);
    let (values, end) = part(all, start, size);
    let mut answer =
        json!({"startAt": start, "maxResults": size, "isLast": end.is_none(), "values": values});
    if with_total {
        answer["total"] = total.into();
    }
    answer
}

fn part(all: Vec<Value>, start: usize, size: usize) -> (Vec<Value>, Option<usize>) {
    let end = start + size;
    let next = (end < all.len()).then_some(end);
    (all.into_iter().skip(start).take(size).collect(), next)
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "authorization" => value.clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let url = Url::parse(&format!("http://double{target}")).ok()?;
    Some(Asked {
        method,
        path: url.path().to_owned(),
        query: url.query_pairs().into_owned().collect(),
        authorization,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
