//! The rpc that watches skills: events as a stream of answers, and its end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, future, stream};
use tonic::Status;

use super::viewer::LocalEvents;
use super::{convert, number, page_size, waited, wrong};
use contract::{status, v1};
use local::Changes;
use model::{Event, Failure, SkillId, SkillIdError};
use registry::{Registry, Sees, Step, Watch, WatchFilter};

/// How often a watcher gets its new position where it moved without an event.
const POSITION_INTERVAL: Duration = Duration::from_secs(10);

/// Streams the answers to a request: the token to start from, then events, those of the caller's
/// own folders included.
pub(super) fn answers(
    registry: &Registry,
    changes: Option<Changes>,
    sees: Option<Arc<dyn Sees>>,
    request: v1::WatchRequest,
) -> Result<impl Stream<Item = Result<v1::WatchResponse, Status>> + Send + use<>, Failure> {
    let v1::WatchRequest {
        resume_token,
        skill_ids,
        types,
        max_events,
        max_wait_seconds,
    } = request;
    let mut filter = WatchFilter {
        sees,
        ..WatchFilter::default()
    };
    for (at, id) in skill_ids.iter().enumerate() {
        let id: SkillId = id
            .parse()
            .map_err(|error: SkillIdError| wrong(&format!("skill_ids[{at}]"), error))?;
        filter = filter.skill(&id);
    }
    filter.kinds = types
        .into_iter()
        .filter_map(|kind| convert::event_kind(v1::EventType::try_from(kind).unwrap_or_default()))
        .collect();
    let local = LocalEvents::new(changes, filter.clone());
    let watch = registry.watch(&resume_token, filter)?;
    let ticks = Box::pin(every(POSITION_INTERVAL));
    let max = page_size(max_events, usize::MAX);
    Ok(until((watch, local), max, ticks, waited(max_wait_seconds)))
}

/// Ticks once each period, the first time after one period.
fn every(period: Duration) -> impl Stream<Item = ()> + Send {
    // Not `interval`: after a slow reader it would fire the ticks that it missed in a burst.
    stream::unfold((), move |()| async move {
        tokio::time::sleep(period).await;
        Some(((), ()))
    })
}

/// Streams the answers of a watcher, `max` events at most, until `end`.
///
/// The end is checked before each answer, so that a watcher with much to catch up with ends in
/// time too. An event that was not sent is not lost: the tokens tell what was. A watcher whose
/// filter passes over everything gets its new position at each tick, and after many events: the
/// token that it holds must not fall out of the log while it is connected.
pub(super) fn until(
    (watch, local): (Watch, LocalEvents),
    max: usize,
    ticks: impl Stream<Item = ()> + Send + Unpin,
    end: impl Future<Output = ()> + Send,
) -> impl Stream<Item = Result<v1::WatchResponse, Status>> + Send {
    let first = moved(&watch);
    let watching = Watching {
        known: watch.at(),
        left: max,
        ticks,
        watch,
        local,
    };
    let answers = stream::unfold(Some(watching), |watching| async move {
        let mut watching = watching?;
        if watching.left == 0 {
            return None;
        }
        Some(match watching.next().await {
            Ok(answer) => (Ok(answer), Some(watching)),
            Err(error) => (Err(status(error)), None),
        })
    });
    // The first token is sent whatever `end` says: without it the client could not come back.
    stream::once(future::ready(Ok(first))).chain(answers.take_until(end))
}

struct Watching<T> {
    watch: Watch,
    local: LocalEvents,
    ticks: T,
    /// Events that may still be sent.
    left: usize,
    /// Position of the last token that was sent.
    known: u64,
}

impl<T: Stream<Item = ()> + Unpin> Watching<T> {
    async fn next(&mut self) -> Result<v1::WatchResponse, registry::Error> {
        loop {
            let step = tokio::select! {
                // Ticks are last: a position is news only where no event brings one.
                biased;
                step = self.watch.step() => step?,
                // Events of folders are in no log, so they bear the position of the last logged
                // one; a client that comes back reads what is in the folders then.
                Some(event) = self.local.next() => Step::Event(self.watch.at(), event),
                Some(()) = self.ticks.next() => Step::Moved,
            };
            let answer = match step {
                Step::Event(sequence, event) => {
                    self.left -= 1;
                    answer(&self.watch, sequence, event)
                }
                Step::Moved if self.watch.at() == self.known => continue,
                Step::Moved => moved(&self.watch),
            };
            self.known = self.watch.at();
            return Ok(answer);
        }
    }
}

/// Builds the answer with a position and no event.
fn moved(watch: &Watch) -> v1::WatchResponse {
    v1::WatchResponse {
        event: None,
        resume_token: watch.resume_token(),
    }
}

fn answer(watch: &Watch, sequence: u64, event: Event) -> v1::WatchResponse {
    v1::WatchResponse {
        event: Some(v1::Event {
            sequence,
            r#type: convert::event_type(event.kind).into(),
            skill_id: event.skill_id.to_string(),
            version_number: number(event.version),
            semantic_version: event
                .semantic_version
                .map(|v| v.to_string())
                .unwrap_or_default(),
            digest: event
                .digest
                .map(|digest| digest.to_string())
                .unwrap_or_default(),
            active_version: number(event.active),
            time: Some(convert::time(event.time)),
            actor: event.actor.to_string(),
            held: event.held,
        }),
        resume_token: watch.resume_token(),
    }
}
