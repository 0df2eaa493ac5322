//! Loading skills into sessions, reading their resources, unloading them.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::gate::Declared;
use super::session::{Loaded, Session};
use super::{Error, Handler, Invocation, LOAD_CORE, Output, Tools, level};
use lookup::{FoundSkill, Lookup};
use model::{
    FilePath, Principal, Reference, ResourceConfig, SkillId, Version, VersionNumber,
    VersionSelector, find_tool, inert_line,
};
use registry::{Head, UsageKind};

/// How long a handler may take over what level 2 begins with: without it the
/// instructions still serve.
const CORE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a handler's beginning of level 2.
const MAX_CORE_BYTES: usize = 64 * 1024;

/// Which skill to load, and where.
#[derive(Debug, Clone)]
pub struct Load {
    /// The skill.
    pub skill: Reference,
    /// Which version of it.
    pub version: VersionSelector,
    /// The session; empty: a new one.
    pub session: String,
    /// The caller's connection remembers the session, so the text need not name it.
    pub is_remembered: bool,
    /// Context that its handler gets with every call; none: that of the previous load.
    pub context: Option<Map<String, Value>>,
    /// The caller.
    pub caller: Principal,
    /// How long the caller waits.
    pub timeout: Duration,
}

/// A skill that was loaded.
#[derive(Debug, Clone)]
pub struct LoadedSkill {
    /// The session.
    pub session: String,
    /// The skill and the version.
    pub found: FoundSkill,
    /// This version was loaded before.
    pub is_again: bool,
    /// The version that it replaces.
    pub replaced: Option<VersionNumber>,
    /// How often the skill was loaded.
    pub count: u32,
    /// The text for the agent.
    pub content: String,
    /// Names of the tools that are unlocked.
    pub tools: Vec<String>,
    /// When the session ends.
    pub expires_at: Timestamp,
}

/// The status of a loaded version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadedStatus {
    /// It is the active one.
    Current,
    /// Another one is active.
    Outdated,
    /// It was withdrawn, or its skill deleted.
    Withdrawn,
}

/// A skill of a session, and its status.
#[derive(Debug, Clone)]
pub struct SessionSkill {
    /// As it was loaded.
    pub loaded: Loaded,
    /// The version; none: its skill was deleted.
    pub version: Option<std::sync::Arc<Version>>,
    /// Its status.
    pub status: LoadedStatus,
    /// The active version now.
    pub active: Option<VersionNumber>,
    /// The skill to which the short name by which it was loaded leads now, where that is another.
    pub name_leads_to: Option<SkillId>,
}

/// A session and its skills.
#[derive(Debug, Clone)]
pub struct SessionPage {
    /// The skills, in the order in which they were first loaded.
    pub skills: Vec<SessionSkill>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A resource of a loaded skill.
#[derive(Debug, Clone)]
pub struct Detail {
    /// The skill.
    pub skill: SkillId,
    /// The version.
    pub version: VersionNumber,
    /// The text.
    pub content: String,
    /// Its media type.
    pub mime_type: String,
    /// A handler made it.
    pub is_dynamic: bool,
}

impl Tools {
    /// Loads a skill into a session.
    ///
    /// # Errors
    /// There is no such skill, version or session; the session is full; the
    /// instructions cannot be read.
    pub async fn load(&self, load: Load) -> Result<LoadedSkill, Error> {
        let inner = &*self.inner;
        let found = self.lookup.get(&load.skill, &load.version)?;
        let described = &found.described;
        let (head, version) = (&described.head, &described.version);
        let key = head.id.key();
        let is_known = |session: &Session| {
            session
                .loaded(&key)
                .is_some_and(|loaded| loaded.digest == version.digest)
        };
        let is_again = !load.session.is_empty()
            && is_known(&*inner.sessions.get(&load.session, &load.caller)?);
        // Before anything changes, so that a skill is loaded whole or not at all.
        let level = if is_again {
            None
        } else {
            let verdict = self.registry.verdict_of(head, version.number)?;
            let warning = verdict.and_then(|verdict| verdict.warning("this skill"));
            let body = self.body(head, version).await?;
            let core = match inner.handler(&head.id, LOAD_CORE) {
                // Boxed: it is rare, and would make the future of every load large.
                Some(handler) => Some(Box::pin(core(&**handler, head, version, &load)).await),
                None => None,
            };
            Some((core, body, warning))
        };
        let given = load.context.clone();
        let short_name = match &load.skill {
            Reference::Name(name) => name.clone(),
            Reference::Id(_) => String::new(),
        };
        let number = version.number;
        let digest = version.digest;
        let now = inner.clock.now();
        let (session, state, (loaded, replaced)) =
            inner
                .sessions
                .change(&load.session, &load.caller, |session| {
                    let mut skills = session.skills.iter_mut();
                    let Some(loaded) = skills.find(|one| one.skill.key() == key) else {
                        let loaded = Loaded {
                            skill: head.id.clone(),
                            number,
                            digest,
                            is_local: head.is_local(),
                            short_name,
                            count: 1,
                            loaded_at: now,
                            context: given.unwrap_or_default(),
                        };
                        session.skills.push(loaded.clone());
                        return Ok((loaded, None));
                    };
                    let replaced = (loaded.digest != digest).then_some(loaded.number);
                    loaded.count = loaded.count.saturating_add(1);
                    loaded.is_local = head.is_local();
                    loaded.short_name = short_name;
                    if replaced.is_some() {
                        (loaded.number, loaded.digest, loaded.loaded_at) = (number, digest, now);
                    }
                    if let Some(given) = given {
                        loaded.context = given;
                    }
                    Ok((loaded.clone(), replaced))
                })?;
        self.registry.count(head, number, UsageKind::Load, &session);
        let is_withdrawn = head.is_withdrawn(number);
        let named = (!load.is_remembered).then_some(session.as_str());
        let content = match level {
            None => level::again(&loaded, version, named),
            Some((core, body, warning)) => level::text(
                &head.id,
                core.as_deref(),
                &body,
                version,
                (&session, named),
                (is_withdrawn, warning),
            ),
        };
        let tools = version.skill.tool_configs.iter();
        Ok(LoadedSkill {
            expires_at: inner.sessions.expires_at(&state),
            is_again,
            replaced,
            count: loaded.count,
            content,
            tools: tools
                // A withdrawn version can still be loaded by its number, but only to be read.
                .filter(|_| !is_withdrawn)
                .map(|tool| tool.name.clone())
                .collect(),
            session,
            found,
        })
    }

