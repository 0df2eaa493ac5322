//! Requests to publish, as bundles of the domain.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::convert;
use super::status::invalid;
use crate::contract::{Checked as _, v1};
use crate::lookup::Lookup;
use crate::model::{
    Code, Failure, FilePath, Reference, ResourceConfig, SkillId, SkillUri, ToolArgument, ToolConfig,
};
use crate::registry::{Bundle, Caller, Prepared, Published, Registry};
use crate::skill_md::{self, Draft};

/// A request that was read: what to publish, and how.
pub(super) struct Publication {
    pub(super) prepared: Prepared,
    pub(super) change_summary: String,
    pub(super) activate: bool,
    pub(super) idempotency_key: String,
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
            Err(_) => Err(crate::registry::Error::Id(error).into()),
        },
    }
}

/// The files of a request, each path checked and no path twice.
pub(super) fn files(files: Vec<v1::File>) -> Result<BTreeMap<FilePath, Bytes>, Failure> {
    let mut found = BTreeMap::new();
    for (at, v1::File { path, content }) in files.into_iter().enumerate() {
        let field = format!("files[{at}].path");
        let path: FilePath = path
            .parse()
            .map_err(|error: crate::model::FilePathError| wrong(&field, error.to_string()))?;
        if found.contains_key(&path) {
            return Err(wrong(&field, format!("'{path}' is there twice")));
        }
        found.insert(path, content);
    }
    Ok(found)
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
    request: v1::PublishSkillRequest,
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
        let files = BTreeMap::from([(FilePath::skill_md(), skill_md)]);
        Bundle {
            id: id(lookup, &skill_id)?,
            files,
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
        bundle(lookup, &skill_id, contents, String::new(), strict)?
    };
    let prepared = registry.prepare(bundle).await?;
    Ok(Publication {
        prepared,
        change_summary,
        activate: activate.unwrap_or(true),
        idempotency_key,
    })
}

/// Publishes what was read.
pub(super) async fn publish(
    registry: &Registry,
    publication: Publication,
    principal: crate::model::Principal,
) -> Result<v1::PublishSkillResponse, Failure> {
    let Publication {
        prepared,
        change_summary,
        activate,
        idempotency_key,
    } = publication;
    let caller = Caller {
        principal,
        key: idempotency_key,
    };
    let published = registry
        .publish(prepared, &change_summary, activate, &caller)
        .await?;
    answer(registry, published)
}

fn answer(registry: &Registry, published: Published) -> Result<v1::PublishSkillResponse, Failure> {
    let Published {
        id,
        outcome,
        number,
    } = published;
    let described = registry.describe(&id, &crate::model::VersionSelector::Number(number))?;
    Ok(v1::PublishSkillResponse {
        skill_id: id.to_string(),
        outcome: convert::outcome(outcome).into(),
        version: Some(convert::info(&described)),
        problems: described
            .version
            .problems
            .iter()
            .cloned()
            .map(Into::into)
            .collect(),
        uri: SkillUri::of(&id, &described.version.skill.entry).to_string(),
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
