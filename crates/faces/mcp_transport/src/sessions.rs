//! Sessions of the era of `initialize`: their lifetime, and the limits for each peer.
//!
//! A session lives for a time after the last message of its client, which the operator sets,
//! and for as long as it has a stream open. What the server sends counts for nothing, so the
//! library's own idle timer, which it restarts for every notice, is off. At the limit of
//! sessions the one that is idle for longest ends: of the peer that asks, where it has its
//! share, else of the peer with most. Its client then gets the answer that there is no such
//! session, and begins another.
//!
//! A session belongs to the caller that began it; any other gets the same answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use admission::{Full, Peer, Permit, Resource};

/// Messages of a stream that its client has not read. At more, the stream ends: the
/// library would stop the whole session until there is room.
const MAX_UNREAD_MESSAGES: usize = 64;
/// How long a session may take to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The shortest and the longest interval between two checks for idle sessions.
const SWEEP: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

tokio::task_local! {
    /// The request in work.
    static REQUEST: SessionRequest;
}

/// A request that may begin or name a session.
#[derive(Debug, Default)]
pub struct SessionRequest {
    /// The owner of a session that it begins. None: a caller that does not sign in.
    pub owner: Option<String>,
    /// The permit for a session that it begins.
    pub permit: RefCell<Option<Permit>>,
}

/// Sessions over HTTP.
#[derive(Debug)]
pub struct Sessions {
    inner: LocalSessionManager,
    idle: Duration,
    open: Arc<OpenSessions>,
}

type OpenSessions = Mutex<HashMap<SessionId, OpenSession>>;

#[derive(Debug)]
struct OpenSession {
    owner: Option<String>,
    /// None: sessions are not limited where it began.
    permit: Option<Permit>,
    touch: Instant,
    streams: usize,
}

impl OpenSession {
    fn is_idle(&self) -> bool {
        self.streams == 0
    }
}

