//! Lists the repositories and the commits of their branches.

use std::collections::BTreeMap;

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::super::place_cache::{read_cache, write_cache};
use super::super::web::{Ask, Fetcher, redacted};
use super::super::{Error, Listing, Look, RepositoryFacts, Work};
use super::listing_mark::{ListingMark, Repositories};
use super::trees::{TreeContents, list};
use super::{GitHub, is_object, is_repository};
use model::Digest;

/// The cache of listed repositories.
const CACHE: &str = "github-listed.json";
/// Pages of a list, of a hundred each.
const MAX_PAGES: usize = 1000;
/// Results that a search has at most.
const MAX_SEARCH: u64 = 1000;

/// A repository, as the API describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Repository {
    id: u64,
    pub(super) full_name: String,
    owner: Owner,
    #[serde(default)]
    html_url: String,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    fork: bool,
    default_branch: Option<String>,
    #[serde(default)]
    stargazers_count: u64,
    #[serde(default)]
    forks_count: u64,
    #[serde(default)]
    open_issues_count: u64,
    license: Option<License>,
    pushed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Deserialize)]
struct Owner {
    id: u64,
    login: String,
}

#[derive(Debug, Clone, Deserialize)]
struct License {
    spdx_id: Option<String>,
}

#[derive(Deserialize)]
struct Search {
    total_count: u64,
    incomplete_results: bool,
    items: Vec<Repository>,
}

#[derive(Deserialize)]
struct Branch {
    commit: Commit,
}

#[derive(Deserialize)]
struct Commit {
    sha: String,
    commit: Inner,
}

#[derive(Deserialize)]
struct Inner {
    tree: Tree,
}

#[derive(Deserialize)]
struct Tree {
    sha: String,
}

/// The listing of a repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ListedRepository {
    id: u64,
    owner: u64,
    branch: String,
    /// The tag of its answer about the branch.
    tag: Option<String>,
    commit: String,
    found: TreeContents,
}

/// The branch of a repository is gone, or there is none, or nothing was pushed.
const NO_BRANCH: &str = "it has no such branch, or nothing was pushed to it";

impl GitHub {
    pub(super) async fn list(&self, mark: Option<&str>, work: &Work) -> Result<Look, Error> {
        let fetcher = Fetcher::look(&self.web, work, mark).await;
        let listed = self.listed(&fetcher, mark).await;
        fetcher.over(listed).await
    }

