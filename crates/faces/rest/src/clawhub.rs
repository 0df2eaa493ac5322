//! The read side of `ClawHub`'s REST protocol, version 1, below `/clawhub`, for
//! clients that speak it already. `/.well-known/clawhub.json` leads them here.
//!
//! A slug is a short name. Unknown parameters are ignored, as the protocol has more of
//! them than a server needs. Search is that of the contract, with tier and score as one
//! number. There are no stars, no downloads, no moderation: unknown facts are left out or
//! null.
//!
//! Its paths are not in the `OpenAPI` document: the protocol is not ours.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value as Json, json};

use super::fingerprint::{fingerprint, hex};
use super::problem::refused;
use super::rest::nowhere;
use super::skill_reader::{ReadRequest, SkillReader, Which, unless_gone, wins};
use contract::v1;
use gateway::Refusal;
use model::{Code, Failure, shown};

const BASE: &str = "/clawhub";
const API: &str = "/clawhub/api/v1/";
/// Entries of a list: as many as are asked for, but never more.
const MAX: i32 = 200;
const DEFAULT_PAGE_SIZE: i32 = 20;
/// Skills of a search.
const MAX_FOUND: i32 = 50;
/// Versions that a fingerprint is compared with, newest first.
const MAX_COMPARED_VERSIONS: i32 = 200;
/// Skills that are read at once.
const LOOKUP_CONCURRENCY: usize = 8;

/// The routes of the protocol.
pub(super) fn router<S: Clone + Send + Sync + 'static>(reader: SkillReader) -> Router<S> {
    let api = get(
        async move |State(reader): State<SkillReader>, request: Request| {
            let (request, _) = request.into_parts();
            let answered = answer(&reader, &request).await;
            answered.unwrap_or_else(refused)
        },
    );
    Router::new()
        .route("/.well-known/clawhub.json", get(well_known))
        .route(&format!("{API}{{*path}}"), api)
        .with_state(reader)
}

/// Returns where the protocol is. Its clients need a whole address, so it is the one that
/// this request came to; a proxy states in `X-Forwarded-Proto` that it speaks TLS.
async fn well_known(request: Request) -> Response {
    let (request, _) = request.into_parts();
    let call = match ReadRequest::read(&request, "") {
        Ok(call) => call,
        Err(refusal) => return refused(refusal),
    };
    let authority = request.uri.authority().map(http::uri::Authority::as_str);
    let host = authority.or_else(|| call.header("host"));
    let scheme = match call.header("x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    };
    let base = host.map_or(BASE.to_owned(), |host| format!("{scheme}://{host}{BASE}"));
    page(&call, &json!({"apiBase": base}))
}

async fn answer(reader: &SkillReader, request: &http::request::Parts) -> Result<Response, Refusal> {
    let mut call = ReadRequest::read(request, API)?;
    let path = std::mem::take(&mut call.path);
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    let which = Which {
        semantic: match call.asked("tag") {
            // The only tag there is: the active version.
            None | Some("latest") => call.asked("version").unwrap_or_default().to_owned(),
            Some(tag) => return Err(no_tag(tag)),
        },
        ..Which::default()
    };
    let json = match path.as_slice() {
        ["search"] => search(reader, &call).await?,
        ["skills"] => skills(reader, &call).await?,
        ["skills", slug] => skill(reader, &call, slug).await?,
        ["skills", slug, "versions"] => versions(reader, &call, slug).await?,
        ["skills", slug, "versions", version] => one_version(reader, &call, slug, version).await?,
        ["resolve"] => resolve(reader, &call).await?,
        ["skills", slug, "file"] => {
            let path = required(&call, "path")?;
            return reader.file(slug, &which, path, &call).await;
        }
        ["download"] => {
            let slug = required(&call, "slug")?;
            let format = v1::ArchiveFormat::Zip;
            return reader.archive(slug, &which, format, &call).await;
        }
        _ => return Ok(nowhere(request.uri.path())),
    };
    Ok(page(&call, &json))
}

fn page(call: &ReadRequest, json: &Json) -> Response {
    let text = json.to_string();
    let tag = model::Digest::of(text.as_bytes()).to_string();
    call.file(&tag, "application/json", Body::from(text))
}

fn required<'a>(call: &'a ReadRequest, name: &str) -> Result<&'a str, Refusal> {
    call.asked(name).ok_or_else(|| {
        Failure::new(Code::MissingParameter, "Required")
            .field(name, "Required")
            .suggest(format!("Add `{name}` to the query"))
            .into()
    })
}

fn no_tag(tag: &str) -> Refusal {
    let tag = shown(tag, 64);
    Failure::new(Code::VersionNotFound, format!("There is no tag '{tag}'"))
        .suggest("Ask for `latest`, or for a version")
        .into()
}

