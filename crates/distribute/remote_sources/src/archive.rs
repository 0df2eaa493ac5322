//! Archives of a skill, unpacked in memory. They may come from anybody.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};

use bytes::Bytes;

use super::{Error, Files, run_blocking};
use model::{FilePath, MAX_FILES, MAX_SKILL_BYTES, Problem};
use skill_folder::{
    Inclusion, MAX_PATTERNS, Patterns, SKILLIGNORE, left_out, pointer, too_many_patterns,
};

/// Bytes of an archive on top of those of its files: headers and padding.
const ARCHIVE_OVERHEAD_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of an archive, packed.
pub(crate) const MAX_ARCHIVE: u64 = MAX_SKILL_BYTES + ARCHIVE_OVERHEAD_BYTES;
/// Entries of all kinds: folders and those that are left out count too.
const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// How much larger than the archive its files may be, beyond the first MiB. Deflate can do
/// 1,032; text of people comes to 20.
const MAX_RATIO: u64 = 200;

/// The files of a zip or a `.tar.gz`, whichever it is. Where everything is in one folder,
/// and the `SKILL.md` with it, that folder is the skill.
///
/// Links, special files and files that are no part of a skill are left out and reported; a path
/// that no skill can have is a problem of the skill.
///
/// # Errors
/// It is no archive, or too large.
pub(crate) fn unpack(archive: &[u8]) -> Result<Files, Error> {
    Ok(sifted(open(archive)?.files()))
}

fn open(archive: &[u8]) -> Result<Unpacked, Error> {
    let mut unpacked = Unpacked {
        budget: MAX_SKILL_BYTES.min((archive.len() as u64).saturating_mul(MAX_RATIO) + (1 << 20)),
        ..Unpacked::default()
    };
    if archive.starts_with(&[0x1f, 0x8b]) {
        unpacked.tar(archive)?;
    } else if archive.starts_with(b"PK") {
        unpacked.zip(archive)?;
    } else {
        return Err(broken("it is neither a zip nor a .tar.gz"));
    }
    Ok(unpacked)
}

/// The same off the async threads.
///
/// # Errors
/// As [`unpack`].
pub(crate) async fn unpacked(archive: Vec<u8>) -> Result<Files, Error> {
    run_blocking(move || unpack(&archive)).await
}

/// All files of an archive that another server exported: nothing is left out, or they would not
/// have the digest of the version.
///
/// # Errors
/// As [`unpack`].
pub(crate) async fn exported(archive: Vec<u8>) -> Result<Files, Error> {
    run_blocking(move || Ok(open(&archive)?.files())).await
}

/// Leaves out files that are no part of a skill, by the rule of all kinds of places.
pub(crate) fn sifted(files: Files) -> Files {
    let mut patterns = Patterns::default();
    let mut sifted = Files {
        files: BTreeMap::new(),
        ..files
    };
    let is_one = |path: &FilePath| path.as_str().rsplit('/').next() == Some(SKILLIGNORE);
    let mut ones: Vec<_> = files
        .files
        .iter()
        .filter(|(path, _)| is_one(path))
        .collect();
    // Those above first, as they may leave out the folder of another one.
    ones.sort_by_key(|(path, _)| path.as_str().matches('/').count());
    for (path, text) in ones {
        let path = path.as_str();
        if !matches!(patterns.take(path), Inclusion::In(_)) {
            continue;
        }
        if text.len() as u64 > MAX_PATTERNS {
            sifted.problems.push(too_many_patterns(path));
        } else {
            patterns.add(path.rsplit_once('/').map_or("", |(above, _)| above), text);
        }
    }
    let mut out = BTreeSet::new();
    for (path, content) in files.files {
        match patterns.take(path.as_str()) {
            Inclusion::Out(what, why) => {
                // One report for a folder, not one for each of its files.
                if out.insert(what.to_owned()) {
                    sifted.problems.push(left_out(what, why));
                }
            }
            _ => match pointer(path.as_str(), &content) {
                Some(problem) => sifted.problems.push(problem),
                None => _ = sifted.files.insert(path, content),
            },
        }
    }
    sifted
}

fn broken(why: &str) -> Error {
    Error::Unavailable(format!("an archive cannot be read: {why}"))
}

fn too_large(what: &str) -> Error {
    Error::TooLarge(format!("an archive has more than a skill may have: {what}"))
}

#[derive(Debug, Default)]
struct Unpacked {
    /// Regular files, by their paths in the archive.
    files: BTreeMap<String, Bytes>,
    problems: Vec<Problem>,
    entries: usize,
    /// Bytes that may still come.
    budget: u64,
}

impl Unpacked {
    fn tar(&mut self, archive: &[u8]) -> Result<(), Error> {
        let unpacked =
            flate2::read::GzDecoder::new(archive).take(self.budget + ARCHIVE_OVERHEAD_BYTES);
        let mut archive = tar::Archive::new(unpacked);
        let entries = archive
            .entries()
            .map_err(|_| broken("it has no beginning"))?;
        for entry in entries {
            let mut entry = entry.map_err(|_| broken("it ends early, or is damaged"))?;
            self.enter()?;
            let kind = entry.header().entry_type();
            let name = String::from_utf8(entry.path_bytes().into_owned());
            let name = name.map_err(std::string::FromUtf8Error::into_bytes);
            if kind.is_dir() || kind == tar::EntryType::XGlobalHeader {
                continue;
            }
            let size = entry.size();
            let is_regular = matches!(kind, tar::EntryType::Regular | tar::EntryType::Continuous);
            if let Some(name) = self.wanted(name, is_regular) {
                let content = self.read(&mut entry, size)?;
                self.insert(name, content);
            }
        }
        // Read to its end, where gzip has its checksum: an archive that was cut off between two
        // entries looks whole to `tar`.
        let mut rest = archive.into_inner();
        let read = std::io::copy(&mut rest, &mut std::io::sink());
        read.map_err(|_| broken("it ends early, or is damaged"))?;
        // The limit ended it there. Entries that are left out count for it as well, and not for the
        // budget.
        if rest.limit() == 0 {
            return Err(too_large(&format!("{MAX_SKILL_BYTES} bytes")));
        }
        Ok(())
    }

