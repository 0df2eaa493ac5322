//! Requests to publish, as bundles of the domain.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::convert;
use crate::contract::invalid;
use crate::contract::{Checked as _, v1};
use executor::Kind;
use lookup::Lookup;
use model::{
    Code, Digest, Failure, FilePath, Principal, Reference, ResourceConfig, SkillId, SkillUri,
    ToolArgument, ToolConfig,
};
use registry::{Bundle, Caller, Prepared, Published, Registry};
use skill_md::Draft;

/// A request that was read.
pub(super) enum Publication {
    /// What to publish, and how.
    New {
        prepared: Box<Prepared>,
        change_summary: String,
        activate: bool,
        caller: Caller,
    },
    /// It was done before under its name; the words for the skill lead nowhere by now.
    Answered(Box<Published>),
}

fn wrong(field: &str, message: impl Into<String>) -> Failure {
    let message = message.into();
    Failure::new(Code::InvalidParameter, message.clone()).field(field, message)
}

/// The id of a skill to be published: an id, or the short name of a skill that
/// exists.
fn id(lookup: &Lookup, text: &str) -> Result<Option<SkillId>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse() {
        Ok(id) => Ok(Some(id)),
        Err(error) => match lookup.resolve(&Reference::Name(text.to_owned())) {
            Ok(resolved) => Ok(Some(resolved.head.id.clone())),
            Err(_) => Err(registry::Error::Id(error).into()),
        },
    }
}

/// The files of a request, each path checked and no path twice. Every path that is
/// wrong is reported.
pub(super) fn files(files: Vec<v1::File>) -> Result<BTreeMap<FilePath, Bytes>, Failure> {
    let mut found = BTreeMap::new();
    let mut wrong = Vec::new();
    for (at, v1::File { path, content }) in files.into_iter().enumerate() {
        let message = match path.parse::<FilePath>() {
            Err(error) => error.to_string(),
            Ok(path) if found.contains_key(&path) => format!("'{path}' is there twice"),
            Ok(path) => {
                found.insert(path, content);
                continue;
            }
        };
        wrong.push((format!("files[{at}].path"), message));
    }
    let Some((_, first)) = wrong.first() else {
        return Ok(found);
    };
    let message = match wrong.len() {
        1 => first.clone(),
        more => format!("{first} (and {} more)", more - 1),
    };
    let failure = Failure::new(Code::InvalidParameter, message);
    Err(wrong.iter().fold(failure, |failure, (field, message)| {
        failure.field(field, message)
    }))
}

pub(super) fn bundle(
    lookup: &Lookup,
    skill_id: &str,
    contents: Vec<v1::File>,
    folder: String,
    strict: bool,
) -> Result<Bundle, Failure> {
    Ok(Bundle {
        id: id(lookup, skill_id)?,
        files: files(contents)?,
        folder,
        strict,
    })
}

fn tool(config: v1::ToolConfig) -> ToolConfig {
    let v1::ToolConfig {
        name,
        description,
        method,
        args,
    } = config;
    let args = args
        .into_iter()
        .map(
            |v1::ToolArgument {
                 name,
                 r#type,
                 description,
                 required,
                 default,
             }| ToolArgument {
                name,
                kind: if r#type.is_empty() {
                    "string".to_owned()
                } else {
                    r#type
                },
                description,
                required,
                default: default.map(convert::json),
            },
        )
        .collect();
    ToolConfig {
        name,
        description,
        method,
        args,
    }
}

fn resource(config: v1::ResourceConfig) -> ResourceConfig {
    let v1::ResourceConfig {
        name,
        description,
        file,
        dynamic,
        method,
    } = config;
    ResourceConfig {
        name,
        description,
        file,
        dynamic,
        method,
    }
}

