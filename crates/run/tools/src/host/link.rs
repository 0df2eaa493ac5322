//! A worker's connection: from its first message to the end of its stream.
//!
//! A worker's messages are read by a task of its own, so that a worker which does not read
//! is noticed too; messages to it are made when its stream asks for them, so that nothing
//! piles up for a worker which is slow.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, future, stream};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tracing::Instrument as _;

use super::broker::{Next, WorkerNo};
use super::identity::WorkerIdentity;
use super::{FromWorker, Hello, Host, Invocation, ToWorker, Welcome};
use crate::{Output, ToolError};
use caller_tokens::SignedCall;
use model::{Code, Failure, Principal, SkillPattern, ToolName, printable};

/// Time that a worker may take to send `hello`.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Heartbeats that a worker may miss.
const MAX_MISSED_HEARTBEATS: u32 = 3;
/// Calls that a worker may take at once, whatever it says.
const MAX_CONCURRENCY: u32 = 1024;

/// Messages to a worker, up to the end of its stream.
pub type Outgoing = Pin<Box<dyn Stream<Item = Result<ToWorker, Failure>> + Send>>;

impl Host {
    /// Lets a worker in: reads its first message, which must be `hello`. Dropping
    /// the stream takes the worker for gone.
    ///
    /// # Errors
    /// The token is not one of the operator's, the worker may not serve what it
    /// names, its first message is another or does not come, or there are as many
    /// workers as may be.
    pub async fn attach<S>(&self, token: Option<&str>, messages: S) -> Result<Outgoing, Failure>
    where
        S: Stream<Item = Result<FromWorker, Failure>> + Send + 'static,
    {
        let identity = self.0.workers.admit(token).inspect_err(|_| {
            tracing::warn!("a worker without a token of `tools.workers` was refused");
        })?;
        self.enroll(&identity, messages).await
    }

    /// The same for a caller that signed in, and may serve these skills; empty: all.
    ///
    /// # Errors
    /// As [`Host::attach`], but for the token.
    pub async fn attach_caller<S>(
        &self,
        caller: &Principal,
        skills: Vec<SkillPattern>,
        messages: S,
    ) -> Result<Outgoing, Failure>
    where
        S: Stream<Item = Result<FromWorker, Failure>> + Send + 'static,
    {
        let identity = WorkerIdentity::signed_in(caller, skills);
        self.enroll(&identity, messages).await
    }

