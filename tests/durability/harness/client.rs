//! Calls to a server, and reading everything it has.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use contract::v1;
use contract::v1::lookup_client::LookupClient;
use contract::v1::registry_client::RegistryClient;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use model::{open_token, seal_token};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt as _;

use super::model::{Answer, Draft, Files, Kept, Op, State};

/// The largest answer: a file of 16 MiB.
const MAX_MESSAGE: usize = 20 * 1024 * 1024;
/// How long a call may take before the server counts as hung.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// Both services of one server.
#[derive(Debug, Clone)]
pub struct Client {
    pub registry: RegistryClient<Channel>,
    pub lookup: LookupClient<Channel>,
}

/// A call that has no answer: the server went away.
#[derive(Debug)]
pub struct Gone(pub Status);

impl Client {
    pub async fn connect(url: &str) -> Result<Self, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(url.to_owned())
            .expect("an address")
            .timeout(CALL_LIMIT);
        let channel = endpoint
            .connect_timeout(Duration::from_secs(10))
            .connect()
            .await?;
        Ok(Self {
            registry: RegistryClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE),
            lookup: LookupClient::new(channel).max_decoding_message_size(MAX_MESSAGE),
        })
    }

    /// Does a write. A refusal is an answer; none is a server that went away.
    pub async fn write(&self, skill_id: &str, op: &Op, key: &str) -> Result<Answer, Gone> {
        let mut registry = self.registry.clone();
        let (skill_id, idempotency_key) = (skill_id.to_owned(), key.to_owned());
        let answer = match op {
            Op::Publish(draft) => {
                let request = publication(&skill_id, draft, key);
                registry
                    .publish_skill(request)
                    .await
                    .map(|answer| published(answer.into_inner()))
            }
            Op::Activate(version_number) => {
                let request = v1::ActivateVersionRequest {
                    skill_id,
                    version_number: *version_number,
                    idempotency_key,
                    ..Default::default()
                };
                registry.activate_version(request).await.map(|answer| {
                    let v1::ActivateVersionResponse {
                        version,
                        previous_version,
                        ..
                    } = answer.into_inner();
                    Answer::Activated {
                        number: number(version.as_ref()),
                        previous: previous_version,
                    }
                })
            }
            Op::Yank(version_number, reason) => {
                let (version_number, reason) = (*version_number, reason.clone());
                let request = v1::YankVersionRequest {
                    skill_id,
                    version_number,
                    reason,
                    idempotency_key,
                    ..Default::default()
                };
                registry.yank_version(request).await.map(|answer| {
                    let v1::YankVersionResponse {
                        version,
                        active_version,
                        ..
                    } = answer.into_inner();
                    Answer::Withdrawn {
                        number: number(version.as_ref()),
                        active: active_version,
                    }
                })
            }
            Op::Unyank(version_number) => {
                let request = v1::UnyankVersionRequest {
                    skill_id,
                    version_number: *version_number,
                    idempotency_key,
                    ..Default::default()
                };
                registry.unyank_version(request).await.map(|answer| {
                    let v1::UnyankVersionResponse {
                        version,
                        active_version,
                        ..
                    } = answer.into_inner();
                    Answer::Withdrawn {
                        number: number(version.as_ref()),
                        active: active_version,
                    }
                })
            }
            Op::Delete => {
                let request = v1::DeleteSkillRequest {
                    skill_id,
                    idempotency_key,
                };
                let answer = registry.delete_skill(request).await;
                answer.map(|answer| Answer::Deleted {
                    versions: answer.into_inner().versions_deleted,
                })
            }
        };
        answer.or_else(refusal)
    }
}

fn number(version: Option<&v1::VersionInfo>) -> u32 {
    version.map_or(0, |version| version.version_number)
}

/// What the server refused, by its code; a status without one is not from it.
fn refusal(status: Status) -> Result<Answer, Gone> {
    match code(&status) {
        Some(code) => Ok(Answer::Refused(code)),
        None => Err(Gone(status)),
    }
}

