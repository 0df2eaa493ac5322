//! Watching: what happens to skills as a stream of answers, and where it ends.

use std::time::Duration;

use futures_util::future::Either;
use futures_util::{Stream, StreamExt as _, future, stream};
use tonic::Status;

use super::{convert, number, status};
use crate::contract::v1;
use crate::model::{Event, SkillId, SkillIdError};
use crate::registry::{Registry, Watch, WatchFilter};

/// The answers to a request: the token to start from, then the events.
pub(super) fn answers(
    registry: &Registry,
    request: v1::WatchRequest,
) -> Result<impl Stream<Item = Result<v1::WatchResponse, Status>> + Send + use<>, Status> {
    let v1::WatchRequest {
        resume_token,
        skill_ids,
        types,
        max_events,
        max_wait_seconds,
    } = request;
    let mut filter = WatchFilter::default();
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
    let watch = registry.watch(&resume_token, filter).map_err(status)?;
    let most = match usize::try_from(max_events) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(most) => most,
    };
    let end = match max_wait_seconds.unsigned_abs() {
        0 => Either::Left(future::pending()),
        seconds => Either::Right(tokio::time::sleep(Duration::from_secs(seconds.into()))),
    };
    Ok(until(watch, most, end))
}

/// The answers of a watcher, with so many events at most, up to an end.
///
/// The end is looked at before each event, so that a watcher with much to catch
/// up with ends in time too. An event that was not handed out is not lost: the
/// tokens say what was.
pub(super) fn until(
    watch: Watch,
    most: usize,
    end: impl Future<Output = ()> + Send,
) -> impl Stream<Item = Result<v1::WatchResponse, Status>> + Send {
    let first = v1::WatchResponse {
        event: None,
        resume_token: watch.resume_token(),
    };
    let events = stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        Some(match watch.next().await {
            Ok((sequence, event)) => (Ok(answer(&watch, sequence, event)), Some(watch)),
            Err(error) => (Err(status(error)), None),
        })
    });
    stream::once(future::ready(Ok(first))).chain(events.take(most).take_until(end))
}

fn answer(watch: &Watch, sequence: u64, event: Event) -> v1::WatchResponse {
    let Event {
        kind,
        skill_id,
        version,
        semantic_version,
        digest,
        active,
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
        }),
        resume_token: watch.resume_token(),
    }
}
