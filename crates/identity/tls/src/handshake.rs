//! Handshakes: within a time limit, and with an answer for clients that speak no TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::server::Tls;
use crate::{ClientCertificate, cleartext};

/// The first byte of a handshake (RFC 8446, 5.1).
const HANDSHAKE_TAG: u8 = 0x16;

/// A connection with TLS.
#[derive(Debug)]
pub struct Secured {
    /// Its bytes.
    pub stream: TlsStream<TcpStream>,
    /// The certificate that its client has presented, if any.
    pub client: Option<ClientCertificate>,
}

/// Why a connection got no TLS.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// It took too long.
    #[error("the handshake timed out")]
    Slow,
    /// The client speaks something else, and got an answer.
    #[error("the client does not speak TLS")]
    Cleartext,
    /// The client's certificate has ended since its session began, or cannot be read.
    #[error("the certificate of the client is not accepted")]
    Certificate,
    /// The two do not agree.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

impl Tls {
    /// Makes the handshake of a connection, within a time limit.
    ///
    /// # Errors
    /// The client speaks no TLS, is too slow, or presents a certificate that is not accepted.
    pub async fn accept(
        &self,
        stream: TcpStream,
        limit: Duration,
    ) -> Result<Secured, HandshakeError> {
        let accepted = tokio::time::timeout(limit, self.handshake(stream)).await;
        let accepted = accepted.unwrap_or(Err(HandshakeError::Slow));
        if accepted.is_err() {
            self.0.count_failed();
        }
        accepted
    }

    async fn handshake(&self, stream: TcpStream) -> Result<Secured, HandshakeError> {
        let mut first = [0];
        // Without taking the byte, which the handshake needs.
        if stream.peek(&mut first).await? == 1 && first != [HANDSHAKE_TAG] {
            cleartext::answer(stream).await?;
            return Err(HandshakeError::Cleartext);
        }
        // Before the configuration is chosen: a change of the authorities in between is then seen,
        // and the certificate verified again.
        let authorities = self.0.authorities();
        let config = Arc::clone(&self.0.loaded().config);
        let accepting = TlsAcceptor::from(config).accept(stream).into_fallible();
        let stream = match accepting.await {
            Ok(stream) => stream,
            Err((error, stream)) => {
                // So that the alert with the reason arrives. An error: the client is gone.
                let _gone = cleartext::drain(stream).await;
                return Err(error.into());
            }
        };
        let (_, session) = stream.get_ref();
        let client = match session.peer_certificates() {
            None => None,
            Some(chain) => Some(
                ClientCertificate::new(chain, Arc::clone(&self.0), authorities)
                    .ok_or(HandshakeError::Certificate)?,
            ),
        };
        Ok(Secured { stream, client })
    }
}
