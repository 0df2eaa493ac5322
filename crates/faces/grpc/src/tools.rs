//! Sessions and tools of the Lookup service.

use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value as Json};
use tokio::sync::mpsc;
use tonic::{Request, Response};

use super::convert::{self, ids, size};
use super::enums::same_variants;
use super::{DEFAULT_CALL_RECORDS, given, number, page_size, principal, target, time_left, wrong};
use ::lookup::is_address;
use contract::handlers::{Answer, Messages};
use contract::json::{from_struct, to_struct};
use contract::{SESSION_REMEMBERED, status, v1};
use handler::Progress;
use model::{Code, Failure, Reference};
use tools::{
    CallRecord, Called, FileView, ListedTool, Load, LoadedStatus, SessionSkill, ToolCall,
    ToolQuery, Tools, View,
};

/// Progress reports that wait to be sent; a handler that is faster loses the rest.
const PROGRESS_QUEUE_CAPACITY: usize = 16;

pub(super) async fn load_skill(
    tools: &Tools,
    request: Request<v1::LoadSkillRequest>,
) -> Answer<v1::LoadSkillResponse> {
    let (caller, timeout) = (principal(&request), time_left(&request));
    let is_remembered = request.metadata().contains_key(SESSION_REMEMBERED);
    let v1::LoadSkillRequest {
        skill_id,
        session_id,
        version_number,
        semantic_version,
        context,
    } = request.into_inner();
    let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
    let load = Load {
        is_remembered,
        skill,
        version,
        session: session_id,
        context: context.map(from_struct),
        caller,
        timeout,
    };
    let loaded = tools.load(load).await?;
    let described = &loaded.found.described;
    let (head, version) = (&described.head, &described.version);
    let resources = version.skill.resource_configs.iter();
    Ok(Response::new(v1::LoadSkillResponse {
        session_id: loaded.session,
        skill_id: head.id.to_string(),
        name: version.skill.name.clone(),
        version_number: version.number.get(),
        semantic_version: version.semantic.to_string(),
        digest: version.digest.to_string(),
        already_loaded: loaded.is_again,
        replaced_version_number: number(loaded.replaced),
        load_count: loaded.count,
        content: loaded.content,
        tools: loaded.tools,
        resources: resources.map(|resource| resource.name.clone()).collect(),
        expires_at: Some(convert::time(loaded.expires_at)),
        shadowed_ids: ids(loaded.found.shadowed),
    }))
}

pub(super) async fn view_file(
    tools: &Tools,
    request: Request<v1::ViewFileRequest>,
) -> Answer<v1::ViewFileResponse> {
    let (caller, timeout) = (principal(&request), time_left(&request));
    let v1::ViewFileRequest {
        skill_id,
        path,
        version_number,
        semantic_version,
        offset_bytes,
        limit_bytes,
        session_id,
    } = request.into_inner();
    // No rule of the contract can say this: an address in `path` names the skill as well.
    if skill_id.trim().is_empty() && !is_address(&path) {
        const EMPTY: &str = "Skill id cannot be empty";
        let failure = Failure::new(Code::MissingParameter, EMPTY).field("skill_id", EMPTY);
        let step = "Name the skill, or give the address of the file as `path`: skill://NAME/PATH";
        return Err(failure.suggest(step));
    }
    let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
    let view = View {
        skill,
        version,
        path,
        offset: offset_bytes.unsigned_abs(),
        limit: limit_bytes.unsigned_abs(),
        session: session_id,
        caller,
        timeout,
    };
    let viewed = tools.view(view).await?;
    let note = viewed.note().unwrap_or_default();
    let (origin, end) = viewed.between.clone().unwrap_or_default();
    let uri = viewed.uri.map(|uri| uri.to_string()).unwrap_or_default();
    let mut answer = v1::ViewFileResponse {
        mime_type: viewed.mime_type,
        size_bytes: size(viewed.size),
        version_number: viewed.version.get(),
        note,
        origin,
        end,
        ..Default::default()
    };
    match viewed.shown {
        FileView::Text { text, part } => {
            answer.text = text;
            answer.next_offset_bytes = if part.1 < viewed.size {
                size(part.1)
            } else {
                0
            };
        }
        FileView::Image(bytes) => answer.image = bytes,
        FileView::Link => answer.link.clone_from(&uri),
    }
    answer.uri = uri;
    Ok(Response::new(answer))
}

