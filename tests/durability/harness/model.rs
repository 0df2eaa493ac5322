//! What a skill must look like after its writes, told without the server.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use contract::v1;
use model::{Digest, FilePath, bundle_digest};
use semver::Version;

use super::Dice;

/// Files of a skill by path.
pub type Files = BTreeMap<String, Bytes>;

/// A version that was asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct Draft {
    pub files: Arc<Files>,
    pub digest: String,
    /// The semantic version that its front matter states.
    pub declared: Option<Version>,
    pub activate: bool,
    pub summary: String,
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} ({} files, declared {:?})",
            self.digest,
            self.files.len(),
            self.declared
        )
    }
}

/// A write to one skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Publish(Draft),
    Activate(u32),
    Yank(u32, String),
    Unyank(u32),
    Delete,
}

/// What a write is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Published {
        outcome: v1::PublishOutcome,
        number: u32,
        semantic: String,
        digest: String,
    },
    Activated {
        number: u32,
        previous: u32,
    },
    Withdrawn {
        number: u32,
        active: u32,
    },
    Deleted {
        versions: u32,
    },
    Refused(String),
}

/// What the log says about a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    pub kind: v1::EventType,
    pub number: u32,
    pub semantic: String,
    pub digest: String,
    pub active: u32,
}

impl From<&v1::Event> for Happened {
    fn from(event: &v1::Event) -> Self {
        Self {
            kind: event.r#type(),
            number: event.version_number,
            semantic: event.semantic_version.clone(),
            digest: event.digest.clone(),
            active: event.active_version,
        }
    }
}

/// A version as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub semantic: String,
    pub digest: String,
    pub summary: String,
    pub yanked: Option<String>,
    pub files: Arc<Files>,
}

/// A skill that can be seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub active: u32,
    pub versions: BTreeMap<u32, Kept>,
}

/// A skill with all that decides about its next write.
#[derive(Debug, Clone, Default)]
pub struct Skill {
    pub id: String,
    /// None: it was deleted, or never was.
    pub state: Option<State>,
    pub log: Vec<Happened>,
    last: u32,
    highest: Option<Version>,
    /// Who has a semantic version; deleted skills keep theirs.
    semantics: BTreeMap<Version, (u32, String)>,
}

fn refused<T>(code: &str) -> Result<T, Answer> {
    Err(Answer::Refused(code.to_owned()))
}

impl Skill {
    pub fn new(id: String) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// Does a write, and tells what it is answered with.
    pub fn apply(&mut self, op: &Op) -> Answer {
        let done = match op {
            Op::Publish(draft) => self.publish(draft),
            Op::Activate(number) => self.activate(*number),
            Op::Yank(number, reason) => self.yank(*number, reason),
            Op::Unyank(number) => self.unyank(*number),
            Op::Delete => self.delete(),
        };
        match done {
            Ok(answer) | Err(answer) => answer,
        }
    }

    fn publish(&mut self, draft: &Draft) -> Result<Answer, Answer> {
        let published = |outcome, number, semantic: &str| Answer::Published {
            outcome,
            number,
            semantic: semantic.to_owned(),
            digest: draft.digest.clone(),
        };
        if let Some(state) = &mut self.state
            && let Some((number, kept)) = state
                .versions
                .iter()
                .find(|(_, kept)| kept.digest == draft.digest)
        {
            let number = *number;
            let unchanged = published(v1::PublishOutcome::Unchanged, number, &kept.semantic);
            if draft.activate && kept.yanked.is_none() && state.active != number {
                state.active = number;
                self.happened(v1::EventType::Activated, number);
            }
            return Ok(unchanged);
        }
        let taken = |version: &Version| {
            self.semantics
                .get(version)
                .is_some_and(|(_, digest)| *digest != draft.digest)
        };
        let semantic = match &draft.declared {
            Some(declared) if taken(declared) => return refused("VERSION_CONFLICT"),
            Some(declared) => declared.clone(),
            None => {
                let raised = |version: &Version| {
                    Version::new(version.major, version.minor, version.patch + 1)
                };
                // A deleted skill goes on above what it had.
                self.highest.as_ref().map_or(Version::new(1, 0, 0), raised)
            }
        };
        let outcome = match self.state {
            None => v1::PublishOutcome::Created,
            Some(_) => v1::PublishOutcome::Updated,
        };
        self.last += 1;
        let number = self.last;
        self.highest = self.highest.take().max(Some(semantic.clone()));
        self.semantics
            .insert(semantic.clone(), (number, draft.digest.clone()));
        let semantic = semantic.to_string();
        let state = self.state.get_or_insert_default();
        if draft.activate {
            state.active = number;
        }
        let kept = Kept {
            semantic: semantic.clone(),
            digest: draft.digest.clone(),
            summary: draft.summary.clone(),
            yanked: None,
            files: Arc::clone(&draft.files),
        };
        state.versions.insert(number, kept);
        self.happened(v1::EventType::Published, number);
        Ok(published(outcome, number, &semantic))
    }

