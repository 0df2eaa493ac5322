//! The ids of skills in folders.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use model::{Digest, HOSTS, Problem, SkillId, SkillKey};
use registry::{Bundle, Candidate};

/// Authors of `local` that stand for locations: no path may name one of these as its author.
const LOCATIONS: [&str; 3] = ["project", "user", "global"];

/// The id that a folder gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The id, which is its own.
    Own(SkillId),
    /// The id of a folder with the same files.
    Copy {
        /// The id.
        id: SkillId,
        /// The folder that it is a copy of.
        of: PathBuf,
    },
}

/// Decides ids, so that no folder gets the id of another.
#[derive(Debug)]
pub struct Ids {
    named: Option<(String, String)>,
    taken: HashMap<SkillKey, (PathBuf, Digest)>,
}

impl Ids {
    /// Ids of this source and author; none: those in the path of a folder.
    #[must_use]
    pub fn new(named: Option<(String, String)>) -> Self {
        Self {
            named,
            taken: HashMap::new(),
        }
    }

    /// The id of a folder. Call it in the order of depth: the first to claim an id gets it.
    ///
    /// # Errors
    /// Its name makes no id, or another folder has it.
    pub fn claim(
        &mut self,
        bundle: &Bundle,
        candidate: &Candidate,
        path: &Path,
    ) -> Result<Claim, Vec<Problem>> {
        let slug = candidate.id.as_ref().map_or("", SkillId::slug);
        let (source, author) = self.namespace(path);
        let id = SkillId::new(&source, &author, slug)
            .map_err(|error| vec![Problem::error("id-invalid", "", 0, error.to_string())])?;
        match self.taken.get(&id.key()) {
            Some((first, digest)) if *digest == candidate.digest => Ok(Claim::Copy {
                id,
                of: first.clone(),
            }),
            Some((first, _)) => {
                let (entry, line) = name_line(bundle);
                let message = format!(
                    "'{id}' is taken by {}, which is less deep or goes before it by name; rename the skill, or publish it with `repertoire publish DIR --id ID`",
                    first.display()
                );
                Err(vec![Problem::error("id-taken", &entry, line, message)])
            }
            None => {
                let claimed = (path.to_owned(), candidate.digest);
                self.taken.insert(id.key(), claimed);
                Ok(Claim::Own(id))
            }
        }
    }

    /// Source and author: those that were named, else those in the path.
    fn namespace(&self, path: &Path) -> (String, String) {
        let local = || (SkillId::LOCAL.to_owned(), "global".to_owned());
        let named = self.named.clone();
        named
            .or_else(|| in_path(&skill_folder::absolute(path)))
            .unwrap_or_else(local)
    }
}

/// Source and author, where a folder of the path is a clone that names them:
/// `github.com/OWNER/REPOSITORY`, or `OWNER__REPOSITORY`. The nearest one counts.
fn in_path(path: &Path) -> Option<(String, String)> {
    let names: Vec<&str> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    (0..names.len()).rev().find_map(|at| {
        let name = *names.get(at)?;
        let host = HOSTS.iter().find(|(host, _)| *host == name);
        if let Some((_, source)) = host {
            let (owner, _repository) = (*names.get(at + 1)?, names.get(at + 2)?);
            return is_owner(owner).then(|| ((*source).to_owned(), owner.to_owned()));
        }
        let (owner, repository) = name.split_once("__")?;
        let is_known = LOCATIONS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(owner));
        let is_clone =
            is_owner(owner) && !is_known && repository.starts_with(char::is_alphanumeric);
        is_clone.then(|| (SkillId::LOCAL.to_owned(), owner.to_owned()))
    })
}

/// A name that hosts of repositories allow for users.
fn is_owner(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// The file and line with the name of a skill.
fn name_line(bundle: &Bundle) -> (String, usize) {
    let entry = bundle
        .files
        .iter()
        .find(|(path, _)| path.as_str().eq_ignore_ascii_case("skill.md"));
    let Some((path, content)) = entry else {
        return (String::new(), 0);
    };
    let named = |line: &[u8]| {
        line.get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"name:"))
    };
    let line = content
        .split(|byte| *byte == b'\n')
        .position(named)
        .map_or(1, |at| at + 1);
    (path.to_string(), line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_source_and_author_where_a_clone_has_them_in_its_place() {
        for (path, found) in [
            ("/src/github.com/acme/skills/pdf", Some(("github", "acme"))),
            ("/src/gitlab.com/a-b/x", Some(("gitlab", "a-b"))),
            ("/corpus/acme__skills/skills/pdf", Some(("local", "acme"))),
            ("/a__b/c__d/pdf", Some(("local", "c"))),
            ("/github.com/acme/skills/x__y", Some(("local", "x"))),
            ("/src/github.com/acme", None),
            ("/src/github.com/a_b/skills", None),
            ("/home/me/skills/pdf", None),
            ("/tmp/test_of__this/pdf", None),
            ("/x/__pycache__/pdf", None),
            ("/x/project__notes/pdf", None),
            ("/x/a___b/pdf", None),
            ("/x/a__/pdf", None),
        ] {
            let (source, author) = in_path(Path::new(path)).unzip();
            let told = source.as_deref().zip(author.as_deref());
            assert_eq!(told, found, "{path}");
        }
    }
}
