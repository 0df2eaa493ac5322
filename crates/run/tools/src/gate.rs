//! The gate before the tools.
//!
//! In this order, each with an error of its own: the session; the tool among
//! those of its skills, which has the name that its skill declares from there on, whatever its
//! caller wrote; the loaded version, as it was and not withdrawn since;
//! what the loaded skills forbid; the arguments; the session's calls in work;
//! the record of the call. Then the handler has until the deadline, and its
//! result is held to the size that results may have.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::found_tool::FoundTool;
use super::recorded::Recorded;
use super::session::{Loaded, Session};
use super::{Error, Invocation, Output, Progress, Tools, arguments, idempotency_key, level, shown};
use composition::{Call, Composed, Decision, Member, SetQuery, ToolRule};
use model::{
    Failure, Principal, Reference, SkillId, ToolConfig, ToolName, Version, VersionNumber,
    VersionSelector,
};
use registry::Head;

/// The method that reads a resource; every skill has it, and no handler needs to.
pub const LOAD_DETAILS: &str = "load_details";
/// Time to wait for a handler beyond its timeout, so that one which watches the time
/// itself can still answer: it knows better what became of the call.
const HANDLER_STOP_MARGIN: Duration = Duration::from_millis(5);

/// Which tool to call, and with what.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The session.
    pub session: String,
    /// The tool, as its caller spells it.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Skill whose tool is meant; none: the only one.
    pub skill: Option<Reference>,
    /// The same for a call that is repeated; empty: one is made.
    pub idempotency_key: String,
    /// The caller.
    pub caller: Principal,
    /// Time that the caller waits.
    pub timeout: Duration,
    /// Channel for progress.
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// The answer of a tool.
#[derive(Debug, Clone)]
pub struct Called {
    /// The call.
    pub id: String,
    /// Skill that declares the tool.
    pub skill: SkillId,
    /// The version that ran.
    pub version: VersionNumber,
    /// The result.
    pub output: Output,
}

/// A version that is loaded and may be used.
pub(super) struct Declared<'a> {
    pub(super) head: &'a Arc<Head>,
    pub(super) version: &'a Arc<Version>,
    pub(super) loaded: &'a Loaded,
}

/// Whether a call is permitted, and why.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Why; it also says whether.
    pub rule: ToolRule,
    /// The same in words.
    pub reason: String,
    /// The skill that decided, and its pattern.
    pub by: Option<(Member, Arc<str>)>,
}

impl Verdict {
    fn new(composed: &Composed, call: &Call<'_>, decision: &Decision<'_>) -> Self {
        let by = decision.by.and_then(|statement| {
            let member = composed.members.get(statement.member)?;
            Some((member.clone(), Arc::clone(&statement.pattern)))
        });
        Self {
            rule: decision.rule,
            reason: composed.reason(call, decision),
            by,
        }
    }
}

impl Tools {
    /// Calls a tool of a loaded skill.
    ///
    /// # Errors
    /// A check of the gate fails, or the tool does.
    pub async fn call(&self, call: ToolCall) -> Result<Called, Failure> {
        self.inner.journal.ready()?;
        let id = uuid::Uuid::new_v4().to_string();
        let mut record = Recorded::begin(self, &id, &call);
        let answer = self.pass(&id, call, &mut record).await;
        let answer = answer.map_err(Failure::from);
        record.end(answer.as_ref().err());
        answer
    }