    async fn enroll<S>(&self, identity: &WorkerIdentity, messages: S) -> Result<Outgoing, Failure>
    where
        S: Stream<Item = Result<FromWorker, Failure>> + Send + 'static,
    {
        let mut messages = Box::pin(messages);
        let hello = match tokio::time::timeout(HELLO_TIMEOUT, messages.next()).await {
            Ok(Some(Ok(FromWorker::Hello(hello)))) => hello,
            Ok(Some(Ok(_other))) => return Err(order("The first message must be `hello`")),
            Ok(Some(Err(unreadable))) => return Err(unreadable),
            Ok(None) => return Err(order("The stream ended before `hello`")),
            Err(_late) => {
                return Err(Failure::new(
                    Code::Timeout,
                    format!("No `hello` came within {} seconds", HELLO_TIMEOUT.as_secs()),
                )
                .suggest("Send `hello` as the first message, immediately"));
            }
        };
        identity.check(&hello).inspect_err(|failure| {
            tracing::warn!(worker = identity.name, "{failure}");
        })?;
        let Hello {
            name,
            skills,
            concurrency,
        } = hello;
        let concurrency = concurrency.clamp(1, MAX_CONCURRENCY);
        let methods = skills.into_iter().flat_map(|served| {
            let skill = served.skill;
            let of = move |method| (skill.clone(), method);
            served.methods.into_iter().map(of)
        });
        let slots = usize::try_from(concurrency).unwrap_or(1);
        let (no, notify) = self.broker().enroll(slots, methods, Instant::now())?;
        let heartbeat = self.0.heartbeat;
        let welcome = Welcome {
            worker: format!("{}-{no}", identity.name),
            heartbeat,
            concurrency,
            max_result_bytes: self.0.max_result_bytes,
            audience: identity.name.clone(),
        };
        let span = tracing::info_span!("worker", id = welcome.worker);
        tracing::info!(parent: &span, name = %printable(&name), concurrency, "a worker is attached");

        let (ending, ended) = oneshot::channel();
        let reader = WorkerReader {
            host: self.clone(),
            no,
        };
        let reader = tokio::spawn(
            async move {
                let end = reader.listen(messages).await;
                // First of all: calls that it has must not wait for its stream.
                reader.host.broker().leave(reader.no);
                match &end {
                    Ok(()) => tracing::info!("a worker left"),
                    Err(failure) => tracing::warn!("a worker was disconnected: {failure}"),
                }
                // The stream may be gone by now.
                let _gone = ending.send(end);
            }
            .instrument(span),
        );
        let mut beat = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
        // After a pause, one heartbeat says as much as a burst.
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let writer = WorkerWriter {
            host: self.clone(),
            no,
            audience: identity.name.clone(),
            notify,
            beat,
            ended: Some(ended),
            reader: reader.abort_handle(),
        };
        let messages = stream::unfold(writer, |mut writer| async move {
            let next = writer.next().await?;
            Some((next, writer))
        });
        let welcome = stream::once(future::ready(Ok(ToWorker::Welcome(welcome))));
        Ok(Box::pin(welcome.chain(messages).fuse()))
    }
}

/// A worker broke the order of messages.
fn order(message: &str) -> Failure {
    Failure::new(Code::InvalidParameter, message)
        .suggest("Send `hello` first and once; docs/tool-workers.md has the order of messages")
}

/// Reads the messages of a worker.
struct WorkerReader {
    host: Host,
    no: WorkerNo,
}

impl WorkerReader {
    /// Reads up to the end; an error is the worker's.
    async fn listen<S>(&self, mut messages: Pin<Box<S>>) -> Result<(), Failure>
    where
        S: Stream<Item = Result<FromWorker, Failure>> + Send,
    {
        let silence = self.host.0.heartbeat.saturating_mul(MAX_MISSED_HEARTBEATS);
        loop {
            match tokio::time::timeout(silence, messages.next()).await {
                Ok(None) => return Ok(()),
                Ok(Some(message)) => {
                    self.receive(message?)?;
                    self.check_reads(silence)?;
                }
                Err(_silent) => {
                    return Err(Failure::new(
                        Code::Timeout,
                        format!(
                            "Nothing was heard of the worker for {} s",
                            silence.as_secs_f64()
                        ),
                    )
                    .suggest("Send `heartbeat` as often as `welcome` says, also while tools run"));
                }
            }
        }
    }

    /// Fails where the worker reads nothing: its stream asks for heartbeats at least. Such a
    /// worker would be given every call, for its slots are free.
    fn check_reads(&self, silence: Duration) -> Result<(), Failure> {
        let asked = self.host.broker().asked(self.no);
        if asked.is_none_or(|asked| asked.elapsed() <= silence) {
            return Ok(());
        }
        let message = format!(
            "The worker has read nothing for {} s",
            silence.as_secs_f64()
        );
        Err(Failure::new(Code::Timeout, message)
            .suggest("Read the stream while tools run, on a thread or task of its own"))
    }