    async fn listed(&self, fetcher: &Fetcher<'_>, mark: Option<&str>) -> Result<Look, Error> {
        let work = fetcher.work();
        let mark = mark.and_then(ListingMark::read);
        let before = match &mark {
            Some(mark) => mark.repositories(&work.folder).await,
            None => Some(Repositories::new()),
        };
        let repositories = self.repositories(fetcher).await?;
        let mut known: BTreeMap<String, ListedRepository> =
            read_cache(&work.folder, CACHE).await.unwrap_or_default();
        let (mut listing, mut now, mut seen) =
            (Listing::default(), Repositories::new(), BTreeMap::new());
        if before.is_none() {
            let why = "the owner of its repositories is no longer known";
            listing.break_in_history = Some(why.to_owned());
        }
        let (mut commits, mut files) = (Vec::new(), 0);
        for (name, repository) in repositories {
            let ids = (repository.id, repository.owner.id);
            let before = before.as_ref().and_then(|before| before.get(&name));
            if let Some(why) = before.and_then(|before| another(&name, *before, &repository)) {
                listing.break_in_history.get_or_insert(why);
            }
            now.insert(name.clone(), ids);
            let known = known
                .remove(&name)
                .filter(|known| (known.id, known.owner) == ids);
            let found = self.branch(fetcher, &repository, known).await?;
            let Some(found) = found else {
                listing.skipped.push((name, NO_BRANCH.to_owned()));
                continue;
            };
            files += found.found.files;
            if files > work.limits.files {
                let max = work.limits.files;
                return Err(Error::TooLarge(format!(
                    "the repositories have more than {max} files"
                )));
            }
            commits.push((name.clone(), found.commit.clone()));
            let facts = repository.facts();
            listing
                .items
                .extend(found.found.items(&name, &repository, &facts)?);
            let skipped = found.found.skipped.iter();
            listing
                .skipped
                .extend(skipped.map(|(path, why)| (format!("{name}/{path}"), why.clone())));
            if listing.items.len() > work.limits.skills {
                let max = work.limits.skills;
                return Err(Error::TooLarge(format!(
                    "the repositories have more than {max} skills"
                )));
            }
            seen.insert(name, found);
        }
        write_cache(&work.folder, CACHE, seen).await?;
        listing.sort();
        listing.rate_limit = fetcher.rate_limit();
        let all = serde_json::to_vec(&(&listing.items, &listing.skipped, &now));
        let digest = Digest::of(&all.unwrap_or_default()).to_string();
        let is_same = mark.as_ref().is_some_and(|mark| mark.digest == digest);
        // A break is reported though nothing else changed: the bytes may change after this look.
        if is_same && listing.break_in_history.is_none() {
            let rate_limit = listing.rate_limit;
            return Ok(Look::Unchanged { rate_limit });
        }
        listing.revision = match commits.as_slice() {
            [(_, commit)] => commit.clone(),
            _ => digest.clone(),
        };
        listing.mark = ListingMark::write(digest, now, &work.folder, mark.as_ref()).await?;
        Ok(Look::Listing(listing))
    }

    /// The repositories, by the names that they are listed under.
    async fn repositories(
        &self,
        fetcher: &Fetcher<'_>,
    ) -> Result<BTreeMap<String, Repository>, Error> {
        let mut found = BTreeMap::new();
        for name in &self.options.repositories {
            // GitHub redirects the old name of a repository to the new one. Its skills keep the
            // name in the options, and so their paths.
            let answer = fetcher
                .below(&format!("repos/{name}"), Ask::default())
                .await?
                .there()?;
            found.insert(name.clone(), answer.json()?);
        }
        let is_wanted = |repository: &Repository| {
            (self.options.archived || !repository.archived)
                && (self.options.forks || !repository.fork)
        };
        let wanted = |found: Vec<Repository>| {
            let wanted = found.into_iter().filter(is_wanted);
            wanted.map(|found| (found.full_name.clone(), found))
        };
        for owner in &self.options.owners {
            let query = "repos?per_page=100&sort=full_name";
            let mut url = Some(self.web.below(&format!("orgs/{owner}/{query}"))?);
            for page in 0.. {
                let Some(here) = url.take() else { break };
                check_pages(page, &redacted(&here))?;
                let mut answer = fetcher.get(&here, Ask::default()).await?.there();
                if page == 0 && matches!(answer, Err(Error::Refused(_))) {
                    // Not an organisation but a user, whose list has another address.
                    let here = self.web.below(&format!("users/{owner}/{query}"))?;
                    answer = fetcher.get(&here, Ask::default()).await?.there();
                }
                let answer = answer?;
                url = answer.next_page();
                found.extend(wanted(answer.json()?));
            }
        }
        for topic in &self.options.topics {
            let query = if self.options.forks { "+fork:true" } else { "" };
            let mut url = Some(self.web.below(&format!(
                "search/repositories?q=topic:{topic}{query}&per_page=100"
            ))?);
            for page in 0.. {
                let Some(here) = url.take() else { break };
                check_pages(page, &redacted(&here))?;
                let answer = fetcher.get(&here, Ask::default()).await?.there()?;
                url = answer.next_page();
                let search: Search = answer.json()?;
                // A part of the results is no listing: the others would count as gone.
                if search.total_count > MAX_SEARCH {
                    let count = search.total_count;
                    let message = format!(
                        "the topic `{topic}` has {count} repositories, and a search returns at most {MAX_SEARCH}"
                    );
                    return Err(Error::TooLarge(message));
                }
                if search.incomplete_results {
                    let message =
                        format!("the search for the topic `{topic}` was not done in time");
                    return Err(Error::Unavailable(message));
                }
                found.extend(wanted(search.items));
            }
        }
        // These too become parts of paths: the API may be a server of anybody.
        let mut names = found.values().map(|repository| &repository.full_name);
        if let Some(name) = names.find(|name| !is_repository(name)) {
            let name = model::shown(name, 100);
            return Err(Error::Unavailable(format!(
                "it returned a repository `{name}`, which is not a valid name"
            )));
        }
        Ok(found)
    }