    fn zip(&mut self, archive: &[u8]) -> Result<(), Error> {
        let damaged = |_| broken("it ends early, or is damaged");
        let mut archive = zip::ZipArchive::new(Cursor::new(archive)).map_err(damaged)?;
        for at in 0..archive.len() {
            self.enter()?;
            let mut entry = archive.by_index(at).map_err(|error| {
                let encrypted = matches!(error, zip::result::ZipError::UnsupportedArchive(_));
                broken(if encrypted {
                    "it is encrypted, or packed in a way of its own"
                } else {
                    "it ends early, or is damaged"
                })
            })?;
            if entry.is_dir() {
                continue;
            }
            let name = String::from_utf8(entry.name_raw().to_vec());
            let name = name.map_err(std::string::FromUtf8Error::into_bytes);
            // The type of file in the mode of Unix; 0 if the archive was made on another system.
            let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
            let is_regular = matches!(kind, 0 | 0o100_000);
            let size = entry.size();
            if let Some(name) = self.wanted(name, is_regular) {
                let content = self.read(&mut entry, size)?;
                self.insert(name, content);
            }
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(too_large(&format!("{MAX_ENTRIES} entries")));
        }
        Ok(())
    }

    /// The name of an entry that is to be read.
    fn wanted(&mut self, name: Result<String, Vec<u8>>, is_regular: bool) -> Option<String> {
        let name = match name {
            Ok(name) => name,
            Err(bytes) => {
                let name = model::shown(&String::from_utf8_lossy(&bytes), 200);
                let message = "its name is not UTF-8";
                self.problems
                    .push(Problem::error("path-invalid", &name, 0, message));
                return None;
            }
        };
        let shown = model::shown(&name, 200);
        if !is_regular {
            let message = "it is a link or a special file, and was left out";
            self.problems
                .push(Problem::warning("file-not-regular", &shown, 0, message));
            return None;
        }
        let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
        // Here and not with the other files that are left out: they lie next to the one folder that
        // everything else is in, which `top` would not find.
        if name.starts_with("__MACOSX/") || name.rsplit('/').next() == Some(".DS_Store") {
            self.problems.push(left_out(&shown, "systems make it"));
            return None;
        }
        Some(name)
    }

    /// Reads an entry: as many bytes as it states, within the budget.
    fn read(&mut self, entry: &mut dyn Read, size: u64) -> Result<Bytes, Error> {
        if size > self.budget || self.files.len() == MAX_FILES {
            return Err(too_large(&format!(
                "{MAX_FILES} files, {MAX_SKILL_BYTES} bytes, or {MAX_RATIO} times its own size"
            )));
        }
        let mut content = Vec::new();
        // The size that it states need not be true.
        let mut limited = entry.take(self.budget + 1);
        let read = limited.read_to_end(&mut content);
        read.map_err(|_| broken("a file in it is damaged"))?;
        let length = content.len() as u64;
        if length > self.budget {
            return Err(too_large(&format!(
                "{MAX_SKILL_BYTES} bytes, or {MAX_RATIO} times its own size"
            )));
        }
        if length != size {
            return Err(broken("it ends in the middle of a file"));
        }
        self.budget -= length;
        Ok(content.into())
    }

    fn insert(&mut self, name: String, content: Bytes) {
        match self.files.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(content),
            Entry::Occupied(entry) => {
                let (shown, message) = (model::shown(entry.key(), 200), "it is there twice");
                let problem = Problem::error("path-invalid", &shown, 0, message);
                self.problems.push(problem);
            }
        }
    }

    /// The files by the paths that they have in the skill.
    fn files(mut self) -> Files {
        let top = self.top();
        let mut found = Files::default();
        for (name, content) in self.files {
            let inside = name.strip_prefix(&top).unwrap_or(&name);
            match inside.parse::<FilePath>() {
                Ok(path) => _ = found.files.insert(path, content),
                Err(error) => {
                    let (shown, message) = (model::shown(&name, 200), error.to_string());
                    self.problems
                        .push(Problem::error("path-invalid", &shown, 0, message));
                }
            }
        }
        found.problems = self.problems;
        found
    }

    /// The one folder that everything is in, with its `/`.
    fn top(&self) -> String {
        let is_skill = |name: &str| name.eq_ignore_ascii_case(FilePath::SKILL_MD);
        let mut tops = self
            .files
            .keys()
            .map(|name| name.split_once('/').map(|(top, _)| top));
        let Some(Some(top)) = tops.next() else {
            return String::new();
        };
        let inside = |name: &String| name.strip_prefix(top)?.strip_prefix('/').map(is_skill);
        if tops.all(|other| other == Some(top))
            && self.files.keys().any(|name| inside(name) == Some(true))
        {
            return format!("{top}/");
        }
        String::new()
    }
}
