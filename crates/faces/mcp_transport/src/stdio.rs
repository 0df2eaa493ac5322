//! MCP over stdin and stdout: one client, until it closes stdin.
//!
//! A line is a message. One that is too long, no JSON, or no message is answered
//! with an error, where the transport of the library would log it and leave the
//! client waiting.

use std::io;
use std::sync::Arc;

use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ServerHandler, ServiceExt as _};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::strict;
use gateway::MAX_JSON_BYTES;

/// Messages that were read and wait to be handled.
const MESSAGE_QUEUE_CAPACITY: usize = 16;

/// The client did not speak MCP, or the talk broke off.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// Its first message was no request.
    #[error(
        "the client's first message was neither `initialize` nor a request of the newest protocol"
    )]
    First,
    /// It never began.
    #[error("the client did not start the MCP handshake: {0}")]
    Begin(Box<rmcp::service::ServerInitializeError>),
    /// The task that served it is gone.
    #[error("serving stdin and stdout: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Serves one client until it closes stdin, or until `stop`.
///
/// # Errors
/// The client did not speak MCP.
pub async fn serve_stdio(
    handler: impl ServerHandler,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    use rmcp::service::ServerInitializeError::{
        Cancelled, ConnectionClosed, ExpectedInitializeRequest,
    };
    let lines = LineTransport::new(BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let running = match handler.serve_with_ct(lines, stop).await {
        Ok(running) => running,
        Err(ConnectionClosed(_) | Cancelled) => return Ok(()),
        Err(ExpectedInitializeRequest(_)) => return Err(StdioError::First),
        Err(error) => return Err(StdioError::Begin(Box::new(error))),
    };
    running.waiting().await?;
    Ok(())
}

/// Messages as lines.
struct LineTransport<W> {
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    output: Arc<Mutex<W>>,
}

impl<W: AsyncWrite + Unpin + Send + 'static> LineTransport<W> {
    fn new(input: impl AsyncBufRead + Unpin + Send + 'static, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        let (send, messages) = mpsc::channel(MESSAGE_QUEUE_CAPACITY);
        // A task of its own: `receive` may be cancelled in the middle of a line, which would
        // lose its beginning.
        tokio::spawn(read(input, Arc::clone(&output), send));
        Self { messages, output }
    }
}

async fn write(output: &Mutex<impl AsyncWrite + Unpin>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

/// Passes on each line that is a message, and answers each that is none with an error.
async fn read(
    mut input: impl AsyncBufRead + Unpin,
    output: Arc<Mutex<impl AsyncWrite + Unpin>>,
    messages: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let whole = match next_line(&mut input, &mut line).await {
            Ok(Some(whole)) => whole,
            Ok(None) => return,
            Err(error) => {
                tracing::error!(%error, "stdin cannot be read");
                return;
            }
        };
        if line.trim_ascii().is_empty() && whole {
            continue;
        }
        let read = if whole {
            strict::message(&line)
        } else {
            Err(strict::too_long(MAX_JSON_BYTES))
        };
        let done = match read {
            Ok(message) => messages.send(message).await.is_ok(),
            Err(answer) => write(&output, answer).await.is_ok(),
        };
        if !done {
            return;
        }
    }
}

/// Reads a line. `Some(false)`: it was longer than a message may be, and is gone.
async fn next_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<Option<bool>> {
    let mut whole = true;
    loop {
        let read = input.fill_buf().await?;
        if read.is_empty() {
            // The client closed stdin. A line without an end was cut off, so it is dropped.
            return Ok(None);
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = read.get(..end.unwrap_or(read.len())).unwrap_or(read);
        if line.len() + part.len() > MAX_JSON_BYTES {
            // The rest of the line is still read, so that the next one begins where it should.
            whole = false;
            line.clear();
        }
        if whole {
            line.extend_from_slice(part);
        }
        let used = end.map_or(part.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(whole));
        }
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> Transport<RoleServer> for LineTransport<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(&output, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.messages.close();
        self.output.lock().await.flush().await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use tokio::io::{AsyncRead, BufWriter, ReadBuf};

    use super::*;

    /// Bytes that may be asked for a number of times: more often than that nothing of them is
    /// used up.
    struct Input<'a> {
        rest: &'a [u8],
        asked: usize,
    }

    impl AsyncRead for Input<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.rest).poll_read(cx, buffer)
        }
    }

    impl AsyncBufRead for Input<'_> {
        fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            let this = self.get_mut();
            this.asked += 1;
            assert!(this.asked < 100, "the same bytes are read again and again");
            Poll::Ready(Ok(this.rest))
        }

        fn consume(self: Pin<&mut Self>, used: usize) {
            let this = self.get_mut();
            this.rest = &this.rest[used..];
        }
    }

    fn input(rest: &[u8]) -> Input<'_> {
        Input { rest, asked: 0 }
    }

    /// What `read` hands on, and what it answers.
    async fn through(bytes: &[u8]) -> (Vec<String>, String) {
        let (send, mut messages) = mpsc::channel(100);
        let output = Arc::new(Mutex::new(Vec::new()));
        read(input(bytes), Arc::clone(&output), send).await;
        let mut handed = Vec::new();
        while let Some(message) = messages.recv().await {
            handed.push(serde_json::to_string(&message).expect("JSON"));
        }
        let output = output.lock().await.clone();
        (handed, String::from_utf8(output).expect("text"))
    }

    #[tokio::test]
    async fn a_line_is_a_message_or_is_answered_with_what_is_wrong() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let (handed, answered) = through(format!("{ping}\r\n\n{ping}\n{{\"cut").as_bytes()).await;
        assert_eq!(handed.len(), 2);
        assert_eq!(answered, "");
        for (line, id, code, word) in [
            ("garbage", "null", -32700, "no JSON"),
            (
                r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#,
                "null",
                -32700,
                "'id'",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1,"a":2}}"#,
                "7",
                -32700,
                "'a'",
            ),
            (r#"{"jsonrpc":"2.0","id":7}"#, "7", -32600, "JSON-RPC"),
            ("[1]", "null", -32600, "JSON-RPC"),
        ] {
            let (handed, answered) = through(format!("{line}\n").as_bytes()).await;
            assert_eq!(handed, Vec::<String>::new(), "{line}");
            assert!(answered.contains(&format!("\"id\":{id}")), "{answered}");
            assert!(answered.contains(&format!("\"code\":{code}")), "{answered}");
            assert!(answered.contains(word), "{answered}");
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
        let mut input = vec![b'x'; MAX_JSON_BYTES + 1];
        input.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        let (handed, answered) = through(&input).await;
        assert_eq!(handed.len(), 1);
        assert!(answered.contains("25165824 bytes at most"), "{answered}");
    }

    #[tokio::test]
    async fn a_line_as_long_as_a_message_may_be_is_read() {
        let mut input = vec![b'x'; MAX_JSON_BYTES];
        input.push(b'\n');
        let (handed, answered) = through(&input).await;
        assert_eq!(handed, Vec::<String>::new());
        assert!(answered.contains("no JSON"), "{answered}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_a_line_and_leaves_at_once() {
        let (client, server) = tokio::io::duplex(1024);
        let output = Arc::new(Mutex::new(BufWriter::new(server)));
        let (send, _messages) = mpsc::channel(1);
        read(input(b"garbage\n"), Arc::clone(&output), send).await;
        let mut lines = BufReader::new(client).lines();
        let line = tokio::time::timeout(Duration::from_secs(1), lines.next_line()).await;
        let line = line
            .expect("a whole line")
            .expect("text")
            .expect("an answer");
        assert!(line.contains("no JSON"), "{line}");
    }
}
