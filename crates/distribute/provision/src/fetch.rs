//! Installs versions of a server: fetches and checks all of them, then writes all.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{Archive, Error, FETCH_CONCURRENCY, Pin, Provision, Source, TargetFolder, fail};
use install::{Locked, Method, Placed, Record, Status, unpack};
use model::{FilePath, SkillId};
use skill_md::ReadOptions;
use trust::{Input, Scanner, Verdict};

/// Bytes of all skills of one call: they are in memory until the first is written.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// A version to install.
#[derive(Debug, Clone)]
pub(crate) struct RequiredVersion {
    pub(crate) pin: Pin,
    pub(crate) places: Vec<TargetFolder>,
    pub(crate) method: Method,
}

/// The outcome for a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was written.
    Installed,
    /// It was installed already, and is healthy.
    Unchanged,
}

/// A skill that is installed.
#[derive(Debug, Clone)]
pub struct InstalledSkill {
    /// Its entry in the lock.
    pub locked: Locked,
    /// Its folders.
    pub paths: Vec<PathBuf>,
    /// Its outcome.
    pub outcome: Outcome,
}

/// A version that was fetched and checked.
type Fetched = (Record, Vec<(FilePath, Bytes)>);

/// The healthy installs of a version in its folders.
fn present(wanted: &RequiredVersion, all: &[Placed]) -> Vec<Placed> {
    let there = all.iter().filter(|placed| {
        let mut places = wanted.places.iter();
        placed.record.id.key() == wanted.pin.id.key()
            && placed.record.digest == wanted.pin.digest
            && placed.record.method == wanted.method
            && places.any(|place| place.directory == placed.directory)
            // Last, since it reads all the files.
            && placed.health().status() == Status::Healthy
    });
    there.cloned().collect()
}

impl<S: Source> Provision<'_, S> {
    /// Installs these versions, and fetches those that are not installed.
    pub(crate) async fn put(
        &self,
        wanted: &[RequiredVersion],
        force: bool,
    ) -> Result<Vec<InstalledSkill>, S::Error> {
        let places: Vec<TargetFolder> = wanted.iter().flat_map(|w| w.places.clone()).collect();
        let all = self.targets.home(&places).list().map_err(fail::<S>)?;
        let total = AtomicUsize::new(0);
        let fetched = stream::iter(wanted).map(|wanted| async {
            let there = present(wanted, &all);
            // In all of its folders: if one of two was removed, it is fetched and written again.
            let fetched = if there.len() == wanted.places.len() && !force {
                None
            } else {
                Some(self.fetch(wanted, force).await?)
            };
            let files = fetched.iter().flat_map(|(_, files)| files);
            let bytes: usize = files.map(|(_, content)| content.len()).sum();
            if total.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_BYTES {
                return Err(fail::<S>(Error::TooLarge { max: MAX_BYTES }));
            }
            (self.fetched)();
            Ok((there, fetched))
        });
        // All of them before the first is written: if one is refused, every folder is as it was.
        let fetched: Vec<_> = fetched.buffered(FETCH_CONCURRENCY).try_collect().await?;
        let installed = wanted
            .iter()
            .zip(fetched)
            .map(|(wanted, (there, fetched))| self.write(wanted, &there, fetched.as_ref(), force));
        installed.collect()
    }

    /// Fetches a version. It trusts neither the files, nor their digest, nor the verdict of the
    /// server.
    async fn fetch(&self, wanted: &RequiredVersion, force: bool) -> Result<Fetched, S::Error> {
        let Pin { id, number, .. } = &wanted.pin;
        let Archive { semantic, bytes } = self.source.archive(id, *number).await?;
        let files = unpack(&bytes).map_err(fail::<S>)?;
        let by_path: BTreeMap<FilePath, Bytes> = files.iter().cloned().collect();
        let options = ReadOptions {
            slug: Some(id.slug()),
            ..ReadOptions::default()
        };
        let no_skill = || fail::<S>(Error::NoSkill { id: id.clone() });
        let skill = skill_md::read(&by_path, &options)
            .skill
            .ok_or_else(no_skill)?;
        let release = (*number, semantic, wanted.pin.digest);
        let mut record = Record::of(id, release, &skill, &files, self.clock.now());
        record.check(&files).map_err(fail::<S>)?;
        let contents: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(path, content)| (path.as_str(), &content[..]))
            .collect();
        let known_names: &[&str] = &[];
        // Scanned here, though the server did it too: this machine need not trust that server.
        let report = Scanner::bundled().scan(&Input {
            files: &contents,
            name: &skill.name,
            allowed_tools: &skill.allowed_tools,
            known_names: &known_names,
        });
        let is_permitted = match report.verdict {
            Verdict::Passed => true,
            // By this user: the lock is the word of a repository.
            Verdict::Warning => {
                let home = self.targets.home(&wanted.places);
                force || home.has_accepted(wanted.pin.digest).map_err(fail::<S>)?
            }
            // Not even by force, which people type by habit.
            Verdict::Failed => false,
        };
        if !is_permitted {
            let (id, report) = (id.clone(), Box::new(report));
            return Err(fail::<S>(Error::Risk { id, report }));
        }
        record.method = wanted.method;
        record.server = self.source.name();
        report.verdict.name().clone_into(&mut record.verdict);
        record.forced = report.verdict != Verdict::Passed;
        Ok((record, files))
    }

    fn write(
        &self,
        wanted: &RequiredVersion,
        there: &[Placed],
        fetched: Option<&Fetched>,
        force: bool,
    ) -> Result<InstalledSkill, S::Error> {
        let home = self.targets.home(&wanted.places);
        let (mut paths, mut outcome) = (Vec::new(), Outcome::Unchanged);
        let mut record = there.first().map(|placed| placed.record.clone());
        for place in &wanted.places {
            let known = there
                .iter()
                .find(|placed| placed.directory == place.directory);
            let placed = match (fetched, known) {
                (Some((record, files)), known) if force || known.is_none() => {
                    let (record, at) = (record.clone(), &place.directory);
                    let give_up = || self.give_up();
                    let placed = home.install(at, record, files, force, &give_up);
                    outcome = Outcome::Installed;
                    placed.map_err(fail::<S>)?
                }
                (_, Some(known)) => known.clone(),
                (_, None) => continue,
            };
            paths.push(placed.path());
            record = Some(placed.record);
        }
        // After the folders: what was not installed was not accepted.
        if let Some((record, _)) = fetched.filter(|(record, _)| force && record.forced) {
            let accepted = home.accept(&record.id, record.digest, &|| self.give_up());
            accepted.map_err(fail::<S>)?;
        }
        let gone = |id: &SkillId| install::Error::not_installed(id.as_str(), [].into_iter());
        let record = record.ok_or_else(|| fail::<S>(gone(&wanted.pin.id)))?;
        Ok(InstalledSkill {
            locked: Locked {
                id: record.id,
                semantic: record.semantic,
                number: record.number,
                digest: record.digest,
                verdict: record.verdict,
                server: record.server,
                targets: wanted
                    .places
                    .iter()
                    .map(|place| place.name.clone())
                    .collect(),
                requested: wanted.pin.requested,
            },
            paths,
            outcome,
        })
    }
}