fn lock(open: &OpenSessions) -> std::sync::MutexGuard<'_, HashMap<SessionId, OpenSession>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    /// Creates sessions that end when their client sent nothing for `idle`.
    #[must_use]
    pub fn new(idle: Duration) -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = None;
        Self {
            inner,
            idle,
            open: Arc::default(),
        }
    }

    /// Acquires a permit for a session of a peer; where there is none, idle sessions end.
    ///
    /// # Errors
    /// All sessions that could end have streams open.
    pub async fn admit(&self, peer: &Peer) -> Result<Permit, Full> {
        loop {
            let full = match peer.try_take(Resource::Sessions, 1) {
                Ok(permit) => return Ok(permit),
                Err(full) => full,
            };
            let Some(idlest) = self.idlest(peer, full) else {
                return Err(full);
            };
            tracing::info!("an idle MCP session ends, since there is a new one");
            self.end(&idlest).await;
        }
    }

    /// Handles a request. A session that it begins has its permit from the start: its client may
    /// be gone before the answer is ready.
    pub fn handle<F: Future>(
        request: SessionRequest,
        handling: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        REQUEST.scope(request, handling)
    }

    /// Returns whether a session is there, for the caller of the request in work.
    pub async fn is_there(&self, id: &str) -> bool {
        self.has_session(&id.into()).await.unwrap_or(false)
    }

    /// Returns whether the request in work may name this session.
    fn is_own(&self, id: &SessionId) -> bool {
        let owner = REQUEST.try_with(|request| request.owner.clone());
        let open = lock(&self.open);
        open.get(id)
            // One that is not open here is left to the library, which answers that there is none.
            .is_none_or(|session| session.owner == owner.ok().flatten())
    }

    /// Ends idle sessions until `stop`.
    pub async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        let pause = (self.idle / 10).clamp(SWEEP.0, SWEEP.1);
        while stop
            .run_until_cancelled(tokio::time::sleep(pause))
            .await
            .is_some()
        {
            self.end_idle().await;
        }
    }

    /// Returns whether its client sent nothing for too long.
    fn is_over(&self, session: &OpenSession) -> bool {
        session.is_idle() && session.touch.elapsed() >= self.idle
    }

    async fn end_idle(&self) {
        let idle: Vec<_> = {
            let open = lock(&self.open);
            let idle = open.iter().filter(|(_, session)| self.is_over(session));
            idle.map(|(id, _)| SessionId::clone(id)).collect()
        };
        for id in idle {
            // Checked again: ending those before it took time, and its client may be back.
            let session = lock(&self.open)
                .get(&id)
                .map(|session| self.is_over(session));
            if session == Some(true) {
                self.end(&id).await;
            }
        }
    }

    /// Returns the session to end for one more of a peer.
    fn idlest(&self, peer: &Peer, full: Full) -> Option<SessionId> {
        let open = lock(&self.open);
        let held = || {
            open.iter()
                .filter_map(|(id, session)| Some((id, session, session.permit.as_ref()?.peer())))
        };
        let of = |peer: &Peer| {
            held()
                .filter(|(_, session, owner)| session.is_idle() && owner.is(peer))
                .min_by_key(|(_, session, _)| session.touch)
                .map(|(id, _, _)| SessionId::clone(id))
        };
        if full == Full::Share {
            return of(peer);
        }
        let mut peers: Vec<(&Peer, usize)> = Vec::new();
        for (_, _, owner) in held() {
            match peers.iter_mut().find(|(peer, _)| peer.is(owner)) {
                Some((_, sessions)) => *sessions += 1,
                None => peers.push((owner, 1)),
            }
        }
        // Of the peer with most: otherwise one with thousands of sessions would push out all
        // others.
        peers.sort_by_key(|(_, sessions)| std::cmp::Reverse(*sessions));
        peers.into_iter().find_map(|(peer, _)| of(peer))
    }

    async fn end(&self, id: &SessionId) {
        // Removed first, which frees the permit, even if the library cannot end its worker.
        lock(&self.open).remove(id);
        let closing = self.inner.close_session(id);
        match tokio::time::timeout(CLOSE_TIMEOUT, closing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a session did not end as it should"),
            Err(_late) => tracing::debug!("a session takes long to end"),
        }
    }

    /// Notes that the client of a session sent something.
    fn touch(&self, id: &SessionId) {
        if let Some(session) = lock(&self.open).get_mut(id) {
            session.touch = Instant::now();
        }
    }

    /// Wraps a stream to a client, read as fast as the session writes it.
    fn stream(
        &self,
        id: &SessionId,
        messages: impl Stream<Item = ServerSseMessage> + Send + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let (send, unread) = mpsc::channel(MAX_UNREAD_MESSAGES);
        tokio::spawn(async move {
            let mut messages = pin!(messages);
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    // The client left: dropping `messages` ends the stream for the session, too.
                    () = send.closed() => return,
                };
                match message.map(|message| send.try_send(message)) {
                    Some(Ok(())) => {}
                    Some(Err(_)) => {
                        tracing::debug!("a client does not read a stream of MCP: it ends");
                        return;
                    }
                    None => return,
                }
            }
        });
        // Counted until the client drops the stream: a session with an open stream never idles.
        let streaming = Streaming::begin(&self.open, id);
        futures_util::stream::unfold((unread, streaming), async |(mut unread, streaming)| {
            let message = unread.recv().await?;
            Some((message, (unread, streaming)))
        })
    }
}

/// A stream of a session that is open.
struct Streaming {
    open: Arc<OpenSessions>,
    id: SessionId,
}

impl Streaming {
    fn begin(open: &Arc<OpenSessions>, id: &SessionId) -> Self {
        if let Some(session) = lock(open).get_mut(id) {
            session.streams += 1;
        }
        Self {
            open: Arc::clone(open),
            id: SessionId::clone(id),
        }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        if let Some(session) = lock(&self.open).get_mut(&self.id) {
            session.streams = session.streams.saturating_sub(1);
            session.touch = Instant::now();
        }
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        let begun = |request: &SessionRequest| (request.owner.clone(), request.permit.take());
        let (owner, permit) = REQUEST.try_with(begun).unwrap_or_default();
        let session = OpenSession {
            owner,
            permit,
            touch: Instant::now(),
            streams: 0,
        };
        lock(&self.open).insert(SessionId::clone(&id), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    /// Asked for with every message of a client.
    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        if !self.is_own(id) {
            return Ok(false);
        }
        self.touch(id);
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if !self.is_own(id) {
            return Ok(());
        }
        lock(&self.open).remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let messages = self.inner.create_stream(id, message).await?;
        Ok(self.stream(id, messages))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let messages = self.inner.create_standalone_stream(id).await?;
        Ok(self.stream(id, messages))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let messages = self.inner.resume(id, last_event_id).await?;
        Ok(self.stream(id, messages))
    }
}

#[cfg(test)]
mod tests;
