mod complete;
mod files;
mod lists;
mod named;
mod prompt;
mod tailored;

use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use model::{Code, Failure, Location, SystemClock, TrustTier};

struct World {
    _directory: TempDir,
    registry: Registry,
    lookup: Lookup,
}

impl World {
    fn new() -> Self {
        let directory = TempDir::new().expect("a folder");
        let clock = Arc::new(SystemClock);
        let (_, registry) = testing::registry(directory.path(), &testing::options(), clock);
        Self {
            _directory: directory,
            lookup: Lookup::new(registry.clone()),
            registry,
        }
    }

    async fn with(self, id: &str, front_matter: &str) -> Self {
        let text = format!("---\ndescription: Does {id}.\n{front_matter}\n---\nBody of {id}.\n");
        self.with_files(id, &[("SKILL.md", text.as_bytes())]).await
    }

    /// Withdraws the first version of a skill.
    async fn without(self, id: &str) -> Self {
        let id: SkillId = id.parse().expect("an id");
        let first = model::VersionNumber::FIRST;
        let yanked = self.registry.yank(&id, first, "", &testing::caller()).await;
        yanked.expect("withdrawn");
        self
    }

    async fn with_files(self, id: &str, files: &[(&str, &[u8])]) -> Self {
        testing::publish(&self.registry, id, files, true).await;
        self
    }

    fn resolve(&self, name: &str) -> (String, Vec<String>) {
        let found = self
            .lookup
            .resolve(&Reference::parse(name))
            .expect("a skill");
        (
            found.head.id.to_string(),
            found.shadowed.into_iter().map(String::from).collect(),
        )
    }

    fn list(&self, query: &ListQuery, size: usize) -> Vec<Vec<String>> {
        let mut pages = Vec::new();
        let mut token = String::new();
        for _ in 0..100 {
            let page = self.lookup.list(query, size, &token).expect("a page");
            pages.push(
                page.heads
                    .iter()
                    .map(|head| head.id.slug().to_owned())
                    .collect(),
            );
            match page.next {
                Some(next) => token = next,
                None => return pages,
            }
        }
        panic!("more than 100 pages");
    }
}

fn code(error: Error) -> Code {
    Failure::from(error).code
}

#[tokio::test]
async fn a_short_name_goes_to_project_then_user_then_to_the_first_of_the_global_ones() {
    let mut world = World::new();
    for id in [
        "local/global/pdf",
        "github/acme/pdf",
        "builtin/repertoire/pdf",
    ] {
        world = world.with(id, "name: pdf").await;
    }
    assert_eq!(
        world.resolve("PDF"),
        (
            "builtin/repertoire/pdf".to_owned(),
            vec!["local/global/pdf".to_owned(), "github/acme/pdf".to_owned()]
        )
    );
    world = world.with("local/user/pdf", "name: pdf").await;
    assert_eq!(world.resolve("pdf").0, "local/user/pdf");
    world = world.with("local/project/pdf", "name: pdf").await;
    let (winner, hidden) = world.resolve("pdf");
    assert_eq!((winner.as_str(), hidden.len()), ("local/project/pdf", 4));
    assert_eq!(
        world.resolve("GitHub/ACME/pdf"),
        ("github/acme/pdf".to_owned(), vec![])
    );
}

#[tokio::test]
async fn a_skill_is_found_by_its_slug_and_by_its_name_without_case() {
    let world = World::new()
        .with("github/acme/refund-desk", "name: The Refund Desk")
        .await;
    assert_eq!(
        world.resolve("the refund DESK").0,
        "github/acme/refund-desk"
    );
    assert_eq!(world.resolve("Refund-Desk").0, "github/acme/refund-desk");
    let error = world
        .lookup
        .resolve(&Reference::parse("refund"))
        .map(|_| ())
        .expect_err("no such skill");
    assert_eq!(error.to_string(), "Skill 'refund' not found in index");
    assert_eq!(code(error), Code::SkillNotFound);
}

#[tokio::test]
async fn a_short_name_passes_over_skills_whose_versions_were_all_withdrawn() {
    let world = World::new()
        .with("local/project/pdf", "name: pdf")
        .await
        .with("github/acme/pdf", "name: pdf")
        .await
        .without("local/project/pdf")
        .await;
    assert_eq!(world.resolve("pdf"), ("github/acme/pdf".to_owned(), vec![]));
    assert_eq!(world.list(&ListQuery::default(), 10), [["pdf"]]);
}

