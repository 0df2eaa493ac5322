//! What a client is told that speaks HTTP without TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SENTENCE: &str = "This port speaks TLS: write https:// in the address of the server.";
/// How the first bytes of HTTP/2 begin.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// What is read of a client that goes on after its answer, and for how long.
const MAX_REST: u64 = 64 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Answers in the version of HTTP that the client speaks, if it speaks any.
pub(crate) async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut first = [0; 64];
    let read = stream.read(&mut first).await?;
    let first = first.get(..read).unwrap_or_default();
    if first.starts_with(PREFACE) {
        stream.write_all(&http2()).await?;
    } else if first.first().is_some_and(u8::is_ascii_uppercase) {
        stream.write_all(http1().as_bytes()).await?;
    } else {
        return Ok(());
    }
    drain(stream).await
}

/// Closes a connection after its last answer: a socket that is closed with bytes unread takes
/// its answer back.
pub(crate) async fn drain(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = tokio::io::sink();
    let mut unread = stream.take(MAX_REST);
    let unread = tokio::io::copy(&mut unread, &mut rest);
    // Whether it goes on or not, the connection is over.
    let _ended = tokio::time::timeout(DRAIN_TIMEOUT, unread).await;
    Ok(())
}

fn http1() -> String {
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{SENTENCE}\n",
        SENTENCE.len() + 1
    )
}

/// The settings of a server, none of them, and the end of the connection for want of TLS
/// (RFC 9113, 6.5, 6.8 and 7: `INADEQUATE_SECURITY`).
fn http2() -> Vec<u8> {
    let mut frames = vec![0, 0, 0, 0x4, 0, 0, 0, 0, 0];
    let length = u32::try_from(8 + SENTENCE.len()).unwrap_or_default();
    frames.extend_from_slice(length.to_be_bytes().get(1..).unwrap_or_default());
    frames.extend_from_slice(&[0x7, 0, 0, 0, 0, 0]);
    frames.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0xc]);
    frames.extend_from_slice(SENTENCE.as_bytes());
    frames
}
