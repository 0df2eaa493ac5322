//! Lock files, archives, agents.

use std::io::Write as _;

use proptest::prelude::*;

use super::*;

fn locked(of: &str, targets: &[&str]) -> Locked {
    Locked {
        id: id(of),
        semantic: semver::Version::new(1, 2, 0),
        number: VersionNumber::FIRST,
        digest: Digest::of(b"x"),
        verdict: "passed".to_owned(),
        server: "http://skills.internal:50051".to_owned(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        requested: true,
    }
}

const LOCK: &str = r#"# The skills of this folder, to the byte. Written by `repertoire install`; keep it in version control.
version = 1

[[skill]]
id = "github/acme/a"
version = "1.2.0"
number = 1
digest = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
verdict = "passed"
server = "http://skills.internal:50051"
targets = ["agents", "claude"]
requested = true

[[skill]]
id = "github/acme/b"
version = "1.2.0"
number = 1
digest = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
verdict = "passed"
server = "http://skills.internal:50051"
targets = ["odd \"name\"\u000A\\"]
requested = true
"#;

#[test]
fn a_lock_file_is_sorted_and_reads_back_what_it_says() {
    let mut lock = SkillsLock::default();
    lock.put(locked("github/acme/b", &["odd \"name\"\n\\"]));
    lock.put(locked("github/acme/a", &["cursor"]));
    lock.put(locked("GitHub/Acme/A", &["claude", "agents", "claude"]));
    assert_eq!(lock.text().to_lowercase(), LOCK.to_lowercase());
    let machine = Machine::new();
    let path = machine.folder.path().join(LOCK_FILE);
    assert_eq!(SkillsLock::read(&path).expect("none"), None);
    lock.write(&path).expect("written");
    assert_eq!(SkillsLock::read(&path).expect("a lock"), Some(lock.clone()));
    assert_eq!(
        lock.get(&id("github/acme/A")).map(|l| l.targets.len()),
        Some(2)
    );
    assert!(lock.remove(&id("github/acme/a")).is_some());
    assert_eq!(lock.skills().len(), 1);
}

#[test]
fn a_lock_file_that_cannot_be_read_says_where() {
    for (text, reason) in [
        ("", "missing field `version`"),
        ("version = 2\n", "it is of form 2, and this version knows 1"),
        ("version = 1\n[[skill]]\nid = \"../x\"\n", "not a skill id"),
        (
            &LOCK.replace("acme/b", "acme/A"),
            "it has 'github/acme/A' twice",
        ),
        (&LOCK.replace("sha256:2d", "sha256:2"), "not a digest"),
        ("<<<<<<< HEAD\n", "TOML parse error at line 1"),
    ] {
        let machine = Machine::new();
        let path = machine.folder.path().join(LOCK_FILE);
        fs::write(&path, text).expect("written");
        let error = SkillsLock::read(&path).expect_err("unreadable").to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn the_lock_of_npx_says_which_skills_of_which_repositories() {
    let text = r#"{"version": 1, "skills": {
        "frontend-design": {"source": "anthropics/skills", "sourceType": "github", "computedHash": "ab"},
        "Vercel Best": {"source": "https://github.com/vercel-labs/agent-skills.git", "sourceType": "git", "ref": "main"},
        "other": {"source": "git@gitlab.com:team/skills.git", "sourceType": "gitlab"},
        "local": {"source": "../skills", "sourceType": "local", "computedHash": "cd"},
        "nowhere": {"source": "https://skills.example/x/y", "sourceType": "well-known"},
        "odd": {"source": "../..", "sourceType": "github"}
    }}"#;
    let machine = Machine::new();
    let path = machine.folder.path().join(NPX_LOCK_FILE);
    assert_eq!(NpxSkill::read_lock(&path).expect("none"), None);
    fs::write(&path, text).expect("written");
    let lock = NpxSkill::read_lock(&path).expect("a lock").expect("there");
    let found = lock.iter().map(|skill| {
        let id = skill.id.as_ref().map(ToString::to_string);
        (skill.name.as_str(), id.unwrap_or_default())
    });
    let found: Vec<(&str, String)> = found.collect();
    let expected = [
        ("Vercel Best", "github/vercel-labs/vercel-best"),
        ("frontend-design", "github/anthropics/frontend-design"),
        ("local", ""),
        ("nowhere", ""),
        ("odd", ""),
        ("other", "gitlab/team/other"),
    ];
    assert_eq!(found, expected.map(|(name, id)| (name, id.to_owned())));
    fs::write(&path, "[]").expect("written");
    NpxSkill::read_lock(&path).expect_err("no such lock");
}

fn packed(entries: &[(&str, &[u8], tar::EntryType)]) -> Vec<u8> {
    let packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut archive = tar::Builder::new(packer);
    for (path, content, kind) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(*kind);
        // As somebody writes it who means to lead out.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        archive.append(&header, *content).expect("packed");
    }
    archive
        .into_inner()
        .and_then(flate2::write::GzEncoder::finish)
        .expect("packed")
}

