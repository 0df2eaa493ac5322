//! What callers send to be published, and what is counted of what is handed out.

use super::*;
use skill_md::Draft;

const SKILL_MD: &str =
    "---\nname: refunds\ndescription: Pays back.\n---\nFirst look at the bill.\n";

fn submission(skill: &str, files: &[(&str, &str)]) -> Submission {
    let file = |(path, content): &(&str, &str)| {
        let content = Bytes::copy_from_slice(content.as_bytes());
        ((*path).to_owned(), content)
    };
    Submission {
        upload: Upload {
            skill: skill.to_owned(),
            files: files.iter().map(file).collect(),
            ..Upload::default()
        },
        draft: Draft::default(),
        change_summary: String::new(),
        activate: true,
        principal: Principal::anonymous(),
        idempotency_key: String::new(),
    }
}

fn draft() -> Draft {
    Draft {
        name: "refunds".to_owned(),
        description: "Pays back.".to_owned(),
        core_content: "First look at the bill.".to_owned(),
        ..Draft::default()
    }
}

#[tokio::test]
async fn a_skill_is_made_of_its_files_or_of_its_fields() {
    let world = World::new();
    let sent = submission(ID, &[("SKILL.md", SKILL_MD)]);
    let (first, problems) = world
        .registry
        .publish_submission(sent)
        .await
        .expect("published");
    assert_eq!((first.outcome, problems), (Outcome::Created, Vec::new()));
    // By the short name of what is there, and by fields that say the same.
    let mut fields = submission("refunds", &[]);
    fields.draft = draft();
    let (again, _) = world
        .registry
        .publish_submission(fields)
        .await
        .expect("published");
    let (described, body) = world
        .registry
        .instructions(&again.id, &VersionSelector::Active)
        .await
        .expect("instructions");
    assert_eq!(
        (again.id.clone(), body.trim()),
        (first.id, "First look at the bill.")
    );
    assert_eq!(described.version.number, again.version.number);
}

#[tokio::test]
async fn what_is_no_skill_is_refused_with_every_path_that_is_wrong() {
    let world = World::new();
    let mut both = submission(ID, &[("SKILL.md", SKILL_MD)]);
    both.draft = draft();
    for (sent, code, fields) in [
        (submission(ID, &[]), Code::MissingParameter, vec!["files"]),
        (both, Code::InvalidParameter, vec!["files"]),
        (
            submission(ID, &[("a", ""), ("a", ""), ("../b", "")]),
            Code::InvalidParameter,
            vec!["files[1].path", "files[2].path"],
        ),
        (
            submission("nobody-knows", &[("SKILL.md", SKILL_MD)]),
            Code::InvalidParameter,
            vec!["skill_id"],
        ),
    ] {
        let refused = world.registry.publish_submission(sent).await;
        let failure = Failure::from(refused.expect_err("refused"));
        let named: Vec<_> = failure
            .fields
            .iter()
            .map(|field| field.field.as_str())
            .collect();
        assert_eq!((failure.code, named), (code, fields));
    }
}

#[tokio::test]
async fn an_archive_is_a_read_where_its_bytes_are_taken() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let head = world.registry.head(&skill(ID)).expect("a head");
    for (info_only, reads) in [(true, 0), (false, 1), (true, 1), (false, 2)] {
        let query = ExportQuery {
            version: VersionSelector::Active,
            format: ArchiveFormat::Zip,
            info_only,
        };
        world
            .registry
            .export(&head.id, &query)
            .await
            .expect("an archive");
        let usage = world
            .registry
            .skill_usage(Arc::clone(&head))
            .expect("usage");
        assert_eq!((usage.reads, usage.loads), (reads, 0));
        let versions: Vec<_> = usage
            .versions
            .iter()
            .map(|(_, counts)| counts.reads)
            .collect();
        assert_eq!(versions.iter().sum::<u64>(), reads);
    }
}
