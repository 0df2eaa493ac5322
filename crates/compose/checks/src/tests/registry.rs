//! Checks of the skills of a registry, and of what is installed.

use std::sync::Mutex;

use ::registry::{Registry, UsageKind};
use jiff::SignedDuration;
use model::{Code, Failure};
use tempfile::TempDir;
use testing::{Hands, caller, options, publish, skill_md};

use super::*;

/// What a test says is installed.
#[derive(Debug, Default)]
struct InstalledSkills(Mutex<Vec<InstalledSkill>>);

impl Installed for InstalledSkills {
    fn installed(&self, _: bool) -> Result<Vec<InstalledSkill>, Failure> {
        Ok(self.0.lock().expect("a lock").clone())
    }
}

struct World {
    registry: Registry,
    checks: Checks,
    installed: Arc<InstalledSkills>,
    hands: Arc<Hands>,
    _folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let (hands, installed) = (Hands::new(), Arc::new(InstalledSkills::default()));
        let (_, registry) = testing::registry(folder.path(), &options(), hands.clone());
        let checks = Checks::new(registry.clone(), installed.clone(), 1_000);
        Self {
            registry,
            checks,
            installed,
            hands,
            _folder: folder,
        }
    }

    async fn publish(&self, id: &str, front_matter: &str, body: &str) {
        let slug = id.rsplit('/').next().expect("a slug");
        let front = format!("name: {slug}\ndescription: Does it.\n{front_matter}");
        let text = skill_md(&front, body);
        publish(&self.registry, id, &[("SKILL.md", text.as_bytes())], true).await;
    }

    /// Installs the version of a number.
    fn install(&self, id: &str, number: u32, damage: Option<&str>) {
        let skill = InstalledSkill {
            id: id.parse().expect("an id"),
            name: id.to_owned(),
            number: VersionNumber::new(number).expect("a number"),
            chars: 77,
            time: Timestamp::UNIX_EPOCH,
            damage: damage.map(str::to_owned),
            digest: self.digest(id, number),
        };
        let mut all = self.installed.0.lock().expect("a lock");
        all.push(skill);
        all.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
    }

    /// The digest of a version; of one that there is not, any.
    fn digest(&self, id: &str, number: u32) -> Digest {
        let head = self.registry.head(&id.parse().expect("an id")).ok();
        let number = VersionNumber::new(number).expect("a number");
        let version = head.and_then(|head| self.registry.version(&head, &number.into()).ok());
        version.map_or(Digest::of(b""), |version| version.digest)
    }

    fn pass(&self, days: i64) {
        self.hands.pass(SignedDuration::from_hours(24 * days));
    }
}