    /// The instructions of a version.
    async fn body(&self, head: &Head, version: &Version) -> Result<std::sync::Arc<str>, Error> {
        let inner = &*self.inner;
        if let Some(body) = inner.bodies.get(&version.digest) {
            return Ok(body);
        }
        let entry = &version.skill.entry;
        let text = Box::pin(self.file(head, version, entry.as_str())).await?;
        let body: std::sync::Arc<str> = skill_md::body(&text).into();
        inner
            .bodies
            .insert(version.digest, std::sync::Arc::clone(&body));
        Ok(body)
    }

    /// A file as text.
    async fn file(&self, head: &Head, version: &Version, path: &str) -> Result<String, Error> {
        let bytes = self.registry.file(&head.id, version, path).await?;
        String::from_utf8(bytes.into()).map_err(|_| {
            Error::Lookup(lookup::Error::NotText {
                id: head.id.clone(),
                path: path.to_owned(),
            })
        })
    }

    /// A resource of a skill that is loaded.
    ///
    /// # Errors
    /// There is no such session, skill or resource; the skill is not loaded; the
    /// handler fails.
    pub async fn detail(
        &self,
        session: &str,
        skill: &Reference,
        resource: &str,
        caller: &Principal,
        timeout: Duration,
    ) -> Result<Detail, Error> {
        let inner = &*self.inner;
        let state = inner.sessions.get(session, caller)?;
        let head = self.loaded_head(&state, skill)?;
        let Some(loaded) = state.loaded(&head.id.key()) else {
            return Err(self.not_loaded("load_skill_detail", &head));
        };
        let (head, version) = self.usable(loaded)?;
        let declared = Declared {
            head: &head,
            version: &version,
            loaded,
        };
        self.resource(&declared, resource, caller, timeout).await
    }

    pub(super) async fn resource(
        &self,
        declared: &Declared<'_>,
        resource: &str,
        caller: &Principal,
        timeout: Duration,
    ) -> Result<Detail, Error> {
        let Declared {
            head,
            version,
            loaded,
        } = declared;
        let resources = &version.skill.resource_configs;
        let Some(config) = resources.iter().find(|config| config.name == resource) else {
            return Err(Error::NoResource {
                skill: head.id.clone(),
                resource: super::shown(resource),
                resources: resources
                    .iter()
                    .map(|config| super::shown(&config.name))
                    .collect(),
            });
        };
        let detail = |content, mime_type: &str, is_dynamic| Detail {
            skill: head.id.clone(),
            version: version.number,
            content,
            mime_type: mime_type.to_owned(),
            is_dynamic,
        };
        if !is_made(config) {
            let content = self.file(head, version, &config.file).await?;
            let mime_type = config
                .file
                .parse::<FilePath>()
                .map_or("text/plain", |path| path.mime_type());
            return Ok(detail(content, mime_type, false));
        }
        let context = loaded.context.clone();
        let invocation = asked((head, version), &config.method, context, timeout, caller);
        let output = self.run(&config.name, invocation).await?;
        Ok(detail(output.text, "text/markdown", true))
    }