#[test]
fn an_archive_holds_files_of_a_skill_and_nothing_else() {
    use tar::EntryType::{Directory, Regular, Symlink};
    let good = packed(&[("b/c.md", b"C", Regular), ("SKILL.md", b"S", Regular)]);
    let expected = files(&[("SKILL.md", "S"), ("b/c.md", "C")]);
    assert_eq!(unpack(&good).expect("files"), expected);
    let large = vec![0; 17 << 20];
    for (bad, reason) in [
        (
            packed(&[("../x", b"", Regular)]),
            "not a path inside a skill",
        ),
        (
            packed(&[("/etc/passwd", b"", Regular)]),
            "not a path inside a skill",
        ),
        (
            packed(&[("a/../../x", b"", Regular)]),
            "not a path inside a skill",
        ),
        (packed(&[("a", b"", Directory)]), "more than files"),
        (packed(&[("a", b"", Symlink)]), "more than files"),
        (
            packed(&[("a", b"1", Regular), ("a", b"2", Regular)]),
            "two files `a`",
        ),
        (
            packed(&[("a", &large, Regular)]),
            "more than 2048 files or 16777216 bytes",
        ),
        (good[..good.len() / 2].to_vec(), ""),
        (b"no archive".to_vec(), ""),
    ] {
        let error = unpack(&bad).expect_err("refused").to_string();
        assert!(error.contains(reason), "{error}");
    }
    // What packs a thousandfold.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; 64 << 20]).expect("packed");
    let empty = unpack(&bomb.finish().expect("packed"));
    assert!(empty.map_or(true, |files| files.is_empty()));
}

#[test]
fn agents_are_known_by_name_and_look_where_they_say() {
    let (project, home) = (Path::new("/work/p"), Path::new("/home/u"));
    let none = |_: &str| None;
    let places = AGENTS.iter().map(|agent| {
        let user = agent.of_user(home, none);
        format!(
            "{} {} {}",
            agent.name,
            agent.of_project(project).display(),
            user.display()
        )
    });
    let places: Vec<String> = places.collect();
    assert_eq!(
        places,
        [
            "claude /work/p/.claude/skills /home/u/.claude/skills",
            "agents /work/p/.agents/skills /home/u/.agents/skills",
            "cursor /work/p/.cursor/skills /home/u/.cursor/skills",
            "codex /work/p/.agents/skills /home/u/.codex/skills",
            "gemini /work/p/.gemini/skills /home/u/.gemini/skills",
            "opencode /work/p/.opencode/skills /home/u/.config/opencode/skills",
            "copilot /work/p/.github/skills /home/u/.copilot/skills",
            "windsurf /work/p/.windsurf/skills /home/u/.codeium/windsurf/skills",
            "goose /work/p/.goose/skills /home/u/.config/goose/skills",
            "amp /work/p/.agents/skills /home/u/.config/agents/skills",
        ]
    );
    let moved = |name: &str| (name == "CODEX_HOME").then(|| "/elsewhere".into());
    let codex = Agent::named("codex").expect("known");
    assert_eq!(codex.of_user(home, moved), Path::new("/elsewhere/skills"));
    let empty = |_: &str| Some("".into());
    assert_eq!(
        codex.of_user(home, empty),
        Path::new("/home/u/.codex/skills")
    );
    let machine = Machine::new();
    for folder in [".cursor", ".github", ".claude"] {
        fs::create_dir(machine.folder.path().join(folder)).expect("a folder");
    }
    let used = AGENTS
        .iter()
        .filter(|agent| agent.is_used(machine.folder.path()));
    let used: Vec<_> = used.map(|agent| agent.name).collect();
    assert_eq!(used, ["claude", "cursor"]);
}

proptest! {
    #[test]
    fn whatever_an_archive_holds_is_files_of_a_skill_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&bytes).expect("packed");
        let _may_fail = unpack(&gz.finish().expect("packed"));
        let _may_fail = unpack(&bytes);
    }

    #[test]
    fn a_lock_of_any_text_reads_back(server in ".{0,40}", target in ".{0,40}") {
        let mut lock = SkillsLock::default();
        let mut skill = locked("github/acme/a", &[]);
        skill.server = server;
        skill.targets = vec![target];
        lock.put(skill);
        let machine = Machine::new();
        let path = machine.folder.path().join(LOCK_FILE);
        lock.write(&path).expect("written");
        prop_assert_eq!(SkillsLock::read(&path).expect("a lock"), Some(lock));
    }
}
