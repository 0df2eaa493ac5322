//! Sources as they are added, synced when they are due, remembered, and removed.

use super::*;

#[tokio::test]
async fn more_than_is_listed_is_counted() {
    let here = Here::new(&[source("acme")]);
    let acme = here.place("acme");
    for at in 0..120 {
        acme.put(&format!("s{at:03}"), "nothing");
    }
    let result = here.sync().await;
    assert_eq!((result.skipped, result.skips.len()), (120, 10));
    let listed = here.engine.list().expect("a list").remove(0);
    assert_eq!((listed.skips.len(), listed.skips_left_out), (100, 20));
    let paths: Vec<_> = listed.skips.iter().map(|skip| skip.path.clone()).collect();
    assert!(paths.is_sorted(), "{paths:?}");
}

#[tokio::test]
async fn a_hundred_syncs_are_remembered() {
    let here = Here::new(&[source("acme")]);
    here.place("acme").put("a", &skill("a", "", "Do a."));
    for _ in 0..103 {
        here.clock.pass(jiff::SignedDuration::from_secs(1));
        here.sync().await;
    }
    let history = here.engine.status(None).expect("a status").history;
    let ids = [&history[0].id, &history[99].id].map(String::as_str);
    assert_eq!(history.len(), 100);
    assert_eq!(ids, ["sync_19700101_000143", "sync_19700101_000004"]);
}

#[tokio::test]
async fn a_source_that_another_engine_removed_is_synced_no_more_and_leaves_nothing() {
    let here = Here::new(&[]);
    let other = here.engine_again(&[]);
    here.engine.add(source("acme")).await.expect("added");
    here.place("acme").put("a", &skill("a", "", "Do a."));
    let gate = here.place("acme").wait();
    let request = Request {
        sources: vec!["acme".to_owned()],
        kind: Kind::Incremental,
        force_check: false,
    };
    let mut begun = here.engine.begin(&request).expect("begun");
    other.remove("acme", true).await.expect("removed");
    gate.notify_one();
    let record = begun.wait(Duration::from_secs(3_600)).await.expect("ended");
    assert!(record.sources[0].error.is_some(), "{record:?}");
    assert_eq!(live(&here.registry), []);
    for engine in [&here.engine, &other, &here.engine_again(&[])] {
        assert_eq!(engine.list().expect("a list"), []);
        assert_eq!(engine.claimed("acme").expect("claims"), []);
        let refused = engine.begin(&request).map(|begun| begun.id);
        assert!(matches!(refused, Err(Error::SourceNotFound { .. })));
    }
    // Its state went with it: one that is added again begins anew.
    other.add(source("acme")).await.expect("added");
    let listed = here.engine.list().expect("a list").remove(0);
    assert_eq!((listed.revision.as_str(), listed.last_success), ("", None));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
    #[test]
    fn two_on_one_store_have_the_same_sources_after_any_history(
        steps in proptest::collection::vec((0..2_usize, 0..3_usize, 0..3_u8), 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let here = Here::new(&[source("fixed")]);
            let configured = [source("fixed")];
            let two = [here.engine_again(&configured), here.engine_again(&configured)];
            for (at, id, step) in steps {
                let (engine, id) = (&two[at], ["fixed", "a", "b"][id]);
                here.place(id).put("s", &skill(&format!("{id}-s"), "", "Do it."));
                match step {
                    0 => drop(engine.add(source(id)).await),
                    1 => drop(engine.remove(id, true).await),
                    _ => {
                        let request = Request {
                            sources: vec![id.to_owned()],
                            kind: Kind::Incremental,
                            force_check: true,
                        };
                        let _known = engine.refresh(&request, Duration::from_secs(3_600)).await;
                    }
                }
            }
            let again = here.engine_again(&configured).list().expect("a list");
            for engine in &two {
                assert_eq!(engine.list().expect("a list"), again);
                for listed in &again {
                    let claims = engine.claimed(&listed.source.id).expect("claims").len();
                    assert_eq!(claims, listed.skills as usize);
                }
            }
        });
    }
}

#[tokio::test]
async fn there_may_be_a_thousand_sources() {
    let many: Vec<_> = (0..1_000).map(|at| source(&format!("s{at}"))).collect();
    let here = Here::new(&many);
    let refused = here.engine.add(source("more")).await;
    assert!(matches!(refused, Err(Error::TooMany { max: 1_000 })));
}

