//! The Skills extension v1 (`io.modelcontextprotocol/skills`, SEP-2640): skills
//! with their files and digests.
//!
//! The extension requires names and descriptions of the Agent Skills standard, and a host
//! compares the front matter in an answer with that of the file. So skills that break the
//! standard, or whose front matter could only be read with repairs, are not offered here; as
//! resources, prompts and tools they are.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, GetSkillResult, ListSkillsResult, PaginatedRequestParams,
    ReadResourceDirectoryResult, Resource, Skill, SkillFrontmatter, SkillResource, SkillResources,
};
use serde_json::{Map, Value as Json, json};

use super::error::{self, protocol};
use super::handler::{Handler, TTL_MS, caller};
use super::resources::{MARKDOWN, cursor, select};
use gateway::Refusal;
use model::{
    MAX_OFFERED_FILES, MAX_STANDARD_DESCRIPTION_CHARS, SkillUri, SkillUriError, VersionSelector,
};

/// Media type of a directory.
const DIRECTORY: &str = "inode/directory";
const ENTRY: &str = "SKILL.md";
/// Skills of a page that are looked up at once.
const LOOKUP_CONCURRENCY: usize = 8;

/// Rules of problems after which the parsed front matter differs from that of the file.
const ALTERED_RULES: [&str; 6] = [
    "front-matter-repaired",
    "front-matter-dropped",
    "front-matter-not-first",
    "front-matter-unclosed",
    "number-not-exact",
    "key-not-text",
];

/// A version of a skill as this extension needs it.
struct ServedVersion {
    front_matter: Map<String, Json>,
    name: String,
    description: String,
    files: Vec<File>,
    /// Rules of its problems.
    rules: Vec<String>,
    /// Its author reserves it for people.
    is_manual: bool,
}

struct File {
    path: String,
    digest: String,
    size: u64,
    mime_type: String,
}

fn text(json: &Json, field: &str) -> String {
    let value = json.get(field).and_then(Json::as_str);
    value.unwrap_or_default().to_owned()
}

/// Returns whether this entry of front matter reserves a skill for people.
fn is_manual(key: &str, value: &Json) -> bool {
    const KEY: &str = "disable-model-invocation";
    // Hosts read YAML differently, so what one of them may take for yes counts as yes.
    let is_no = match value {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => matches!(text.to_lowercase().as_str(), "false" | "no" | "off"),
        _ => false,
    };
    key.to_lowercase().replace('_', "-") == KEY && !is_no
}

