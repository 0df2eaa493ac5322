//! Whether a skill is installed: one answer, whichever call gives it.

use contract::v1;
use v1::composition_client::CompositionClient;
use v1::lookup_client::LookupClient;

use crate::support::{Server, World, skill};

const JEST: &str = "github/testing/jest-skill";
const VITEST: &str = "github/testing/vitest-skill";

/// Whether a skill is installed, as each call that names it says.
async fn said_of(world: &World, id: &str) -> Vec<(&'static str, Option<bool>)> {
    let mut lookup = LookupClient::new(world.transport.clone());
    let mut composition = CompositionClient::new(world.transport.clone());
    let slug = id.rsplit('/').next().expect("a slug").to_owned();
    let search = v1::SearchRequest {
        query: slug,
        ..Default::default()
    };
    let found = lookup.search(search).await.expect("found").into_inner();
    let found = found.results.iter().find(|skill| skill.id == id);
    let get = v1::GetSkillRequest {
        skill_id: id.to_owned(),
        ..Default::default()
    };
    let got = lookup.get_skill(get).await.expect("a skill").into_inner();
    let recommend = v1::RecommendSkillsRequest {
        files: vec![v1::CodebaseFile {
            path: "package.json".to_owned(),
            content: Some(r#"{"devDependencies": {"vitest": "1.0.0"}}"#.to_owned()),
        }],
        ..Default::default()
    };
    let recommended = lookup
        .recommend_skills(recommend)
        .await
        .expect("recommended");
    let listed = composition
        .list_installed(v1::ListInstalledRequest::default())
        .await;
    let listed = listed.expect("listed").into_inner().skills;
    let estimate = v1::EstimateBudgetRequest {
        skill_ids: vec![id.to_owned()],
        ..Default::default()
    };
    let estimated = composition
        .estimate_budget(estimate)
        .await
        .expect("estimated");
    let compared = composition
        .check_conflicts(v1::CheckConflictsRequest {
            skill_id: VITEST.to_owned(),
            against_skills: vec![id.to_owned()],
            against_installed: None,
        })
        .await
        .expect("compared");
    let compared = compared
        .into_inner()
        .conflicts
        .into_iter()
        .find_map(|it| it.conflicting_skill);
    vec![
        ("search", found.expect("a result").installed),
        ("get_skill", got.skill.expect("a skill").installed),
        (
            "recommend_skills",
            Some(
                recommended
                    .into_inner()
                    .installed_skills
                    .contains(&id.to_owned()),
            ),
        ),
        (
            "list_installed",
            Some(listed.iter().any(|skill| skill.skill_id == id)),
        ),
        (
            "estimate_budget",
            Some(estimated.into_inner().breakdown[0].installed),
        ),
        ("check_conflicts", compared.expect("a rival").installed),
    ]
}

#[tokio::test]
async fn every_call_gives_the_same_answer_to_whether_a_skill_is_installed() {
    let mut world = World::new().await;
    for id in [JEST, VITEST] {
        world
            .publish(skill(id, "triggers: [unit test]\n", "Do it."))
            .await;
    }
    world.domain.follow().await;
    world.domain.search().complete().await;
    let all = |is_installed| {
        move |said: Vec<(&'static str, Option<bool>)>| {
            let wrong = said
                .into_iter()
                .filter(|(_, said)| *said != Some(is_installed));
            assert_eq!(wrong.collect::<Vec<_>>(), []);
        }
    };
    all(false)(said_of(&world, JEST).await);
    let mut client = CompositionClient::new(world.transport.clone());
    client
        .install_skill(v1::InstallSkillRequest {
            skill_id: JEST.to_owned(),
            ..Default::default()
        })
        .await
        .expect("installed");
    all(true)(said_of(&world, JEST).await);
    world.domain.close().await;
}

#[tokio::test]
async fn to_a_caller_on_another_machine_it_is_not_known() {
    let server = Server::start();
    let published = skill(JEST, "", "Do it.");
    server
        .registry()
        .await
        .publish_skill(published)
        .await
        .expect("published");
    let get = v1::GetSkillRequest {
        skill_id: JEST.to_owned(),
        ..Default::default()
    };
    let got = server.lookup().await.get_skill(get).await.expect("a skill");
    assert_eq!(got.into_inner().skill.expect("a skill").installed, None);
}
