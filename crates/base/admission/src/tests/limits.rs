//! What a peer may have, and that it has it no longer than it should.

use super::*;

/// The same limits without shares.
fn whole() -> Admission {
    Admission::new(LIMITS, 100, Pace::default())
}

/// What is free of a resource for all, and of the share of a peer.
fn free(peer: &Peer, resource: Resource) -> [usize; 2] {
    let account = &peer.account;
    let share = account.free.as_ref().expect("a share");
    [&account.admission.free, share].map(|free| free.of(resource).available_permits())
}

#[test]
fn a_share_is_never_more_than_there_is_for_all() {
    let shares = [0, 1, 100, 200].map(|percent| {
        let admission = Admission::new(LIMITS, percent, Pace::default());
        admission.share(Resource::Connections)
    });
    assert_eq!(shares, [1, 1, 10, 10]);
}

#[test]
fn networks_that_differ_in_their_last_bit_are_two_peers() {
    let admission = admission();
    let peer = |text: &str| admission.peer(address(text));
    assert!(!peer("2001:db8:0:2::1").is(&peer("2001:db8:0:3::1")));
}

#[test]
fn a_peer_that_came_back_is_not_forgotten_with_what_it_was_before() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    drop(Account {
        admission: Arc::clone(&admission.0),
        who: peer.account.who.clone(),
        free: None,
    });
    assert_eq!(admission.peer_count(), 1);
    assert!(admission.peer(address("10.0.0.1")).is(&peer));
}

#[test]
fn who_takes_one_thing_leaves_all_others_as_they_were() {
    for resource in Resource::ALL {
        let admission = admission();
        let peer = admission.peer(address("10.0.0.1"));
        let _permit = peer.try_take(resource, 1).expect("a permit");
        for other in Resource::ALL {
            let expected = usize::from(other == resource);
            assert_eq!(admission.taken(other), expected, "{resource:?} {other:?}");
        }
    }
}

#[test]
fn a_caller_is_known_by_its_own_name_alone() {
    let admission = admission();
    let ada = admission.caller("token:ada");
    assert!(ada.is_caller("token:ada") && !ada.is_caller("token:bob"));
    let address = admission.peer(address("10.0.0.1"));
    assert!(!address.is_caller("10.0.0.1"));
}

#[test]
fn who_waits_may_have_a_whole_share_and_all_that_there_is() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let share = peer.take(Resource::Calls, 2).now_or_never();
    let share = share.expect("no wait").expect("its share");
    assert_eq!(free(&peer, Resource::Calls), [2, 0]);
    drop(share);
    let all = admission.local();
    let all = all.take(Resource::Calls, 4).now_or_never();
    let _all = all.expect("no wait").expect("all of it");
    assert_eq!(admission.taken(Resource::Calls), 4);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_waits_for_the_time_of_the_pace_and_is_told_what_was_missing() {
    let admission = admission();
    let (one, other) = (
        admission.peer(address("10.0.0.1")),
        admission.peer(address("10.0.0.2")),
    );
    let _its_share = one.try_take(Resource::Answers, 50).expect("its share");
    for (rest, expected) in [(49, Full::Share), (50, Full::All)] {
        let _rest = other.try_take(Resource::Answers, rest).expect("the rest");
        let who = if expected == Full::Share {
            one.clone()
        } else {
            admission.local()
        };
        let begun = Instant::now();
        let refused = who.take_in_time(Resource::Answers, 1).await;
        assert_eq!(refused.map(drop), Err(expected));
        assert_eq!(begun.elapsed().as_secs(), Pace::default().wait.as_secs());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_waited_for_counts_against_the_share_until_it_is_given_back() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let first = peer.try_take(Resource::Answers, 50).expect("its share");
    let mut waits = Box::pin(peer.take(Resource::Answers, 20));
    assert!((&mut waits).now_or_never().is_none());
    drop(first);
    let second = in_time(waits).await.expect("what was given back");
    assert_eq!(free(&peer, Resource::Answers), [80, 30]);
    drop(second);
    assert_eq!(free(&peer, Resource::Answers), [100, 50]);
}

#[test]
fn a_permit_grows_to_a_share_at_most_and_nobody_waits_for_more() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let mut permit = peer.try_take(Resource::Answers, 30).expect("a permit");
    let refused = permit.grow(21).now_or_never().expect("no wait");
    assert_eq!(refused, Err(Full::Share));
    let grown = permit.grow(20).now_or_never().expect("no wait");
    assert_eq!((grown, permit.units()), (Ok(()), 50));
    permit.resize(10).expect("less");
    permit.resize(40).expect("more");
    assert_eq!(
        (permit.units(), free(&peer, Resource::Answers)),
        (40, [60, 10])
    );
    assert_eq!(permit.resize(51), Err(Full::Share));
}