impl ServedVersion {
    fn read(answer: &Json) -> Option<Self> {
        let version = answer.get("version")?;
        let list = |field: &str| version.get(field).and_then(Json::as_array);
        let files = ["resources", "scripts"].into_iter().filter_map(list);
        let mut files: Vec<_> = files
            .flatten()
            .map(|file| File {
                path: text(file, "path"),
                digest: text(file, "digest"),
                size: file
                    .get("size_bytes")
                    .and_then(Json::as_u64)
                    .unwrap_or_default(),
                mime_type: text(file, "mime_type"),
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let front_matter = version.get("front_matter")?.as_object()?.clone();
        Some(Self {
            is_manual: front_matter
                .iter()
                .any(|(key, value)| is_manual(key, value)),
            front_matter,
            name: text(version, "name"),
            description: text(version, "description"),
            files,
            rules: list("problems")
                .into_iter()
                .flatten()
                .map(|problem| text(problem, "rule"))
                .collect(),
        })
    }

    /// Returns the entry of a skill whose files are below `root`, which ends with `/`; or why the
    /// extension has none.
    fn entry(self, root: &str) -> Result<Skill, String> {
        let mut rules = self.rules.iter();
        if rules.any(|rule| ALTERED_RULES.contains(&rule.as_str())) {
            return Err("its front matter was read with repairs".to_owned());
        }
        if self.files.len() > MAX_OFFERED_FILES {
            return Err(format!("it has more than {MAX_OFFERED_FILES} files"));
        }
        let written = |key| self.front_matter.get(key).and_then(Json::as_str);
        // As the file has them, with every space: hosts compare them with the file.
        let (Some(name), Some(description)) = (written("name"), written("description")) else {
            return Err("its name or description is not text".to_owned());
        };
        if description.chars().count() > MAX_STANDARD_DESCRIPTION_CHARS {
            return Err("its description is too long".to_owned());
        }
        let mut front_matter = SkillFrontmatter::new(name, description);
        for (key, value) in self.front_matter {
            if key != "name" && key != "description" {
                front_matter = front_matter.with_field(key, value);
            }
        }
        let files = self
            .files
            .into_iter()
            .map(|file| SkillResource::new(address(root, &file.path), file.digest, file.size));
        let entry = Skill::new(
            format!("{root}{ENTRY}"),
            front_matter,
            SkillResources::Files(files.collect()),
        );
        entry.validate().map_err(|error| error.to_string())?;
        Ok(entry)
    }
}

/// Returns the address of a file below a root.
fn address(root: &str, path: &str) -> String {
    format!("{root}{}", SkillUri::encoded(path))
}

/// Builds the error for an address that leads to nothing.
fn unknown(uri: &str, why: String) -> ErrorData {
    ErrorData::invalid_params(why, Some(json!({"uri": error::address(uri)})))
}

/// Parses an address; an error repeats the `uri` that the client sent.
fn parsed(text: &str, uri: &str) -> Result<SkillUri, ErrorData> {
    text.parse()
        .map_err(|error: SkillUriError| unknown(uri, error.to_string()))
}

impl Handler {
    async fn version(
        &self,
        skill_id: &str,
        version: VersionSelector,
    ) -> Result<ServedVersion, Refusal> {
        let (mut number, mut semantic) = (0, String::new());
        select(version, &mut number, &mut semantic);
        let request = json!({
            "skill_id": skill_id, "version_number": number, "semantic_version": semantic,
        });
        let answer = self.gateway().ask("GetVersion", request, caller()).await?;
        ServedVersion::read(&answer)
            .ok_or_else(|| model::Failure::fault("a version without its front matter").into())
    }

    /// Lists a page of the skills that keep to the standard, without those reserved for people: a
    /// host shows its model what it lists.
    pub(super) async fn skills(
        &self,
        params: Option<PaginatedRequestParams>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let page = self.page(params).await?;
        let standard = page.skills.into_iter().filter(|skill| skill.standard);
        let entries = stream::iter(standard).map(|skill| async move {
            match self.version(&skill.id, VersionSelector::Active).await {
                Ok(version) => {
                    let root = skill.uri.strip_suffix(ENTRY).unwrap_or(&skill.uri);
                    let offered = Some(version).filter(|version| !version.is_manual);
                    Ok(offered.and_then(|version| version.entry(root).ok()))
                }
                // Deleted or withdrawn since the page was made.
                Err(refusal) if refusal.is_missing() => Ok(None),
                Err(refusal) => Err(protocol(&refusal)),
            }
        });
        let entries: Vec<_> = entries.buffered(LOOKUP_CONCURRENCY).try_collect().await?;
        let mut result = ListSkillsResult::with_all_items(entries.into_iter().flatten().collect());
        result.next_cursor = cursor(page.next_page_token);
        Ok(result
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    /// Returns the skill whose instructions an address names.
    pub(super) async fn skill(&self, uri: &str) -> Result<GetSkillResult, ErrorData> {
        let parsed = parsed(uri, uri)?;
        let root = uri.strip_suffix(ENTRY).ok_or_else(|| {
            let address = error::address(uri);
            unknown(uri, format!("'{address}' is not the address of a SKILL.md"))
        })?;
        let skill_id = parsed.skill.to_string();
        let version = self.version(&skill_id, parsed.version).await;
        let version = version.map_err(|refusal| error::skill(&refusal, uri))?;
        // A skill that the extension cannot describe does not exist for it.
        let entry = version.entry(root).map_err(|error| {
            let address = error::address(uri);
            let why = format!(
                "the skill at '{address}' does not keep to the Agent Skills standard: {error}"
            );
            unknown(uri, why)
        })?;
        Ok(GetSkillResult::new(entry)
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    /// Lists what is directly below a skill, or below a directory of one.
    pub(super) async fn directory(
        &self,
        uri: &str,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        let base = uri.trim_end_matches('/');
        let parsed = parsed(base, uri)?;
        let skill_id = parsed.skill.to_string();
        let version = self.version(&skill_id, parsed.version).await;
        let version = version.map_err(|refusal| error::skill(&refusal, uri))?;
        let inside = parsed
            .file
            .map(|path| format!("{path}/"))
            .unwrap_or_default();
        let mut children: Vec<Resource> = Vec::new();
        for file in &version.files {
            let Some(rest) = file.path.strip_prefix(&inside) else {
                continue;
            };
            let (name, directory) = match rest.split_once('/') {
                Some((name, _)) => (name, true),
                None => (rest, false),
            };
            let address = format!("{base}/{}", SkillUri::encoded(name));
            // Files come in the order of their paths, so a directory's are together.
            if children.last().is_some_and(|last| last.uri == address) {
                continue;
            }
            children.push(if directory {
                Resource::new(address, name).with_mime_type(DIRECTORY)
            } else if file.path == ENTRY {
                Resource::new(address, version.name.clone())
                    .with_description(version.description.clone())
                    .with_mime_type(MARKDOWN)
                    .with_size(file.size)
            } else {
                Resource::new(address, name)
                    .with_mime_type(file.mime_type.clone())
                    .with_size(file.size)
            });
        }
        if children.is_empty() {
            let address = error::address(uri);
            let why = format!("'{address}' is not a directory of the skill");
            return Err(unknown(uri, why));
        }
        Ok(ReadResourceDirectoryResult::with_all_items(children))
    }
}
