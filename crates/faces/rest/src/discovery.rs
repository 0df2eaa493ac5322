//! Discovery at well-known addresses: the skills of the server, and their files.
//!
//! * `/.well-known/agent-skills/index.json`, version 0.2.0: each skill is its
//!   `SKILL.md` or, where it has more files, an archive, with the digest of its bytes.
//! * `/.well-known/skills/index.json`, version 0.1: each skill with its files, which
//!   are below `/.well-known/skills/NAME/`.
//!
//! In the index are skills of the Agent Skills standard that win their short name.
//! What the index of 0.2.0 points to is a version by its number, which never changes
//! and is never used again, so it may be kept for good. An index is written page by
//! page while it is sent; its tag is the place in the log of changes.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};

use super::problem::refused;
use super::rest::nowhere;
use super::skill_reader::{ReadRequest, SkillReader, Which, unless_gone, wins};
use contract::v1;
use gateway::{Context, Refusal};
use model::is_standard_name;

const SKILLS: &str = "/.well-known/agent-skills/";
const SKILLS_0_1: &str = "/.well-known/skills/";
const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
/// Skills of a page, and skills whose files are read at once.
const SKILLS_PER_PAGE: i32 = 200;
const LOOKUP_CONCURRENCY: usize = 8;
/// Characters of a path that need no escape.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~')
    .remove(b'@');

/// The routes of both versions.
pub(super) fn router<S: Clone + Send + Sync + 'static>(reader: SkillReader) -> Router<S> {
    Router::new()
        .route(&format!("{SKILLS}{{*path}}"), of(SKILLS))
        .route(&format!("{SKILLS_0_1}{{*path}}"), of(SKILLS_0_1))
        .with_state(reader)
}

fn of(prefix: &'static str) -> MethodRouter<SkillReader> {
    get(
        async move |State(reader): State<SkillReader>, request: Request| {
            let (request, _) = request.into_parts();
            let answered = answer(&reader, &request, prefix).await;
            answered.unwrap_or_else(refused)
        },
    )
}

async fn answer(
    reader: &SkillReader,
    request: &http::request::Parts,
    prefix: &str,
) -> Result<Response, Refusal> {
    let mut call = ReadRequest::read(request, prefix)?;
    let path = std::mem::take(&mut call.path);
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["index.json"] => index(reader, &call, prefix == SKILLS).await,
        // A version that the index names.
        [source, author, slug, number, rest @ ..]
            if prefix == SKILLS && !rest.is_empty() && number.starts_with('@') =>
        {
            let which = number.get(1..).and_then(|number| number.parse().ok());
            let Some(number) = which.filter(|number| *number > 0) else {
                return Ok(nowhere(request.uri.path()));
            };
            let id = format!("{source}/{author}/{slug}");
            let which = Which {
                number,
                ..Which::default()
            };
            // A number is never used again, not even after a delete, so the answer is cached for
            // good.
            call.immutable = true;
            file(reader, &id, slug, &which, &rest.join("/"), &call).await
        }
        // The active version of the skill that wins the name.
        [name] if prefix == SKILLS => match name.strip_suffix(".tar.gz") {
            Some(name) if is_standard_name(name) => {
                file(reader, name, name, &Which::default(), &archive(name), &call).await
            }
            _ => Ok(nowhere(request.uri.path())),
        },
        [name, rest @ ..] if is_standard_name(name) && !rest.is_empty() => {
            let path = rest.join("/");
            reader.file(name, &Which::default(), &path, &call).await
        }
        _ => Ok(nowhere(request.uri.path())),
    }
}

/// The name of the archive beside the files of a skill. No file of a skill can be
/// asked for under it: it would need to be in the index.
fn archive(slug: &str) -> String {
    format!("{slug}.tar.gz")
}

