//! The answer to a client that speaks HTTP without TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SENTENCE: &str = "This port speaks TLS: write https:// in the address of the server.";
/// How the first bytes of HTTP/2 begin.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// How much is read of a client that keeps sending after its answer, and for how long.
const MAX_REST: u64 = 64 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Answers in the client's version of HTTP. Anything else is closed without an answer.
pub(crate) async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut first = [0; 64];
    let read = stream.read(&mut first).await?;
    let first = first.get(..read).unwrap_or_default();
    if first.starts_with(PREFACE) {
        stream.write_all(&http2()).await?;
    // The methods of HTTP are in capitals. No answer to other protocols: a scanner need not learn
    // what listens here.
    } else if first.first().is_some_and(u8::is_ascii_uppercase) {
        stream.write_all(http1().as_bytes()).await?;
    } else {
        return Ok(());
    }
    drain(stream).await
}

/// Closes a connection after its last answer. Closing a socket with unread bytes sends a reset,
/// and the client may then lose the answer.
pub(crate) async fn drain(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = tokio::io::sink();
    let mut unread = stream.take(MAX_REST);
    let unread = tokio::io::copy(&mut unread, &mut rest);
    // At the timeout the connection is closed as well: a client must not hold it by sending on.
    let _ended = tokio::time::timeout(DRAIN_TIMEOUT, unread).await;
    Ok(())
}

fn http1() -> String {
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{SENTENCE}\n",
        SENTENCE.len() + 1
    )
}

/// An empty SETTINGS frame, then GOAWAY with `INADEQUATE_SECURITY`
/// (RFC 9113, 6.5, 6.8 and 7).
fn http2() -> Vec<u8> {
    // Each frame: three bytes of length, type, flags, four bytes of stream. A server's first frame
    // has to be SETTINGS, or clients report a broken protocol instead of the reason.
    let mut frames = vec![0, 0, 0, 0x4, 0, 0, 0, 0, 0];
    let length = u32::try_from(8 + SENTENCE.len()).unwrap_or_default();
    frames.extend_from_slice(length.to_be_bytes().get(1..).unwrap_or_default());
    frames.extend_from_slice(&[0x7, 0, 0, 0, 0, 0]);
    frames.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0xc]);
    frames.extend_from_slice(SENTENCE.as_bytes());
    frames
}
