//! Converts requests to publish.

use bytes::Bytes;

use super::{convert, given, missing, trust};
use contract::invalid;
use contract::{Checked as _, json, v1};
use model::{Failure, Principal, Problem, ResourceConfig, SkillUri, ToolArgument, ToolConfig};
use registry::{Published, Submission, Upload};
use skill_md::Draft;

pub(super) fn files(files: Vec<v1::File>) -> Vec<(String, Bytes)> {
    let files = files.into_iter();
    let files = files.map(|v1::File { path, content }| (path, content));
    files.collect()
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
                kind: given(r#type).unwrap_or_else(|| ToolArgument::KIND.to_owned()),
                description,
                required,
                default: default.map(json::from_value),
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

/// Converts what a request publishes.
pub(super) fn submission(request: v1::PublishSkillRequest, principal: Principal) -> Submission {
    let v1::PublishSkillRequest {
        skill_id,
        files: sent,
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
        folder,
        dry_run,
    } = request;
    let draft = Draft {
        name,
        description,
        category,
        version: given(semantic_version),
        author: given(author),
        core_content,
        tool_configs: tool_configs.into_iter().map(tool).collect(),
        resource_configs: resource_configs.into_iter().map(resource).collect(),
    };
    Submission {
        upload: Upload {
            skill: skill_id,
            files: files(sent),
            folder,
            strict,
        },
        draft,
        change_summary,
        activate: activate.unwrap_or(Submission::ACTIVATE),
        principal,
        idempotency_key,
        dry_run,
    }
}

pub(super) fn answer((published, problems): (Published, Vec<Problem>)) -> v1::PublishSkillResponse {
    v1::PublishSkillResponse {
        uri: SkillUri::of(&published.id, &published.entry).to_string(),
        scan_warning: published
            .cause
            .filter(|_| published.version.held.is_none())
            .unwrap_or_default(),
        skill_id: published.id.to_string(),
        outcome: convert::outcome(published.outcome).into(),
        version: Some(convert::state(published.version)),
        problems: problems.into_iter().map(Into::into).collect(),
        security_scan_status: trust::scan_status(published.verdict).into(),
    }
}

/// Unpacks and checks one item of a stream.
pub(super) fn item(request: v1::PublishSkillsRequest) -> Result<v1::PublishSkillRequest, Failure> {
    let request = request.skill.ok_or_else(|| missing("skill"))?;
    // The codec passes over this field (`IGNORE_ALWAYS`), since its refusal would end the stream:
    // one bad item must not stop the others.
    let mut violations = Vec::new();
    request.check(&mut violations);
    if violations.is_empty() {
        Ok(request)
    } else {
        Err(invalid(violations))
    }
}