    fn happened(&mut self, kind: v1::EventType, number: u32) {
        let state = self.state.as_ref().expect("a skill that is there");
        let kept = state
            .versions
            .get(&number)
            .expect("a version that is there");
        let (semantic, digest) = (kept.semantic.clone(), kept.digest.clone());
        self.log.push(Happened {
            kind,
            number,
            semantic,
            digest,
            active: state.active,
        });
    }

    /// The state and a version of it that exists.
    fn of(&mut self, number: u32) -> Result<(&mut u32, &mut BTreeMap<u32, Kept>), Answer> {
        match &mut self.state {
            None => refused("SKILL_NOT_FOUND"),
            Some(state) if !state.versions.contains_key(&number) => refused("VERSION_NOT_FOUND"),
            Some(state) => Ok((&mut state.active, &mut state.versions)),
        }
    }

    fn activate(&mut self, number: u32) -> Result<Answer, Answer> {
        let (active, versions) = self.of(number)?;
        if versions[&number].yanked.is_some() {
            return refused("VERSION_YANKED");
        }
        let previous = std::mem::replace(active, number);
        if previous != number {
            self.happened(v1::EventType::Activated, number);
        }
        Ok(Answer::Activated { number, previous })
    }

    fn yank(&mut self, number: u32, reason: &str) -> Result<Answer, Answer> {
        let (active, versions) = self.of(number)?;
        let kept = versions.get_mut(&number).expect("a version that exists");
        if kept.yanked.is_some() {
            return Ok(Answer::Withdrawn {
                number,
                active: *active,
            });
        }
        kept.yanked = Some(reason.to_owned());
        if *active == number {
            let mut left = versions
                .iter()
                .rev()
                .filter(|(_, kept)| kept.yanked.is_none());
            *active = left.next().map_or(0, |(number, _)| *number);
        }
        let active = *active;
        self.happened(v1::EventType::Yanked, number);
        Ok(Answer::Withdrawn { number, active })
    }

    fn unyank(&mut self, number: u32) -> Result<Answer, Answer> {
        let (active, versions) = self.of(number)?;
        let kept = versions.get_mut(&number).expect("a version that exists");
        if kept.yanked.take().is_none() {
            return Ok(Answer::Withdrawn {
                number,
                active: *active,
            });
        }
        if *active == 0 {
            *active = number;
        }
        let active = *active;
        self.happened(v1::EventType::Unyanked, number);
        Ok(Answer::Withdrawn { number, active })
    }

    fn delete(&mut self) -> Result<Answer, Answer> {
        let Some(state) = self.state.take() else {
            return refused("SKILL_NOT_FOUND");
        };
        self.log.push(Happened {
            kind: v1::EventType::Deleted,
            number: 0,
            semantic: String::new(),
            digest: String::new(),
            active: 0,
        });
        Ok(Answer::Deleted {
            versions: u32::try_from(state.versions.len()).expect("few versions"),
        })
    }
}

/// Digest of a bundle.
pub fn digest(files: &Files) -> String {
    let files: Vec<(FilePath, Digest)> = files
        .iter()
        .map(|(path, bytes)| (path.parse().expect("a path"), Digest::of(bytes)))
        .collect();
    bundle_digest(files.iter().map(|(path, digest)| (path, *digest))).to_string()
}

const WORDS: [&str; 12] = [
    "invoice", "query", "step", "ledger", "check", "the", "and", "before", "table", "report",
    "then", "each",
];

pub fn prose(dice: &mut Dice, length: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        text.push_str(WORDS[dice.index(WORDS.len())]);
        text.push(if dice.percent(10) { '\n' } else { ' ' });
    }
    text
}

/// A length: mostly small, sometimes up to `most`.
fn length(dice: &mut Dice, most: usize) -> usize {
    let most = match dice.below(100) {
        0..60 => 2_000,
        60..88 => 20_000,
        88..97 => 80_000,
        _ => most,
    }
    .min(most);
    100 + dice.index(most)
}

/// A skill that nobody has published before: some have one file, some several,
/// some bytes that do not compress.
pub fn draft(dice: &mut Dice, id: &str, most: usize, declared: Option<Version>) -> Draft {
    let name = id.rsplit('/').next().expect("an id");
    let version = declared
        .as_ref()
        .map(|version| format!("version: \"{version}\"\n"))
        .unwrap_or_default();
    let mark = dice.next();
    let size = length(dice, most);
    let body = prose(dice, size);
    let text = format!(
        "---\nname: {name}\ndescription: Made by a test, {mark}.\n{version}---\n\n# {name}\n\n{body}\n"
    );
    let mut files = Files::from([("SKILL.md".to_owned(), Bytes::from(text))]);
    if dice.percent(30) {
        for at in 0..=dice.below(4) {
            let size = length(dice, most);
            files.insert(format!("references/part-{at}.md"), prose(dice, size).into());
        }
    }
    if dice.percent(15) {
        let size = length(dice, most);
        files.insert("assets/noise.npy".to_owned(), dice.bytes(size).into());
    }
    Draft {
        digest: digest(&files),
        files: Arc::new(files),
        declared,
        activate: !dice.percent(15),
        summary: format!("change {mark}"),
    }
}