#[test]
fn a_permit_that_took_over_another_gives_all_of_it_back_once() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let take = |units| peer.try_take(Resource::Answers, units).expect("a permit");
    let (mut one, other) = (take(30), take(20));
    one.absorb(other);
    assert_eq!((one.units(), free(&peer, Resource::Answers)), (50, [50, 0]));
    drop(one);
    assert_eq!(free(&peer, Resource::Answers), [100, 50]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_booked_as_long_as_it_becomes_in_base64() {
    let amounts = Amounts {
        answer_kib: 2000,
        ..LIMITS
    };
    let admission = Admission::new(amounts, 100, Pace::default());
    for (kib, booked) in [(128, 0), (129, 300), (300, 528)] {
        let peer = admission.peer(address("10.0.0.1")).for_call();
        let reserved = in_time(with_reader(peer.clone(), reserve(kib << 10))).await;
        assert_eq!(reserved, Ok(()));
        let has = peer.reserved().map_or(0, |memory| memory.units());
        assert_eq!(has, booked, "{kib} KiB");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_contents_of_a_call_the_longer_one_says_how_much_is_booked() {
    let amounts = Amounts {
        answer_kib: 1000,
        ..LIMITS
    };
    let admission = Admission::new(amounts, 100, Pace::default());
    let others = admission.local().try_take(Resource::Answers, 1000);
    let others = others.expect("all of it");
    let peer = admission.peer(address("10.0.0.1")).for_call();
    let both = with_reader(peer.clone(), async {
        // In this order they ask, and in this order they get it: the shorter one is last.
        let (mut long, mut short) = (Box::pin(reserve(300 << 10)), Box::pin(reserve(150 << 10)));
        assert!((&mut long).now_or_never().is_none());
        assert!((&mut short).now_or_never().is_none());
        drop(others);
        (long.await, short.await)
    });
    assert_eq!(in_time(both).await, (Ok(()), Ok(())));
    let memory = peer.reserved().expect("what was booked");
    assert_eq!(
        (memory.units(), admission.taken(Resource::Answers)),
        (528, 528)
    );
}

#[tokio::test(start_paused = true)]
async fn memory_for_an_answer_that_was_not_reserved_is_waited_for_or_taken_at_once() {
    let admission = whole();
    let peer = admission.peer(address("10.0.0.1")).for_call();
    let held = peer.try_reserve(100).expect("all of it");
    assert_eq!(peer.try_reserve(1).map(drop), Err(Full::Share));
    let mut waits = Box::pin(peer.reserve(20));
    assert!((&mut waits).now_or_never().is_none());
    drop(held);
    let memory = in_time(waits).await.expect("what was given back");
    assert_eq!(memory.units(), 20);
}

#[tokio::test(start_paused = true)]
async fn what_was_reserved_is_made_to_fit_by_who_does_not_wait_too() {
    let admission = whole();
    let peer = admission.peer(address("10.0.0.1")).for_call();
    let reserved = with_reader(peer.clone(), reserve(1 << 20));
    in_time(reserved).await.expect("all of it");
    let memory = peer.try_reserve(20).expect("less than it had");
    assert_eq!(
        (memory.units(), admission.taken(Resource::Answers)),
        (20, 20)
    );
}

#[test]
fn each_resource_has_its_name_in_metrics() {
    assert_eq!(
        Resource::ALL.map(Resource::name),
        [
            "connections",
            "handshakes",
            "calls",
            "streams",
            "workers",
            "sessions",
            "request_kib",
            "answer_kib",
        ]
    );
}

#[test]
fn each_refusal_has_its_code_and_says_what_was_full() {
    let told = |error: IntakeError<&str>| {
        let failure = model::Failure::from(error);
        (failure.code, failure.message)
    };
    let idle = Duration::from_secs(300);
    let expected = [
        (
            IntakeError::TooLarge { max: 7 },
            model::Code::BodyTooLarge,
            "The body of the request was not taken: it is longer than 7 bytes",
        ),
        (
            IntakeError::Slow {
                bytes_per_second: 9,
            },
            model::Code::Timeout,
            "The body of the request was not taken: it came at less than 9 bytes a second",
        ),
        (
            IntakeError::Idle { idle },
            model::Code::Timeout,
            "The body of the request was not taken: no message came within 300 seconds",
        ),
        (
            IntakeError::Full(Full::All),
            model::Code::Overloaded,
            "The server is at capacity",
        ),
        (
            IntakeError::Full(Full::Share),
            model::Code::Overloaded,
            "This caller is at its share of the server's capacity",
        ),
        (
            IntakeError::Broken("reset"),
            model::Code::InvalidParameter,
            "The body cannot be read: reset",
        ),
    ];
    for (error, code, message) in expected {
        assert_eq!(told(error), (code, message.to_owned()));
    }
}

#[test]
fn all_resources_are_listed_in_their_order_by_which_they_are_found() {
    let listed = Resource::ALL.map(|resource| resource as usize);
    assert_eq!(listed, [0, 1, 2, 3, 4, 5, 6, 7]);
}