    async fn pass(
        &self,
        id: &str,
        call: ToolCall,
        record: &mut Recorded<'_>,
    ) -> Result<Called, Error> {
        let inner = &*self.inner;
        if call.session.is_empty() {
            return Err(self.locked(&call.tool, call.skill.as_ref()));
        }
        let state = inner.sessions.get(&call.session, &call.caller)?;
        record.in_session(&state);
        let found = self.find(&state, &call)?;
        record.found(&found);
        audit::found_as(&call.tool, found.name.as_str());
        let FoundTool {
            loaded,
            name,
            config: tool,
        } = found;
        let (head, version) = self.usable(&loaded)?;
        // A denial is about the arguments that the handler gets, with defaults filled in. Where
        // they are invalid, those of the caller are checked: a denial comes first.
        let arguments = self.arguments(&version, &tool, call.arguments.clone());
        let checked = arguments.as_ref().unwrap_or(&call.arguments);
        self.not_forbidden(&state, &name, checked).await?;
        let arguments = arguments?;
        let _permit = inner.quota.acquire(&call.session)?;
        let declared = Declared {
            head: &head,
            version: &version,
            loaded: &loaded,
        };
        let output = if tool.method == LOAD_DETAILS {
            let resource = arguments.get("resource").and_then(Value::as_str);
            let resource = resource.unwrap_or_default();
            let timeout = call.timeout;
            let detail = self
                .resource(&declared, resource, &call.caller, timeout)
                .await?;
            Output::text(if detail.is_dynamic {
                detail.content
            } else {
                level::resource(&head.id, resource, detail.content, &call.session)
            })
        } else {
            let invocation = Invocation {
                id: id.to_owned(),
                skill: head.id.clone(),
                version: version.number,
                digest: version.digest,
                tool: Some(name.clone()),
                method: tool.method.clone(),
                arguments,
                context: loaded.context.clone(),
                timeout: call.timeout,
                idempotency_key: idempotency_key(id, &call.idempotency_key, &call.caller),
                caller: call.caller.clone(),
                progress: call.progress,
            };
            self.run(name.as_str(), invocation).await?
        };
        // The host bounds results of workers earlier. This check is for all handlers.
        let limit = inner.options.result_bytes;
        let bytes = output.text.len() + output.structured.as_ref().map_or(0, super::session::size);
        if bytes > limit {
            return Err(Error::ResultTooLarge {
                tool: shown(name.as_str()),
                bytes,
                limit,
            });
        }
        Ok(Called {
            id: id.to_owned(),
            skill: head.id.clone(),
            version: version.number,
            output,
        })
    }