/// The code that a server of ours gives each refusal.
pub fn code(status: &Status) -> Option<String> {
    status.get_details_error_info().map(|info| info.reason)
}

/// A draft as a request.
pub fn publication(skill_id: &str, draft: &Draft, key: &str) -> v1::PublishSkillRequest {
    let files = draft.files.iter().map(|(path, content)| v1::File {
        path: path.clone(),
        content: content.clone(),
    });
    v1::PublishSkillRequest {
        skill_id: skill_id.to_owned(),
        files: files.collect(),
        change_summary: draft.summary.clone(),
        activate: Some(draft.activate),
        idempotency_key: key.to_owned(),
        ..Default::default()
    }
}

/// What publishing was answered with.
pub fn published(answer: v1::PublishSkillResponse) -> Answer {
    let outcome = answer.outcome();
    let version = answer.version.unwrap_or_default();
    Answer::Published {
        outcome,
        number: version.version_number,
        semantic: version.semantic_version,
        digest: version.digest,
    }
}

/// All that a server shows.
#[derive(Debug, Clone, Default)]
pub struct Everything {
    /// The log, from its beginning.
    pub events: Vec<v1::Event>,
    /// Identity of the log.
    pub log: String,
    /// Every skill that was listed or that the log names, as far as it is there.
    pub skills: BTreeMap<String, Option<State>>,
}

/// Reads all of it; an error says what could not be read.
pub async fn read_everything(client: &Client) -> Result<Everything, String> {
    let said = |what: &str, status: &Status| {
        format!(
            "{what}: {} {}",
            code(status).unwrap_or_default(),
            status.message()
        )
    };
    let (mut listed, mut page_token, mut resume) = (BTreeSet::new(), String::new(), String::new());
    loop {
        let request = v1::ListSkillsRequest {
            page_size: 1000,
            page_token,
            ..Default::default()
        };
        let page = client
            .lookup
            .clone()
            .list_skills(request)
            .await
            .map_err(|s| said("a list", &s))?
            .into_inner();
        listed.extend(page.skills.into_iter().map(|skill| skill.id));
        if resume.is_empty() {
            resume = page.resume_token;
        }
        if page.next_page_token.is_empty() {
            break;
        }
        page_token = page.next_page_token;
    }
    let place = open_token("resume", "", &resume).ok_or("the resume token is none")?;
    let (log, end) = place
        .split_once('/')
        .ok_or("the resume token names no place")?;
    let end: u64 = end.parse().map_err(|_| "the resume token names no place")?;
    let events = read_events(client, log, end).await?;
    let mut names: BTreeSet<String> = events.iter().map(|event| event.skill_id.clone()).collect();
    names.extend(listed.iter().cloned());
    let skills: BTreeMap<String, Option<State>> = stream::iter(names)
        .map(|id| async move {
            let state = read_skill(client, &id).await?;
            Ok::<_, String>((id, state))
        })
        .buffered(8)
        .try_collect()
        .await?;
    for (id, state) in &skills {
        let shown = state.as_ref().is_some_and(|state| state.active != 0);
        if shown != listed.contains(id) {
            return Err(format!(
                "'{id}' is listed: {}, but has an active version: {shown}",
                !shown
            ));
        }
    }
    Ok(Everything {
        events,
        log: log.to_owned(),
        skills,
    })
}

