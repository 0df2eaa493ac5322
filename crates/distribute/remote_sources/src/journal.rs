//! The answers of a look that was interrupted, so that the next one continues it.
//!
//! A place that answers sixty requests an hour would never be listed otherwise: each look would
//! begin anew and spend the requests of the hour on what is known. A look that continues takes
//! answers from here without a request; changes of the place meanwhile are for the look after it.
//!
//! A file is one line of JSON about the look, and then for every answer a line of JSON and the
//! bytes of the answer.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Error, run_blocking};
use model::{Clock as _, Digest, SystemClock};

const NAME: &str = "answers";
/// Bytes of a journal. Answers that do not fit are requested again.
const MAX_BYTES: u64 = 512 * 1024 * 1024;
/// Bytes of one of its lines.
const MAX_LINE: u64 = 64 * 1024;
/// Hours that a journal is used: longer than the pause of a place with a limit per hour, and short
/// enough that its answers still describe the place.
const MAX_HOURS: i64 = 2;

/// The look that a journal is of.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    began: Timestamp,
    /// The digest of the mark of the look: with another mark the requests are others.
    mark: String,
}

/// The line before an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The digest of the requested address: its query may be secret.
    asked: String,
    /// The tag in the request.
    tag: Option<String>,
    pub(crate) status: u16,
    /// The address of the answer, without a query.
    pub(crate) from: String,
    /// The headers that are needed of the answer.
    pub(crate) headers: Vec<(String, String)>,
    bytes: u64,
}

impl Line {
    pub(crate) fn new(asked: &str, tag: Option<&str>, status: u16, from: &str) -> Self {
        let (asked, tag) = key(asked, tag);
        Self {
            asked,
            tag,
            status,
            from: from.to_owned(),
            headers: Vec::new(),
            bytes: 0,
        }
    }

    fn key(&self) -> Key {
        (self.asked.clone(), self.tag.clone())
    }
}

type Key = (String, Option<String>);

fn key(asked: &str, tag: Option<&str>) -> Key {
    let asked = Digest::of(asked.as_bytes()).to_string();
    (asked, tag.map(str::to_owned))
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Where each answer's bytes begin.
    answers: HashMap<Key, (Line, u64)>,
    /// Where the next one is written.
    end: u64,
}

/// The answers of a look.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    path: PathBuf,
    /// None: it cannot be written, and an interrupted look begins anew.
    open: Arc<Mutex<Option<Open>>>,
}

impl Journal {
    /// The journal of a look with a mark: that of an earlier look, if its mark was the same.
    pub(crate) async fn open(folder: &Path, mark: Option<&str>) -> Self {
        let path = folder.join(NAME);
        let (file, mark) = (path.clone(), mark.map(str::to_owned));
        let opened =
            run_blocking(move || Ok(begin(&file, mark.as_deref(), SystemClock.now()).ok())).await;
        let open = Arc::new(Mutex::new(opened.ok().flatten()));
        Self { path, open }
    }

    /// The answer to a request, if it was recorded.
    pub(crate) async fn answer(&self, asked: &str, tag: Option<&str>) -> Option<(Line, Vec<u8>)> {
        let key = key(asked, tag);
        let is_known = |open: &Open| open.answers.contains_key(&key);
        if !locked(&self.open).as_ref().is_some_and(is_known) {
            return None;
        }
        let open = Arc::clone(&self.open);
        let read = run_blocking(move || {
            let mut open = locked(&open);
            Ok(open.as_mut().and_then(|open| open.read(&key)))
        });
        read.await.ok()?
    }

    /// Adds an answer, and returns its bytes. One that cannot be written is requested again.
    pub(crate) async fn add(&self, line: Line, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let open = Arc::clone(&self.open);
        run_blocking(move || {
            let mut open = locked(&open);
            let written = open.as_mut().map(|open| open.add(line, &bytes));
            if matches!(written, Some(Err(_))) {
                // No more is written after a part of an answer; those before it can be read.
                *open = None;
            }
            Ok(bytes)
        })
        .await
    }

    /// Ends the look, and removes the file.
    pub(crate) async fn end(&self) {
        let (path, open) = (self.path.clone(), Arc::clone(&self.open));
        let ended = run_blocking(move || {
            *locked(&open) = None;
            // If it cannot be removed, it is ignored later: by its mark, or by its age.
            std::fs::remove_file(path).ok();
            Ok(())
        });
        ended.await.ok();
    }
}

