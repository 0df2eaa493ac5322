//! Sessions that begin, end, and belong to somebody.

use super::*;
use admission::{Admission, Amounts, Pace};

const HOUR: Duration = Duration::from_secs(3600);

fn admission(sessions: usize) -> Admission {
    let amounts = Amounts {
        sessions,
        ..Amounts::UNLIMITED
    };
    Admission::new(amounts, 50, Pace::default())
}

fn with(permit: Permit) -> SessionRequest {
    SessionRequest {
        owner: None,
        permit: RefCell::new(Some(permit)),
    }
}

fn by(owner: Option<&str>) -> SessionRequest {
    SessionRequest {
        owner: owner.map(ToOwned::to_owned),
        ..SessionRequest::default()
    }
}

#[tokio::test]
async fn a_session_belongs_to_the_caller_that_began_it() {
    let sessions = Sessions::new(HOUR);
    let begun = Sessions::handle(by(Some("token:ada")), sessions.create_session());
    let (id, _transport) = begun.await.expect("a session");
    for (owner, is_there) in [
        (Some("token:ada"), true),
        (Some("token:bob"), false),
        (None, false),
    ] {
        if !is_there {
            let closed = Sessions::handle(by(owner), sessions.close_session(&id));
            closed.await.expect("as one that there is none of");
        }
        let has = Sessions::handle(by(owner), sessions.has_session(&id));
        assert_eq!(has.await.expect("an answer"), is_there, "{owner:?}");
    }
    let closed = Sessions::handle(by(Some("token:ada")), sessions.close_session(&id));
    closed.await.expect("closed");
    let has = Sessions::handle(by(Some("token:ada")), sessions.has_session(&id));
    assert!(!has.await.expect("an answer"));
}

async fn begin(sessions: &Sessions, peer: &Peer) -> SessionId {
    let permit = sessions.admit(peer).await.expect("a permit");
    let begun = Sessions::handle(with(permit), sessions.create_session());
    let (id, _transport) = begun.await.expect("a session");
    // The order of sessions is that of their times.
    tokio::time::advance(Duration::from_secs(1)).await;
    id
}

fn known(sessions: &Sessions, ids: &[&SessionId]) -> Vec<bool> {
    let open = lock(&sessions.open);
    ids.iter().map(|id| open.contains_key(*id)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_session_lives_as_long_as_its_client_is_heard_of_or_has_a_stream() {
    let (sessions, peer) = (Sessions::new(HOUR), Peer::unlimited());
    let quiet = begin(&sessions, &peer).await;
    let talks = begin(&sessions, &peer).await;
    let streams = begin(&sessions, &peer).await;
    let stream = sessions.stream(&streams, futures_util::stream::pending());
    tokio::time::advance(HOUR / 2).await;
    sessions.has_session(&talks).await.expect("an answer");
    tokio::time::advance(HOUR / 2).await;
    sessions.end_idle().await;
    let all = [&quiet, &talks, &streams];
    assert_eq!(known(&sessions, &all), [false, true, true]);
    assert!(!sessions.has_session(&quiet).await.expect("an answer"));
    drop(stream);
    tokio::time::advance(HOUR / 2).await;
    sessions.end_idle().await;
    assert_eq!(known(&sessions, &all), [false, false, true]);
    tokio::time::advance(HOUR / 2).await;
    sessions.end_idle().await;
    assert_eq!(known(&sessions, &all), [false, false, false]);
}

#[tokio::test(start_paused = true)]
async fn where_there_is_no_permit_left_the_session_idle_for_longest_ends() {
    let (sessions, admission) = (Sessions::new(HOUR), admission(4));
    let peer = |last| admission.peer([10, 0, 0, last].into());
    let (one, other, third) = (peer(1), peer(2), peer(3));
    let first = begin(&sessions, &one).await;
    let second = begin(&sessions, &one).await;
    sessions.has_session(&first).await.expect("an answer");
    tokio::time::advance(Duration::from_secs(1)).await;
    // It has its share: one of its own ends.
    let another = begin(&sessions, &one).await;
    assert_eq!(
        known(&sessions, &[&first, &second, &another]),
        [true, false, true]
    );
    let theirs = begin(&sessions, &other).await;
    begin(&sessions, &third).await;
    // All are taken: it is one of the peer with most.
    let last = begin(&sessions, &third).await;
    let all = [&first, &another, &theirs, &last];
    assert_eq!(known(&sessions, &all), [false, true, true, true]);
    assert_eq!(admission.taken(Resource::Sessions), 4);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_client_left_while_it_began_has_its_permit_until_it_ends() {
    let (sessions, admission) = (Sessions::new(HOUR), admission(2));
    let peer = admission.peer([10, 0, 0, 1].into());
    let permit = sessions.admit(&peer).await.expect("a permit");
    let beginning = Sessions::handle(with(permit), async {
        let _transport = sessions.create_session().await.expect("a session");
        futures_util::future::pending::<()>().await;
    });
    let mut beginning = Box::pin(beginning);
    while admission.taken(Resource::Sessions) == 0 || lock(&sessions.open).is_empty() {
        assert!(futures_util::FutureExt::now_or_never(&mut beginning).is_none());
        tokio::task::yield_now().await;
    }
    drop(beginning);
    assert_eq!(admission.taken(Resource::Sessions), 1);
    begin(&sessions, &peer).await;
    // It is one that can end for another.
    assert_eq!(lock(&sessions.open).len(), 1);
    tokio::time::advance(HOUR).await;
    sessions.end_idle().await;
    assert_eq!(admission.taken(Resource::Sessions), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_a_stream_does_not_end_for_another() {
    let (sessions, admission) = (Sessions::new(HOUR), admission(2));
    let peer = admission.peer([10, 0, 0, 1].into());
    let id = begin(&sessions, &peer).await;
    let stream = sessions.stream(&id, futures_util::stream::pending());
    assert_eq!(sessions.admit(&peer).await.map(drop), Err(Full::Share));
    drop(stream);
    sessions.admit(&peer).await.expect("its permit");
    assert_eq!(known(&sessions, &[&id]), [false]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_reads_ends_and_its_session_goes_on() {
    let (sessions, peer) = (Sessions::new(HOUR), Peer::unlimited());
    let id = begin(&sessions, &peer).await;
    let (written, messages) = mpsc::channel(1);
    let messages = futures_util::stream::unfold(messages, async |mut messages| {
        let message: ServerSseMessage = messages.recv().await?;
        Some((message, messages))
    });
    let stream = sessions.stream(&id, messages);
    let mut taken = 0;
    while written.send(ServerSseMessage::default()).await.is_ok() {
        taken += 1;
        assert!(taken < 1000, "what nobody reads is kept without a limit");
    }
    let read = stream.collect::<Vec<_>>().await;
    assert_eq!(read.len(), UNREAD);
    assert_eq!(known(&sessions, &[&id]), [true]);
}
