//! Skills of real size: made from the real ones in `../shared/corpus`, else from
//! words, in the same sizes.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use contract::v1;
use model::FilePath;
use registry::Bundle;

use super::Random;

/// Sizes of real SKILL.md files: nine quantiles of 515.
const SIZES: [usize; 9] = [
    1_900, 3_100, 4_300, 5_500, 6_800, 8_300, 10_400, 13_000, 18_500,
];
/// Bytes of the reference file that every fourth skill has.
const REFERENCE: usize = 7_000;

/// Front matter without its name, and body, of skills that can be published.
pub struct Corpus {
    texts: Vec<(String, String)>,
    /// Whether they are real.
    pub real: bool,
}

/// Front matter and body; the front matter must have its name on one line.
fn split(text: &str) -> Option<(String, String)> {
    let rest = text.strip_prefix("---\n")?;
    let (front, body) = rest.split_once("\n---\n")?;
    let lines: Vec<&str> = front
        .lines()
        .filter(|line| !line.starts_with("name:"))
        .collect();
    (lines.len() + 1 == front.lines().count()).then(|| (lines.join("\n"), body.to_owned()))
}

impl Corpus {
    pub fn load() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
        let mut texts: Vec<_> = walkdir::WalkDir::new(folder)
            .sort_by_file_name()
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name() == "SKILL.md")
            .filter_map(|entry| split(&std::fs::read_to_string(entry.path()).ok()?))
            .collect();
        texts.retain(|text| {
            let files = BTreeMap::from([(
                FilePath::skill_md(),
                Bytes::from(skill_md(text, "probe", 0)),
            )]);
            Bundle {
                files,
                ..Bundle::default()
            }
            .read()
            .skill
            .is_some()
        });
        let real = !texts.is_empty();
        if !real {
            let mut random = Random::new(1);
            texts = (0..450)
                .map(|at| made_up(SIZES[at % SIZES.len()], &mut random))
                .collect();
        }
        Self { texts, real }
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// The skill of a number: like no other in its id, name and bytes.
    pub fn request(&self, at: usize) -> v1::PublishSkillRequest {
        let name = format!("bench-{at:06}");
        let mut files = vec![file("SKILL.md", skill_md(self.text(at), &name, at))];
        if at.is_multiple_of(4) {
            let body = &self.text(at / 4 + 7).1;
            let end = (0..=REFERENCE.min(body.len()))
                .rev()
                .find(|end| body.is_char_boundary(*end))
                .unwrap_or(0);
            files.push(file(
                "references/more.md",
                format!("# More of {name}\n\n{}\n", &body[..end]),
            ));
        }
        v1::PublishSkillRequest {
            skill_id: format!("bench/owner-{}/{name}", at % 97),
            files,
            ..Default::default()
        }
    }

    /// The same, ready to be read.
    pub fn bundle(&self, at: usize) -> Bundle {
        let skill = self.request(at);
        let files = skill.files.into_iter();
        let files = files.map(|file| (file.path.parse().expect("a path"), file.content));
        Bundle {
            id: Some(skill.skill_id.parse().expect("an id")),
            files: files.collect(),
            ..Bundle::default()
        }
    }

    fn text(&self, at: usize) -> &(String, String) {
        &self.texts[at % self.texts.len()]
    }
}

fn file(path: &str, content: String) -> v1::File {
    v1::File {
        path: path.to_owned(),
        content: content.into(),
    }
}

fn skill_md((front, body): &(String, String), name: &str, at: usize) -> String {
    format!("---\nname: {name}\n{front}\n---\n{body}\nThis is the copy with the number {at}.\n")
}

/// Words, as often as words are in a text: some often, most seldom.
fn made_up(size: usize, random: &mut Random) -> (String, String) {
    const PARTS: [&str; 16] = [
        "ta", "ren", "mo", "sil", "ka", "dor", "vi", "en", "lu", "pas", "ter", "in", "gra", "ho",
        "qui", "bel",
    ];
    let mut words = |least: usize| {
        let mut text = String::new();
        while text.len() < least {
            let rank = random.below(64) * random.below(64);
            let mut word = rank + 1;
            while word > 0 {
                text.push_str(PARTS[word % PARTS.len()]);
                word /= PARTS.len();
            }
            text.push(if random.below(12) == 0 { '\n' } else { ' ' });
        }
        text
    };
    let description = words(220).replace('\n', " ");
    (
        format!("description: {}\nversion: 1.0.0", description.trim()),
        words(size - 250),
    )
}
