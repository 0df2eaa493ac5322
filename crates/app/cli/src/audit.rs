//! The command that shows the audit trail.

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;

use super::connect::{Client, next, pages};
use super::output::{BAD, Done, FAINT, GOOD, List, Output, Style, time};
use ::audit::LEFT_OUT;
use access::Action;
use contract::{action_on_wire, v1};

const EXAMPLES: &str = "\
Examples:
  repertoire audit-trail                                      the newest events
  repertoire audit-trail --principal token:ci --since 2026-11-01
  repertoire audit-trail --name 'github/acme/*' --action publish
  repertoire audit-trail --outcome PERMISSION_DENIED --limit 1000
  repertoire audit-trail --limit 0 --format json              all of them, a line each
  repertoire audit-trail --follow --after 1200 --format json  as they come, after number 1200

`repertoire verify` says whether the trail has a gap or was changed.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Audit {
    /// Only events from then on: 2026-11-26, or 2026-11-26T09:30:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "follow")]
    since: Option<Timestamp>,
    /// Only events before then.
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "follow")]
    until: Option<Timestamp>,
    /// Only those of this caller, such as token:ci.
    #[arg(long, value_name = "CALLER", default_value = "")]
    principal: String,
    /// Only those of this rpc, such as `PublishSkill`.
    #[arg(long, value_name = "RPC", default_value = "")]
    rpc: String,
    /// Only those of rpcs that need this action.
    #[arg(long, value_name = "ACTION")]
    action: Option<Action>,
    /// Only what was done to this skill, tool, token or source; `*` at the end is any rest.
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,
    /// Only those that ended so: OK, or the code of a failure.
    #[arg(long, value_name = "CODE", default_value = "")]
    outcome: String,
    /// How many; 0: all.
    #[arg(long, default_value_t = 20, conflicts_with = "follow")]
    limit: usize,
    /// Wait for what happens from now on, and print it as it comes.
    #[arg(long)]
    follow: bool,
    /// With --follow: begin after this number; 0: with the oldest.
    #[arg(long, value_name = "NUMBER", requires = "follow")]
    after: Option<u64>,
}

/// A time, or the midnight (UTC) that a day begins with.
fn moment(text: &str) -> Result<Timestamp, String> {
    let day = || text.parse::<Date>().ok()?.in_tz("UTC").ok();
    let read = text.parse().ok().or_else(|| Some(day()?.timestamp()));
    read.ok_or_else(|| "write a day or a time, such as 2026-11-26T09:30:00Z".to_owned())
}

const EVENTS: List<v1::AuditEvent> = List::new(&[
    ("no", |event| event.number.to_string()),
    ("time", |event| time(event.at)),
    ("caller", |event| event.principal.clone()),
    ("what", what),
    ("to", named),
    ("outcome", |event| {
        let style = style(event);
        format!("{style}{}{style:#}", event.outcome)
    }),
    ("from", from),
]);

fn on_wire(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    }
}

/// Describes an event in a few words.
fn what(event: &v1::AuditEvent) -> String {
    let kind = event.kind().as_str_name();
    let kind = kind.trim_start_matches("AUDIT_EVENT_KIND_").to_lowercase();
    match (event.rpc.as_str(), event.count) {
        ("", 0) => kind,
        ("", count) => format!("{count} {kind}"),
        (rpc, _) => rpc.to_owned(),
    }
}

/// The names of what it was done to.
fn named(event: &v1::AuditEvent) -> String {
    let names = event.names.join(" ");
    match event.details.get(LEFT_OUT) {
        None => names,
        Some(more) => format!("{names} and {more} more"),
    }
}

fn from(event: &v1::AuditEvent) -> String {
    let parts = [&event.face, &event.address, &event.forwarded_for];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.cloned().collect::<Vec<_>>().join(" ")
}

fn style(event: &v1::AuditEvent) -> Style {
    match event.outcome.as_str() {
        "" => FAINT,
        "OK" | "STARTED" => GOOD,
        _ => BAD,
    }
}

pub(super) async fn audit(client: &Client, options: Audit, output: &Output) -> Done {
    if options.follow {
        return follow(client, options, output).await;
    }
    let mut left = match options.limit {
        0 => usize::MAX,
        limit => limit,
    };
    let mut request = v1::ListAuditEventsRequest {
        since: options.since.map(on_wire),
        until: options.until.map(on_wire),
        principal: options.principal,
        rpc: options.rpc,
        action: options.action.map_or(0, |it| action_on_wire(it).into()),
        name: options.name,
        outcome: options.outcome,
        ..Default::default()
    };
    let mut events = Vec::new();
    pages(async |page_token| {
        request.page_size = i32::try_from(left.min(1000)).unwrap_or(1000);
        request.page_token = page_token;
        let page = client.audit().list_audit_events(request.clone()).await?;
        let page = page.into_inner();
        // A server may send more than was asked for.
        left -= page.events.len().min(left);
        for event in page.events {
            output.event(&event)?;
            // JSON is written line by line, as a trail may be larger than memory; a table has to
            // know all its rows.
            events.extend(Some(event).filter(|_| !output.is_json()));
        }
        Ok(if left == 0 {
            String::new()
        } else {
            page.next_page_token
        })
    })
    .await?;
    output.list(&EVENTS, &events)
}

async fn follow(client: &Client, options: Audit, output: &Output) -> Done {
    let request = v1::WatchAuditEventsRequest {
        after_number: options.after,
        principal: options.principal,
        rpc: options.rpc,
        action: options.action.map_or(0, |it| action_on_wire(it).into()),
        name: options.name,
        outcome: options.outcome,
    };
    let answers = client.audit().watch_audit_events(request).await?;
    let mut answers = answers.into_inner();
    while let Some(answer) = next(&mut answers).await? {
        let event = answer.event.unwrap_or_default();
        output.event(&event)?;
        let (at, what, from, style) = (time(event.at), what(&event), from(&event), style(&event));
        let (number, names) = (event.number, named(&event));
        let caller = event.principal;
        output.line(&format!(
            "{number} {FAINT}{at}{FAINT:#} {caller} {what} {names} {style}{}{style:#} {FAINT}{from}{FAINT:#}",
            event.outcome,
        ))?;
    }
    Ok(())
}
