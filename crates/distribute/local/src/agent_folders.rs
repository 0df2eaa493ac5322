//! Where the skills around an agent are.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use install::AGENTS;

/// The author of a project's skills, which makes them `local/project/SLUG`.
pub(super) const PROJECT: &str = "project";
/// The author of a person's.
pub(super) const USER: &str = "user";

/// A project, and the folders in which its user keeps skills.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentFolders {
    /// The folder that an agent was started in.
    pub project: PathBuf,
    /// Where the agents that are known look for the skills of a person.
    pub user: Vec<PathBuf>,
}

/// A folder that may hold skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) folder: PathBuf,
    pub(super) author: &'static str,
}

impl AgentFolders {
    /// A project of a person with this home, and variables that move what is below it.
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

    /// The folders, those that go first before others: the project's, in the order of the
    /// table of agents, then the person's.
    pub(super) fn roots(&self) -> Vec<Root> {
        let root = |author| move |folder| Root { folder, author };
        let project = AGENTS.iter().map(|agent| agent.of_project(&self.project));
        // Who starts an agent at home has no project there.
        let project = unique(project.filter(|folder| !self.user.contains(folder)));
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
