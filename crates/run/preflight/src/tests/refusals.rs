//! What speaks against an install, what may be given up, and what is recorded of that.

use super::*;
use trust::Report;

#[tokio::test]
async fn each_thing_that_speaks_against_an_install_has_its_code_and_nothing_is_written() {
    let world = World::with(|_, policy| policy.min_trust_tier = TrustTier::Community);
    world.publish("github/acme/unknown", "1.0.0", "").await;
    world.publish("github/verified/sealed", "1.0.0", "").await;
    let files = [("setup.sh", RISKY)];
    world
        .publish_with("github/verified/risky", "1.0.0", "", &files)
        .await;
    world.publish_long("github/verified/large", 50_001).await;
    world
        .block("github/verified/sealed", "It steals keys")
        .await;
    for (asked, code) in [
        (wanted("github/verified/nobody"), Code::SkillNotFound),
        (wanted("github/verified/sealed"), Code::SkillBlocked),
        (wanted("github/acme/unknown"), Code::TrustTierInsufficient),
        (wanted("github/verified/risky"), Code::SecurityRiskDetected),
        (wanted("github/verified/large"), Code::BudgetExceeded),
    ] {
        let skill = asked.skill.to_string();
        assert_eq!(world.refused(asked).await.code, code, "{skill}");
    }
    assert!(world.placed().is_empty());
    assert!(!world.at("skills").exists() && !world.at("home").exists());
    // None of the first three is ever given up.
    for (skill, code) in [
        ("github/verified/nobody", Code::SkillNotFound),
        ("github/verified/sealed", Code::SkillBlocked),
        ("github/acme/unknown", Code::TrustTierInsufficient),
    ] {
        let asked = InstallRequest {
            force: true,
            skip_conflict_check: true,
            skip_security_scan: true,
            ..wanted(skill)
        };
        assert_eq!(world.refused(asked).await.code, code, "{skill}");
    }
}

#[tokio::test]
async fn a_skill_of_the_lowest_tier_that_is_let_in_is_installed() {
    let world = World::with(|_, policy| policy.min_trust_tier = TrustTier::Community);
    for skill in ["github/community/one", "github/verified/other"] {
        world.publish(skill, "1.0.0", "").await;
        world.install(wanted(skill)).await;
    }
    assert_eq!(world.placed().len(), 2);
}

#[test]
fn what_a_scan_warns_of_may_be_given_up_and_what_nobody_should_use_never() {
    let report = |verdict| Report {
        rules: trust::RULES_VERSION,
        verdict,
        findings: Vec::new(),
        left_out: 0,
        capabilities: Default::default(),
        hosts: Default::default(),
    };
    let permitted = |verdict| {
        [(false, false), (true, false), (false, true), (true, true)].map(
            |(force, skip_security_scan)| {
                let asked = InstallRequest {
                    skip_security_scan,
                    force,
                    ..wanted("x")
                };
                permit_risk(&id("github/acme/x"), &report(verdict), &asked).is_ok()
            },
        )
    };
    assert_eq!(permitted(Verdict::Passed), [true; 4]);
    assert_eq!(permitted(Verdict::Warning), [false, true, true, true]);
    assert_eq!(permitted(Verdict::Failed), [false; 4]);
    let steps = [Verdict::Warning, Verdict::Failed].map(|verdict| {
        let refused = Failure::from(Error::Risk {
            id: id("github/acme/x"),
            report: Box::new(report(verdict)),
        });
        refused.suggestions
    });
    assert_eq!(
        steps,
        [
            ["Review the findings, and call again with `force` if they are harmless"],
            ["Use another skill; search for the task to find one"],
        ]
    );
}

/// What is recorded of an install in spite of something: whether it was forced, whether
/// nobody looked for risks, and whether the caller got the report.
fn given_up(installed: &Installation) -> [bool; 3] {
    let record = &installed.placed.record;
    [
        record.forced,
        record.scan_skipped,
        installed.report.is_some(),
    ]
}

#[tokio::test]
async fn what_was_given_up_is_recorded_and_what_was_not_is_not() {
    let world = World::new();
    let files = [("setup.sh", RISKY)];
    for (skill, front_matter, files) in [
        ("github/acme/plain", "triggers: [cook]", &[][..]),
        ("github/acme/risky", "triggers: [bake]", &files[..]),
        ("github/acme/first", "triggers: [test, jest]", &[]),
        ("github/acme/second", "triggers: [test, vitest]", &[]),
    ] {
        world
            .publish_with(skill, "1.0.0", front_matter, files)
            .await;
    }
    world.publish_long("github/acme/large", 50_001).await;
    let ask = async |skill: &str, change: fn(&mut InstallRequest)| {
        let mut asked = wanted(skill);
        change(&mut asked);
        let recorded = given_up(&world.install(asked).await);
        let gone = world.installer.uninstall(skill.to_owned(), false, false);
        gone.await.expect("removed");
        recorded
    };
    let force = |asked: &mut InstallRequest| asked.force = true;
    let skip = |asked: &mut InstallRequest| asked.skip_security_scan = true;
    assert_eq!(ask("github/acme/plain", |_| ()).await, [false, false, true]);
    assert_eq!(ask("github/acme/plain", force).await, [false, false, true]);
    assert_eq!(ask("github/acme/risky", force).await, [true, false, true]);
    assert_eq!(ask("github/acme/risky", skip).await, [false, true, false]);
    assert_eq!(ask("github/acme/large", force).await, [true, false, true]);
    world.install(wanted("github/acme/first")).await;
    assert_eq!(ask("github/acme/second", force).await, [true, false, true]);
}