/// `limit`, within bounds: clients of this protocol ask for more than they get.
fn limit(call: &ReadRequest, max: i32) -> i32 {
    let asked = call.asked("limit").and_then(|limit| limit.parse().ok());
    asked.unwrap_or(DEFAULT_PAGE_SIZE).clamp(1, max)
}

fn millis(time: Option<&prost_types::Timestamp>) -> i64 {
    time.map_or(0, |time| {
        time.seconds * 1000 + i64::from(time.nanos) / 1_000_000
    })
}

fn version_json(version: &v1::VersionInfo) -> Json {
    json!({
        "version": version.semantic_version,
        "createdAt": millis(version.created_at.as_ref()),
        "changelog": version.change_summary,
    })
}

/// Returns a skill as lists show it.
fn summary(slug: &str, skill: &v1::SkillDetail) -> Map<String, Json> {
    let json = json!({
        "slug": slug,
        "displayName": skill.name,
        "summary": skill.description,
        "tags": {"latest": skill.current_version},
        "stats": {},
        "createdAt": millis(skill.created_at.as_ref()),
        "updatedAt": millis(skill.updated_at.as_ref()),
    });
    json.as_object().cloned().unwrap_or_default()
}

async fn detail(
    reader: &SkillReader,
    call: &ReadRequest,
    skill_id: &str,
) -> Result<v1::SkillDetail, Refusal> {
    let request = v1::GetSkillRequest {
        skill_id: skill_id.to_owned(),
        include_readme: Some(false),
        include_versions: true,
        ..Default::default()
    };
    let mut lookup = reader.lookup();
    let answer = lookup.get_skill(call.context.request(request)).await?;
    let skill = answer.into_inner().skill;
    skill.ok_or_else(|| Failure::fault("an answer without a skill").into())
}

fn latest(skill: &v1::SkillDetail) -> Json {
    let mut versions = skill.versions.iter();
    let active = versions.find(|version| version.version_number == skill.version_number);
    // The active version may be older than the ones that `GetSkill` lists.
    let other = || {
        json!({
            "version": skill.current_version,
            "createdAt": millis(skill.updated_at.as_ref()),
            "changelog": "",
        })
    };
    active.map_or_else(other, version_json)
}

async fn skill(reader: &SkillReader, call: &ReadRequest, slug: &str) -> Result<Json, Refusal> {
    let skill = detail(reader, call, slug).await?;
    let author = skill.author.clone().unwrap_or_default();
    Ok(json!({
        "skill": summary(slug, &skill),
        "latestVersion": latest(&skill),
        "metadata": null,
        "owner": {"handle": author.id, "displayName": author.name, "image": null},
        "moderation": null,
    }))
}

/// Lists skills that win their short name.
async fn skills(reader: &SkillReader, call: &ReadRequest) -> Result<Json, Refusal> {
    let limit = limit(call, MAX);
    let mut token = call.asked("cursor").unwrap_or_default().to_owned();
    let mut found: Vec<v1::SkillMetadata> = Vec::new();
    // Skills that lost their short name are left out, so one page is not always enough.
    loop {
        let missing = limit - i32::try_from(found.len()).unwrap_or(limit);
        let page = reader.page(missing, &token, &call.context).await?;
        found.extend(page.skills.into_iter().filter(wins));
        token = page.next_page_token;
        if token.is_empty() || found.len() >= usize::try_from(limit).unwrap_or_default() {
            break;
        }
    }
    let items = stream::iter(found).map(|skill| async move {
        let read = unless_gone(detail(reader, call, &skill.id).await)?;
        Ok::<_, Refusal>(read.map(|read| {
            let mut item = summary(&skill.short_name, &read);
            item.insert("latestVersion".to_owned(), latest(&read));
            item
        }))
    });
    let items: Vec<_> = items.buffered(LOOKUP_CONCURRENCY).try_collect().await?;
    let items: Vec<_> = items.into_iter().flatten().collect();
    let next = Some(token).filter(|token| !token.is_empty());
    Ok(json!({"items": items, "nextCursor": next}))
}