/// Returns the arguments of a call: those of the object, or of the JSON text.
fn arguments(
    structured: Option<prost_types::Struct>,
    text: &str,
) -> Result<Map<String, Json>, Failure> {
    let wrong = |sentence: &str| wrong("arguments_json", sentence);
    match (structured, text.trim()) {
        (structured, "") => Ok(structured.map(from_struct).unwrap_or_default()),
        // An empty object says nothing, so it may come together with the text.
        (Some(structured), _) if !structured.fields.is_empty() => {
            Err(wrong("Only one of 'arguments' and 'arguments_json'"))
        }
        (_, text) => serde_json::from_str(text)
            .map_err(|error| wrong(&format!("Expected the text of a JSON object: {error}"))),
    }
}

pub(super) async fn load_skill_detail(
    tools: &Tools,
    request: Request<v1::LoadSkillDetailRequest>,
) -> Answer<v1::LoadSkillDetailResponse> {
    let (caller, timeout) = (principal(&request), time_left(&request));
    let v1::LoadSkillDetailRequest {
        skill_id,
        resource,
        session_id,
    } = request.into_inner();
    let skill = Reference::parse(&skill_id);
    let detail = tools.detail(&session_id, &skill, &resource, &caller, timeout);
    let detail = detail.await?;
    Ok(Response::new(v1::LoadSkillDetailResponse {
        skill_id: detail.skill.to_string(),
        resource,
        content: detail.content,
        mime_type: detail.mime_type,
        dynamic: detail.is_dynamic,
        version_number: detail.version.get(),
    }))
}

pub(super) fn list_loaded_skills(
    tools: &Tools,
    request: Request<v1::ListLoadedSkillsRequest>,
) -> Answer<v1::ListLoadedSkillsResponse> {
    let caller = principal(&request);
    let v1::ListLoadedSkillsRequest { session_id } = request.into_inner();
    let page = tools.session(&session_id, &caller)?;
    Ok(Response::new(v1::ListLoadedSkillsResponse {
        session_id,
        skills: page.skills.into_iter().map(loaded_skill).collect(),
        created_at: Some(convert::time(page.created_at)),
        expires_at: Some(convert::time(page.expires_at)),
    }))
}

same_variants!(fn loaded_status(LoadedStatus) -> LoadedStatus { Current, Outdated, Withdrawn });

fn loaded_skill(skill: SessionSkill) -> v1::LoadedSkill {
    let SessionSkill {
        loaded,
        version,
        status,
        active,
        name_leads_to,
    } = skill;
    let declared = version.as_ref().map(|version| &version.skill);
    let tools = declared.into_iter().flat_map(|skill| &skill.tool_configs);
    v1::LoadedSkill {
        skill_id: loaded.skill.to_string(),
        name: declared.map(|skill| skill.name.clone()).unwrap_or_default(),
        version_number: loaded.number.get(),
        semantic_version: version
            .as_ref()
            .map(|version| version.semantic.to_string())
            .unwrap_or_default(),
        digest: loaded.digest.to_string(),
        load_count: loaded.count,
        loaded_at: Some(convert::time(loaded.loaded_at)),
        context: (!loaded.context.is_empty()).then(|| to_struct(loaded.context)),
        status: loaded_status(status).into(),
        active_version_number: number(active),
        name_leads_to: name_leads_to.map(String::from).unwrap_or_default(),
        tools: tools
            .filter(|_| status != LoadedStatus::Withdrawn)
            .map(|tool| tool.name.clone())
            .collect(),
    }
}

pub(super) fn unload_skill(
    tools: &Tools,
    request: Request<v1::UnloadSkillRequest>,
) -> Answer<v1::UnloadSkillResponse> {
    let caller = principal(&request);
    let v1::UnloadSkillRequest {
        session_id,
        skill_id,
    } = request.into_inner();
    let skill = Reference::parse(&skill_id);
    let unloaded = tools.unload(&session_id, &caller, &skill);
    let (id, was_loaded) = unloaded?;
    Ok(Response::new(v1::UnloadSkillResponse {
        session_id,
        skill_id: id.to_string(),
        was_loaded,
    }))
}

pub(super) fn list_tools(
    tools: &Tools,
    request: Request<v1::ListToolsRequest>,
) -> Answer<v1::ListToolsResponse> {
    let caller = principal(&request);
    let v1::ListToolsRequest {
        session_id,
        skill_id,
    } = request.into_inner();
    let query = ToolQuery {
        session: session_id,
        caller,
        skill: given(skill_id.as_str()).map(Reference::parse),
    };
    let listed = tools.list(&query)?;
    Ok(Response::new(v1::ListToolsResponse {
        tools: listed.into_iter().map(tool_info).collect(),
    }))
}

fn tool_info(tool: ListedTool) -> v1::ToolInfo {
    v1::ToolInfo {
        name: tool.config.name,
        description: tool.config.description,
        skill_id: tool.skill.to_string(),
        skill_name: tool.skill_name,
        version_number: tool.version.get(),
        input_schema: Some(to_struct(tool.schema)),
        loaded: tool.is_loaded,
        available: tool.unavailable.is_none(),
        unavailable_reason: tool.unavailable.unwrap_or_default(),
    }
}

