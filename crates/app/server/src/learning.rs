//! Learning paths of this server: those that come with it, and the operator's.
//!
//! The operator's are served once they passed their gate: their starters fail, and their
//! reference solutions pass. Those that come with the server passed it in its tests.

mod graders;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use include_dir::Dir;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::service::RoutesBuilder;

pub(super) use ::learning::Learning;
pub use graders::{graders, sandbox};

use super::bundled::{PATHS, SKILLS, collect};
use super::{LearningConfig, StartError};
use ::tools::host::Host;
use contract::handlers::Handlers;
use contract::v1::learning_server::LearningServer;
use courses::{Catalog, Graders, LearningPath};
use grpc::learning::LearningService;
use model::{Clock, Problem, Severity};
use registry::Registry;
use store::Store;

/// How soon paths are tried again that could not be graded, for want of a worker.
const GRADER_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Files of a path's folder, and bytes of all of them.
const MAX_FILES: usize = 4_096;
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// A folder cannot be read as learning paths.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {cause}", path.display())]
pub struct FolderError {
    path: PathBuf,
    cause: String,
}

impl FolderError {
    fn new(path: &Path, cause: impl std::fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            cause: cause.to_string(),
        }
    }
}

/// A learning path, and what is wrong with it.
#[derive(Debug)]
pub struct FoundPath {
    /// Where it is.
    pub folder: PathBuf,
    /// The path. None: it cannot be read.
    pub path: Option<LearningPath>,
    /// Its problems.
    pub problems: Vec<Problem>,
}

impl FoundPath {
    /// It can be served.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.path.is_some() && self.errors().next().is_none()
    }

    /// Its only problem is that some of it could not be graded.
    fn only_waits(&self) -> bool {
        let mut errors = self.errors();
        self.path.is_some() && errors.all(|problem| problem.rule.ends_with("-not-graded"))
    }

    fn errors(&self) -> impl Iterator<Item = &Problem> {
        let problems = self.problems.iter();
        problems.filter(|problem| problem.severity == Severity::Error)
    }
}

/// The files of the learning paths that come with the server, by the path's folder.
fn bundled_paths() -> BTreeMap<String, BTreeMap<String, Bytes>> {
    let mut paths = BTreeMap::new();
    for dir in SKILLS.get_dir(PATHS).into_iter().flat_map(Dir::dirs) {
        let Some(folder) = dir.path().file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let mut files = BTreeMap::new();
        collect(dir, dir.path(), &mut files);
        let files = files.into_iter();
        let files = files.map(|(path, bytes)| (path.to_string(), bytes));
        paths.insert(folder.to_owned(), files.collect());
    }
    paths
}

/// The paths that come with the server.
fn bundled() -> Vec<LearningPath> {
    let folders = bundled_paths().into_iter();
    let read = folders.filter_map(|(folder, files)| courses::read(&folder, &files).0);
    read.collect()
}

/// Learning over a store, with the paths that come with the server.
///
/// # Errors
/// Nothing can run solutions.
pub(super) fn open(
    store: Store,
    clock: Arc<dyn Clock>,
    config: &LearningConfig,
    host: &Host,
    registry: &Registry,
) -> Result<Learning, StartError> {
    let graders = graders::of_server(config, host, registry).map_err(StartError::Sandbox)?;
    let read = || Catalog::new(bundled().into_iter().map(Arc::new).collect());
    Ok(Learning::new(store, clock, read, graders))
}

/// Adds the Learning service.
pub(super) fn add(routes: &mut RoutesBuilder, learning: &Learning) {
    let service = LearningServer::new(Handlers::new(LearningService::new(learning.clone())));
    routes.add_service(service.accept_compressed(Gzip).send_compressed(Gzip));
}

/// Runs this process as the child that runs solutions, where it was started as that.
pub fn child() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1);
    let is_child = first.is_some_and(|first| first == graders::SANDBOX);
    is_child.then(::sandbox::child)
}

/// Returns the problems of the folders in the settings, each by its key. Blocks.
pub(super) fn mistakes(config: &LearningConfig) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, folder) in config.paths.iter().enumerate() {
        let key = format!("learning.paths[{at}]");
        match read_paths(folder) {
            Err(error) => found.push((key, error.to_string())),
            Ok(paths) => {
                for path in paths.iter().filter(|path| !path.is_sound()) {
                    let folder = path.folder.display();
                    let message = format!(
                        "`{folder}` has a mistake; `repertoire learn check {folder}` says which"
                    );
                    found.push((key.clone(), message));
                }
            }
        }
    }
    found
}

/// Reads the learning paths of a folder, which is one, or has some.
///
/// # Errors
/// The folder cannot be read, or there is no path in it.
pub fn read_paths(folder: &Path) -> Result<Vec<FoundPath>, FolderError> {
    let wrong = |cause| FolderError::new(folder, cause);
    let is_path = |folder: &Path| folder.join("PATH.md").is_file();
    let mut folders = Vec::new();
    if is_path(folder) {
        folders.push(folder.to_owned());
    } else {
        for entry in std::fs::read_dir(folder).map_err(wrong)? {
            let entry = entry.map_err(wrong)?.path();
            if is_path(&entry) {
                folders.push(entry);
            }
        }
        folders.sort();
    }
    if folders.is_empty() {
        let cause = "no learning path: neither it nor a folder in it has a PATH.md";
        return Err(FolderError::new(folder, cause));
    }
    let found = folders.into_iter().map(|folder| {
        let files = files(&folder)?;
        let absolute = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let name = absolute.file_name().and_then(|name| name.to_str());
        let (path, problems) = courses::read(name.unwrap_or_default(), &files);
        Ok(FoundPath {
            folder,
            path,
            problems,
        })
    });
    found.collect()
}