    /// Runs a method by the handler that serves it.
    pub(super) async fn run(&self, what: &str, invocation: Invocation) -> Result<Output, Error> {
        let Some(handler) = self.inner.handler(&invocation.skill, &invocation.method) else {
            return Err(Error::Unserved {
                tool: shown(what),
                step: unserved(&invocation.skill, &invocation.method),
                skill: invocation.skill,
            });
        };
        let time = invocation.timeout;
        let last_word = HANDLER_STOP_MARGIN.min(time / 20);
        match tokio::time::timeout(time.saturating_add(last_word), handler.call(invocation)).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Error::TooLate {
                tool: shown(what),
                seconds: time.as_secs_f64(),
            }),
        }
    }

    /// A loaded version.
    ///
    /// # Errors
    /// It is not there any more.
    pub(super) fn version(&self, loaded: &Loaded) -> Result<(Arc<Head>, Arc<Version>), Error> {
        let registry = &self.registry;
        let head = registry.head(&loaded.skill)?;
        // Of a skill in a folder there is what the folder holds, whatever its number: only its
        // bytes show that it was loaded from there before.
        if let Some(digest) = head.local_digest() {
            let version = registry.version(&head, &VersionSelector::Active)?;
            if digest != loaded.digest {
                return Err(self.not_loaded("load_skill", &head));
            }
            return Ok((head, version));
        }
        let version = registry.version(&head, &VersionSelector::Number(loaded.number))?;
        Ok((head, version))
    }

    /// A loaded version, if it is what was loaded and was not withdrawn.
    pub(super) fn usable(&self, loaded: &Loaded) -> Result<(Arc<Head>, Arc<Version>), Error> {
        let (head, version) = self.version(loaded)?;
        if version.digest != loaded.digest {
            return Err(self.not_loaded("load_skill", &head));
        }
        if let Some(yank) = self.registry.yank_of(&head, loaded.number)? {
            let (id, version, reason) = (head.id.clone(), loaded.number, yank.reason);
            return Err(registry::Error::Yanked {
                id,
                version,
                reason,
            }
            .into());
        }
        Ok((head, version))
    }

    /// The skills of a session as members of a composition.
    fn members(&self, state: &Session) -> Vec<Member> {
        let catalog = self.registry.catalog();
        let member = |loaded: &Loaded| {
            let (head, version) = self.version(loaded).ok()?;
            Some(Member {
                name: catalog.short_name(&head).into(),
                id: head.id.clone(),
                version,
            })
        };
        state.skills.iter().filter_map(member).collect()
    }

    async fn not_forbidden(
        &self,
        state: &Session,
        tool: &ToolName,
        arguments: &Map<String, Value>,
    ) -> Result<(), Error> {
        let verdict = self.judge(state, tool.as_str(), arguments).await?;
        match verdict.rule {
            // Undecided is not permitted: the pattern that forbids may mean this call.
            ToolRule::Forbidden | ToolRule::Undecided => Err(Error::Forbidden {
                reason: verdict.reason,
            }),
            _ => Ok(()),
        }
    }

    /// Whether skills permit a call: those of a session, of which what one forbids stays
    /// forbidden, and what one declares as its tool, or allows, is permitted; without a
    /// session, those of a set.
    ///
    /// # Errors
    /// There is no such session or set, or both are named, or permissions cannot be looked
    /// at.
    pub async fn check(
        &self,
        (session, caller): (&str, &Principal),
        set: SetQuery,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Verdict, Error> {
        if !session.is_empty() {
            if !set.skills.is_empty() || set.lock.is_some() {
                return Err(Error::SessionAndSkills);
            }
            let state = self.inner.sessions.get(session, caller)?;
            return self.judge(&state, tool, arguments).await;
        }
        let set = self.composition.valid_set(set).await?;
        let call = Call::new(tool, arguments);
        let decision = set.composed.check(&call);
        Ok(Verdict::new(&set.composed, &call, &decision))
    }

    /// The verdict on a name, letter by letter: a host's own tool may have one that differs from
    /// a declared one by spelling alone.
    async fn judge(
        &self,
        state: &Session,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Verdict, Error> {
        let members = self.members(state);
        let composed = self.composition.together(&members).await?;
        let call = Call::new(tool, arguments);
        let decision = composed.check(&call);
        let declares = |member: &&Member| {
            let mut tools = member.version.skill.tool_configs.iter();
            tools.any(|config| config.name == tool)
                && self
                    .registry
                    .head(&member.id)
                    .is_ok_and(|head| !head.is_withdrawn(member.version.number))
        };
        if !decision.rule.allows()
            && decision.rule != ToolRule::Forbidden
            // A declared tool needs no pattern that allows it, but none that may forbid it
            // either.
            && !is_denial(&composed, &decision)
            && let Some(member) = composed.members.iter().find(declares)
        {
            return Ok(Verdict {
                rule: ToolRule::Granted,
                reason: format!(
                    "'{}' is a tool of '{}', which is loaded",
                    shown(tool),
                    member.name
                ),
                by: Some((member.clone(), tool.into())),
            });
        }
        Ok(Verdict::new(&composed, &call, &decision))
    }

    fn arguments(
        &self,
        version: &Version,
        tool: &ToolConfig,
        given: Map<String, Value>,
    ) -> Result<Map<String, Value>, Error> {
        let key = (version.digest, tool.name.clone());
        let validator = self.inner.validators.get_or_insert_with(&key, || {
            let schema = Value::Object(arguments::schema(tool));
            let built = jsonschema::options().build(&schema).map(Arc::new);
            built.map_err(|error| Error::Internal(format!("a schema of arguments: {error}")))
        })?;
        arguments::check(tool, &validator, given).map_err(|problems| Error::Arguments {
            tool: shown(&tool.name),
            signature: level::signature(tool),
            problems,
        })
    }
}

/// Whether the undecided pattern is one that forbids.
fn is_denial(composed: &composition::Composed, decision: &Decision<'_>) -> bool {
    decision.rule == ToolRule::Undecided
        && decision.by.is_some_and(|statement| {
            let mut denials = composed.tools().flat_map(|proof| proof.denials.iter());
            denials.any(|denial| denial == statement)
        })
}

/// The next step where nothing runs a method.
pub(super) fn unserved(skill: &SkillId, method: &str) -> String {
    if method.is_empty() {
        return format!(
            "Nothing can run it: in `tool_configs` of `{skill}` it has no `method`, which its author must name"
        );
    }
    let method = shown(method);
    format!(
        "Start a worker that serves `{method}` of `{skill}` (ToolHost.Attach), or try again where one is about to start"
    )
}
