//! Collects the evidence for each technology, and merges it into items.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use super::inventory::{Inventory, depth, folder};
use super::lock::{self, Lock};
use super::manifest::{Dependency, Ecosystem, ManifestFacts};
use super::report::{Source, TechStackItem};
use super::version;
use model::listed;
use technologies::{Technology, TechnologyKind, file_name, table};

/// A direct dependency, or the manifest of the language itself.
const DECLARED_CONFIDENCE: f64 = 1.0;
/// A dependency for developing, a package that is made for the technology, a file
/// that only it reads, a file that pins its version.
const LIKELY_CONFIDENCE: f64 = 0.9;
/// The image of a container.
const IMAGE_CONFIDENCE: f64 = 0.8;
/// At least half of the files are of the language.
const MAIN_LANGUAGE_CONFIDENCE: f64 = 0.8;
/// At least a tenth of them are; also the most for folders next to the project
/// (tests, examples).
const LANGUAGE_CONFIDENCE: f64 = 0.6;
/// Below: something follows from another technology, or a lockfile names it.
const INFERRED_CONFIDENCE: f64 = 0.5;
/// Fewer files are of the language.
const RARE_LANGUAGE_CONFIDENCE: f64 = 0.4;
/// Files of which one must be of a language to put it into the stack.
const FILES_PER_LANGUAGE_FILE: usize = 100;
/// The most files that are searched for the version of a dependency.
const MAX_ABOVE: usize = 16;
/// Folders next to a project's own code. Technologies in them may not be the project's.
const ASIDE: &str = include_str!("aside_folders.txt");

/// Evidence for a technology.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    pub(super) technology: &'static Technology,
    pub(super) version: Option<String>,
    pub(super) confidence: f64,
    pub(super) source: Source,
    pub(super) file: String,
}

impl Evidence {
    /// The best first: the most certain, with a version, the nearest to
    /// the root. The rest only makes the order total, so that results do not vary.
    fn order(&self, other: &Self) -> Ordering {
        other
            .confidence
            .total_cmp(&self.confidence)
            .then_with(|| self.technology.id.cmp(other.technology.id))
            .then_with(|| other.version.is_some().cmp(&self.version.is_some()))
            .then_with(|| depth(&self.file).cmp(&depth(&other.file)))
            .then_with(|| self.source.cmp(&other.source))
            .then_with(|| self.file.cmp(&other.file))
            .then_with(|| self.version.cmp(&other.version))
    }
}

/// Tells whether the file is in a folder next to the project's own code.
pub(super) fn aside(path: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| listed(ASIDE).collect());
    folder(path).split('/').any(|name| NAMES.contains(name))
}

/// All evidence: once for each technology, kind of source and file,
/// so that a file that repeats itself costs nothing.
#[derive(Debug, Default)]
pub(super) struct Stack {
    pub(super) evidence: Vec<Evidence>,
    /// The position of the evidence of a technology, a kind of source and a file.
    positions: BTreeMap<(&'static str, Source, String), usize>,
    ids: BTreeSet<&'static str>,
}

impl Stack {
    fn add(
        &mut self,
        technology: &'static Technology,
        version: Option<String>,
        confidence: f64,
        source: Source,
        file: &str,
    ) {
        let new = Evidence {
            technology,
            version,
            confidence: if aside(file) {
                confidence.min(LANGUAGE_CONFIDENCE)
            } else {
                confidence
            },
            source,
            file: file.to_owned(),
        };
        self.ids.insert(technology.id);
        let at = (technology.id, source, file.to_owned());
        let at = *self.positions.entry(at).or_insert(self.evidence.len());
        match self.evidence.get_mut(at) {
            None => self.evidence.push(new),
            Some(known) if new.order(known).is_lt() => *known = new,
            Some(_) => {}
        }
    }

    fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Adds the evidence of manifests. `all` are those that may bequeath requirements.
    pub(super) fn manifests(&mut self, all: &[ManifestFacts], locks: &[Lock]) {
        for found in all {
            let confidence = match found.source {
                Source::VersionFile => LIKELY_CONFIDENCE,
                _ => DECLARED_CONFIDENCE,
            };
            for (id, written) in &found.manifest.platforms {
                if let Some(technology) = table().get(id) {
                    let version = written.as_deref().and_then(version::shown);
                    self.add(technology, version, confidence, found.source, &found.path);
                }
            }
            let own = all
                .iter()
                .filter(|other| other.ecosystem == found.ecosystem);
            let own = own.filter(|other| !other.manifest.offers.is_empty());
            let own_locks = locks
                .iter()
                .filter(|lock| lock.ecosystem == found.ecosystem);
            let above = Above {
                manifests: nearest(own, &found.path, |other| &other.path),
                locks: nearest(own_locks, &found.path, |lock| &lock.path),
            };
            for dependency in &found.manifest.dependencies {
                self.dependency(found, dependency, &above);
            }
        }
        let package = all
            .iter()
            .find(|found| found.path.ends_with("package.json"));
        // A `package.json` without a TypeScript compiler is JavaScript, even if no file was sent.
        if let Some((found, javascript)) = package.zip(table().get("javascript"))
            && !self.has("typescript")
        {
            self.add(
                javascript,
                None,
                LANGUAGE_CONFIDENCE,
                Source::Inferred,
                &found.path,
            );
        }
    }

    fn dependency(&mut self, found: &ManifestFacts, dependency: &Dependency, above: &Above<'_>) {
        let registry = found.ecosystem.registry();
        let shown = table().dependency(registry, &dependency.name);
        if shown.is_empty() {
            return;
        }
        let requirement = match dependency.requirement.as_deref() {
            // `catalog:` is pnpm's word for the version in `pnpm-workspace.yaml`.
            None | Some("catalog:") => {
                let mut offers = above.manifests.iter().map(|other| &other.manifest.offers);
                offers.find_map(|offers| offers.get(&dependency.name).map(String::as_str))
            }
            stated => stated,
        };
        let locked = above
            .locks
            .iter()
            .find_map(|lock| lock.version(folder(&found.path), &dependency.name, requirement));
        let version = locked
            .and_then(super::text::name)
            .or_else(|| requirement.and_then(version::shown));
        for shown in shown {
            // A compiler belongs with what is needed for developing, so for a
            // language it makes no difference.
            let language = shown.technology.kind == TechnologyKind::Language;
            let confidence = match (found.ecosystem, shown.itself) {
                (Ecosystem::Image, _) => IMAGE_CONFIDENCE,
                (_, true) if language || !dependency.development => DECLARED_CONFIDENCE,
                _ => LIKELY_CONFIDENCE,
            };
            let version = version.clone().filter(|_| shown.itself);
            self.add(
                shown.technology,
                version,
                confidence,
                found.source,
                &found.path,
            );
        }
    }

    /// Adds the evidence of lockfiles whose manifests were not read.
    pub(super) fn locks(&mut self, all: &[ManifestFacts], locks: &[Lock]) {
        for lock in locks {
            let mut manifests = all.iter().filter(|found| found.ecosystem == lock.ecosystem);
            // Otherwise each indirect dependency would count as the project's own.
            if manifests.any(|found| {
                folder(&found.path) == folder(&lock.path) && found.source != Source::VersionFile
            }) {
                continue;
            }
            for (name, version) in lock.packages() {
                for shown in table().dependency(lock.ecosystem.registry(), name) {
                    let version = version.and_then(super::text::name).filter(|_| shown.itself);
                    self.add(
                        shown.technology,
                        version,
                        INFERRED_CONFIDENCE,
                        Source::Lockfile,
                        &lock.path,
                    );
                }
            }
        }
    }

