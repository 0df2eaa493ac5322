//! Reads skills for discovery protocols: by short name, with files and archives.
//!
//! These protocols know a skill by one name, so of several skills with a short name
//! only the one that wins it is here.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use quick_cache::sync::Cache;
use tonic::Code;

use super::stream::{sandbox, set, unchanged};
use access::Access;
use contract::v1;
use contract::v1::lookup_client::LookupClient;
use contract::v1::registry_client::RegistryClient;
use gateway::{Context, Gateway, MAX_MESSAGE_BYTES, Refusal, Transport, decode_part};
use model::Failure;

/// Digests of archives that are remembered: some 200 bytes each.
const DIGEST_CACHE_CAPACITY: usize = 65_536;

/// Reads of a gateway.
#[derive(Debug, Clone)]
pub(super) struct SkillReader {
    transport: Transport,
    /// Digest of the archive by digest of the version, which decides its bytes.
    archives: Arc<Cache<String, String>>,
}

/// Which version of a skill.
#[derive(Debug, Clone, Default)]
pub(super) struct Which {
    pub(super) number: u32,
    pub(super) semantic: String,
}

impl SkillReader {
    pub(super) fn new(gateway: &Gateway) -> Self {
        Self {
            transport: gateway.transport(),
            archives: Arc::new(Cache::new(DIGEST_CACHE_CAPACITY)),
        }
    }