/// Reads and packs what a request publishes.
pub(super) async fn read(
    registry: &Registry,
    lookup: &Lookup,
    principal: Principal,
    request: v1::PublishSkillRequest,
    kind: Kind,
) -> Result<Publication, Failure> {
    let v1::PublishSkillRequest {
        skill_id,
        files: contents,
        name,
        description,
        category,
        core_content,
        tool_configs,
        resource_configs,
        semantic_version,
        author,
        change_summary,
        strict,
        activate,
        idempotency_key,
    } = request;
    let text = |text: String| (!text.is_empty()).then_some(text);
    let draft = Draft {
        name,
        description,
        category,
        version: text(semantic_version),
        author: text(author),
        core_content,
        tool_configs: tool_configs.into_iter().map(tool).collect(),
        resource_configs: resource_configs.into_iter().map(resource).collect(),
    };
    let bundle = if contents.is_empty() {
        if draft.name.is_empty() {
            return Err(Failure::new(Code::MissingParameter, "A skill needs its files, or a name and a description")
                .field("files", "Required")
                .suggest("Send `files` with a SKILL.md among them, or `name`, `description` and `core_content`"));
        }
        let skill_md = Bytes::from(skill_md::render(&draft));
        Bundle {
            id: None,
            files: BTreeMap::from([(FilePath::skill_md(), skill_md)]),
            folder: String::new(),
            strict,
        }
    } else {
        if draft != Draft::default() {
            return Err(wrong(
                "files",
                "a skill is made of its files or of its fields, not of both",
            ));
        }
        Bundle {
            id: None,
            files: files(contents)?,
            folder: String::new(),
            strict,
        }
    };
    let activate = activate.unwrap_or(true);
    // The files stand for themselves by their digest; the rest is as it was sent.
    let caller = |digest: Digest| {
        let request = format!("PublishSkill\0{skill_id}\0{digest}\0{change_summary}\0{activate}");
        let request = || Digest::of(request.as_bytes());
        Caller::named(principal.clone(), &idempotency_key, request)
    };
    let id = match id(lookup, &skill_id) {
        Ok(id) => id,
        Err(refused) if idempotency_key.is_empty() => return Err(refused),
        Err(refused) => {
            let digest = registry.validate(bundle, &principal).await?.digest;
            let answer = registry.answered(&caller(digest))?;
            return answer
                .map(|published| Publication::Answered(Box::new(published)))
                .ok_or(refused);
        }
    };
    let prepared = registry.prepare_as(kind, Bundle { id, ..bundle }).await?;
    let caller = caller(prepared.digest());
    Ok(Publication::New {
        prepared: Box::new(prepared),
        change_summary,
        activate,
        caller,
    })
}

/// Publishes what was read.
pub(super) async fn publish(
    registry: &Registry,
    publication: Publication,
) -> Result<v1::PublishSkillResponse, Failure> {
    let (published, problems) = match publication {
        Publication::Answered(published) => {
            // They are part of the version, which never changes; one that was deleted since
            // has none any more.
            let problems = registry.problems(&published.id, published.version.number)?;
            (*published, problems)
        }
        Publication::New {
            prepared,
            change_summary,
            activate,
            caller,
        } => {
            // Nothing is read once it is written: a disk that fails then would make a failure
            // of what was done.
            let problems = prepared.problems().to_vec();
            let published = registry.publish(*prepared, &change_summary, activate, &caller);
            (published.await?, problems)
        }
    };
    let Published {
        id,
        outcome,
        version,
        entry,
    } = published;
    Ok(v1::PublishSkillResponse {
        uri: SkillUri::of(&id, &entry).to_string(),
        skill_id: id.to_string(),
        outcome: convert::outcome(outcome).into(),
        version: Some(convert::state(version)),
        problems: problems.into_iter().map(Into::into).collect(),
    })
}

/// One item of a stream: checked by itself, so that a bad one ends nothing.
pub(super) fn item(request: v1::PublishSkillsRequest) -> Result<v1::PublishSkillRequest, Failure> {
    let request = request.skill.ok_or_else(|| {
        Failure::new(Code::MissingParameter, "skill: Required").field("skill", "Required")
    })?;
    let mut violations = Vec::new();
    request.check(&mut violations);
    if violations.is_empty() {
        Ok(request)
    } else {
        Err(invalid(violations))
    }
}
