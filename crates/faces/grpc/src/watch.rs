//! Watching: what happens to skills as a stream of answers, and where it ends.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, future, stream};
use tonic::Status;

use super::viewer::LocalEvents;
use super::{convert, number};
use contract::{status, v1};
use local::Changes;
use model::{Event, Failure, SkillId, SkillIdError};
use registry::{Registry, Sees, Step, Watch, WatchFilter};

/// How often a watcher whose place moved without an event is told its new place.
const POSITION_INTERVAL: Duration = Duration::from_secs(10);

/// The answers to a request: the token to start from, then the events, those of the caller's
/// own folders among them.
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
        let id: SkillId = id.parse().map_err(|error: SkillIdError| {
            super::wrong(&format!("skill_ids[{at}]"), error.to_string())
        })?;
        filter = filter.skill(&id);
    }
    filter.kinds = types
        .into_iter()
        .filter_map(|kind| convert::event_kind(v1::EventType::try_from(kind).unwrap_or_default()))
        .collect();
    let local = LocalEvents::new(changes, filter.clone());
    let watch = registry.watch(&resume_token, filter)?;
    let max = match usize::try_from(max_events) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(max) => max,
    };
    let end = super::waited(max_wait_seconds);
    Ok(until(
        (watch, local),
        max,
        Box::pin(every(POSITION_INTERVAL)),
        end,
    ))
}

/// A tick every so often, the first after that time.
fn every(period: Duration) -> impl Stream<Item = ()> + Send {
    stream::unfold((), move |()| async move {
        tokio::time::sleep(period).await;
        Some(((), ()))
    })
}

/// The answers of a watcher, with so many events at most, up to an end.
///
/// The end is looked at before each answer, so that a watcher with much to catch up
/// with ends in time too. An event that was not handed out is not lost: the tokens say
/// what was. A watcher whose filter passes over everything is told its new place at each
/// tick, and after many events: a token that it keeps must not fall out of the log while
/// it is connected.
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
    stream::once(future::ready(Ok(first))).chain(answers.take_until(end))
}

struct Watching<T> {
    watch: Watch,
    local: LocalEvents,
    ticks: T,
    /// Events that may still be handed out.
    left: usize,
    /// Place of the last token that was handed out.
    known: u64,
}

impl<T: Stream<Item = ()> + Unpin> Watching<T> {
    async fn next(&mut self) -> Result<v1::WatchResponse, registry::Error> {
        loop {
            let step = tokio::select! {
                biased;
                step = self.watch.step() => step?,
                // They are in no log: whoever comes back looks at what is there.
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

/// Where a watcher is, without an event.
fn moved(watch: &Watch) -> v1::WatchResponse {
    v1::WatchResponse {
        event: None,
        resume_token: watch.resume_token(),
    }
}

fn answer(watch: &Watch, sequence: u64, event: Event) -> v1::WatchResponse {
    let Event {
        kind,
        skill_id,
        version,
        semantic_version,
        digest,
        active,
        held,
        time,
        actor,
    } = event;
    v1::WatchResponse {
        event: Some(v1::Event {
            sequence,
            r#type: convert::event_type(kind).into(),
            skill_id: skill_id.to_string(),
            version_number: number(version),
            semantic_version: semantic_version.map(|v| v.to_string()).unwrap_or_default(),
            digest: digest.map(|digest| digest.to_string()).unwrap_or_default(),
            active_version: number(active),
            time: Some(convert::time(time)),
            actor: actor.to_string(),
            held,
        }),
        resume_token: watch.resume_token(),
    }
}