    pub(super) fn lookup(&self) -> LookupClient<Transport> {
        LookupClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn registry(&self) -> RegistryClient<Transport> {
        RegistryClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// A page of all skills.
    pub(super) async fn page(
        &self,
        size: i32,
        token: &str,
        context: &Context,
    ) -> Result<v1::ListSkillsResponse, Refusal> {
        let request = v1::ListSkillsRequest {
            page_size: size,
            page_token: token.to_owned(),
            ..Default::default()
        };
        let page = self.lookup().list_skills(context.request(request)).await?;
        Ok(page.into_inner())
    }

    /// The files of a version; the active one where none is named.
    pub(super) async fn files(
        &self,
        skill_id: &str,
        which: &Which,
        context: &Context,
    ) -> Result<v1::ListFilesResponse, Refusal> {
        let request = v1::ListFilesRequest {
            skill_id: skill_id.to_owned(),
            version_number: which.number,
            semantic_version: which.semantic.clone(),
        };
        let files = self.lookup().list_files(context.request(request)).await?;
        Ok(files.into_inner())
    }

    /// The digest of the archive of a version.
    pub(super) async fn archive_digest(
        &self,
        files: &v1::ListFilesResponse,
        context: &Context,
    ) -> Result<String, Refusal> {
        // Keyed by the digest of the version, which decides the bytes of its archive, so an entry
        // never goes stale.
        if let Some(digest) = self.archives.get(&files.digest) {
            return Ok(digest);
        }
        let which = Which {
            number: files.version_number,
            ..Which::default()
        };
        let format = v1::ArchiveFormat::TarGz;
        let exported = self.export(&files.skill_id, &which, format, true, context);
        let digest = exported.await?.0.digest;
        self.archives.insert(files.digest.clone(), digest.clone());
        Ok(digest)
    }

    /// Exports an archive: its description, and its bytes as they come.
    async fn export(
        &self,
        skill_id: &str,
        which: &Which,
        format: v1::ArchiveFormat,
        info_only: bool,
        context: &Context,
    ) -> Result<(v1::ArchiveInfo, Body), Refusal> {
        let request = v1::ExportSkillRequest {
            skill_id: skill_id.to_owned(),
            version_number: which.number,
            semantic_version: which.semantic.clone(),
            format: format.into(),
            info_only,
        };
        let mut registry = self.registry();
        let pieces = registry.export_skill(context.request(request)).await?;
        let mut pieces = pieces.into_inner();
        let empty = || Refusal::from(Failure::fault("an export without a first message"));
        let first = pieces.message().await?.ok_or_else(empty)?;
        let info = first.info.ok_or_else(empty)?;
        let rest = pieces.map(|piece| piece.map(|piece| piece.chunk).map_err(Refusal::from));
        let bytes = stream::iter([Ok(first.chunk)]).chain(rest);
        Ok((info, Body::from_stream(bytes)))
    }

    /// An archive as an answer.
    pub(super) async fn archive(
        &self,
        skill_id: &str,
        which: &Which,
        format: v1::ArchiveFormat,
        call: &ReadRequest,
    ) -> Result<Response, Refusal> {
        let exported = self.export(skill_id, which, format, false, &call.context);
        let (info, body) = exported.await?;
        let name = format!("attachment; filename=\"{}\"", info.file_name);
        let mut answer = call.file(&info.digest, &info.mime_type, body);
        // Slugs and versions are plain text, so the name needs no escapes.
        set(answer.headers_mut(), header::CONTENT_DISPOSITION, &name);
        if answer.status() == StatusCode::OK {
            let size = info.size_bytes.unsigned_abs();
            let headers = answer.headers_mut();
            headers.insert(header::CONTENT_LENGTH, size.into());
        }
        Ok(answer)
    }

    /// A file as an answer.
    pub(super) async fn file(
        &self,
        skill_id: &str,
        which: &Which,
        path: &str,
        call: &ReadRequest,
    ) -> Result<Response, Refusal> {
        let request = v1::ReadFileRequest {
            skill_id: skill_id.to_owned(),
            path: path.to_owned(),
            version_number: which.number,
            semantic_version: which.semantic.clone(),
            ..Default::default()
        };
        let mut lookup = self.lookup();
        let read = lookup.read_file(call.context.request(request)).await?;
        let v1::ReadFileResponse { file, content, .. } = read.into_inner();
        let v1::FileEntry {
            digest, mime_type, ..
        } = file.unwrap_or_default();
        let media = match mime_type.strip_prefix("text/") {
            Some(_) => format!("{mime_type}; charset=utf-8"),
            None => mime_type,
        };
        Ok(call.file(&digest, &media, Body::from(content)))
    }
}

/// A skill that protocols of one name may offer: it wins its short name.
pub(super) fn wins(skill: &v1::SkillMetadata) -> bool {
    !skill.short_name.is_empty() && !skill.short_name.contains('/')
}

/// Turns a skill that was deleted in the meantime into none.
pub(super) fn unless_gone<T>(read: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(refusal) if refusal.status == Code::NotFound => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// The parts of a request to read something.
#[derive(Debug)]
pub(super) struct ReadRequest {
    pub(super) context: Context,
    /// Segments of the path after the prefix of the protocol, decoded.
    pub(super) path: Vec<String>,
    pub(super) query: Vec<(String, String)>,
    headers: HeaderMap,
    /// The answer never changes.
    pub(super) immutable: bool,
    /// The caller did not sign in, so all such callers get the same answer.
    is_anonymous: bool,
}

impl ReadRequest {
    /// # Errors
    /// The URL is not percent-encoded UTF-8.
    pub(super) fn read(request: &http::request::Parts, prefix: &str) -> Result<Self, Refusal> {
        let path = request.uri.path();
        let rest = path.strip_prefix(prefix).unwrap_or_default();
        let segments = rest.split('/').map(|segment| decode_part(segment, "path"));
        let access = request.extensions.get::<Access>();
        Ok(Self {
            context: Context::of(request),
            path: segments.collect::<Result<_, _>>()?,
            query: super::rest::query(request.uri.query().unwrap_or_default())?,
            headers: request.headers.clone(),
            immutable: false,
            is_anonymous: access.is_none_or(|access| access.caller.is_anonymous()),
        })
    }

    /// The first value of a key of the query.
    pub(super) fn asked(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.iter();
        let (_, value) = pairs.find(|(key, _)| key == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// A header of the request.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Answers with bytes and their digest, or that the caller has them already.
    pub(super) fn file(&self, digest: &str, media: &str, body: Body) -> Response {
        self.tagged(&format!("\"{digest}\""), media, body)
    }

    pub(super) fn tagged(&self, tag: &str, media: &str, body: Body) -> Response {
        let cache = match (self.immutable, self.is_anonymous) {
            (true, true) => "public, max-age=31536000, immutable",
            // A shared cache would serve it to callers that may not see it.
            (true, false) => "private, max-age=31536000, immutable",
            (false, _) => "no-cache",
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        set(&mut headers, header::ETAG, tag);
        set(&mut headers, header::CONTENT_TYPE, media);
        sandbox(&mut headers);
        if unchanged(&self.headers, tag) {
            // An answer without a body has no type; the other headers update the cached copy.
            headers.remove(header::CONTENT_TYPE);
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        (headers, body).into_response()
    }
}