#[tokio::test]
async fn what_is_installed_is_installed_again_only_where_that_is_meant() {
    let world = World::new();
    let skill = "github/acme/tool";
    world.publish(skill, "1.0.0", "").await;
    world.install(wanted(skill)).await;
    let exact = |version: &str| InstallRequest {
        version: VersionSelector::Semantic(semantic(version)),
        ..wanted(skill)
    };
    let refused = world.refused(wanted(skill)).await;
    let path = world.at("skills/tool").display().to_string();
    assert_eq!(
        (refused.code, refused.message),
        (
            Code::SkillAlreadyInstalled,
            format!("Skill '{skill}' is installed already, as version 1.0.0 in `{path}`")
        )
    );
    world.publish(skill, "1.1.0", "").await;
    for asked in [wanted(skill), exact("1.0.0")] {
        let refused = world.refused(asked).await;
        assert_eq!(refused.code, Code::SkillAlreadyInstalled);
    }
    let version = |installed: Installation| installed.placed.record.semantic;
    let other = world.install(exact("1.1.0")).await;
    assert_eq!(version(other), semantic("1.1.0"));
    let forced = InstallRequest {
        force: true,
        ..wanted(skill)
    };
    let again = world.install(forced).await;
    assert_eq!(given_up(&again), [false, false, true]);
    assert_eq!(version(again), semantic("1.1.0"));
    assert_eq!(world.placed(), ["github/acme/tool in skills"]);
}

#[tokio::test]
async fn a_skill_that_is_installed_anew_is_counted_once() {
    let world = World::new();
    world.publish_long("github/acme/large", 30_000).await;
    let first = world.install(wanted("github/acme/large")).await.budget;
    let forced = InstallRequest {
        force: true,
        ..wanted("github/acme/large")
    };
    let again = world.install(forced).await;
    assert_eq!(again.budget, first);
    assert_eq!((first.current, first.limit), (0, 50_000));
    assert!(!again.placed.record.forced, "it fits");
    world.publish_long("github/acme/other", 30_000).await;
    let refused = world.refused(wanted("github/acme/other")).await;
    let detail = |name: &str| refused.details.get(name).cloned();
    assert_eq!(
        ["current_usage", "skill_size", "budget_limit"].map(detail),
        [first.size, first.size, 50_000].map(|chars| Some(chars.to_string()))
    );
}

/// Installs the first skill, and says how the second one is refused.
async fn at_odds(first: &str, second: &str) -> (World, Failure) {
    let world = World::new();
    world.publish("github/acme/first", "1.0.0", first).await;
    world.publish("github/acme/second", "1.0.0", second).await;
    world.install(wanted("github/acme/first")).await;
    let refused = world.refused(wanted("github/acme/second")).await;
    (world, refused)
}

#[tokio::test]
async fn a_conflict_that_blocks_is_given_up_by_who_skips_the_check_alone() {
    let (world, refused) = at_odds("triggers: [test]", "triggers: [test]").await;
    let force = InstallRequest {
        force: true,
        ..wanted("github/acme/second")
    };
    let forced = world.refused(force).await;
    for refused in [&refused, &forced] {
        let last = refused.suggestions.last().map(String::as_str);
        assert_eq!(
            (refused.code, last),
            (
                Code::ConflictDetected,
                Some("Call again with `skip_conflict_check` if it is meant all the same")
            )
        );
    }
    let skip = InstallRequest {
        skip_conflict_check: true,
        ..wanted("github/acme/second")
    };
    assert!(world.install(skip).await.conflicts.is_empty());
}

#[tokio::test]
async fn a_conflict_that_warns_is_given_up_by_force_and_is_told_all_the_same() {
    let tools = "allowed-tools: [\"Write(/tmp/x/**)\"]";
    let (world, refused) = at_odds(
        &format!("triggers: [test, jest]\n{tools}"),
        &format!("triggers: [test, vitest]\n{tools}"),
    )
    .await;
    let last = refused.suggestions.last().map(String::as_str);
    assert_eq!(
        (refused.code, last),
        (
            Code::ConflictDetected,
            Some("Call again with `force` or `skip_conflict_check` if it is meant all the same")
        )
    );
    // What is only worth knowing speaks against nothing.
    assert!(!refused.message.ends_with("more)"), "{}", refused.message);
    let force = InstallRequest {
        force: true,
        ..wanted("github/acme/second")
    };
    let severities = world.install(force).await.conflicts;
    let severities: Vec<_> = severities
        .iter()
        .map(|opposed| opposed.conflict.severity)
        .collect();
    assert_eq!(
        severities,
        [ConflictSeverity::Warning, ConflictSeverity::Info]
    );
}

#[tokio::test]
async fn a_refusal_names_the_first_conflict_and_how_many_more_there_are() {
    let world = World::new();
    for skill in ["github/acme/one", "github/acme/two", "github/acme/three"] {
        world.publish(skill, "1.0.0", "triggers: [test]").await;
    }
    for skill in ["github/acme/one", "github/acme/two"] {
        let asked = InstallRequest {
            skip_conflict_check: true,
            ..wanted(skill)
        };
        world.install(asked).await;
    }
    let refused = world.refused(wanted("github/acme/three")).await;
    assert_eq!(
        refused.message,
        "Skill 'github/acme/three' is at odds with 'github/acme/one', which is installed: Both skills respond to 'test' triggers (and 1 more)"
    );
    assert_eq!(
        refused
            .details
            .get("conflicting_skills")
            .map(String::as_str),
        Some("github/acme/one, github/acme/two")
    );
}