    /// Adds the evidence of file names. Returns the number of files that showed something
    /// and the languages with their files, the most frequent first.
    pub(super) fn files(
        &mut self,
        inventory: &Inventory,
    ) -> (usize, Vec<(&'static Technology, usize)>) {
        let mut counts: BTreeMap<&str, (&'static Technology, usize, &str)> = BTreeMap::new();
        let mut telling = 0;
        for path in inventory.paths() {
            let shown = table().file(path);
            let language = table().language(file_name(path));
            if let Some(language) = language {
                counts.entry(language.id).or_insert((language, 0, path)).1 += 1;
            }
            let read = super::manifest::form(path).is_some() || lock::manager(path).is_some();
            telling += usize::from(read || language.is_some() || !shown.is_empty());
            for technology in shown {
                self.add(
                    technology,
                    None,
                    LIKELY_CONFIDENCE,
                    Source::ConfigFile,
                    path,
                );
            }
        }
        let mut languages: Vec<_> = counts.into_values().collect();
        languages.sort_by_key(|(language, count, _)| (std::cmp::Reverse(*count), language.id));
        let programming = languages.iter().filter(|(language, ..)| !language.markup);
        let all: usize = programming.clone().map(|(_, count, _)| count).sum();
        let count_of = |id: &str| {
            languages
                .iter()
                .find(|(found, ..)| found.id == id)
                .map_or(0, |found| found.1)
        };
        // With TypeScript, a few JavaScript files are settings of its tools.
        let settings = self.has("typescript") && count_of("javascript") < count_of("typescript");
        let mut shown = Vec::new();
        for (language, count, path) in programming {
            if *count * FILES_PER_LANGUAGE_FILE < all || (language.id == "javascript" && settings) {
                continue;
            }
            let confidence = if *count * 2 >= all {
                MAIN_LANGUAGE_CONFIDENCE
            } else if *count * 10 >= all {
                LANGUAGE_CONFIDENCE
            } else {
                RARE_LANGUAGE_CONFIDENCE
            };
            shown.push((*language, confidence, (*path).to_owned()));
        }
        for (language, confidence, path) in shown {
            self.add(language, None, confidence, Source::FileExtension, &path);
        }
        let languages = languages
            .into_iter()
            .map(|(language, count, _)| (language, count));
        (telling, languages.collect())
    }

    /// Adds what the technologies that were found are not used without.
    pub(super) fn infer(&mut self) {
        let mut at = 0;
        // By index, since `add` appends: what was inferred may need another technology in turn. It
        // ends, as each technology is added once.
        while let Some(found) = self.evidence.get(at) {
            let (id, file, certain) = (found.technology.id, found.file.clone(), found.confidence);
            for needed in table().needs(id) {
                if !self.has(needed.id) {
                    self.add(
                        needed,
                        None,
                        INFERRED_CONFIDENCE.min(certain),
                        Source::Inferred,
                        &file,
                    );
                }
            }
            at += 1;
        }
    }

    /// Returns an item for each technology: by its most certain evidence, the nearest to the root.
    /// Where that has no version, the next one with a version gives it.
    pub(super) fn finish(mut self) -> Vec<TechStackItem> {
        self.evidence.sort_by(Evidence::order);
        let mut items: Vec<TechStackItem> = Vec::new();
        let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
        for found in self.evidence {
            let at = positions.get(found.technology.id).copied();
            if let Some(item) = at.and_then(|at| items.get_mut(at)) {
                item.version = item.version.take().or(found.version);
                continue;
            }
            positions.insert(found.technology.id, items.len());
            items.push(TechStackItem {
                technology_id: found.technology.id.to_owned(),
                name: found.technology.name.to_owned(),
                kind: found.technology.kind,
                version: found.version,
                confidence: found.confidence,
                source: found.source,
                file: found.file,
            });
        }
        items
    }
}

/// Files with versions of a manifest's dependencies, the nearest first.
struct Above<'a> {
    manifests: Vec<&'a ManifestFacts>,
    locks: Vec<&'a Lock>,
}

/// Returns the files in the folder of a path and in those above, the nearest first. No more
/// than a few are searched.
fn nearest<'a, T>(
    files: impl Iterator<Item = &'a T>,
    path: &str,
    of: fn(&T) -> &String,
) -> Vec<&'a T> {
    let mut found: Vec<&T> = files.filter(|file| is_above(of(file), path)).collect();
    found.sort_by(|a, b| {
        let (a, b) = (of(a), of(b));
        depth(b).cmp(&depth(a)).then_with(|| a.cmp(b))
    });
    // Each dependency of each manifest asks all of them. Without a bound, a codebase made of nested
    // lockfiles would cost the square of its size.
    found.truncate(MAX_ABOVE);
    found
}

/// Tells whether the first file is in the folder of the second, or in one above.
pub(super) fn is_above(above: &str, path: &str) -> bool {
    let (above, location) = (folder(above), folder(path));
    above.is_empty()
        || location == above
        || location
            .strip_prefix(above)
            .is_some_and(|rest| rest.starts_with('/'))
}