async fn search(reader: &SkillReader, call: &ReadRequest) -> Result<Json, Refusal> {
    let request = v1::SearchRequest {
        query: required(call, "q")?.to_owned(),
        limit: Some(limit(call, MAX_FOUND)),
        ..Default::default()
    };
    let mut lookup = reader.lookup();
    let found = lookup.search(call.context.request(request)).await?;
    // A skill that lost its short name bears its id there, which no slug can be.
    let found = found.into_inner().results.into_iter();
    let found = found.filter(|skill| !skill.short_name.contains('/'));
    let results = stream::iter(found).map(|skill| async move {
        let read = unless_gone(detail(reader, call, &skill.id).await)?;
        Ok::<_, Refusal>(read.map(|read| {
            json!({
                "score": score(&skill.r#match.unwrap_or_default()),
                "slug": skill.short_name,
                "displayName": read.name,
                "summary": read.description,
                "version": read.current_version,
                "updatedAt": millis(read.updated_at.as_ref()),
            })
        }))
    });
    let results: Vec<_> = results.buffered(LOOKUP_CONCURRENCY).try_collect().await?;
    let results: Vec<_> = results.into_iter().flatten().collect();
    Ok(json!({"results": results}))
}

/// One number for the tier of a match and its place in it, from 0 to 1.
fn score(why: &v1::SearchMatch) -> f64 {
    let (min, span) = match why.tier() {
        v1::MatchTier::Name => return 1.0,
        v1::MatchTier::NameWords => (0.75, 0.25),
        v1::MatchTier::Words | v1::MatchTier::Meaning | v1::MatchTier::Unspecified => (0.0, 0.75),
    };
    // Scores have no upper bound, so they are mapped to the span of their tier; a better tier
    // always wins.
    min + span * why.score / (1.0 + why.score)
}

async fn version_page(
    reader: &SkillReader,
    call: &ReadRequest,
    slug: &str,
    size: i32,
) -> Result<v1::ListVersionsResponse, Refusal> {
    let request = v1::ListVersionsRequest {
        skill_id: slug.to_owned(),
        page_size: size,
        page_token: call.asked("cursor").unwrap_or_default().to_owned(),
    };
    let mut registry = reader.registry();
    let page = registry
        .list_versions(call.context.request(request))
        .await?;
    Ok(page.into_inner())
}

async fn versions(reader: &SkillReader, call: &ReadRequest, slug: &str) -> Result<Json, Refusal> {
    let page = version_page(reader, call, slug, limit(call, MAX)).await?;
    let items: Vec<_> = page.versions.iter().map(version_json).collect();
    let next = Some(page.next_page_token).filter(|token| !token.is_empty());
    Ok(json!({"items": items, "nextCursor": next}))
}

async fn one_version(
    reader: &SkillReader,
    call: &ReadRequest,
    slug: &str,
    version: &str,
) -> Result<Json, Refusal> {
    let request = v1::GetVersionRequest {
        skill_id: slug.to_owned(),
        semantic_version: version.to_owned(),
        ..Default::default()
    };
    let mut registry = reader.registry();
    let got = registry.get_version(call.context.request(request)).await?;
    let version = got.into_inner().version.unwrap_or_default();
    let info = version.info.unwrap_or_default();
    let mut files: Vec<_> = version.resources.iter().chain(&version.scripts).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let files: Vec<_> = files
        .into_iter()
        .map(|file| {
            json!({
                "path": file.path,
                "size": file.size_bytes,
                "sha256": hex(file),
                "contentType": file.mime_type,
            })
        })
        .collect();
    let mut json = version_json(&info);
    if let Json::Object(json) = &mut json {
        json.insert("files".to_owned(), files.into());
    }
    Ok(json!({"skill": {"slug": slug, "displayName": version.name}, "version": json}))
}

/// The version whose files have a fingerprint, among the newest.
async fn resolve(reader: &SkillReader, call: &ReadRequest) -> Result<Json, Refusal> {
    let slug = required(call, "slug")?;
    let hash = required(call, "hash")?.to_ascii_lowercase();
    let page = version_page(reader, call, slug, MAX_COMPARED_VERSIONS).await?;
    let active = page.versions.iter();
    let mut active = active.filter(|version| version.version_number == page.active_version);
    let latest = match active.next() {
        Some(version) => Some(version.semantic_version.clone()),
        None => Some(detail(reader, call, slug).await?.current_version),
    };
    let skill_id = page.skill_id.as_str();
    let compared = stream::iter(page.versions).map(|version| async move {
        let which = Which {
            number: version.version_number,
            ..Which::default()
        };
        let files = unless_gone(reader.files(skill_id, &which, &call.context).await)?;
        let print = files.map(|files| fingerprint(&files.files));
        Ok::<_, Refusal>((version.semantic_version, print))
    });
    let mut compared = std::pin::pin!(compared.buffered(LOOKUP_CONCURRENCY));
    let mut found = Json::Null;
    while let Some((version, print)) = compared.try_next().await? {
        if print.as_deref() == Some(&hash) {
            found = json!({"version": version});
            break;
        }
    }
    let latest = latest.map(|version| json!({"version": version}));
    Ok(json!({"slug": slug, "match": found, "latestVersion": latest}))
}
