//! Repositories of GitHub, over its REST API.
//!
//! * Repositories are named, or those of an owner, or of a topic.
//! * Of each, the tree of one branch is listed. A folder with a `SKILL.md` is a skill, and
//!   the id of its tree is its fingerprint.
//! * The listing of a commit is cached, and not requested again.
//!
//! `repositories.rs` finds the repositories, `listing_mark.rs` has their owners of before,
//! `trees.rs` reads their trees.

mod listing_mark;
mod repositories;
mod trees;

use egress::Egress;
use futures_util::future::BoxFuture;
use secrecy::SecretString;

use super::web::Web;
use super::{Error, Fetch, Files, Item, Look, Work};

/// The repositories to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitHubOptions {
    /// The address of the API. Empty: [`sources::GITHUB_API`].
    pub api: String,
    /// Repositories, each as `owner/name`.
    pub repositories: Vec<String>,
    /// All repositories of organisations, and of people.
    pub owners: Vec<String>,
    /// All repositories of topics. A search has 1,000 results at most; a topic with more is an
    /// error.
    pub topics: Vec<String>,
    /// A branch. None: the default branch of each repository.
    pub branch: Option<String>,
    /// Archived repositories too, of an owner or a topic.
    pub archived: bool,
    /// Forks too, of an owner or a topic.
    pub forks: bool,
}

/// Repositories of GitHub, or of a server with its API.
#[derive(Debug)]
pub struct GitHub {
    web: Web,
    options: GitHubOptions,
}

impl GitHub {
    /// Repositories that the options name. The token, if there is one, is sent to the origin
    /// of the API alone; without one GitHub answers 60 requests an hour.
    ///
    /// # Errors
    /// The options name nothing, or something that is none.
    pub fn new(
        options: GitHubOptions,
        token: Option<&SecretString>,
        egress: Egress,
    ) -> Result<Self, Error> {
        let api = match options.api.as_str() {
            "" => sources::GITHUB_API,
            api => api,
        };
        let web = Web::new(api, token, egress)?;
        let named = options.owners.iter().chain(&options.topics);
        if options.repositories.is_empty() && named.clone().next().is_none() {
            let message = "name repositories, owners or topics";
            return Err(Error::Invalid(message.to_owned()));
        }
        // Names become parts of paths and queries of the API: a `?` or `..` in one would make it
        // another request, with the token.
        if let Some(name) = options
            .repositories
            .iter()
            .find(|name| !is_repository(name))
        {
            let name = model::shown(name, 100);
            return Err(Error::Invalid(format!(
                "`{name}` is no repository: write `owner/name`"
            )));
        }
        if let Some(name) = named.clone().find(|name| !is_plain(name)) {
            let name = model::shown(name, 100);
            return Err(Error::Invalid(format!("`{name}` is no name of GitHub")));
        }
        if let Some(branch) = options.branch.iter().find(|branch| {
            branch.is_empty() || branch.contains(['?', '#', '\\']) || branch.contains("..")
        }) {
            let branch = model::shown(branch, 100);
            return Err(Error::Invalid(format!("`{branch}` is no branch")));
        }
        Ok(Self { web, options })
    }
}

/// A full name of a repository, `owner/name`.
fn is_repository(name: &str) -> bool {
    let name = name.split_once('/');
    name.is_some_and(|(owner, name)| is_plain(owner) && is_plain(name))
}

/// A segment of GitHub's names.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.len() <= 100 && name.chars().all(plain) && !matches!(name, "." | "..")
}

/// The id of a commit or a tree: SHA-1 or SHA-256.
fn is_object(sha: &str) -> bool {
    matches!(sha.len(), 40 | 64) && sha.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Fetch for GitHub {
    fn look<'a>(
        &'a self,
        mark: Option<&'a str>,
        work: &'a Work,
    ) -> BoxFuture<'a, Result<Look, Error>> {
        Box::pin(self.list(mark, work))
    }

    fn read<'a>(&'a self, item: &'a Item, work: &'a Work) -> BoxFuture<'a, Result<Files, Error>> {
        Box::pin(self.files(item, work))
    }
}