/// The files below a folder, by their paths in it. Links are not followed.
fn files(folder: &Path) -> Result<BTreeMap<String, Bytes>, FolderError> {
    let mut files = BTreeMap::new();
    let mut left = MAX_BYTES;
    for entry in walkdir::WalkDir::new(folder).max_depth(8) {
        let entry = entry.map_err(|error| FolderError::new(folder, error))?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path();
        let size = entry.metadata();
        let size = size.map_err(|error| FolderError::new(path, error))?.len();
        left = left.checked_sub(size).ok_or_else(|| {
            FolderError::new(folder, format!("has more than {} MiB", MAX_BYTES >> 20))
        })?;
        if files.len() == MAX_FILES {
            let cause = format!("has more than {MAX_FILES} files");
            return Err(FolderError::new(folder, cause));
        }
        let content = std::fs::read(path).map_err(|error| FolderError::new(path, error))?;
        let inside = path.strip_prefix(folder).unwrap_or(path);
        let Some(inside) = inside.to_str() else {
            return Err(FolderError::new(path, "its name is not UTF-8"));
        };
        files.insert(inside.to_owned(), Bytes::from(content));
    }
    Ok(files)
}

/// Checks paths together with those that come with the server, and sends each through its
/// gate. What is found is added to their problems.
pub async fn check(found: &mut [FoundPath], graders: &Graders) {
    let own: Vec<String> = found
        .iter()
        .filter_map(|it| it.path.as_ref().map(|path| path.id.clone()))
        .collect();
    // An author of a path that comes with the server checks the folder, not what is built in.
    let others = bundled().into_iter().filter(|path| !own.contains(&path.id));
    let all: Vec<_> = others
        .chain(found.iter().filter_map(|it| it.path.clone()))
        .map(Arc::new)
        .collect();
    let together = courses::check_together(&all);
    for it in found {
        let Some(path) = &it.path else { continue };
        let mine = together.iter().filter(|(id, _)| *id == path.id);
        it.problems.extend(mine.map(|(_, problem)| problem.clone()));
        it.problems.extend(graders.check(path).await);
    }
}

/// Takes the operator's paths in until none is left that only waits for its grader, such as
/// a worker that has not connected yet.
pub(super) async fn admit_all(learning: &Learning, config: &LearningConfig) {
    let mut again = false;
    while admit(learning, config, again).await {
        tokio::time::sleep(GRADER_RETRY_INTERVAL).await;
        again = true;
    }
}

/// Takes in the operator's paths that pass their gate. The others are left out, and their
/// problems logged, unless they were before. Returns true where some could not be graded.
pub(super) async fn admit(learning: &Learning, config: &LearningConfig, again: bool) -> bool {
    let mut waits = false;
    for folder in &config.paths {
        let read = {
            let folder = folder.clone();
            tokio::task::spawn_blocking(move || read_paths(&folder)).await
        };
        let read = read.map_err(|error| error.to_string());
        let mut found = match read.and_then(|read| read.map_err(|error| error.to_string())) {
            Ok(found) => found,
            Err(error) => {
                if !again {
                    tracing::error!(error, "learning paths cannot be read");
                }
                continue;
            }
        };
        // The gate takes seconds: the paths that come with the server are there before it.
        learning.ready().await;
        let known = learning.catalog();
        // Those that passed are in the catalog, and are not graded once more.
        if again {
            let is_new = |it: &FoundPath| {
                let path = it.path.as_ref();
                path.is_some_and(|path| known.path(&path.id).is_none())
            };
            found.retain(is_new);
        }
        check(&mut found, learning.graders()).await;
        let mut paths = known.paths().to_vec();
        for it in found {
            let folder = it.folder.display();
            if !it.is_sound() {
                waits |= it.only_waits();
                if !again {
                    for problem in &it.problems {
                        tracing::warn!(%folder, %problem, "in a learning path");
                    }
                    tracing::error!(%folder, "a learning path is skipped; `repertoire learn check` reports why");
                }
                continue;
            }
            let Some(path) = it.path else { continue };
            if let Some(taken) = taken(&paths, &path) {
                tracing::error!(%folder, id = taken, "a learning path is skipped: one of its ids is in use");
                continue;
            }
            tracing::info!(%folder, path = path.id, exercises = path.exercises.len(), "learning path");
            paths.push(Arc::new(path));
        }
        learning.replace_catalog(Catalog::new(paths));
    }
    waits
}

/// An id of a path, or of one of its exercises, that another has.
fn taken<'a>(known: &[Arc<LearningPath>], path: &'a LearningPath) -> Option<&'a str> {
    let exercises = |path: &'a LearningPath| path.exercises.iter().map(|it| it.id.as_str());
    let is_known = |id: &str| {
        let mut all = known.iter().flat_map(|path| &path.exercises);
        all.any(|other| other.id == id)
    };
    if known.iter().any(|other| other.id == path.id) {
        return Some(&path.id);
    }
    exercises(path).find(|id| is_known(id))
}
