//! The folders in which agents look for skills.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Error;

/// The scope of an install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A project: below its folder.
    Project,
    /// A user: below their home.
    User,
}

/// An agent, and the folders in which it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agent {
    /// Its name in commands and locks.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Below a project.
    project: &'static str,
    /// Below the home of a person.
    user: &'static str,
    /// A variable that replaces the home, and the folder below it.
    moved_by: Option<(&'static str, &'static str)>,
}

const XDG: &str = "XDG_CONFIG_HOME";

/// The agents that are known by name. Several others look in `.agents/skills` as well.
pub const AGENTS: &[Agent] = &[
    agent(
        "claude",
        "Claude Code",
        ".claude/skills",
        ".claude/skills",
        Some(("CLAUDE_CONFIG_DIR", "skills")),
    ),
    agent(
        "agents",
        "whoever reads .agents",
        ".agents/skills",
        ".agents/skills",
        None,
    ),
    agent("cursor", "Cursor", ".cursor/skills", ".cursor/skills", None),
    agent(
        "codex",
        "Codex",
        ".agents/skills",
        ".codex/skills",
        Some(("CODEX_HOME", "skills")),
    ),
    agent(
        "gemini",
        "Gemini CLI",
        ".gemini/skills",
        ".gemini/skills",
        None,
    ),
    agent(
        "opencode",
        "OpenCode",
        ".opencode/skills",
        ".config/opencode/skills",
        Some((XDG, "opencode/skills")),
    ),
    agent(
        "copilot",
        "GitHub Copilot",
        ".github/skills",
        ".copilot/skills",
        None,
    ),
    agent(
        "windsurf",
        "Windsurf",
        ".windsurf/skills",
        ".codeium/windsurf/skills",
        None,
    ),
    agent(
        "goose",
        "Goose",
        ".goose/skills",
        ".config/goose/skills",
        Some((XDG, "goose/skills")),
    ),
    agent(
        "amp",
        "Amp",
        ".agents/skills",
        ".config/agents/skills",
        Some((XDG, "agents/skills")),
    ),
];

const fn agent(
    name: &'static str,
    title: &'static str,
    project: &'static str,
    user: &'static str,
    moved_by: Option<(&'static str, &'static str)>,
) -> Agent {
    Agent {
        name,
        title,
        project,
        user,
        moved_by,
    }
}

impl Agent {
    /// The agent of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        AGENTS.iter().find(|agent| agent.name == name)
    }

    /// Where it looks for the skills of a project.
    #[must_use]
    pub fn of_project(&self, project: &Path) -> PathBuf {
        project.join(self.project)
    }

    /// Where it looks for the skills of a person.
    #[must_use]
    pub fn of_user(&self, home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
        let moved = self.moved_by.and_then(|(name, inside)| {
            let folder = variable(name).filter(|folder| !folder.is_empty())?;
            Some(PathBuf::from(folder).join(inside))
        });
        moved.unwrap_or_else(|| home.join(self.user))
    }

    /// It is used with a project: its own folder is there.
    #[must_use]
    pub fn is_used(&self, project: &Path) -> bool {
        let own = self.project.split('/').next().unwrap_or_default();
        // `.github` is in most projects, and says nothing of Copilot. `.agents` counts only for the
        // agent whose own folder it is, at home too.
        self.name != "copilot" && self.user.starts_with(own) && project.join(own).is_dir()
    }
}

/// Resolves the links of a path that a person named. What of it is not there yet stays as it is.
///
/// # Errors
/// A link leads nowhere.
pub fn resolved(path: &Path) -> Result<PathBuf, Error> {
    root_folder::resolved(path).map_err(Error::disk(path))
}

/// The directory at a path, if it is one of the roots or below one. It need not be there
/// yet. A path that is not absolute is taken from the first root.
///
/// Links are followed before the two are compared, so neither `..` nor a link leads out. None is
/// followed afterwards: a name that becomes a link meanwhile is refused when it is opened.
///
/// # Errors
/// It is outside of all roots, or there are none.
pub fn below(roots: &[PathBuf], path: &Path) -> Result<PathBuf, Error> {
    let outside = || Error::OutsideRoots {
        path: path.display().to_string(),
    };
    let full = roots.first().ok_or_else(outside)?.join(path);
    let real = root_folder::resolved(&full).map_err(|_| outside())?;
    let mut real_roots = roots.iter().filter_map(|root| root.canonicalize().ok());
    if real_roots.any(|root| real.starts_with(root)) {
        return Ok(real);
    }
    Err(outside())
}
