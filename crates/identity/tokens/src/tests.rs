//! Tokens, over a store in memory.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::tokens::MAX_TOKENS;
use crate::{Error, NewToken, Secret, Token, Tokens, Unrecognized};
use access::{Rights, Role};
use model::{Code, Failure, Principal};
use store::{Options, Store, Table, TableId};

const NOW: Timestamp = Timestamp::constant(1_800_000_030, 0);

fn secret(byte: u8) -> Secret {
    Secret::new([byte; 32])
}

fn new(name: &str, expires_at: Option<Timestamp>) -> NewToken {
    NewToken {
        name: name.to_owned(),
        rights: Rights {
            actions: Role::Publisher.actions(),
            skills: vec!["github/acme/*".parse().expect("a pattern")],
            ..Rights::default()
        },
        expires_at,
    }
}

#[test]
fn a_secret_is_read_back_from_its_text_and_from_no_other() {
    let text = secret(7).reveal();
    assert_eq!(text.len(), 47);
    assert_eq!(Secret::parse(&text), Some(secret(7)));
    assert_eq!(format!("{:?}", secret(7)), "Secret(…)");
    for wrong in [
        "",
        "rpt_",
        &text[1..],
        &text[4..],
        &text[..46],
        &format!("{text}A"),
        &text.replace("rpt_", "rpt-"),
    ] {
        assert_eq!(Secret::parse(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_text_is_the_text_of_a_token_or_none(text in ".{0,100}", tail in "[A-Za-z0-9_-]{43}") {
        for text in [text, format!("rpt_{tail}")] {
            if let Some(secret) = Secret::parse(&text) {
                prop_assert_eq!(secret.reveal(), text);
            }
        }
    }
}

#[tokio::test]
async fn a_token_is_recognized_until_it_is_revoked_also_by_the_next_server() {
    let store = Store::in_memory(&Options::default());
    let tokens = Tokens::open(store.clone()).expect("tokens");
    let by = Principal::local();
    tokens
        .create(new("ci", None), &secret(1), &by, NOW)
        .await
        .expect("made");
    let again = Tokens::open(store.clone()).expect("tokens");
    for tokens in [&tokens, &again] {
        let caller = tokens.recognize(&secret(1), NOW).expect("a caller");
        assert_eq!(caller.principal.as_str(), "token:ci");
        assert_eq!(caller.rights, new("ci", None).rights);
        assert!(!caller.is_anonymous());
        assert_eq!(
            tokens.recognize(&secret(2), NOW).err(),
            Some(Unrecognized::Unknown)
        );
    }
    let caller = tokens.recognize(&secret(1), NOW).expect("a caller");
    tokens.revoke("ci").await.expect("revoked");
    assert!(caller.ended.is_cancelled());
    assert_eq!(
        tokens.recognize(&secret(1), NOW).err(),
        Some(Unrecognized::Unknown)
    );
    let again = Tokens::open(store).expect("tokens");
    assert_eq!(again.list(), []);
    assert!(matches!(
        tokens.revoke("ci").await,
        Err(Error::NotFound { .. })
    ));
}

#[tokio::test]
async fn a_revocation_goes_through_although_its_caller_leaves() {
    let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
    let (by, first, second) = (Principal::local(), new("ci", None), new("two", None));
    let made = tokens.create(first, &secret(1), &by, NOW).await;
    made.expect("made");
    let mut revoke = Box::pin(tokens.revoke("ci"));
    assert!(futures_util::poll!(revoke.as_mut()).is_pending());
    drop(revoke);
    // One write at a time: this one comes after it.
    let made = tokens.create(second, &secret(2), &by, NOW).await;
    made.expect("made");
    let refused = tokens.recognize(&secret(1), NOW).err();
    assert_eq!(refused, Some(Unrecognized::Unknown));
}

/// A store that writes a batch while its caller does something else, and its folder.
fn on_disk() -> (TempDir, Store) {
    let folder = TempDir::new().expect("a folder");
    let options = Options {
        reserve_bytes: 0,
        ..Options::default()
    };
    let store = Store::open(&folder.path().join("data"), &options).expect("a store");
    (folder, store)
}

#[tokio::test]
async fn a_token_is_made_although_its_caller_leaves() {
    let (_folder, store) = on_disk();
    let tokens = Tokens::open(store.clone()).expect("tokens");
    let (by, one, other) = (Principal::local(), secret(1), secret(2));
    let mut create = Box::pin(tokens.create(new("ci", None), &one, &by, NOW));
    assert!(futures_util::poll!(create.as_mut()).is_pending());
    drop(create);
    // One write at a time: this one comes after it.
    let made = tokens.create(new("two", None), &other, &by, NOW).await;
    made.expect("made");
    assert_eq!(Tokens::open(store).expect("tokens").list(), tokens.list());
    let caller = tokens.recognize(&one, NOW).expect("a caller");
    assert_eq!(caller.principal, Principal::token("ci"));
}

#[tokio::test]
async fn a_use_that_is_written_down_while_its_token_is_revoked_does_not_bring_it_back() {
    let (_folder, store) = on_disk();
    let tokens = Tokens::open(store.clone()).expect("tokens");
    let (by, ci) = (Principal::local(), secret(1));
    let made = tokens.create(new("ci", None), &ci, &by, NOW);
    made.await.expect("made");
    tokens.recognize(&secret(1), NOW).expect("a caller");
    let mut revoke = Box::pin(tokens.revoke("ci"));
    assert!(futures_util::poll!(revoke.as_mut()).is_pending());
    // What revokes it has its turn, as far as the disk.
    tokio::task::yield_now().await;
    tokens.write_uses().await.expect("written");
    revoke.await.expect("revoked");
    assert_eq!(Tokens::open(store).expect("tokens").list(), []);
}

/// What one of two does.
#[derive(Debug, Clone, Copy)]
enum Step {
    Create(u8),
    Revoke(u8),
    Rotate(u8),
    Use(u8, i64),
    WriteUses,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    // Few names and texts, so that they meet. A token of a name has one of two texts.
    let step = prop_oneof![
        (0..6_u8).prop_map(Step::Create),
        (0..3_u8).prop_map(Step::Revoke),
        (0..6_u8).prop_map(Step::Rotate),
        (0..6_u8, 0..4_i64).prop_map(|(text, minute)| Step::Use(text, minute)),
        Just(Step::WriteUses),
    ];
    (0..2_usize, step)
}

/// What somebody who has these tokens gets.
fn seen(tokens: &Tokens) -> (Vec<Token>, Vec<Option<String>>) {
    let caller = |text| tokens.recognize(&secret(text), Timestamp::UNIX_EPOCH).ok();
    let callers = (0..6).map(|text| Some(caller(text)?.principal.to_string()));
    (tokens.list(), callers.collect())
}

proptest! {
    #[test]
    fn two_on_one_store_have_the_same_tokens_after_any_history(
        steps in proptest::collection::vec(step(), 1..30),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let store = Store::in_memory(&Options::default());
            let two = [(); 2].map(|()| Tokens::open(store.clone()).expect("tokens"));
            let mut callers = Vec::new();
            for (at, step) in steps {
                let tokens = &two[at];
                match step {
                    Step::Create(text) => {
                        let (new, secret) = (new(&format!("t{}", text / 2), None), secret(text));
                        let made = tokens.create(new, &secret, &Principal::local(), NOW).await;
                        let refused = matches!(made, Err(Error::Exists { .. } | Error::Used { .. }));
                        assert!(made.is_ok() || refused, "{made:?}");
                    }
                    Step::Rotate(text) => {
                        let (name, secret) = (format!("t{}", text / 2), secret(text));
                        let turned = tokens.rotate(&name, &secret, None, NOW).await;
                        assert!(matches!(turned, Ok(_) | Err(Error::NotFound { .. })), "{turned:?}");
                    }
                    Step::Revoke(name) => {
                        let gone = tokens.revoke(&format!("t{name}")).await;
                        assert!(matches!(gone, Ok(_) | Err(Error::NotFound { .. })), "{gone:?}");
                    }
                    Step::Use(text, minute) => {
                        let now = NOW + SignedDuration::from_mins(minute);
                        let caller = tokens.recognize(&secret(text), now).ok();
                        callers.extend(caller.map(|caller| (text, at, caller)));
                    }
                    Step::WriteUses => tokens.write_uses().await.expect("written"),
                }
            }
            for tokens in &two {
                tokens.write_uses().await.expect("written");
            }
            let again = Tokens::open(store).expect("tokens");
            assert_eq!(seen(&two[0]), seen(&again));
            assert_eq!(seen(&two[1]), seen(&again));
            // A caller has ended where its token was revoked, by whichever of the two.
            for (text, at, caller) in callers {
                let now = two[at].recognize(&secret(text), Timestamp::UNIX_EPOCH).ok();
                let goes_on = now.is_some_and(|now| std::sync::Arc::ptr_eq(&now, &caller));
                assert_eq!(caller.ended.is_cancelled(), !goes_on, "{text}");
            }
        });
    }
}

#[tokio::test]
async fn a_token_that_another_server_revoked_is_refused_and_does_not_come_back() {
    let store = Store::in_memory(&Options::default());
    let one = Tokens::open(store.clone()).expect("tokens");
    let made = one
        .create(new("ci", None), &secret(1), &Principal::local(), NOW)
        .await;
    made.expect("made");
    let other = Tokens::open(store.clone()).expect("tokens");
    let caller = other.recognize(&secret(1), NOW).expect("a caller");
    one.revoke("ci").await.expect("revoked");
    assert!(caller.ended.is_cancelled());
    let refused = other.recognize(&secret(1), NOW).err();
    assert_eq!(refused, Some(Unrecognized::Unknown));
    other.write_uses().await.expect("written");
    assert_eq!(Tokens::open(store).expect("tokens").list(), []);
}

#[tokio::test]
async fn the_last_use_does_not_go_back_with_a_clock_and_is_written_down_once() {
    const TOKENS: Table<str, Token> = Table::new(TableId::Tokens);
    let store = Store::in_memory(&Options::default());
    let tokens = Tokens::open(store.clone()).expect("tokens");
    let (by, ci) = (Principal::local(), secret(1));
    let made = tokens.create(new("ci", None), &ci, &by, NOW);
    made.await.expect("made");
    tokens.recognize(&secret(1), NOW).expect("a caller");
    let minute = SignedDuration::from_secs(60);
    tokens
        .recognize(&secret(1), NOW - minute)
        .expect("a caller");
    let last = Timestamp::from_second(1_800_000_000).expect("a time");
    assert_eq!(tokens.list()[0].last_used_at, Some(last));
    tokens.write_uses().await.expect("written");
    let record = || store.get(&TOKENS, "ci").expect("read").expect("a record");
    let written = record();
    assert_eq!(written.value.last_used_at, Some(last));
    tokens.recognize(&secret(1), NOW).expect("a caller");
    tokens.write_uses().await.expect("nothing to write");
    assert_eq!(record(), written);
    tokens
        .recognize(&secret(1), NOW + minute)
        .expect("a caller");
    tokens.write_uses().await.expect("written");
    assert_eq!(record().value.last_used_at, Some(last + minute));
}

#[tokio::test]
async fn a_token_expires_at_its_time() {
    let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
    let at = NOW + SignedDuration::from_secs(60);
    tokens
        .create(new("ci", Some(at)), &secret(1), &Principal::local(), NOW)
        .await
        .expect("made");
    let before = at - SignedDuration::from_nanos(1);
    assert!(tokens.recognize(&secret(1), before).is_ok());
    assert_eq!(
        tokens.recognize(&secret(1), at).err(),
        Some(Unrecognized::Expired(at))
    );
}

#[tokio::test]
async fn a_name_is_given_once_and_is_a_name() {
    let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
    let create = async |name: &str, byte| {
        tokens
            .create(new(name, None), &secret(byte), &Principal::local(), NOW)
            .await
    };
    create("ci", 1).await.expect("made");
    assert!(matches!(create("ci", 2).await, Err(Error::Exists { .. })));
    assert_eq!(
        tokens.recognize(&secret(2), NOW).err(),
        Some(Unrecognized::Unknown)
    );
    let long = "x".repeat(65);
    for wrong in ["", "a b", "a/b", "ü", &long] {
        assert!(
            matches!(
                create(wrong, 3).await,
                Err(Error::Parameter { field: "name", .. })
            ),
            "{wrong}"
        );
    }
    create(&long[1..], 3).await.expect("64 characters");
}

#[tokio::test]
async fn the_name_of_a_revoked_token_is_given_to_no_other_not_even_by_the_next_server() {
    let store = Store::in_memory(&Options::default());
    let by = Principal::local();
    let tokens = Tokens::open(store.clone()).expect("tokens");
    let made = tokens.create(new("bob", None), &secret(1), &by, NOW).await;
    made.expect("made");
    tokens.revoke("bob").await.expect("revoked");
    // Another server on the store has the same tokens, and knows of the name by the store alone.
    for tokens in [tokens, Tokens::open(store).expect("tokens")] {
        let made = tokens.create(new("bob", None), &secret(2), &by, NOW).await;
        let refused = made.expect_err("it is used");
        let used =
            "`bob` was the name of a token that was created on 2027-01-15T08:00:30Z and is revoked";
        assert_eq!(refused.to_string(), used);
        assert_eq!(Failure::from(refused).code, Code::TokenNameUsed);
        assert_eq!(tokens.list(), []);
        let unknown = tokens.recognize(&secret(2), NOW).err();
        assert_eq!(unknown, Some(Unrecognized::Unknown));
    }
}

#[tokio::test]
async fn two_servers_on_a_store_give_a_name_once_and_bring_nothing_back() {
    let store = Store::in_memory(&Options::default());
    let by = Principal::local();
    let one = Tokens::open(store.clone()).expect("tokens");
    let made = one.create(new("ci", None), &secret(1), &by, NOW).await;
    made.expect("made");
    let other = Tokens::open(store.clone()).expect("tokens");
    other.recognize(&secret(1), NOW).expect("a caller");
    one.revoke("ci").await.expect("revoked");
    // What the other one remembers of the token, it neither writes nor rotates.
    other.write_uses().await.expect("nothing to write");
    let rotated = other.rotate("ci", &secret(2), None, NOW).await;
    assert!(matches!(rotated, Err(Error::NotFound { .. })));
    assert_eq!(Tokens::open(store).expect("tokens").list(), []);
}

#[tokio::test]
async fn a_rotated_token_is_the_same_caller_by_its_new_text_alone() {
    let store = Store::in_memory(&Options::default());
    let tokens = Tokens::open(store.clone()).expect("tokens");
    let (by, at) = (Principal::local(), NOW + SignedDuration::from_hours(24));
    let first = secret(1);
    let made = tokens.create(new("ci", Some(at)), &first, &by, NOW);
    let made = made.await.expect("made");
    let before = tokens.recognize(&secret(1), NOW).expect("a caller");
    let later = at + SignedDuration::from_hours(24);
    for (byte, asked, expires_at) in [(2, None, at), (3, Some(later), later)] {
        let rotated = tokens
            .rotate("ci", &secret(byte), asked, NOW)
            .await
            .expect("rotated");
        assert_eq!(rotated.expires_at, Some(expires_at));
        assert_eq!(
            (&rotated.name, &rotated.rights, rotated.created_at),
            (&made.name, &made.rights, made.created_at)
        );
        assert!(before.ended.is_cancelled());
        for tokens in [&tokens, &Tokens::open(store.clone()).expect("tokens")] {
            let old = tokens.recognize(&secret(byte - 1), NOW).err();
            assert_eq!(old, Some(Unrecognized::Unknown));
            let caller = tokens.recognize(&secret(byte), NOW).expect("a caller");
            assert_eq!(caller.principal, before.principal);
            assert!(!caller.ended.is_cancelled());
        }
    }
    let none = tokens.rotate("other", &secret(4), None, NOW).await;
    assert!(matches!(none, Err(Error::NotFound { .. })));
    // One that has expired gets no text that would be refused at its first use.
    let late = tokens.rotate("ci", &secret(4), None, later).await;
    let field = match late {
        Err(Error::Parameter { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field, "expires_in_days");
    tokens.recognize(&secret(3), NOW).expect("the text before");
}

#[tokio::test]
async fn the_minute_of_the_last_use_is_told_and_written_down() {
    let store = Store::in_memory(&Options::default());
    let tokens = Tokens::open(store.clone()).expect("tokens");
    tokens
        .create(new("ci", None), &secret(1), &Principal::local(), NOW)
        .await
        .expect("made");
    assert_eq!(tokens.list()[0].last_used_at, None);
    tokens.recognize(&secret(1), NOW).expect("a caller");
    let minute = Timestamp::from_second(1_800_000_000).expect("a time");
    assert_eq!(tokens.list()[0].last_used_at, Some(minute));
    let last = |store: &Store| Tokens::open(store.clone()).expect("tokens").list()[0].last_used_at;
    assert_eq!(last(&store), None);
    tokens.write_uses().await.expect("written");
    assert_eq!(last(&store), Some(minute));
    // What is written down after it was revoked does not bring it back.
    tokens
        .recognize(&secret(1), NOW + SignedDuration::from_secs(60))
        .expect("a caller");
    tokens.revoke("ci").await.expect("revoked");
    tokens.write_uses().await.expect("written");
    assert_eq!(Tokens::open(store).expect("tokens").list(), []);
}

#[tokio::test]
async fn there_are_so_many_tokens_and_no_more() {
    let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
    let create = async |at: usize| {
        let mut random = [0; 32];
        random[..8].copy_from_slice(&at.to_be_bytes());
        let new = new(&format!("t{at}"), None);
        let by = Principal::local();
        tokens.create(new, &Secret::new(random), &by, NOW).await
    };
    for at in 0..MAX_TOKENS {
        create(at).await.expect("made");
    }
    let refused = create(MAX_TOKENS).await;
    assert!(matches!(refused, Err(Error::TooMany { max: MAX_TOKENS })));
    tokens.revoke("t7").await.expect("revoked");
    create(MAX_TOKENS).await.expect("there is room again");
    assert_eq!(tokens.list().len(), MAX_TOKENS);
}
