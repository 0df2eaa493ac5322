//! Skills for a codebase: which, why, and what is missing.

mod faults;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use codebase::{InlineFile, Inventory, ScanOptions, analyze};
use model::SystemClock;
use registry::Policy;

struct World {
    _directory: TempDir,
    registry: Registry,
    index: SearchIndex,
    stop: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

const SKILLS: [(&str, &str); 7] = [
    (
        "github/acme/react-testing",
        "name: react-testing\ndescription: Tests React components with Jest.\ntechnologies: [react, jest]",
    ),
    (
        "github/acme/react-forms",
        "name: react-forms\ndescription: Builds forms in React.\ntechnologies: [react]",
    ),
    (
        "github/other/django-testing",
        "name: django-testing\ndescription: Tests Django views.\ntechnologies: [django]",
    ),
    (
        "github/other/write-docs",
        "name: write-docs\ndescription: Writes documentation that people read.",
    ),
    (
        "github/other/invoices",
        "name: invoices\ndescription: Writes invoices for customers.",
    ),
    (
        "github/acme/design-tokens",
        "name: design-tokens\ndescription: Keeps colours and spacing of an interface in tokens.\ncompatibility_rules:\n  - {type: requires, skill: react-forms}",
    ),
    (
        "github/other/owasp",
        "name: owasp\ndescription: Security review of web applications by the OWASP list.",
    ),
];

async fn some_skills() -> World {
    stocked(&SKILLS).await
}

/// Skills of these ids and front matters.
async fn stocked(skills: &[(&str, &str)]) -> World {
    stocked_with(skills, Policy::default()).await
}

async fn stocked_with(skills: &[(&str, &str)], policy: Policy) -> World {
    let directory = TempDir::new().expect("a folder");
    let clock = Arc::new(SystemClock);
    let (store, _) = testing::registry(directory.path(), &testing::options(), clock);
    let executor = executor::Executor::default();
    let registry = Registry::open_with(store, Arc::new(SystemClock), executor, policy);
    let registry = registry.expect("a registry");
    for (id, front_matter) in skills {
        // One says only in its body what it goes with.
        let more = if id.ends_with("tokens") {
            "Made for React."
        } else {
            ""
        };
        let text = testing::skill_md(front_matter, &format!("Steps. {more}"));
        testing::publish(&registry, id, &[("SKILL.md", text.as_bytes())], true).await;
    }
    let table = Arc::new(embed::Table);
    let folder = directory.path().join("search");
    let index = SearchIndex::new(registry.clone(), folder, Some(table));
    let stop = CancellationToken::new();
    tokio::spawn({
        let (index, stop) = (index.clone(), stop.clone());
        async move { index.follow(stop).await }
    });
    index.complete().await;
    World {
        _directory: directory,
        registry,
        index,
        stop,
    }
}

/// A codebase of these files, some of them with what is in them.
fn codebase_of(files: &[(&str, Option<&str>)]) -> Analysis {
    let files = files.iter().map(|(path, content)| InlineFile {
        path: (*path).to_owned(),
        content: content.map(ToOwned::to_owned),
    });
    let options = ScanOptions::default();
    let inventory = Inventory::inline(files.collect(), &options);
    analyze(&inventory.expect("an inventory"), &options)
}

fn react_app() -> Analysis {
    let manifest = r#"{"name": "shop", "dependencies": {"react": "^18.2.0"}, "devDependencies": {"typescript": "5.3.0"}}"#;
    codebase_of(&[
        ("package.json", Some(manifest)),
        ("src/app.tsx", None),
        ("src/cart.tsx", None),
    ])
}

fn wish() -> Wish {
    Wish {
        limit: 10,
        ..Wish::default()
    }
}

/// What is recommended to the app.
fn recommended(world: &World, wish: &Wish) -> Recommendations {
    let (registry, index) = (&world.registry, &world.index);
    recommend(registry, index, &react_app(), wish, &Stop::never()).expect("an answer")
}

fn slugs(found: &Recommendations) -> Vec<&str> {
    found
        .skills
        .iter()
        .map(|skill| skill.head.id.slug())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fits_the_stack_and_closes_a_gap_comes_first_with_its_reasons() {
    let world = some_skills().await;
    let found = recommended(&world, &wish());
    let first = &found.skills[0];
    assert_eq!(first.head.id.slug(), "react-testing");
    assert_eq!(first.priority, Priority::Essential);
    assert_eq!(first.areas, ["testing", "frontend"]);
    let kinds: Vec<ReasonKind> = first.reasons.iter().map(|reason| reason.kind).collect();
    assert!(kinds.contains(&ReasonKind::TechnologyMatch), "{kinds:?}");
    assert!(kinds.contains(&ReasonKind::GapCoverage), "{kinds:?}");
    assert_eq!(
        first.reasons[0].text,
        "Your project uses React 18, react-testing is about it"
    );
    let product: f64 = first
        .reasons
        .iter()
        .map(|reason| 1.0 - reason.confidence)
        .product();
    assert!((first.score - (1.0 - product)).abs() < 1e-9);
    let found_slugs = slugs(&found);
    assert!(found_slugs.contains(&"react-forms"), "{found_slugs:?}");
    for other in ["django-testing", "invoices"] {
        assert!(
            !found_slugs.contains(&other),
            "{other} is for others: {found_slugs:?}"
        );
    }
    let testing = found
        .gaps
        .iter()
        .find(|gap| gap.area == "testing")
        .expect("a gap");
    assert_eq!(testing.severity, Severity::High);
    assert_eq!(testing.suggested[0], "react-testing");
    assert_eq!(testing.text, "No testing skills installed for React 18");
    assert!(found.summary.starts_with("React 18 "), "{}", found.summary);
    assert!(found.coverage.abs() < f64::EPSILON);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_is_left_out_closes_its_gap_and_pulls_what_it_requires() {
    let world = some_skills().await;
    let wish = Wish {
        installed: vec![
            "react-testing".to_owned(),
            "design-tokens".to_owned(),
            "no-such".to_owned(),
        ],
        ..wish()
    };
    let found = recommended(&world, &wish);
    assert!(!slugs(&found).contains(&"react-testing"));
    assert!(
        found.gaps.iter().all(|gap| gap.area != "testing"),
        "{:?}",
        found.gaps
    );
    let forms = found
        .skills
        .iter()
        .find(|skill| skill.head.id.slug() == "react-forms");
    let reasons = &forms.expect("what is required").reasons;
    assert!(
        reasons
            .iter()
            .any(|reason| reason.kind == ReasonKind::PopularPairing
                && reason.text == "design-tokens, which is installed, requires it"),
        "{reasons:?}"
    );
    assert!(
        reasons
            .iter()
            .any(|reason| reason.text == "acme wrote skills that are installed")
    );
    assert!(found.coverage > 0.1, "{}", found.coverage);
    assert_eq!(
        found.installed.len(),
        2,
        "what is not known here is passed over"
    );
    let all = Wish {
        exclude_installed: false,
        ..wish
    };
    let found = recommended(&world, &all);
    assert!(slugs(&found).contains(&"react-testing"));
}

#[tokio::test(flavor = "multi_thread")]
async fn exploring_adds_what_is_not_plainly_asked_for_and_takes_nothing_away() {
    let world = some_skills().await;
    let daring = Wish {
        mode: Mode::Exploratory,
        ..wish()
    };
    let plain = recommended(&world, &wish());
    let daring = recommended(&world, &daring);
    for slug in slugs(&plain) {
        assert!(slugs(&daring).contains(&slug), "{slug}");
    }
    assert!(
        slugs(&daring).len() > slugs(&plain).len(),
        "{:?}",
        slugs(&daring)
    );
    let again = recommended(&world, &wish());
    assert_eq!(slugs(&plain), slugs(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_codebase_of_nothing_gets_no_skills() {
    let world = some_skills().await;
    let nothing = analyze(&Inventory::default(), &ScanOptions::default());
    let found = recommend(
        &world.registry,
        &world.index,
        &nothing,
        &wish(),
        &Stop::never(),
    )
    .expect("an answer");
    assert_eq!((slugs(&found).len(), found.gaps.len()), (0, 0));
    assert!(found.summary.contains("not known"), "{}", found.summary);
}

#[tokio::test(flavor = "multi_thread")]
async fn among_equals_the_more_trusted_comes_first_and_says_why() {
    let skills = [
        (
            "github/acme/react-testing",
            "name: react-testing\ndescription: Tests React components with Jest.\ntechnologies: [react, jest]",
        ),
        (
            "github/zeta/react-testing",
            "name: react-testing\ndescription: Tests React components with Jest.\ntechnologies: [react, jest]",
        ),
    ];
    let of = |found: &Recommendations| {
        let first = found.skills.first().expect("a skill");
        let texts = first.reasons.iter().map(|reason| reason.text.clone());
        (first.head.id.to_string(), texts.collect::<Vec<_>>())
    };
    let world = stocked(&skills).await;
    let (id, reasons) = of(&recommended(&world, &wish()));
    let trusted = "The operator trusts skills of zeta".to_owned();
    assert_eq!(
        (id.as_str(), reasons.contains(&trusted)),
        (skills[0].0, false)
    );
    let policy = Policy {
        tiers: registry::Tiers {
            verified: vec!["github/zeta".to_owned()],
            ..registry::Tiers::default()
        },
        ..Policy::default()
    };
    let world = stocked_with(&skills, policy).await;
    let (id, reasons) = of(&recommended(&world, &wish()));
    assert_eq!(
        (id.as_str(), reasons.contains(&trusted)),
        (skills[1].0, true)
    );
}
