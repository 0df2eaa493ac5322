//! The folders with the skills around an agent.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use install::AGENTS;

/// The author of a project's skills, which makes them `local/project/SLUG`.
pub(super) const PROJECT: &str = "project";
/// The author of a user's skills, which makes them `local/user/SLUG`.
pub(super) const USER: &str = "user";

/// A project, and the folders in which its user keeps skills.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentFolders {
    /// The folder that an agent was started in.
    pub project: PathBuf,
    /// The folders in which agents look for the skills of a user.
    pub user: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) folder: PathBuf,
    pub(super) author: &'static str,
}

impl AgentFolders {
    /// A project of a user with this home, and variables that replace folders below it.
    #[must_use]
    pub fn new(
        project: &Path,
        home: Option<&Path>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let user = home.into_iter().flat_map(|home| {
            let agents = AGENTS.iter();
            agents.map(|agent| agent.of_user(home, &variable))
        });
        Self {
            project: project.to_owned(),
            user: unique(user),
        }
    }

    /// The folders by precedence: those of the project, in the order of the table of agents, then
    /// those of the user.
    pub(super) fn roots(&self) -> Vec<Root> {
        let root = |author| move |folder| Root { folder, author };
        let project = AGENTS.iter().map(|agent| agent.of_project(&self.project));
        // An agent that was started at home has no project: the same folders would be both.
        let project = unique(project.filter(|folder| !self.user.contains(folder)));
        // A variable may be relative, and this is not the working directory of the agent.
        let user = self.user.iter().filter(|folder| folder.is_absolute());
        let project = project.into_iter().map(root(PROJECT));
        project.chain(user.cloned().map(root(USER))).collect()
    }
}

/// Each once, in the order in which they came.
fn unique(folders: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    folders
        .filter(|folder| seen.insert(folder.clone()))
        .collect()
}