    /// The skill was loaded as it was before its folder changed, and has the tool now.
    pub(super) fn changed(&self, loaded: &Loaded, tool: &str) -> Option<Error> {
        let head = self.registry.head(&loaded.skill).ok();
        let head = head.filter(|head| head.is_local())?;
        let version = self
            .registry
            .version(&head, &VersionSelector::Active)
            .ok()?;
        let (name, _) = find_tool(&version.skill.tool_configs, tool)?;
        let is_meant = self.is_meant(&head.id, &name, tool);
        is_meant.then(|| self.not_loaded(name.as_str(), &head))
    }

    /// Returns the skills of a session, and their status.
    ///
    /// # Errors
    /// There is no such session, or a record cannot be read.
    pub fn session(&self, session: &str, caller: &Principal) -> Result<SessionPage, Error> {
        let inner = &*self.inner;
        let state = inner.sessions.get(session, caller)?;
        let catalog = self.registry.catalog();
        let skill = |loaded: &Loaded| {
            let head = catalog.get(&loaded.skill.key());
            let active = head.and_then(|head| head.active);
            let version = self.version(loaded).ok().map(|(_, version)| version);
            // The folder is there, but not with the bytes that were loaded from it.
            let has_changed =
                version.is_none() && active.is_some() && head.is_some_and(|head| head.is_local());
            let is_withdrawn = !has_changed
                && (version.is_none() || head.is_none_or(|head| head.is_withdrawn(loaded.number)));
            let is_current = !has_changed
                && (active == Some(loaded.number) || head.is_some_and(|head| head.is_local()));
            let status = if is_withdrawn {
                LoadedStatus::Withdrawn
            } else if is_current {
                LoadedStatus::Current
            } else {
                LoadedStatus::Outdated
            };
            let named = Reference::Name(loaded.short_name.clone());
            let led_to = Lookup::find_among(&catalog, &named).map(|led_to| led_to.head.id.clone());
            SessionSkill {
                loaded: loaded.clone(),
                version,
                status,
                active,
                name_leads_to: led_to.filter(|id| *id != loaded.skill),
            }
        };
        Ok(SessionPage {
            skills: state.skills.iter().map(skill).collect(),
            created_at: state.created_at,
            expires_at: inner.sessions.expires_at(&state),
        })
    }

    /// Takes a skill out of a session. Gives its id, and whether it was loaded.
    ///
    /// # Errors
    /// There is no such session or skill.
    pub fn unload(
        &self,
        session: &str,
        caller: &Principal,
        skill: &Reference,
    ) -> Result<(SkillId, bool), Error> {
        let sessions = &self.inner.sessions;
        let state = sessions.get(session, caller)?;
        // A skill that was deleted can be unloaded by its id.
        let id = match skill {
            Reference::Id(id) => id.clone(),
            Reference::Name(_) => self.loaded_head(&state, skill)?.id.clone(),
        };
        let key = id.key();
        if state.loaded(&key).is_none() {
            self.lookup.resolve(&Reference::Id(id.clone()))?;
            return Ok((id, false));
        }
        let remove = |session: &mut Session| {
            let before = session.skills.len();
            session.skills.retain(|loaded| loaded.skill.key() != key);
            Ok(session.skills.len() < before)
        };
        let (_, _, was_loaded) = sessions.change(session, caller, remove)?;
        Ok((id, was_loaded))
    }
}

/// A handler makes the resource; it is no file.
fn is_made(config: &ResourceConfig) -> bool {
    config.file.is_empty() && config.dynamic
}

/// A call of what is no tool: of a resource, or of the beginning of level 2.
fn asked(
    (head, version): (&Head, &Version),
    method: &str,
    context: Map<String, Value>,
    timeout: Duration,
    caller: &Principal,
) -> Invocation {
    Invocation {
        id: uuid::Uuid::new_v4().to_string(),
        skill: head.id.clone(),
        version: version.number,
        digest: version.digest,
        tool: None,
        method: method.to_owned(),
        arguments: Map::new(),
        context,
        timeout,
        idempotency_key: String::new(),
        caller: caller.clone(),
        progress: None,
    }
}

/// Returns the handler's text before the instructions. A failure is reported there: the
/// instructions serve without it.
async fn core(handler: &dyn Handler, head: &Head, version: &Version, load: &Load) -> String {
    let time = CORE_TIMEOUT.min(load.timeout);
    let context = load.context.clone().unwrap_or_default();
    let invocation = asked((head, version), LOAD_CORE, context, time, &load.caller);
    let name = inert_line(&version.skill.name);
    let why = match tokio::time::timeout(time, handler.call(invocation)).await {
        Ok(Ok(Output { text, .. })) if text.len() <= MAX_CORE_BYTES => return text,
        Ok(Ok(_)) => "it has more to say than fits here".to_owned(),
        Ok(Err(error)) => error.message,
        Err(_) => "it did not answer in time".to_owned(),
    };
    format!(
        "## {name} Skill Activated\n\nWhat this skill works with cannot be described now: {why}"
    )
}
