//! What skills are gathered by: what their authors state, else what is inferred.

use super::*;

fn text(front_matter: &str) -> String {
    format!("---\n{front_matter}\n---\nBody.\n")
}

fn gathered(registry: &Registry, facet: &Facet) -> Vec<String> {
    let catalog = registry.catalog();
    let keys = catalog.with_facet(facet).into_iter().flatten();
    keys.map(|key| key.as_str().to_owned()).collect()
}

/// The head of a skill as a server wrote it that knew no facets.
async fn make_old(world: &World, id: &str) {
    let id: SkillId = id.parse().expect("an id");
    let key = id.key();
    let stored = world.registry.store().get(&HEADS, &key);
    let stored = stored.expect("a store").expect("a head");
    let mut head = stored.value;
    let summary = head.summary.as_mut().expect("a summary");
    summary.inferred = ::facets::Facets::default();
    summary.problems = None;
    summary.requires = None;
    let mut batch = Batch::new();
    batch.put(&HEADS, &key, &head);
    world.registry.store().commit(batch).await.expect("written");
}

const SQL: &str = "name: index-advice\ndescription: Tunes indexes of PostgreSQL databases.";

#[tokio::test]
async fn what_a_skill_seems_to_be_about_is_inferred_when_it_is_published() {
    let world = World::new();
    world
        .publish("local/global/sql", &text(SQL))
        .await
        .expect("published");
    let catalog = world.registry.catalog();
    let head = catalog
        .get(&SkillKey::from_stored("local/global/sql"))
        .expect("a head");
    let summary = head.summary.as_ref().expect("a summary");
    let technologies: Vec<_> = summary.technologies_about().map(|(id, _)| id).collect();
    assert_eq!(technologies, ["postgresql"]);
    let main = summary.categories().next().expect("a category");
    assert_eq!(main.0, "database");
    assert!((0.3..0.96).contains(&main.1), "{main:?}");
    assert_eq!(
        gathered(&world.registry, &Facet::technology("Postgres")),
        ["local/global/sql"]
    );
    assert_eq!(
        gathered(&world.registry, &Facet::category("databases")),
        ["local/global/sql"]
    );
}

#[tokio::test]
async fn what_an_author_states_overrules_what_is_inferred() {
    let world = World::new();
    let stated = format!("{SQL}\ncategory: [Finance, shelves]\ntechnologies: [Stripe]");
    world
        .publish("local/global/a", &text(&stated))
        .await
        .expect("published");
    let own = format!("{SQL}\ncategories: shelves\ntechnologies: sourdough");
    world
        .publish("local/global/b", &text(&own))
        .await
        .expect("published");
    let of = |facet| gathered(&world.registry, &facet);
    assert_eq!(of(Facet::category("payments")), ["local/global/a"]);
    assert_eq!(
        of(Facet::category("Shelves")),
        ["local/global/a", "local/global/b"]
    );
    // Words that mean no id leave the question open.
    assert_eq!(of(Facet::category("database")), ["local/global/b"]);
    assert_eq!(of(Facet::technology("stripe")), ["local/global/a"]);
    assert_eq!(of(Facet::technology("Sourdough")), ["local/global/b"]);
    assert_eq!(of(Facet::technology("postgresql")), ["local/global/b"]);
    let catalog = world.registry.catalog();
    let head = catalog
        .get(&SkillKey::from_stored("local/global/a"))
        .expect("a head");
    let summary = head.summary.as_ref().expect("a summary");
    let stated: Vec<&str> = summary.stated_categories().collect();
    assert_eq!(stated, ["Finance", "shelves"]);
    assert_eq!(summary.inferred_categories(), []);
    assert_eq!(summary.inferred_technologies(), []);
}

#[tokio::test]
async fn a_store_of_before_there_were_facets_has_them_after_a_start_and_once_written_for_ever() {
    let world = World::new();
    world
        .publish("local/global/sql", &text(SQL))
        .await
        .expect("published");
    let end = world.registry.log().borrow().end;
    make_old(&world, "local/global/sql").await;
    let world = world.again().await;
    let postgres = Facet::technology("postgresql");
    assert_eq!(gathered(&world.registry, &postgres), ["local/global/sql"]);
    assert_eq!(world.registry.keep_facets().await, 1);
    assert_eq!(world.registry.keep_facets().await, 0);
    let world = world.again().await;
    assert_eq!(gathered(&world.registry, &postgres), ["local/global/sql"]);
    // Nothing was left to be done, and nothing is told to have happened.
    assert_eq!(world.registry.keep_facets().await, 0);
    assert_eq!(world.registry.log().borrow().end, end);
}

#[tokio::test]
async fn what_is_written_before_the_facets_are_kept_has_them() {
    let world = World::new();
    for name in ["a", "b"] {
        let id = format!("local/global/{name}");
        world.publish(&id, &text(SQL)).await.expect("published");
        make_old(&world, &id).await;
    }
    let world = world.again().await;
    let second = text(&SQL.replace("indexes", "queries"));
    world
        .publish("local/global/a", &second)
        .await
        .expect("published");
    let postgres = Facet::technology("postgresql");
    let both = ["local/global/a", "local/global/b"];
    assert_eq!(gathered(&world.registry, &postgres), both);
    assert_eq!(world.registry.keep_facets().await, 1);
    let world = world.again().await;
    assert_eq!(gathered(&world.registry, &postgres), both);
    assert_eq!(world.registry.keep_facets().await, 0);
}

#[tokio::test]
async fn warnings_and_requirements_are_gathered_also_of_skills_of_before_they_were_counted() {
    let world = World::new();
    let dead = "---\nname: index-advice\ndescription: Tunes.\n\
         composability_rules: [{type: requires, skill: base}]\n---\n[a](a.md) [b](b.md)\n";
    let fine = "---\nname: index-advice\ndescription: Tunes.\nunknown: x\n---\nBody.\n";
    let (old, new) = ("local/global/old", "local/global/new");
    for id in [old, new] {
        world.publish(id, dead).await.expect("published");
    }
    world
        .publish("local/global/fine", fine)
        .await
        .expect("published");
    make_old(&world, old).await;
    let world = world.again().await;
    let count = |id: &str| {
        let catalog = world.registry.catalog();
        let head = catalog.get(&SkillKey::from_stored(id)).expect("a head");
        head.summary.as_ref().expect("a summary").problems
    };
    assert_eq!(gathered(&world.registry, &Facet::Problems), [new, old]);
    let counts = [old, new, "local/global/fine"].map(count);
    assert_eq!(counts, [Some(2), Some(2), Some(0)]);
    let base = Facet::Requires("base".to_owned());
    assert_eq!(gathered(&world.registry, &base), [new, old]);
    assert_eq!(world.registry.keep_facets().await, 1);
    // Whoever mends a skill has none any more.
    world.publish(new, fine).await.expect("published");
    assert_eq!(gathered(&world.registry, &Facet::Problems), [old]);
}