fn locked(open: &Mutex<Option<Open>>) -> MutexGuard<'_, Option<Open>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a journal with its answers, if it has this mark and is not too old, else an empty one.
fn begin(path: &Path, mark: Option<&str>, now: Timestamp) -> std::io::Result<Open> {
    let mark = Digest::of(mark.unwrap_or_default().as_bytes()).to_string();
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    let mut file = file.open(path)?;
    let mut reader = BufReader::new(&file);
    let mut open = Open {
        file: file.try_clone()?,
        answers: HashMap::new(),
        end: 0,
    };
    let head: Option<(Head, u64)> = line(&mut reader);
    let is_young = |began: Timestamp| {
        // From 0, since a clock that was set back must not make it young.
        let hours = now.duration_since(began).as_hours();
        (0..MAX_HOURS).contains(&hours)
    };
    let Some((_, length)) = head.filter(|(head, _)| head.mark == mark && is_young(head.began))
    else {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        let mut text = serde_json::to_vec(&Head { began: now, mark })?;
        text.push(b'\n');
        file.write_all(&text)?;
        open.end = text.len() as u64;
        return Ok(open);
    };
    open.end = length;
    let whole = file.metadata()?.len();
    // Its last answer may be cut off by a kill: it is overwritten by the next one.
    while let Some((line, length)) = line::<Line>(&mut reader) {
        let start = open.end + length;
        let Some(end) = start.checked_add(line.bytes).filter(|end| *end <= whole) else {
            break;
        };
        let Ok(bytes) = i64::try_from(line.bytes) else {
            break;
        };
        reader.seek_relative(bytes)?;
        open.answers.insert(line.key(), (line, start));
        open.end = end;
    }
    file.set_len(open.end)?;
    Ok(open)
}

/// A line, and its length.
fn line<T: serde::de::DeserializeOwned>(reader: &mut BufReader<&File>) -> Option<(T, u64)> {
    let mut text = Vec::new();
    reader
        .by_ref()
        .take(MAX_LINE)
        .read_until(b'\n', &mut text)
        .ok()?;
    let json = text.strip_suffix(b"\n")?;
    Some((serde_json::from_slice(json).ok()?, text.len() as u64))
}

impl Open {
    fn read(&mut self, key: &Key) -> Option<(Line, Vec<u8>)> {
        let (line, start) = self.answers.get(key)?;
        self.file.seek(SeekFrom::Start(*start)).ok()?;
        let mut bytes = Vec::new();
        let mut limited = (&self.file).take(line.bytes);
        limited.read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == line.bytes).then(|| (line.clone(), bytes))
    }

    fn add(&mut self, mut line: Line, bytes: &[u8]) -> std::io::Result<()> {
        line.bytes = bytes.len() as u64;
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let length = text.len() as u64;
        if length > MAX_LINE || self.end + length + line.bytes > MAX_BYTES {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&text)?;
        self.file.write_all(bytes)?;
        self.answers.insert(line.key(), (line, self.end + length));
        self.end += length + bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hours * 3600).expect("a time")
    }

    fn known(open: &mut Open, asked: &str) -> Option<Vec<u8>> {
        open.read(&key(asked, None)).map(|(_, bytes)| bytes)
    }

    #[test]
    fn answers_are_those_of_a_look_with_the_same_mark_that_began_not_long_ago() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join(NAME);
        let mut open = begin(&path, Some("m"), at(0)).expect("a journal");
        let line = |asked: &str| Line::new(asked, None, 200, asked);
        open.add(line("a"), b"one\n").expect("written");
        open.add(line("b"), b"").expect("written");
        for hours in [0, 1] {
            let mut again = begin(&path, Some("m"), at(hours)).expect("a journal");
            assert_eq!(known(&mut again, "a").as_deref(), Some(&b"one\n"[..]));
            assert_eq!(known(&mut again, "b").as_deref(), Some(&b""[..]));
            assert_eq!(known(&mut again, "c"), None);
        }
        for (mark, hours) in [
            (Some("other"), 0),
            (None, 0),
            (Some("m"), 2),
            (Some("m"), -2),
        ] {
            let mut open = begin(&path, Some("m"), at(0)).expect("a journal");
            open.add(line("a"), b"x").expect("written");
            let mut other = begin(&path, mark, at(hours)).expect("a journal");
            assert_eq!(known(&mut other, "a"), None, "{mark:?} {hours}");
        }
    }

    #[test]
    fn what_was_not_written_whole_is_left_out_and_written_over() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join(NAME);
        let mut open = begin(&path, None, at(0)).expect("a journal");
        open.add(Line::new("a", None, 200, "a"), b"one")
            .expect("written");
        let first = open.end;
        open.add(Line::new("b", None, 200, "b"), b"two")
            .expect("written");
        let whole = std::fs::read(&path).expect("a file");
        let first = usize::try_from(first).expect("a length");
        for length in first..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("a file");
            let mut again = begin(&path, None, at(0)).expect("a journal");
            assert_eq!(known(&mut again, "a").as_deref(), Some(&b"one"[..]));
            assert_eq!(known(&mut again, "b"), None, "{length}");
            again
                .add(Line::new("c", None, 200, "c"), b"three")
                .expect("written");
            let mut third = begin(&path, None, at(0)).expect("a journal");
            assert_eq!(known(&mut third, "c").as_deref(), Some(&b"three"[..]));
        }
        std::fs::write(&path, "{}\nnothing").expect("a file");
        assert!(
            begin(&path, None, at(0))
                .expect("a journal")
                .answers
                .is_empty()
        );
    }
}
