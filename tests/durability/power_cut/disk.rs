//! A disk that forgets what was not synced.
//!
//! Names are kept in order, as a journal keeps them: any sync makes all changes of
//! names durable that came before it. Of the bytes of a file that were not synced, any
//! pages may be there and any may not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::trace::Event;
use crate::harness::Dice;

const PAGE: usize = 4096;

/// Files by their paths.
type Names = BTreeMap<PathBuf, usize>;

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Debug, Clone, Default)]
struct Inode {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

/// What becomes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    All,
    Some,
    None,
}

/// A disk on which events happen.
#[derive(Debug, Default)]
pub(super) struct Disk {
    inodes: Vec<Inode>,
    names: Names,
    durable_names: Names,
    /// By thread: which file is synced, and how much of it.
    syncs: BTreeMap<u32, (Option<usize>, usize, Names)>,
    /// Pages that were dropped so far.
    pub dropped: usize,
}

fn apply(bytes: &mut Vec<u8>, at: usize, data: &[u8]) {
    if bytes.len() < at + data.len() {
        bytes.resize(at + data.len(), 0);
    }
    bytes[at..at + data.len()].copy_from_slice(data);
}

fn place(at: u64) -> usize {
    usize::try_from(at).expect("a place")
}

impl Disk {
    fn change(&mut self, path: &Path, change: Change) {
        let inode = self.names.get(path).copied();
        // A file that was removed while it is open is of no interest.
        if let Some(inode) = inode {
            self.inodes[inode].pending.push(change);
        }
    }

    pub(super) fn happens(&mut self, event: &Event) {
        match event {
            Event::Create(path) => {
                if !self.names.contains_key(path) {
                    self.inodes.push(Inode::default());
                    self.names.insert(path.clone(), self.inodes.len() - 1);
                }
            }
            Event::Write(path, at, bytes) => {
                self.change(path, Change::Write(*at, bytes.clone()));
            }
            Event::Truncate(path, length) => self.change(path, Change::Truncate(*length)),
            Event::SyncBegin(thread, path) => {
                let inode = self.names.get(path).copied();
                let pending = inode.map_or(0, |inode| self.inodes[inode].pending.len());
                self.syncs
                    .insert(*thread, (inode, pending, self.names.clone()));
            }
            Event::SyncEnd(thread) => {
                let Some((inode, count, names)) = self.syncs.remove(thread) else {
                    return;
                };
                self.durable_names = names;
                if let Some(inode) = inode {
                    let Inode { durable, pending } = &mut self.inodes[inode];
                    for change in pending.drain(..count.min(pending.len())) {
                        match change {
                            Change::Write(at, bytes) => apply(durable, place(at), &bytes),
                            Change::Truncate(length) => durable.resize(place(length), 0),
                        }
                    }
                }
            }
            Event::Rename(from, to) => {
                let moved: Vec<_> = below(&self.names, from);
                self.names.retain(|path, _| !path.starts_with(to));
                for (path, inode) in moved {
                    self.names.remove(&path);
                    let rest = path.strip_prefix(from).expect("below it");
                    self.names.insert(join(to, rest), inode);
                }
            }
            Event::Exchange(one, other) => {
                let (ones, others) = (below(&self.names, one), below(&self.names, other));
                self.names
                    .retain(|path, _| !path.starts_with(one) && !path.starts_with(other));
                for (from, to, moved) in [(one, other, ones), (other, one, others)] {
                    for (path, inode) in moved {
                        let rest = path.strip_prefix(from).expect("below it");
                        self.names.insert(join(to, rest), inode);
                    }
                }
            }
            Event::Remove(path) => {
                self.names.remove(path);
            }
            Event::Note(_) => {}
        }
    }

    /// Writes what a power cut leaves, for `root`, into another folder.
    pub(super) fn cut(&mut self, root: &Path, into: &Path, loss: Loss, dice: &mut Dice) {
        let names = if loss == Loss::All || (loss == Loss::Some && dice.percent(50)) {
            &self.durable_names
        } else {
            &self.names
        };
        for (path, inode) in names {
            let Inode { durable, pending } = &self.inodes[*inode];
            let mut bytes = durable.clone();
            for change in pending {
                match change {
                    Change::Write(at, data) => {
                        // Pages of the file, not of the write.
                        let mut at = place(*at);
                        let mut data = data.as_slice();
                        while !data.is_empty() {
                            let (page, rest) = data.split_at(data.len().min(PAGE - at % PAGE));
                            if loss == Loss::None || (loss == Loss::Some && dice.percent(50)) {
                                apply(&mut bytes, at, page);
                            } else {
                                self.dropped += 1;
                            }
                            at += page.len();
                            data = rest;
                        }
                    }
                    Change::Truncate(length) => {
                        if loss == Loss::None || (loss == Loss::Some && dice.percent(50)) {
                            bytes.resize(place(*length), 0);
                        }
                    }
                }
            }
            let copy = join(into, path.strip_prefix(root).expect("below the root"));
            fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
            fs::write(copy, bytes).expect("a file");
        }
    }
}

fn below(names: &Names, path: &Path) -> Vec<(PathBuf, usize)> {
    let below = names.iter().filter(|(name, _)| name.starts_with(path));
    below.map(|(name, inode)| (name.clone(), *inode)).collect()
}

fn join(folder: &Path, rest: &Path) -> PathBuf {
    // Joined with nothing, a path would end in a slash.
    if rest.as_os_str().is_empty() {
        folder.to_owned()
    } else {
        folder.join(rest)
    }
}