fn code(error: Error) -> Code {
    Failure::from(error).code
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

fn opposed(report: &ConflictReport) -> Vec<(String, ConflictKind)> {
    let all = report.conflicts.iter();
    all.map(|opposed| (opposed.with.member.id.to_string(), opposed.conflict.kind))
        .collect()
}

#[tokio::test]
async fn a_skill_is_compared_with_those_that_are_asked_for_and_those_that_are_installed() {
    let world = World::new();
    world
        .publish("github/a/jest", "triggers: [test]", "Do it.")
        .await;
    world
        .publish("github/a/vitest", "triggers: [test]", "Do it.")
        .await;
    world
        .publish("github/a/mocha", "triggers: [test]", "Do it.")
        .await;
    world
        .publish("github/a/cook", "triggers: [meal]", "Do it.")
        .await;
    let ask = async |against: &[&str], installed: bool| {
        let report = world
            .checks
            .conflicts("jest".to_owned(), texts(against), installed)
            .await;
        let report = report.expect("compared");
        (opposed(&report), report.compared)
    };
    let overlap = |slug: &str| (format!("github/a/{slug}"), ConflictKind::TriggerOverlap);
    // All others are there, and none of them is asked for.
    assert_eq!(ask(&[], true).await, (vec![], 0));
    assert_eq!(
        ask(&["vitest", "github/a/VITEST", "jest", "cook"], true).await,
        (vec![overlap("vitest")], 2)
    );
    world.install("github/a/mocha", 1, None);
    world.install("github/a/jest", 1, None);
    assert_eq!(ask(&["vitest"], false).await, (vec![overlap("vitest")], 1));
    assert_eq!(
        ask(&["vitest"], true).await,
        (vec![overlap("mocha"), overlap("vitest")], 2)
    );
}

#[tokio::test]
async fn a_skill_that_there_is_not_is_refused_wherever_it_is_named() {
    let world = World::new();
    world.publish("github/a/one", "", "Do it.").await;
    let conflicts = |skill: &str, against: &[&str]| {
        world
            .checks
            .conflicts(skill.to_owned(), texts(against), true)
    };
    assert_eq!(
        conflicts("absent", &[])
            .await
            .map_err(code)
            .expect_err("refused"),
        Code::SkillNotFound
    );
    assert_eq!(
        conflicts("one", &["absent"])
            .await
            .map_err(code)
            .expect_err("refused"),
        Code::SkillNotFound
    );
    assert_eq!(
        conflicts("one@9", &[])
            .await
            .map_err(code)
            .expect_err("refused"),
        Code::VersionNotFound
    );
    assert_eq!(
        conflicts("one@^9", &[])
            .await
            .map_err(code)
            .expect_err("refused"),
        Code::VersionNotFound
    );
    assert!(conflicts("one@1", &["one@^1"]).await.is_ok());
    let estimate = world.checks.estimate(texts(&["one", "absent"]), true).await;
    assert_eq!(
        estimate.map_err(code).expect_err("refused"),
        Code::SkillNotFound
    );
    let audit = world
        .checks
        .audit(Some("absent".to_owned()), false, true)
        .await;
    assert_eq!(
        audit.map_err(code).expect_err("refused"),
        Code::SkillNotFound
    );
    world
        .registry
        .block(&"github/a/one".parse().expect("an id"), "Bad", &caller())
        .await
        .expect("blocked");
    assert_eq!(
        conflicts("one", &[])
            .await
            .map_err(code)
            .expect_err("refused"),
        Code::SkillBlocked
    );
}

#[tokio::test]
async fn what_is_installed_is_compared_and_counted_as_it_was_installed() {
    let world = World::new();
    world
        .publish("github/a/old", "triggers: [test]\nversion: 1.0.0", "Do it.")
        .await;
    world
        .publish(
            "github/a/old",
            "triggers: [meal]\nversion: 1.1.0",
            "Do it, and more than that.",
        )
        .await;
    world
        .publish("github/a/new", "triggers: [test]", "Do it.")
        .await;
    world.install("github/a/old", 1, None);
    world.install("github/b/gone", 1, None);
    let report = world
        .checks
        .conflicts("new".to_owned(), Vec::new(), true)
        .await
        .expect("compared");
    assert_eq!(
        opposed(&report),
        [("github/a/old".to_owned(), ConflictKind::TriggerOverlap)]
    );
    assert_eq!(
        report.recommendations.last().map(String::as_str),
        Some("Not compared, since this server does not hand them out: github/b/gone")
    );
    let chars = |id: &str, number: u32| {
        let head = world
            .registry
            .head(&id.parse().expect("an id"))
            .expect("a head");
        let number = VersionNumber::new(number).expect("a number");
        world
            .registry
            .version(&head, &number.into())
            .expect("a version")
            .skill
            .chars
    };
    let found = world
        .checks
        .estimate(texts(&["new", "old"]), true)
        .await
        .expect("estimated");
    // What is gone counts as it was noted.
    let (old, new) = (chars("github/a/old", 1), chars("github/a/new", 1));
    assert_eq!(
        (found.current, found.addition, found.limit),
        (old + 77, new, 1_000)
    );
    let told: Vec<_> = found
        .items
        .iter()
        .map(|item| (item.id.slug(), item.installed))
        .collect();
    assert_eq!(told, [("new", false), ("old", true)]);
    let alone = world
        .checks
        .estimate(texts(&["new", "old", "NEW"]), false)
        .await
        .expect("estimated");
    let active = chars("github/a/old", 2);
    assert_eq!((alone.current, alone.addition), (0, new + active));
    assert!(alone.added_tokens > 0);
}

#[tokio::test]
async fn an_audit_looks_at_what_is_installed_or_at_the_skill_that_is_named() {
    let world = World::new();
    world
        .publish("github/a/sound", "triggers: [test]", "Do it.")
        .await;
    world
        .publish(
            "github/a/needy",
            "triggers: [x]\ncompatibility_rules: [{type: requires, skill: sound}]",
            "Do it.",
        )
        .await;
    world
        .publish(
            "github/a/stale",
            "triggers: [y]\nversion: 1.0.0",
            "See [x](x.md).",
        )
        .await;
    world
        .publish("github/a/stale", "triggers: [y]\nversion: 1.1.0", "Do it.")
        .await;
    let audit = async |skill: Option<&str>| {
        let audited = world
            .checks
            .audit(skill.map(str::to_owned), true, true)
            .await;
        audited.expect("audited")
    };
    let empty = audit(None).await;
    assert_eq!(
        (empty.audited.len(), empty.health, empty.hooks),
        (0, Health::Healthy, None)
    );
    world.install("github/a/needy", 1, None);
    world.install("github/a/stale", 1, Some("scripts/run.py was changed"));
    world.install("github/b/gone", 1, None);
    let told = |activation: &Activation| -> Vec<(String, Vec<IssueKind>, Vec<WarningKind>)> {
        activation
            .audited
            .iter()
            .map(|skill| {
                (
                    skill.id.to_string(),
                    skill.issues.iter().map(|issue| issue.kind).collect(),
                    skill.warnings.iter().map(|warning| warning.kind).collect(),
                )
            })
            .collect()
    };
    let found = audit(None).await;
    assert_eq!(
        told(&found),
        [
            (
                "github/a/needy".to_owned(),
                vec![IssueKind::DependencyMissing],
                vec![]
            ),
            (
                "github/a/stale".to_owned(),
                vec![IssueKind::FileMissing, IssueKind::FileMissing],
                vec![WarningKind::Outdated]
            ),
            (
                "github/b/gone".to_owned(),
                vec![IssueKind::FileMissing],
                vec![]
            ),
        ]
    );
    assert_eq!(found.health, Health::Critical);
    assert_eq!(
        found.recommendations,
        [
            "github/a/needy: Install github/a/sound (missing required skill)",
            "github/a/stale: Install it again (installed files differ)",
            "github/b/gone: Uninstall it, or install a version that is there (version that this \
             server does not hand out)",
            "github/a/stale: Add the file, or take its name out (missing file)",
            "Update stale to version 1.1.0",
        ]
    );
    assert!(found.hooks.is_some());
    assert_eq!(found.budget.largest.len(), 3);
    // What is not installed needs nothing that is.
    let sound = audit(Some("sound")).await;
    assert_eq!(
        told(&sound),
        [("github/a/sound".to_owned(), vec![], vec![])]
    );
    let quiet = world
        .checks
        .audit(None, false, false)
        .await
        .expect("audited");
    assert_eq!((quiet.recommendations.len(), quiet.hooks), (0, None));
}

#[tokio::test]
async fn a_skill_that_nobody_loads_is_told_of_until_somebody_does() {
    let world = World::new();
    world
        .publish("github/a/one", "triggers: [x]", "Do it.")
        .await;
    let audit = async || {
        let audited = world
            .checks
            .audit(Some("one".to_owned()), false, false)
            .await;
        let looked = audited.expect("audited").audited;
        let warnings = looked.into_iter().flat_map(|skill| skill.warnings);
        warnings.map(|warning| warning.kind).collect::<Vec<_>>()
    };
    assert_eq!(audit().await, []);
    world.pass(30);
    assert_eq!(audit().await, [WarningKind::LowActivation]);
    let head = world
        .registry
        .head(&"github/a/one".parse().expect("an id"))
        .expect("a head");
    world
        .registry
        .count(&head, VersionNumber::FIRST, UsageKind::Load, "");
    assert_eq!(audit().await, []);
    world.pass(90);
    assert_eq!(audit().await, [WarningKind::LowActivation]);
    world.pass(60);
    assert_eq!(
        audit().await,
        [WarningKind::Outdated, WarningKind::LowActivation]
    );
}
