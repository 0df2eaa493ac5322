//! An issuer on this machine, which answers what a test says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// An answer.
#[derive(Clone)]
pub(in crate::tests) enum Reply {
    Text(String),
    Status(u16),
    Redirect(String),
    /// Nothing, ever.
    Silent,
    /// More than anybody can want.
    Endless,
}

#[derive(Default)]
struct State {
    replies: HashMap<String, Reply>,
    asked: Vec<String>,
    sent: usize,
}

/// The issuer.
pub(in crate::tests) struct Double {
    pub(in crate::tests) url: String,
    state: Arc<Mutex<State>>,
}

pub(in crate::tests) const METADATA: &str = "/.well-known/openid-configuration";

impl Double {
    pub(in crate::tests) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State::default()));
        let double = Self {
            url: url.clone(),
            state: Arc::clone(&state),
        };
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        double.answer(METADATA, Reply::Text(metadata.to_string()));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&state)));
            }
        });
        double
    }

    pub(in crate::tests) fn answer(&self, path: &str, reply: Reply) {
        let mut state = self.state.lock().expect("a state");
        state.replies.insert(path.to_owned(), reply);
    }

    /// What it was asked for so far.
    pub(in crate::tests) fn asked(&self) -> Vec<String> {
        self.state.lock().expect("a state").asked.clone()
    }

    /// Bytes of bodies that it got rid of.
    pub(in crate::tests) fn sent(&self) -> usize {
        self.state.lock().expect("a state").sent
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte).await {
            Ok(1) => read.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&read).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let reply = {
        let mut state = state.lock().expect("a state");
        state.asked.push(path.clone());
        state.replies.get(&path).cloned()
    };
    let whole = |status: u16, more: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\n{more}content-length: {length}\r\n\r\n{body}"
        )
    };
    let text = match reply.unwrap_or(Reply::Status(404)) {
        Reply::Text(body) => whole(200, "", &body),
        Reply::Status(status) => whole(status, "", "no"),
        Reply::Redirect(to) => whole(302, &format!("location: {to}\r\n"), ""),
        Reply::Silent => {
            std::future::pending::<()>().await;
            return;
        }
        Reply::Endless => {
            let head = "HTTP/1.1 200 X\r\ncontent-length: 1073741824\r\n\r\n";
            let mut piece = head.as_bytes().to_vec();
            while stream.write_all(&piece).await.is_ok() {
                piece = vec![b' '; 64 * 1024];
                state.lock().expect("a state").sent += piece.len();
            }
            return;
        }
    };
    // Whoever asked may have left.
    stream.write_all(text.as_bytes()).await.ok();
}