    /// The listing of a branch. None: there is no such branch.
    async fn branch(
        &self,
        fetcher: &Fetcher<'_>,
        repository: &Repository,
        known: Option<ListedRepository>,
    ) -> Result<Option<ListedRepository>, Error> {
        let branch = self
            .options
            .branch
            .as_ref()
            .or(repository.default_branch.as_ref());
        let Some(branch) = branch else {
            return Ok(None);
        };
        let known = known.filter(|known| known.branch == *branch);
        let path = utf8_percent_encode(branch, NON_ALPHANUMERIC);
        let url = format!("repos/{}/branches/{path}", repository.full_name);
        let tag = known.as_ref().and_then(|known| known.tag.as_deref());
        let ask = Ask {
            tag,
            ..Ask::default()
        };
        // With a tag: GitHub does not count a 304 against the limit of a token.
        let answer = fetcher.below(&url, ask).await?;
        if answer.is_unchanged() && known.is_some() {
            return Ok(known);
        }
        if answer.is_missing() {
            return Ok(None);
        }
        let answer = answer.there()?;
        let Branch { commit } = answer.json()?;
        let tree = commit.commit.tree.sha;
        if !is_object(&tree) || !is_object(&commit.sha) {
            let url = redacted(&answer.url);
            return Err(Error::Unavailable(format!(
                "{url} returned an invalid commit"
            )));
        }
        let found = match known.filter(|known| known.commit == commit.sha) {
            Some(known) => known.found,
            None => list(fetcher, &repository.full_name, &tree).await?,
        };
        Ok(Some(ListedRepository {
            id: repository.id,
            owner: repository.owner.id,
            branch: branch.clone(),
            tag: answer.tag(),
            commit: commit.sha,
            found,
        }))
    }
}

impl Repository {
    pub(super) fn author(&self) -> &str {
        &self.owner.login
    }

    fn facts(&self) -> RepositoryFacts {
        let license = self
            .license
            .as_ref()
            .and_then(|license| license.spdx_id.clone());
        RepositoryFacts {
            url: model::shown(&self.html_url, 300),
            stars: self.stargazers_count,
            forks: self.forks_count,
            open_issues: self.open_issues_count,
            license: license
                .filter(|id| id != "NOASSERTION" && id.len() <= 64)
                .unwrap_or_default(),
            has_tests: false,
            has_examples: false,
            pushed_at: self.pushed_at,
        }
    }
}

/// The break in history where a name stands for another repository than before: names are free
/// again after a rename or a deletion, and somebody else may register them.
fn another(name: &str, before: (u64, u64), now: &Repository) -> Option<String> {
    if before.0 != now.id {
        return Some(format!("another repository is called {name} now"));
    }
    if before.1 != now.owner.id {
        let owner = model::shown(&now.owner.login, 100);
        return Some(format!("{name} belongs to another owner now, {owner}"));
    }
    None
}

fn check_pages(page: usize, url: &str) -> Result<(), Error> {
    if page == MAX_PAGES {
        return Err(Error::TooLarge(format!(
            "{url} has more than {MAX_PAGES} pages"
        )));
    }
    Ok(())
}