#[tokio::test]
async fn one_sync_of_a_source_at_a_time_and_each_is_remembered() {
    let here = Here::new(&[source("acme"), source("other")]);
    here.place("acme").put("a", &skill("a", "", "Do a."));
    here.place("other").put("b", &skill("b", "", "Do b."));
    let gate = here.place("acme").wait();
    let request = |sources: &[&str]| Request {
        sources: sources.iter().map(|id| (*id).to_owned()).collect(),
        kind: Kind::Incremental,
        force_check: false,
    };
    let mut first = here.engine.begin(&request(&["acme"])).expect("begun");
    assert_eq!(first.id, "sync_19700101_000000");
    for refused in [request(&["acme"]), request(&[])] {
        let refused = here.engine.begin(&refused).map(|begun| begun.id);
        assert!(
            matches!(&refused, Err(Error::InProgress { sync, source_id })
            if *sync == first.id && source_id == "acme"),
            "{refused:?}"
        );
    }
    let status = here.engine.status(None).expect("a status");
    assert_eq!(status.current.expect("a sync").id, first.id);
    let mut second = here.engine.begin(&request(&["other"])).expect("begun");
    assert_eq!(second.id, "sync_19700101_000000_2");
    let patience = Duration::from_secs(60);
    second.wait(patience).await.expect("ended");
    gate.notify_one();
    let record = first.wait(patience).await.expect("ended");
    assert_eq!((record.ending, record.changed()), (SyncOutcome::Success, 1));
    let status = here.engine.status(Some(&first.id)).expect("a status");
    assert_eq!((status.current, status.last), (None, Some(record)));
    assert_eq!(status.history.len(), 2);
    assert!(matches!(
        here.engine.status(Some("sync_1")),
        Err(Error::SyncNotFound { .. })
    ));
    assert!(matches!(
        here.engine.begin(&request(&["none"])),
        Err(Error::SourceNotFound { .. })
    ));
}

#[tokio::test]
async fn a_source_goes_on_where_it_was_after_a_restart() {
    let here = Here::new(&[source("acme")]);
    here.place("acme").put("a", &skill("a", "", "Do a."));
    here.sync().await;
    let again = here.engine_again(&[source("acme")]);
    let mut begun = again
        .begin(&Request {
            sources: Vec::new(),
            kind: Kind::Incremental,
            force_check: false,
        })
        .expect("begun");
    let record = begun.wait(Duration::from_secs(60)).await.expect("ended");
    assert!(record.sources[0].unchanged);
}

#[tokio::test]
async fn a_source_is_added_and_removed() {
    let here = Here::new(&[source("fixed")]);
    here.engine.add(source("new")).await.expect("added");
    assert!(matches!(
        here.engine.add(source("new")).await,
        Err(Error::SourceExists { .. })
    ));
    assert!(matches!(
        here.engine.add(source("fixed")).await,
        Err(Error::Configured { .. })
    ));
    here.place("new").put("a", &skill("a", "", "Do a."));
    here.place("new").put("b", &skill("b", "", "Do b."));
    here.sync_all().await;
    // Another process finds it.
    let ids: Vec<_> = here
        .engine_again(&[source("fixed")])
        .sources()
        .into_iter()
        .map(|source| source.id)
        .collect();
    assert_eq!(ids, ["fixed", "new"]);
    assert!(matches!(
        here.engine.remove("fixed", false).await,
        Err(Error::Configured { .. })
    ));
    let removed = here.engine.remove("new", true).await.expect("removed");
    assert_eq!((removed.withdrawn, removed.kept), (2, 0));
    assert_eq!(live(&here.registry), []);
    assert!(matches!(
        here.engine.source("new"),
        Err(Error::SourceNotFound { .. })
    ));
    // Its skills are free for another one.
    here.place("fixed").put("a", &skill("a", "", "Do a."));
    assert_eq!(counts(&here.sync().await)[4], 0);
}

