//! `repertoire.v1.Audit`.

use std::borrow::Cow;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::Extensions;
use jiff::Timestamp;
use tonic::{Request, Response, Status};

use super::convert::time;
use super::{given, page_size, wrong};
use ::audit::{Audit, Entry, EventKind, Filter};
use contract::handlers::{self, Answer, Messages, View};
use contract::{action_from_wire, action_on_wire, status, v1};
use model::Failure;

/// Events of a page.
const DEFAULT_EVENTS: usize = 100;

/// The `Audit` service.
#[derive(Debug, Clone)]
pub struct AuditService(pub Audit);

fn kind_on_wire(kind: EventKind) -> i32 {
    let name = format!("AUDIT_EVENT_KIND_{}", kind.name().to_ascii_uppercase());
    v1::AuditEventKind::from_str_name(&name).map_or(0, Into::into)
}

fn on_wire(entry: Entry) -> v1::AuditEvent {
    let event = entry.event;
    let address = |it: Option<std::net::IpAddr>| it.map(|it| it.to_string()).unwrap_or_default();
    v1::AuditEvent {
        number: entry.number,
        digest: entry.digest.to_string(),
        at: Some(time(event.at)),
        kind: kind_on_wire(event.kind),
        principal: event.principal,
        face: event.face,
        address: address(event.address),
        forwarded_for: address(event.forwarded),
        rpc: event.rpc,
        action: event
            .action
            .map_or(0, |action| action_on_wire(action).into()),
        names: event.names,
        outcome: event.outcome,
        trace_id: event.trace,
        count: event.count,
        details: event.details,
    }
}

fn action(number: i32) -> Option<access::Action> {
    action_from_wire(v1::Action::try_from(number).ok()?)
}

fn moment(field: &str, time: Option<prost_types::Timestamp>) -> Result<Option<Timestamp>, Failure> {
    let read = |time: prost_types::Timestamp| Timestamp::new(time.seconds, time.nanos);
    let read = time.map(read).transpose();
    read.map_err(|error| wrong(field, error))
}

impl View for AuditService {
    async fn view<'a>(&'a self, _: &Extensions) -> Cow<'a, Self> {
        // The right to audit covers the whole trail, skills that the caller does not see included.
        Cow::Borrowed(self)
    }
}

impl handlers::Audit for AuditService {
    async fn list_audit_events(
        &self,
        request: Request<v1::ListAuditEventsRequest>,
    ) -> Answer<v1::ListAuditEventsResponse> {
        let v1::ListAuditEventsRequest {
            since,
            until,
            kind,
            principal,
            rpc,
            action: wanted,
            name,
            outcome,
            page_size: size,
            page_token,
        } = request.into_inner();
        let mut kinds = EventKind::ALL.iter().copied();
        let filter = Filter {
            since: moment("since", since)?,
            until: moment("until", until)?,
            // `Unspecified` is no known kind, so it filters nothing.
            kind: kinds.find(|known| kind_on_wire(*known) == kind),
            principal: given(principal),
            rpc: given(rpc),
            action: action(wanted),
            name: given(name),
            outcome: given(outcome),
        };
        let page = self
            .0
            .list(&filter, page_size(size, DEFAULT_EVENTS), &page_token);
        let page = page?;
        Ok(Response::new(v1::ListAuditEventsResponse {
            events: page.entries.into_iter().map(on_wire).collect(),
            next_page_token: page.next.unwrap_or_default(),
        }))
    }

    async fn watch_audit_events(
        &self,
        request: Request<v1::WatchAuditEventsRequest>,
    ) -> Answer<Messages<v1::WatchAuditEventsResponse>> {
        let v1::WatchAuditEventsRequest {
            after_number,
            principal,
            rpc,
            action: wanted,
            name,
            outcome,
        } = request.into_inner();
        let filter = Filter {
            principal: given(principal),
            rpc: given(rpc),
            action: action(wanted),
            name: given(name),
            outcome: given(outcome),
            ..Filter::default()
        };
        // Without a number the stream begins at the end of the trail. The end is read here, before
        // the stream is made, so that nothing recorded in between is skipped.
        let after = match after_number {
            Some(number) => number,
            None => self.0.last()?,
        };
        let events = stream::try_unfold(self.0.follow(filter, after), |mut follow| async move {
            let found = follow.next().await.map_err(status)?;
            Ok::<_, Status>(found.map(|found| (found, follow)))
        });
        let events = events
            .map_ok(|found| stream::iter(found.into_iter().map(Ok)))
            .try_flatten();
        let answers = events.map_ok(|entry| v1::WatchAuditEventsResponse {
            event: Some(on_wire(entry)),
        });
        Ok(Response::new(answers.boxed()))
    }
}