async fn file(
    reader: &SkillReader,
    id: &str,
    slug: &str,
    which: &Which,
    path: &str,
    call: &ReadRequest,
) -> Result<Response, Refusal> {
    if path == archive(slug) {
        let format = v1::ArchiveFormat::TarGz;
        return reader.archive(id, which, format, call).await;
    }
    reader.file(id, which, path, call).await
}

/// Writes the index of one of the two protocol versions.
async fn index(reader: &SkillReader, call: &ReadRequest, new: bool) -> Result<Response, Refusal> {
    let first = reader.page(SKILLS_PER_PAGE, "", &call.context).await?;
    // Weak: the tag stands for a position in the log, not for these bytes.
    let tag = format!("W/\"{}\"", first.resume_token);
    let begin = if new {
        format!("{{\"$schema\":\"{SCHEMA}\",\"skills\":[")
    } else {
        "{\"skills\":[".to_owned()
    };
    let entries = entries(reader.clone(), call.context.clone(), first, new);
    // A comma before each but the first.
    let entries = entries.enumerate().map(|(at, entry)| {
        let comma = if at == 0 { "" } else { "," };
        entry.map(|entry| format!("{comma}\n{entry}"))
    });
    let text = stream::iter([Ok(begin)])
        .chain(entries)
        .chain(stream::iter([Ok("\n]}\n".to_owned())]));
    Ok(call.tagged(&tag, "application/json", Body::from_stream(text)))
}

/// The entries of all skills that may be in an index, in the order of their ids.
fn entries(
    reader: SkillReader,
    context: Context,
    first: v1::ListSkillsResponse,
    new: bool,
) -> impl Stream<Item = Result<Json, Refusal>> + Send + 'static {
    let pages = {
        let (reader, context) = (reader.clone(), context.clone());
        stream::try_unfold(Some(first), move |page| {
            let (reader, context) = (reader.clone(), context.clone());
            async move {
                let Some(v1::ListSkillsResponse {
                    skills,
                    next_page_token: token,
                    ..
                }) = page
                else {
                    return Ok::<_, Refusal>(None);
                };
                let next = match token.as_str() {
                    "" => None,
                    token => Some(reader.page(SKILLS_PER_PAGE, token, &context).await?),
                };
                Ok(Some((skills, next)))
            }
        })
    };
    let offered = |skill: &v1::SkillMetadata| skill.standard && wins(skill);
    let skills = pages.map_ok(move |skills| {
        let offered = skills.into_iter().filter(move |skill| offered(skill));
        stream::iter(offered.map(Ok::<_, Refusal>))
    });
    skills
        .try_flatten()
        .map_ok(move |skill| {
            let (reader, context) = (reader.clone(), context.clone());
            async move { unless_gone(entry(&reader, &context, &skill, new).await) }
        })
        .try_buffered(LOOKUP_CONCURRENCY)
        .try_filter_map(|entry| std::future::ready(Ok(entry)))
}

/// Returns the entry of a skill in an index.
async fn entry(
    reader: &SkillReader,
    context: &Context,
    skill: &v1::SkillMetadata,
    new: bool,
) -> Result<Json, Refusal> {
    let files = reader.files(&skill.id, &Which::default(), context).await?;
    if !new {
        let paths: Vec<_> = files.files.iter().map(|file| file.path.as_str()).collect();
        return Ok(json!({
            "name": skill.short_name,
            "description": skill.description,
            "files": paths,
        }));
    }
    let root = format!("{SKILLS}{}/@{}/", skill.id, files.version_number);
    let (kind, path, digest) = if let [only] = files.files.as_slice() {
        ("skill-md", only.path.clone(), only.digest.clone())
    } else {
        let digest = reader.archive_digest(&files, context).await?;
        let slug = skill.id.rsplit('/').next().unwrap_or_default();
        ("archive", archive(slug), digest)
    };
    let path = utf8_percent_encode(&path, PATH);
    Ok(json!({
        "name": skill.short_name,
        "type": kind,
        "description": skill.description,
        "url": format!("{root}{path}"),
        "digest": digest,
    }))
}
