//! The record of a call, while the call is in work.
//!
//! Everybody who may see the list of calls sees all of it, and skills of folders are their
//! caller's alone. So the list shows that a call of theirs was made, and by which caller, but
//! not of what; the log of the server, which its operator reads, has it all. A
//! tool that was not found may be one of theirs, if the caller has any.

use super::found_tool::FoundTool;
use super::gate::ToolCall;
use super::journal::CallRecord;
use super::session::Session;
use super::{Tools, shown};
use model::{Digest, Failure, VersionNumber};

/// Shown in the list instead of a tool that may be of a folder. No tool has this name.
const HIDDEN: &str = "(a tool of a local skill)";

/// The record of a call, which is written however the call ends.
pub(super) struct Recorded<'a> {
    tools: &'a Tools,
    started: tokio::time::Instant,
    record: Option<CallRecord>,
    in_session: bool,
    /// The tool may be of a folder.
    hides: bool,
}

impl<'a> Recorded<'a> {
    /// A call begins.
    pub(super) fn begin(tools: &'a Tools, id: &str, call: &ToolCall) -> Self {
        let inner = &*tools.inner;
        #[expect(clippy::expect_used, reason = "an object of JSON has text keys")]
        let arguments = serde_json::to_vec(&call.arguments).expect("JSON is written as JSON");
        // The id of a session is a secret, so the list shows the beginning of its digest.
        let session = match call.session.as_str() {
            "" => String::new(),
            session => Digest::of(session.as_bytes())
                .hex()
                .chars()
                .take(12)
                .collect(),
        };
        Self {
            tools,
            started: tokio::time::Instant::now(),
            in_session: false,
            hides: tools.registry.has_local(),
            record: Some(CallRecord {
                number: 0,
                id: id.to_owned(),
                at: inner.clock.now(),
                caller: call.caller.to_string(),
                session,
                tool: shown(&call.tool),
                skill: None,
                version: None,
                arguments: Digest::of(&arguments),
                error: String::new(),
                micros: 0,
            }),
        }
    }

    /// The session that the call names is one.
    pub(super) fn in_session(&mut self, session: &Session) {
        self.in_session = true;
        // Their folder may be gone by now.
        self.hides |= session.skills.iter().any(|loaded| loaded.is_local);
    }

    /// The tool is one of this skill.
    pub(super) fn found(&mut self, found: &FoundTool) {
        let loaded = &found.loaded;
        // Until now the tool might have been one of a folder. Here its skill is known.
        self.hides = loaded.is_local;
        if let Some(record) = &mut self.record {
            record.tool = shown(found.name.as_str());
            record.skill = Some(loaded.skill.clone());
            record.version = Some(loaded.number);
        }
    }

    /// It ended, and how.
    pub(super) fn end(mut self, failure: Option<&Failure>) {
        self.write(failure.map(|failure| failure.code.name()));
    }

    fn write(&mut self, error: Option<&str>) {
        let Some(mut record) = self.record.take() else {
            return;
        };
        error.unwrap_or_default().clone_into(&mut record.error);
        record.micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::info!(
            target: "repertoire::audit",
            call = %record.id, caller = %record.caller, session = %record.session, tool = %record.tool,
            skill = record.skill.as_ref().map(tracing::field::display),
            version = record.version.map(VersionNumber::get),
            error = %record.error, micros = record.micros,
            "a tool was called"
        );
        if self.hides {
            HIDDEN.clone_into(&mut record.tool);
            record.skill = None;
            record.version = None;
        }
        let journal = &self.tools.inner.journal;
        if self.in_session {
            journal.add(record);
        } else {
            journal.add_stray(record);
        }
    }
}

impl Drop for Recorded<'_> {
    /// Nobody waited for the answer any more.
    fn drop(&mut self) {
        self.write(Some("CANCELLED"));
    }
}
