//! What a process did to files, from what strace wrote down.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Something that was done to a file or a folder.
#[derive(Debug)]
pub(super) enum Event {
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Truncate(PathBuf, u64),
    /// A sync by a thread began; what was written before is durable when it ends.
    SyncBegin(u32, PathBuf),
    SyncEnd(u32),
    Rename(PathBuf, PathBuf),
    Exchange(PathBuf, PathBuf),
    Remove(PathBuf),
    /// A line that the process wrote to the notes.
    Note(String),
}

/// What is traced.
pub(super) const CALLS: &str = "openat,open,creat,write,pwrite64,pwritev,writev,fsync,fdatasync,rename,renameat,renameat2,ftruncate,unlink,unlinkat,mkdir,mkdirat,rmdir,copy_file_range,sendfile";

/// Decodes `\x41\x42`.
fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| {
        let digit = char::from(byte).to_digit(16).expect("a digit");
        u8::try_from(digit).expect("below 16")
    };
    let bytes = text.as_bytes().chunks_exact(4);
    bytes
        .map(|four| digit(four[2]) * 16 + digit(four[3]))
        .collect()
}

fn path(text: &str) -> PathBuf {
    PathBuf::from(String::from_utf8(hex(text)).expect("a path in UTF-8"))
}

/// The quoted strings of a call, as written.
fn strings(arguments: &str) -> Vec<&str> {
    arguments.split('"').skip(1).step_by(2).collect()
}

/// The paths behind descriptors, as written.
fn descriptors(arguments: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(open) = rest.find('<') {
        let Some(length) = rest[open..].find('>') else {
            break;
        };
        let number = rest[..open]
            .rsplit([',', ' ', '('])
            .next()
            .unwrap_or_default();
        found.push((number, &rest[open + 1..open + length]));
        rest = &rest[open + length + 1..];
    }
    found
}

/// A path as a call names it: relative to a folder behind a descriptor, or whole.
fn named(folder: &str, name: &str) -> PathBuf {
    path(folder).join(path(name))
}

#[derive(Default)]
pub(super) struct Trace {
    pub events: Vec<Event>,
    /// Where the next `write` goes, by descriptor.
    offsets: HashMap<String, u64>,
    begun: HashMap<u32, String>,
}

impl Trace {
    /// Reads a trace; `root` is the folder of interest, `notes` the file of notes.
    pub(super) fn read(text: &str, root: &Path, notes: &Path) -> Self {
        let mut trace = Self::default();
        for line in text.lines() {
            let Some((thread, rest)) = line.split_once(' ') else {
                continue;
            };
            let (Ok(thread), rest) = (thread.parse::<u32>(), rest.trim_start()) else {
                continue;
            };
            if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
                if begun.starts_with("fsync(") || begun.starts_with("fdatasync(") {
                    trace.sync_begins(thread, begun, root);
                }
                trace.begun.insert(thread, begun.to_owned());
            } else if let Some(resumed) = rest.strip_prefix("<... ") {
                let Some(begun) = trace.begun.remove(&thread) else {
                    continue;
                };
                let end = resumed.split_once('>').map_or("", |(_, end)| end);
                trace.call(thread, &format!("{begun}{end}"), true, root, notes);
            } else {
                trace.call(thread, rest, false, root, notes);
            }
        }
        trace
    }

    fn sync_begins(&mut self, thread: u32, call: &str, root: &Path) {
        if let Some((_, file)) = descriptors(call).first() {
            let file = path(file);
            if file.starts_with(root) {
                self.events.push(Event::SyncBegin(thread, file));
            }
        }
    }

    fn call(&mut self, thread: u32, call: &str, resumed: bool, root: &Path, notes: &Path) {
        let (Some((name, rest)), Some((_, answer))) =
            (call.split_once('('), call.rsplit_once(" = "))
        else {
            return;
        };
        if answer.starts_with('-') || answer.starts_with('?') {
            return;
        }
        let arguments = rest
            .rsplit_once(" = ")
            .map_or(rest, |(arguments, _)| arguments);
        // Short calls are filled up with spaces.
        let arguments = arguments.trim_end();
        let (texts, files) = (strings(arguments), descriptors(arguments));
        let first = files.first().copied().unwrap_or_default();
        let ours = |path: &Path| path.starts_with(root);
        match name {
            "openat" => {
                let opened = descriptors(answer).first().map(|(_, file)| path(file));
                let Some(opened) = opened.filter(|opened| ours(opened)) else {
                    return;
                };
                let number = answer.split('<').next().unwrap_or_default();
                self.offsets.insert(number.to_owned(), 0);
                if arguments.contains("O_CREAT") {
                    self.events.push(Event::Create(opened.clone()));
                }
                if arguments.contains("O_TRUNC") {
                    self.events.push(Event::Truncate(opened, 0));
                }
            }
            "write" | "pwrite64" => {
                let file = path(first.1);
                let bytes = texts.first().map(|text| hex(text)).unwrap_or_default();
                if file == notes {
                    let text = String::from_utf8(bytes).expect("a note");
                    self.events
                        .extend(text.lines().map(|line| Event::Note(line.to_owned())));
                    return;
                }
                if !ours(&file) {
                    return;
                }
                let written: u64 = answer.parse().expect("a count of bytes");
                assert_eq!(
                    written,
                    bytes.len() as u64,
                    "the trace has it whole: {name}"
                );
                let at = if name == "pwrite64" {
                    let at = arguments.rsplit(", ").next().unwrap_or_default();
                    at.trim_end_matches(')').parse().expect("a place")
                } else {
                    let at = self.offsets.entry(first.0.to_owned()).or_default();
                    let from = *at;
                    *at += written;
                    from
                };
                self.events.push(Event::Write(file, at, bytes));
            }
            "fsync" | "fdatasync" => {
                if !resumed {
                    self.sync_begins(thread, call, root);
                }
                if ours(&path(first.1)) {
                    self.events.push(Event::SyncEnd(thread));
                }
            }
            "ftruncate" => {
                let length = arguments.rsplit(", ").next().unwrap_or_default();
                let length = length.trim_end_matches(')').parse().expect("a length");
                if ours(&path(first.1)) {
                    self.events.push(Event::Truncate(path(first.1), length));
                }
            }
            "rename" | "renameat" | "renameat2" => {
                let [from, to] = texts[..] else { return };
                let folder = |n: usize| files.get(n).map_or("", |(_, folder)| *folder);
                let (from, to) = (named(folder(0), from), named(folder(1), to));
                if ours(&from) || ours(&to) {
                    self.events.push(if arguments.contains("RENAME_EXCHANGE") {
                        Event::Exchange(from, to)
                    } else {
                        Event::Rename(from, to)
                    });
                }
            }
            "unlink" | "unlinkat" | "rmdir" => {
                let file = named(first.1, texts.first().copied().unwrap_or_default());
                if ours(&file) {
                    self.events.push(Event::Remove(file));
                }
            }
            "mkdir" | "mkdirat" => {}
            // Nothing that is traced and not understood may touch the directory.
            _ => assert!(
                !files.iter().any(|(_, file)| ours(&path(file))),
                "{name} is not known: {call:.200}"
            ),
        }
    }
}