async fn read_events(client: &Client, log: &str, end: u64) -> Result<Vec<v1::Event>, String> {
    let mut events: Vec<v1::Event> = Vec::new();
    if end == 0 {
        return Ok(events);
    }
    let resume_token = seal_token("resume", "", &format!("{log}/0"));
    let request = v1::WatchRequest {
        resume_token,
        ..Default::default()
    };
    let watch = client.registry.clone().watch(request).await;
    let mut watch = watch
        .map_err(|status| format!("the log: {}", status.message()))?
        .into_inner();
    while events.last().is_none_or(|event| event.sequence < end) {
        let next = tokio::time::timeout(CALL_LIMIT, watch.message()).await;
        let next =
            next.map_err(|_| format!("the log hangs after {:?}, before {end}", events.last()))?;
        let answer = next.map_err(|status| format!("the log: {}", status.message()))?;
        let Some(event) = answer.ok_or("the log ends early")?.event else {
            continue;
        };
        if let Some(last) = events.last().filter(|last| last.sequence >= event.sequence) {
            return Err(format!(
                "the log goes back from {} to {}",
                last.sequence, event.sequence
            ));
        }
        events.push(event);
    }
    Ok(events)
}

/// Reads a skill with every byte of every version; none where there is no such
/// skill.
pub async fn read_skill(client: &Client, skill_id: &str) -> Result<Option<State>, String> {
    let mut state = State::default();
    let mut page_token = String::new();
    loop {
        let request = v1::ListVersionsRequest {
            skill_id: skill_id.to_owned(),
            page_size: 200,
            page_token,
        };
        let page = match client.registry.clone().list_versions(request).await {
            Ok(page) => page.into_inner(),
            Err(status) if code(&status).as_deref() == Some("SKILL_NOT_FOUND") => return Ok(None),
            Err(status) => {
                return Err(format!(
                    "the versions of '{skill_id}': {}",
                    status.message()
                ));
            }
        };
        state.active = page.active_version;
        for info in page.versions {
            if info.active != (info.version_number == page.active_version) {
                return Err(format!(
                    "'{skill_id}' is of two minds about version {}",
                    info.version_number
                ));
            }
            let files = read_files(client, skill_id, &info).await?;
            let kept = Kept {
                semantic: info.semantic_version,
                digest: info.digest,
                summary: info.change_summary,
                yanked: info.yanked.then_some(info.yank_reason),
                files: Arc::new(files),
            };
            state.versions.insert(info.version_number, kept);
        }
        if page.next_page_token.is_empty() {
            break;
        }
        page_token = page.next_page_token;
    }
    if state.active != 0 && !state.versions.contains_key(&state.active) {
        return Err(format!(
            "the active version {} of '{skill_id}' is missing",
            state.active
        ));
    }
    Ok(Some(state))
}

async fn read_files(
    client: &Client,
    skill_id: &str,
    info: &v1::VersionInfo,
) -> Result<Files, String> {
    let number = info.version_number;
    let said = |what: &str, status: &Status| {
        format!(
            "{what} of version {number} of '{skill_id}': {}",
            status.message()
        )
    };
    let request = v1::ListFilesRequest {
        skill_id: skill_id.to_owned(),
        version_number: number,
        ..Default::default()
    };
    let list = client
        .lookup
        .clone()
        .list_files(request)
        .await
        .map_err(|status| said("the files", &status))?;
    let mut files = Files::new();
    for entry in list.into_inner().files {
        let request = v1::ReadFileRequest {
            skill_id: skill_id.to_owned(),
            path: entry.path.clone(),
            version_number: number,
            ..Default::default()
        };
        let file = client.lookup.clone().read_file(request).await;
        let file = file
            .map_err(|status| said(&format!("'{}'", entry.path), &status))?
            .into_inner();
        if i64::try_from(file.content.len()) != Ok(entry.size_bytes) {
            return Err(format!(
                "'{}' of version {number} of '{skill_id}' is of another size",
                entry.path
            ));
        }
        files.insert(entry.path, file.content);
    }
    // The bytes are compared with those that were published, where those are known.
    if skill_id.starts_with("builtin/") && super::model::digest(&files) != info.digest {
        return Err(format!(
            "version {number} of '{skill_id}' says {}, its files say otherwise",
            info.digest
        ));
    }
    Ok(files)
}
