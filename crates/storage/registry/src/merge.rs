//! Some of a skill, sent to be published: it is merged into the version that is active.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::publish::bumped;
use super::{Error, Registry};
use executor::{Kind, Stop};
use model::{FilePath, Principal, SkillId, Version, VersionSelector};
use skill_md::Draft;

/// The part of a skill in a submission.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Files that take the place of those of their paths, or are added.
    pub(super) files: BTreeMap<FilePath, Bytes>,
    /// Fields of its SKILL.md; what is empty stays.
    pub(super) draft: Draft,
}

/// Returns whether a SKILL.md is among the files: then they are a whole skill, or were meant to
/// be one, and are not merged.
pub(super) fn is_whole(files: &[(String, Bytes)]) -> bool {
    let is_skill_md = |path: &str| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
        name.eq_ignore_ascii_case(FilePath::SKILL_MD)
    };
    files.iter().any(|(path, _)| is_skill_md(path))
}

impl Part {
    fn is_same(&self, files: &BTreeMap<FilePath, Bytes>) -> bool {
        let mut sent = self.files.iter();
        sent.all(|(path, content)| files.get(path) == Some(content))
    }
}

impl Registry {
    /// Returns the version that a part is merged into: the active one, where there is one.
    pub(super) fn base(&self, id: &SkillId) -> Result<Option<Arc<Version>>, Error> {
        let catalog = self.catalog();
        let Some(head) = catalog.get(&id.key()).filter(|head| head.active.is_some()) else {
            return Ok(None);
        };
        self.version(head, &VersionSelector::Active).map(Some)
    }

    /// Returns the files of a version, with a part of them replaced. Where anything differs, a
    /// version that the front matter states is raised, since its content is another one.
    pub(super) async fn merge(
        &self,
        kind: Kind,
        id: &SkillId,
        base: Arc<Version>,
        part: Part,
        principal: &Principal,
    ) -> Result<BTreeMap<FilePath, Bytes>, Error> {
        self.inner.policy.names.permit(id, principal)?;
        admission::reserve(base.size()).await?;
        let (this, of) = (self.clone(), id.clone());
        let number = base.number;
        let merge = move |stop: &Stop| {
            let mut files = BTreeMap::new();
            for file in &base.files {
                stop.check()?;
                files.insert(file.path.clone(), this.content(file)?);
            }
            let is_same = part.is_same(&files);
            files.extend(part.files);
            let revised = this.revise(&of, &base, &files, part.draft, is_same)?;
            files.insert(base.skill.entry.clone(), revised);
            Ok::<_, Error>(files)
        };
        let merged = self.executor().run_fallible(kind, merge).await;
        merged.map_err(|error| self.gone(id, number, error))
    }

    /// Returns the instructions of a version with some fields replaced.
    fn revise(
        &self,
        id: &SkillId,
        base: &Version,
        files: &BTreeMap<FilePath, Bytes>,
        mut draft: Draft,
        is_same: bool,
    ) -> Result<Bytes, Error> {
        let entry = &base.skill.entry;
        let content = files.get(entry).cloned().unwrap_or_default();
        let unreadable = || Error::Internal(format!("{entry} of '{id}' was read before"));
        let text = std::str::from_utf8(&content).map_err(|_| unreadable())?;
        let revise =
            |draft: &Draft| skill_md::revise(text, &base.skill, draft).ok_or_else(unreadable);
        let asked = draft.version.take();
        let mut revised = revise(&draft)?;
        let is_same = is_same && revised == text;
        draft.version = match asked {
            // It states the version that it has already.
            Some(asked) if is_same && asked == base.semantic.to_string() => None,
            Some(asked) => Some(asked),
            None if is_same || base.skill.version.is_none() => None,
            None => {
                let head = self.head(id)?;
                let next = bumped(Some(&head.highest));
                let next = next.ok_or_else(|| Error::OutOfVersions { id: id.clone() })?;
                Some(next.to_string())
            }
        };
        if draft.version.is_some() {
            revised = revise(&draft)?;
        }
        Ok(Bytes::from(revised))
    }
}
