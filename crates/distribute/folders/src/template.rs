//! The folder of a new skill, made from a template.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use model::Problem;

/// The placeholder for the name.
const NAME: &str = "NAME";

/// The files, by path.
const FILES: [(&str, &str); 3] = [
    ("SKILL.md", include_str!("template/SKILL.md")),
    (
        "references/reference.md",
        include_str!("template/references/reference.md"),
    ),
    (
        "examples/example.md",
        include_str!("template/examples/example.md"),
    ),
];

/// Why no skill was created. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The name is invalid, or not recommended.
    #[error("this is not a valid skill name")]
    Name(Vec<Problem>),
    /// A file or folder has the name.
    #[error("`{}` exists already, and was not changed", .0.display())]
    Exists(PathBuf),
    /// A file or folder cannot be made.
    #[error("cannot create `{}`: {cause}", path.display())]
    Failed {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
}

/// A skill that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSkill {
    /// Its folder.
    pub folder: PathBuf,
    /// Its files, each with the folder.
    pub files: Vec<PathBuf>,
}

/// Makes the folder of a new skill inside another one, which is made if it does not exist.
///
/// # Errors
/// The name is invalid or in use, or the disk refuses.
pub fn new_skill(parent: &Path, name: &str) -> Result<NewSkill, NewError> {
    let problems = skill_md::check_name(name);
    if !problems.is_empty() {
        return Err(NewError::Name(problems));
    }
    let failed = |path: &Path, cause| NewError::Failed {
        path: path.to_owned(),
        cause,
    };
    fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
    let folder = parent.join(name);
    // `create_dir` fails if it exists, so the folder is ours from here on, and may be removed
    // below.
    fs::create_dir(&folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => NewError::Exists(folder.clone()),
        _ => failed(&folder, error),
    })?;
    let mut files = Vec::new();
    for (path, text) in FILES {
        let path = folder.join(path);
        if let Err(error) = write(&path, &named(text, name)) {
            let _gone = fs::remove_dir_all(&folder);
            return Err(failed(&path, error));
        }
        files.push(path);
    }
    Ok(NewSkill { folder, files })
}

/// Names that are no text to YAML: `yes`, `no`, `on`, `off`, `y` and `n` are truth values in YAML
/// 1.1, which many parsers still read.
const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A text with the name in it, in quotes where YAML would read a number or a truth value.
fn named(text: &str, name: &str) -> String {
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let key = if begins && !WORDS.contains(&name) {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    };
    text.replace(&format!("name: {NAME}\n"), &format!("name: {key}\n"))
        .replace(NAME, name)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use registry::Bundle;

    /// All that is wrong with a folder when it is read strictly.
    fn problems(folder: &Path) -> Vec<Problem> {
        let read = crate::read(folder);
        let bundle = Bundle {
            id: None,
            files: read.files,
            folder: crate::name(folder),
            strict: true,
        };
        let candidate = bundle.read();
        assert!(candidate.is_valid());
        [read.problems, candidate.problems].concat()
    }

    #[test]
    fn a_new_skill_has_no_problem_whatever_its_name_is() {
        let place = tempfile::tempdir().expect("a folder");
        let parent = place.path().join("skills/of-mine");
        for name in [
            "refund-desk",
            "x",
            "123",
            "1e3",
            "true",
            "null",
            "no",
            "0x1f",
        ] {
            let new = new_skill(&parent, name).expect("a skill");
            assert_eq!(problems(&new.folder), [], "{name}");
            let text = fs::read_to_string(&new.files[0]).expect("a file");
            assert!(text.contains(&format!("\n# {name}\n")), "{name}");
            assert!(!text.contains(NAME), "{name}");
        }
        let plain = parent.join("refund-desk/SKILL.md");
        let plain = fs::read_to_string(plain).expect("a file");
        assert!(plain.contains("\nname: refund-desk\n"), "{plain}");
    }

    #[test]
    fn what_is_there_stays_and_a_wrong_name_is_told_by_its_rule() {
        let place = tempfile::tempdir().expect("a folder");
        let taken = place.path().join("taken");
        fs::create_dir(&taken).expect("a folder");
        fs::write(taken.join("SKILL.md"), "mine").expect("a file");
        let refused = new_skill(place.path(), "taken").expect_err("a refusal");
        assert!(matches!(refused, NewError::Exists(path) if path == taken));
        fs::write(place.path().join("file"), "mine").expect("a file");
        let refused = new_skill(place.path(), "file").expect_err("a refusal");
        assert!(matches!(refused, NewError::Exists(_)));
        let rules = |name: &str| match new_skill(place.path(), name) {
            Err(NewError::Name(problems)) => problems
                .iter()
                .map(|problem| problem.rule.clone())
                .collect(),
            other => panic!("{other:?}"),
        };
        let cases: [(&str, &[&str]); 7] = [
            ("Refund Desk", &["name-nonstandard"]),
            ("../up", &["name-nonstandard"]),
            ("a--b", &["name-nonstandard"]),
            ("", &["name-unusable", "name-nonstandard"]),
            ("con", &["name-unusable"]),
            (
                "a\u{200b}b",
                &["name-hidden-characters", "name-nonstandard"],
            ),
            (&"x".repeat(65), &["name-too-long"]),
        ];
        for (name, found) in cases {
            let told: Vec<String> = rules(name);
            assert_eq!(told, found, "{name:?}");
        }
        let left = fs::read_dir(place.path()).expect("a folder").count();
        assert_eq!(left, 2, "nothing was made");
    }
}