pub(super) async fn call_tool(
    tools: &Tools,
    request: Request<v1::CallToolRequest>,
) -> Answer<v1::CallToolResponse> {
    let (caller, timeout) = (principal(&request), time_left(&request));
    let v1::CallToolRequest {
        session_id,
        name,
        arguments: structured,
        skill_id,
        idempotency_key,
        arguments_json,
    } = request.into_inner();
    let call = ToolCall {
        session: session_id,
        tool: name,
        arguments: arguments(structured, &arguments_json)?,
        skill: given(skill_id.as_str()).map(Reference::parse),
        idempotency_key,
        caller,
        timeout,
        progress: None,
    };
    let outcome = tools.call(call).await?;
    Ok(Response::new(answer(outcome)))
}

fn answer(called: Called) -> v1::CallToolResponse {
    v1::CallToolResponse {
        content: called.output.text,
        structured: called.output.structured.map(to_struct),
        skill_id: called.skill.to_string(),
        version_number: called.version.get(),
        call_id: called.id,
    }
}

pub(super) async fn stream_tool_call(
    tools: &Tools,
    request: Request<v1::StreamToolCallRequest>,
) -> Answer<Messages<v1::StreamToolCallResponse>> {
    use v1::stream_tool_call_response::Update;
    let (caller, timeout) = (principal(&request), time_left(&request));
    let v1::StreamToolCallRequest {
        session_id,
        name,
        arguments,
        skill_id,
        idempotency_key,
    } = request.into_inner();
    let (progress, received) = mpsc::channel(PROGRESS_QUEUE_CAPACITY);
    let call = ToolCall {
        session: session_id,
        tool: name,
        arguments: arguments.map(from_struct).unwrap_or_default(),
        skill: given(skill_id.as_str()).map(Reference::parse),
        idempotency_key,
        caller,
        timeout,
        progress: Some(progress),
    };
    let tools = tools.clone();
    // The stream owns the call: a caller that leaves drops both, which cancels the tool.
    let call = Box::pin(async move { tools.call(call).await });
    let updates = stream::unfold(Some((call, received, None)), |state| async move {
        let (mut call, mut received, mut result) = state?;
        if result.is_none() {
            tokio::select! {
                // Progress first: a result that is ready must not overtake an earlier report.
                biased;
                Some(progress) = received.recv() => {
                    let update = Update::Progress(tool_progress(progress));
                    return Some((Ok(update), Some((call, received, None))));
                }
                ended = &mut call => result = Some(ended),
            }
        }
        // The call has ended, but reports that it sent before may still be in the channel.
        if let Ok(progress) = received.try_recv() {
            let update = Update::Progress(tool_progress(progress));
            return Some((Ok(update), Some((call, received, result))));
        }
        let result = result?.map(|called| Update::Result(answer(called)));
        Some((result, None))
    });
    let mut updates = Box::pin(updates.map(|update| {
        update.map(|update| v1::StreamToolCallResponse {
            update: Some(update),
        })
    }));
    // The first update decides: a call that is refused before it begins answers with a status,
    // like any unary call, and not with a stream that breaks.
    let first = updates.next().await.transpose()?;
    let first = stream::iter(first.map(Ok));
    Ok(Response::new(Box::pin(
        first.chain(updates).map(|update| update.map_err(status)),
    )))
}

fn tool_progress(progress: Progress) -> v1::ToolProgress {
    v1::ToolProgress {
        done: progress.done,
        total: progress.total,
        message: progress.message,
    }
}

pub(super) fn list_tool_calls(
    tools: &Tools,
    request: Request<v1::ListToolCallsRequest>,
) -> Answer<v1::ListToolCallsResponse> {
    let v1::ListToolCallsRequest {
        page_size: size,
        page_token,
    } = request.into_inner();
    let page = tools.calls(page_size(size, DEFAULT_CALL_RECORDS), &page_token);
    let page = page?;
    Ok(Response::new(v1::ListToolCallsResponse {
        calls: page.calls.into_iter().map(call_record).collect(),
        next_page_token: page.next.unwrap_or_default(),
    }))
}

fn call_record(record: CallRecord) -> v1::ToolCallRecord {
    v1::ToolCallRecord {
        call_id: record.id,
        at: Some(convert::time(record.at)),
        caller: record.caller,
        session: record.session,
        tool: record.tool,
        skill_id: record.skill.map(|id| id.to_string()).unwrap_or_default(),
        version_number: number(record.version),
        arguments_digest: record.arguments.to_string(),
        error_code: record.error,
        duration_us: size(record.micros),
    }
}