    fn receive(&self, message: FromWorker) -> Result<(), Failure> {
        let no = self.no;
        match message {
            FromWorker::Hello(_) => return Err(order("A second `hello` came")),
            FromWorker::Heartbeat => {}
            FromWorker::Drain => {
                tracing::info!("a worker takes no more calls");
                self.host.broker().drain(no);
            }
            FromWorker::Progress { id, progress } => self.host.broker().progress(no, &id, progress),
            FromWorker::Outcome { id, result } => {
                // Measured before the lock is taken.
                let (result, too_large) = match self.too_large(&result) {
                    Some(error) => (Err(error.clone()), Some(error.message)),
                    None => (result, None),
                };
                let mut broker = self.host.broker();
                broker.outcome(no, &id, result);
                if let Some(message) = too_large {
                    broker.notice(no, &id, message);
                }
            }
            FromWorker::Malformed { id, why } => {
                let error = ToolError::failed(
                    "The worker's answer breaks the rules of the contract; the server sent it a notice",
                );
                let mut broker = self.host.broker();
                broker.outcome(no, &id, Err(error));
                broker.notice(no, &id, why);
            }
            FromWorker::Unknown => {
                let why = "a message without content, or of a later contract, was dropped";
                self.host.broker().notice(no, "", why.to_owned());
            }
        }
        Ok(())
    }

    fn too_large(&self, result: &Result<Output, ToolError>) -> Option<ToolError> {
        let max = self.host.0.max_result_bytes;
        let bytes = size(result.as_ref().ok()?);
        (bytes > max).then(|| {
            ToolError::failed(format!("The result has {bytes} bytes; {max} are allowed"))
                .suggest("Ask for less, such as fewer rows or a part of the text")
        })
    }
}

/// Bytes of a result: its text, and its structure as JSON.
fn size(output: &Output) -> usize {
    struct Count(usize);

    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    // Counting avoids a copy: a result may be as large as a message.
    let mut count = Count(output.text.len());
    if let Some(structured) = &output.structured
        && serde_json::to_writer(&mut count, structured).is_err()
    {
        // It cannot be written, so it cannot be handed on either.
        return usize::MAX;
    }
    count.0
}

/// Makes the messages to a worker.
struct WorkerWriter {
    host: Host,
    no: WorkerNo,
    audience: String,
    notify: Arc<Notify>,
    beat: Interval,
    /// The reader's result; none when the stream has ended.
    ended: Option<oneshot::Receiver<Result<(), Failure>>>,
    reader: AbortHandle,
}

impl WorkerWriter {
    /// A call with its signed caller. Signed outside the lock.
    fn signed(&self, invocation: Box<Invocation>) -> ToWorker {
        let call = SignedCall {
            audience: &self.audience,
            id: &invocation.id,
            skill: invocation.skill.as_str(),
            tool: invocation.tool.as_ref().map_or("", ToolName::as_str),
            timeout: invocation.timeout,
        };
        let caller_token = self.host.0.caller_tokens.sign(&invocation.caller, &call);
        ToWorker::Invocation {
            invocation,
            caller_token,
        }
    }

    async fn next(&mut self) -> Option<Result<ToWorker, Failure>> {
        loop {
            let ended = self.ended.as_mut()?;
            let next = self.host.broker().next(self.no, Instant::now());
            let until = match next {
                Next::Send(message) => return Some(Ok(message)),
                Next::Invoke(invocation) => return Some(Ok(self.signed(invocation))),
                Next::Wait(until) => until,
                Next::Done => {
                    self.ended = None;
                    return None;
                }
                Next::Stopped => {
                    self.ended = None;
                    let failure = Failure::new(Code::ShuttingDown, "The server is about to stop");
                    return Some(Err(failure.suggest("Attach again when it is back")));
                }
                Next::Gone => {
                    // The reader removes the worker a moment before it reports why.
                    let end = ended.await;
                    self.ended = None;
                    return end.ok()?.err().map(Err);
                }
            };
            let pause = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                () = self.notify.notified() => {}
                () = pause => {}
                _ = self.beat.tick() => return Some(Ok(ToWorker::Heartbeat)),
                end = ended => {
                    self.ended = None;
                    return end.ok()?.err().map(Err);
                }
            }
        }
    }
}

impl Drop for WorkerWriter {
    fn drop(&mut self) {
        // It may be waiting for a message that never comes.
        self.reader.abort();
        self.host.broker().leave(self.no);
    }
}