#[tokio::test]
async fn a_source_is_refused_by_what_names_it() {
    for (change, word) in [
        (
            Box::new(|s: &mut crate::Source| s.id = "A b".to_owned())
                as Box<dyn Fn(&mut crate::Source)>,
            "no id",
        ),
        (Box::new(|s| s.location = String::new()), "address"),
        (
            Box::new(|s| s.location = "--upload-pack=x".to_owned()),
            "option",
        ),
        (
            Box::new(|s| s.location = "https://me:s3cret@example.com/x".to_owned()),
            "secret",
        ),
        (
            Box::new(|s| s.location = "nonsense".to_owned()),
            "no address",
        ),
        (Box::new(|s| s.interval_seconds = Some(1)), "at least 10"),
        (Box::new(|s| s.reference = "a\nb".to_owned()), "control"),
        (Box::new(|s| s.path = "x".repeat(5_000)), "2048 bytes"),
        (
            Box::new(|s| s.select = vec![String::new(); 1_001]),
            "more than 1000",
        ),
        (
            Box::new(|s| {
                s.kind = SourceKind::Directory;
                s.location = "skills".to_owned();
            }),
            "absolute",
        ),
        (Box::new(|s| s.kind = SourceKind::Github), "repositories"),
    ] {
        let mut source = source("acme");
        change(&mut source);
        let error = source.check().expect_err("a refusal").to_string();
        assert!(error.contains(word) && !error.contains("s3cret"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn sources_are_synced_when_they_are_due_and_when_something_happened_there() {
    let mut rarely = source("acme");
    rarely.interval_seconds = Some(100);
    let here = Here::new(&[rarely]);
    let acme = here.place("acme");
    acme.put("a", &skill("a", "", "Do a."));
    let keeping = tokio::spawn({
        let engine = here.engine.clone();
        async move { engine.keep().await }
    });
    here.until_looks("acme", 1).await;
    here.clock.pass(jiff::SignedDuration::from_secs(50));
    here.engine.nudge("acme").expect("a source");
    here.until_looks("acme", 2).await;
    here.clock.pass(jiff::SignedDuration::from_secs(120));
    here.until_looks("acme", 3).await;
    here.engine.close().await;
    keeping.await.expect("it ends");
}

#[tokio::test]
async fn a_source_that_a_caller_on_the_network_names_has_the_listed_secrets_of_its_address() {
    use secret::CredentialRef::{Env, File};
    use secret::NamedBy::{Network, Operator};
    let here = Here::new(&[]);
    let variable = |name: &str| Env(name.to_owned());
    let add = async |named_by, location: &str, credential| {
        let added = here.engine.add(crate::Source {
            location: location.to_owned(),
            credential: Some(credential),
            named_by,
            ..source("acme")
        });
        let added = added.await.map(|listed| listed.source.named_by);
        if added.is_ok() {
            here.engine.remove("acme", false).await.expect("removed");
        }
        added.map_err(|error| error.to_string())
    };
    let (github, other) = ("https://github.com/acme/x", "https://gitlab.com/acme/x");
    assert_eq!(add(Network, github, variable("HOME")).await, Ok(Network));
    assert_eq!(add(Operator, other, variable("PATH")).await, Ok(Operator));
    let refused = [
        add(Network, other, variable("HOME")).await,
        add(Network, github, variable("PATH")).await,
        add(Network, github, variable("NO_SUCH_VARIABLE")).await,
        add(Network, github, File("HOME".into())).await,
        add(Network, github, File("/etc/hostname".into())).await,
    ];
    let words = "`sync.secrets` of the config file does not permit the secret that it names for this address";
    assert_eq!(refused, std::array::from_fn(|_| Err(words.to_owned())));
    // The secret of webhooks likewise, whenever one comes.
    let hooked = async |name: &str| {
        let added = here.engine.add(crate::Source {
            webhook_secret: Some(variable(name)),
            named_by: Network,
            ..source("hooked")
        });
        added.await.expect("added");
        let webhook = crate::Webhook {
            signature: None,
            token: Some("a guess"),
            body: b"",
        };
        let refused = here
            .engine
            .receive("hooked", &webhook)
            .expect_err("refused");
        here.engine.remove("hooked", false).await.expect("removed");
        matches!(refused, crate::Refused::Secret(_))
    };
    assert!(!hooked("HOME").await);
    assert!(hooked("PATH").await);
}

#[test]
fn a_source_that_was_stored_before_is_named_by_the_operator() {
    let mut stored = serde_json::to_value(source("acme")).expect("a record");
    let fields = stored.as_object_mut().expect("fields");
    fields.remove("named_by").expect("it is stored");
    let read: crate::Source = serde_json::from_value(stored).expect("a record");
    assert_eq!(read, source("acme"));
}
