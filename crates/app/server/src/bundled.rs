//! The skills that come with the server.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use include_dir::{Dir, DirEntry, include_dir};

use gateway::Contract;
use model::{FilePath, Principal, SkillId};
use registry::{Bundle, Caller, Error, Names, Registry};

pub(super) static SKILLS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../../skills");

/// The folder of the learning paths.
pub(super) const PATHS: &str = "paths";

/// Author of the skills that come with the server.
const AUTHOR: &str = "repertoire";

/// Adds the files of a folder, by their paths below `root`.
pub(super) fn collect(
    dir: &'static Dir<'static>,
    root: &Path,
    files: &mut BTreeMap<FilePath, Bytes>,
) {
    for entry in dir.entries() {
        match entry {
            DirEntry::Dir(dir) => collect(dir, root, files),
            DirEntry::File(file) => {
                let path = file.path().strip_prefix(root).unwrap_or(file.path());
                // The test below opens every file, so none is left out here.
                if let Some(Ok(path)) = path.to_str().map(str::parse::<FilePath>) {
                    files.insert(path, Bytes::from_static(file.contents()));
                }
            }
        }
    }
}

/// Folders of skills; `paths` is one of learning paths.
fn skills() -> impl Iterator<Item = &'static Dir<'static>> {
    let dirs = SKILLS.dirs();
    dirs.filter(|dir| dir.path() != Path::new(PATHS))
}

/// The skills that come with the server, each under the id it is published as.
#[must_use]
pub fn bundled_skills() -> Vec<Bundle> {
    skills()
        .filter_map(|dir| {
            let folder = dir.path().file_name()?.to_str()?.to_owned();
            let mut files = BTreeMap::new();
            collect(dir, dir.path(), &mut files);
            let id = SkillId::new(SkillId::BUILTIN, AUTHOR, &folder).ok()?;
            Some(Bundle {
                id: Some(id),
                files,
                folder,
                strict: false,
            })
        })
        .collect()
}

/// Returns the names that a server reserves: those of its bundled skills, of their tools, and of
/// the contract's.
pub(super) fn names(contract: &Contract, is_shared: bool) -> Names {
    let bundles = bundled_skills();
    let skills = bundles.iter().filter_map(|bundle| bundle.read().skill);
    let declared = skills.flat_map(|skill| skill.tool_configs);
    let tools = declared.map(|tool| tool.name);
    // A skill whose tool had the name of one of ours would be called in its place.
    let own = contract.tools(None);
    let own = own.iter().map(|tool| tool.name.clone());
    let slugs = bundles.iter().map(|bundle| bundle.folder.as_str());
    Names::reserved(slugs, tools.chain(own), is_shared)
}

/// Publishes them, and makes them active: also after a downgrade, when a later
/// version of them is stored.
pub(super) async fn publish(registry: &Registry) -> Result<(), Error> {
    let caller = Caller::new(Principal::system());
    for bundle in bundled_skills() {
        let prepared = registry.prepare(bundle).await?;
        match registry.publish(prepared, "", true, &caller).await {
            Ok(_) => {}
            Err(error @ Error::VersionConflict { .. }) => {
                // A build with changed skills and their old version: serve what is
                // stored, and say so.
                tracing::error!(%error, "a bundled skill changed without a new version; the stored one is served");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(dir: &Dir<'_>) -> usize {
        dir.files().count() + dir.dirs().map(count).sum::<usize>()
    }

    #[test]
    fn every_bundled_skill_is_accepted_without_an_error_and_with_all_its_files() {
        let skills = bundled_skills();
        let names: Vec<_> = skills.iter().map(|bundle| bundle.folder.clone()).collect();
        assert_eq!(
            names,
            [
                "jira",
                "opencode-implementer",
                "repertoire",
                "specification-engine",
                "write_sql",
                "xlsx"
            ]
        );
        for (bundle, dir) in skills.iter().zip(super::skills()) {
            assert_eq!(bundle.files.len(), count(dir), "{}", bundle.folder);
            let candidate = bundle.read();
            assert!(
                candidate.skill.is_some(),
                "{}: {:?}",
                bundle.folder,
                candidate.problems
            );
        }
    }

    /// Stored versions never change: a bundled skill that changes needs a new
    /// version. Update the list together with `version` in the front matter.
    #[test]
    fn a_bundled_skill_that_changes_gets_a_new_version() {
        let listed: Vec<String> = include_str!("bundled.lock")
            .lines()
            .map(str::to_owned)
            .collect();
        let found: Vec<String> = bundled_skills()
            .iter()
            .map(|bundle| {
                let candidate = bundle.read();
                let version = candidate
                    .skill
                    .and_then(|skill| skill.version)
                    .unwrap_or_default();
                format!("{} {version} {}", bundle.folder, candidate.digest)
            })
            .collect();
        assert_eq!(found, listed);
    }
}