async fn some_skills() -> World {
    let mut world = World::new();
    for (id, front_matter) in [
        ("github/acme/a", "name: a\ncategory: Data\ntags: [x, y]"),
        ("github/acme/b", "name: b\ncategory: data\ntags: [x]"),
        ("github/acme-labs/c", "name: c\ncategory: data"),
        (
            "github/zeta/d",
            "name: d\ntags: [y, x]\ntechnologies: [Rust]",
        ),
        ("local/project/e", "name: e\ncategory: data"),
    ] {
        world = world.with(id, front_matter).await;
    }
    world
}

#[tokio::test]
async fn filters_apply_before_paging_so_every_page_but_the_last_is_full() {
    let world = some_skills().await;
    let all = ListQuery::default();
    assert_eq!(
        world.list(&all, 2),
        [vec!["c", "a"], vec!["b", "d"], vec!["e"]]
    );
    let data = ListQuery {
        category: "DATA".to_owned(),
        ..all.clone()
    };
    assert_eq!(world.list(&data, 2), [vec!["c", "a"], vec!["b", "e"]]);
    let acme = ListQuery {
        source: "GitHub".to_owned(),
        author: "acme".to_owned(),
        ..all.clone()
    };
    assert_eq!(world.list(&acme, 1), [["a"], ["b"]]);
    let tags = ListQuery {
        tags: vec!["x".to_owned(), "Y".to_owned()],
        ..all.clone()
    };
    assert_eq!(world.list(&tags, 5), [["a", "d"]]);
    let both = ListQuery {
        source: "github".to_owned(),
        ..data.clone()
    };
    assert_eq!(world.list(&both, 2), [vec!["c", "a"], vec!["b"]]);
    let rust = ListQuery {
        technology: "rust".to_owned(),
        ..all.clone()
    };
    assert_eq!(world.list(&rust, 5), [["d"]]);
    let project = ListQuery {
        location: Some(Location::Project),
        ..all.clone()
    };
    assert_eq!(world.list(&project, 5), [["e"]]);
    let official = ListQuery {
        trust_tier: Some(TrustTier::Official),
        ..all.clone()
    };
    assert_eq!(world.list(&official, 5), [Vec::<String>::new()]);
    let none = ListQuery {
        category: "none".to_owned(),
        ..all
    };
    assert_eq!(world.list(&none, 5), [Vec::<String>::new()]);
}

#[tokio::test]
async fn a_list_of_what_requires_a_skill_has_pages_and_meets_the_other_filters() {
    let mut world = some_skills().await;
    for (id, category) in [("u/v/x", "data"), ("u/v/y", ""), ("u/w/z", "data")] {
        let rule = "compatibility_rules: [{type: requires, skill: github/acme/a}]";
        world = world
            .with(id, &format!("name: {id}\ncategory: '{category}'\n{rule}"))
            .await;
    }
    let dependents = ListQuery {
        requires: "A".to_owned(),
        ..ListQuery::default()
    };
    assert_eq!(world.list(&dependents, 2), [vec!["x", "y"], vec!["z"]]);
    let data = ListQuery {
        category: "data".to_owned(),
        source: "u".to_owned(),
        ..dependents.clone()
    };
    assert_eq!(world.list(&data, 5), [["x", "z"]]);
    let nowhere = ListQuery {
        requires: "nowhere".to_owned(),
        ..ListQuery::default()
    };
    assert_eq!(world.list(&nowhere, 5), [Vec::<String>::new()]);
    let page = world.lookup.list(&dependents, 2, "").expect("a page");
    let error = world.lookup.list(&nowhere, 2, &page.next.expect("more"));
    let error = error.map(|_| ()).expect_err("a refusal");
    assert_eq!(code(error), Code::PageTokenInvalid);
}

#[tokio::test]
async fn a_page_token_serves_its_query_alone() {
    let world = some_skills().await;
    let all = ListQuery::default();
    let token = world
        .lookup
        .list(&all, 2, "")
        .expect("a page")
        .next
        .expect("more");
    let data = ListQuery {
        category: "data".to_owned(),
        ..all.clone()
    };
    for (query, token) in [
        (&data, token.as_str()),
        (&all, "forged"),
        (&all, &token[1..]),
    ] {
        let error = world
            .lookup
            .list(query, 2, token)
            .map(|_| ())
            .expect_err("a refusal");
        assert_eq!(code(error), Code::PageTokenInvalid);
    }
    let alone = ListQuery {
        author: "acme".to_owned(),
        ..all
    };
    assert_eq!(
        code(
            world
                .lookup
                .list(&alone, 2, "")
                .map(|_| ())
                .expect_err("no source")
        ),
        Code::InvalidParameter
    );
}

#[tokio::test]
async fn every_way_to_a_file_gives_its_bytes() {
    let skill_md =
        "\u{feff}---\r\nname: refunds\r\ndescription: x\r\nversion: 1.2.0\r\n---\r\nBody\r\n";
    let world = World::new()
        .with_files(
            "github/acme/refunds",
            &[
                ("SKILL.md", skill_md.as_bytes()),
                ("a b.md", b"guide"),
                ("x.bin", &[0xff, 0]),
            ],
        )
        .await;
    for uri in [
        "skill://refunds",
        "skill://refunds/SKILL.md",
        "skill://github/acme/refunds",
        "skill://GitHub/acme/Refunds/SKILL.md",
    ] {
        let text = world.lookup.read(uri, "").await.expect("a text");
        assert_eq!(
            (text.uri.to_string().as_str(), text.text.as_str()),
            ("skill://github/acme/refunds/SKILL.md", skill_md)
        );
    }
    for (uri, canonical) in [
        (
            "skill://github/acme/@1.2.0/refunds",
            "skill://github/acme/@1.2.0/refunds/SKILL.md",
        ),
        (
            "skill://github/acme/@1/refunds/SKILL.md",
            "skill://github/acme/@1/refunds/SKILL.md",
        ),
        (
            "skill://github/acme/refunds/a%20b.md",
            "skill://github/acme/refunds/a%20b.md",
        ),
    ] {
        assert_eq!(
            world
                .lookup
                .read(uri, "")
                .await
                .expect("a text")
                .uri
                .to_string(),
            canonical
        );
    }
    assert_eq!(
        world
            .lookup
            .activate(" REFUNDS ", "")
            .await
            .expect("a text")
            .text,
        skill_md
    );
    let reference = Reference::parse("refunds");
    let part = |range| {
        world
            .lookup
            .file(&reference, &VersionSelector::Active, "x.bin", range, "")
    };
    assert_eq!(&part((0, 0)).await.expect("bytes").bytes[..], [0xff, 0]);
    assert_eq!(&part((1, 5)).await.expect("bytes").bytes[..], [0]);
    assert!(part((2, 1)).await.expect("bytes").bytes.is_empty());
    assert_eq!(
        code(part((3, 0)).await.map(|_| ()).expect_err("behind the end")),
        Code::InvalidParameter
    );
    let not_text = world
        .lookup
        .read("skill://github/acme/refunds/x.bin", "")
        .await
        .map(|_| ());
    assert_eq!(code(not_text.expect_err("not text")), Code::FileNotText);
    let missing = world
        .lookup
        .read("skill://github/acme/refunds/X.bin", "")
        .await
        .map(|_| ());
    assert_eq!(code(missing.expect_err("another case")), Code::FileNotFound);
    let bad = world
        .lookup
        .read("https://refunds", "")
        .await
        .map(|_| ())
        .expect_err("no skill URI");
    let failure = Failure::from(bad);
    assert_eq!(
        failure.message,
        "`https://refunds` is not a skill URI: it must start with `skill://`"
    );
    assert!(failure.suggestions[0].contains("skill://SOURCE/AUTHOR/NAME"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Pages of any size give what one look at everything gives.
    #[test]
    fn pages_of_any_size_give_every_match_once_in_order(
        skills in proptest::collection::vec(("[a-c]", "[a-d-]{0,1}[a-c]", "[xy]?"), 1..20), size in 1_usize..7, pick in 0_usize..4,
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            let mut expected = std::collections::BTreeMap::new();
            for (author, slug, category) in skills {
                let id = format!("s/{author}/z{slug}");
                if expected.contains_key(&id) {
                    continue;
                }
                world = world.with(&id, &format!("name: z{slug}\ncategory: \"{category}\"")).await;
                expected.insert(id, category);
            }
            let query = [
                ListQuery::default(),
                ListQuery { category: "x".to_owned(), ..ListQuery::default() },
                ListQuery { source: "s".to_owned(), author: "b".to_owned(), ..ListQuery::default() },
                ListQuery { source: "s".to_owned(), author: "a".to_owned(), category: "y".to_owned(), ..ListQuery::default() },
            ][pick].clone();
            let mut found = Vec::new();
            let mut token = String::new();
            loop {
                let page = world.lookup.list(&query, size, &token).expect("a page");
                assert!(page.heads.len() == size || page.next.is_none());
                found.extend(page.heads.iter().map(|head| head.id.to_string()));
                match page.next { Some(next) => token = next, None => break }
            }
            let matching: Vec<String> = expected
                .into_iter()
                .filter(|(id, category)| {
                    (query.author.is_empty() || id.starts_with(&format!("s/{}/", query.author)))
                        && (query.category.is_empty() || *category == query.category)
                })
                .map(|(id, _)| id)
                .collect();
            assert_eq!(found, matching);
        });
    }
}
