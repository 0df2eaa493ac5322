//! Sessions that begin, end, and belong to somebody.

use super::*;
use admission::{Admission, Amounts, Pace};
use futures_util::FutureExt as _;
use serde_json::json;

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

/// Does what is done within a second and a half. What goes on for longer fails, also where it
/// never waits.
async fn soon<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    for _ in 0..1_500 {
        if let Some(done) = work.as_mut().now_or_never() {
            return done;
        }
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    panic!("it is not done in its time");
}

async fn begin(sessions: &Sessions, peer: &Peer) -> SessionId {
    let permit = soon(sessions.admit(peer)).await.expect("a permit");
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
        assert!(beginning.as_mut().now_or_never().is_none());
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
    soon(sessions.admit(&peer)).await.expect("its permit");
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
    assert_eq!(read.len(), MAX_UNREAD_MESSAGES);
    assert_eq!(known(&sessions, &[&id]), [true]);
}

#[tokio::test(start_paused = true)]
async fn a_peer_at_its_share_gives_up_a_session_of_its_own_and_of_nobody_else() {
    let amounts = Amounts {
        sessions: 5,
        ..Amounts::UNLIMITED
    };
    // Two for one peer; the local one has no share.
    let admission = Admission::new(amounts, 40, Pace::default());
    let (local, one) = (admission.local(), admission.peer([10, 0, 0, 1].into()));
    let sessions = Sessions::new(HOUR);
    let mut begun = Vec::new();
    for peer in [&local, &local, &local, &one, &one, &one] {
        begun.push(begin(&sessions, peer).await);
    }
    let begun: Vec<_> = begun.iter().collect();
    let expected = [true, true, true, false, true, true];
    assert_eq!(known(&sessions, &begun), expected);
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_looked_for_once_a_minute_at_least_and_once_a_second_at_most() {
    let second = Duration::from_secs(1);
    // How long a session lives; for how long it is there after its client was heard of last, and
    // how much later it is gone.
    for (idle, there, later) in [
        (HOUR, 3_599 * second, 62 * second),
        (2 * second, second * 5 / 2, second / 2),
    ] {
        let sessions = Arc::new(Sessions::new(idle));
        let stop = CancellationToken::new();
        let id = begin(&sessions, &Peer::unlimited()).await;
        let sweeping = tokio::spawn(Arc::clone(&sessions).sweep(stop.clone()));
        // Not at one of the times at which it is looked at.
        tokio::time::sleep(second / 4).await;
        sessions.has_session(&id).await.expect("an answer");
        tokio::time::sleep(there).await;
        assert_eq!(known(&sessions, &[&id]), [true], "{idle:?}");
        tokio::time::sleep(later).await;
        assert_eq!(known(&sessions, &[&id]), [false], "{idle:?}");
        stop.cancel();
        let stopped = tokio::time::timeout(second / 2, sweeping).await;
        stopped.expect("at once").expect("stopped");
    }
}

fn message(message: serde_json::Value) -> ClientJsonRpcMessage {
    serde_json::from_value(message).expect("a message")
}

/// A session that takes nothing in any more: its worker waits for its handler, and what its
/// client has sent since then fills the place there is for it.
async fn stuck(
    sessions: &Sessions,
    peer: &Peer,
) -> (SessionId, <Sessions as SessionManager>::Transport) {
    let permit = soon(sessions.admit(peer)).await.expect("a permit");
    let begun = Sessions::handle(with(permit), sessions.create_session());
    let (id, transport) = begun.await.expect("a session");
    let client = json!({"name": "a", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let first = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let mut first = Box::pin(sessions.initialize_session(&id, message(first)));
    for _ in 0..10 {
        assert!(first.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    drop(first);
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    for _ in 0..1000 {
        let sent = sessions.accept_message(&id, message(ping.clone()));
        if sent.now_or_never().is_none() {
            return (id, transport);
        }
        tokio::task::yield_now().await;
    }
    panic!("it takes in what nobody handles, without a limit");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_does_not_end_holds_up_another_one_for_a_second() {
    let (sessions, admission) = (Sessions::new(HOUR), admission(2));
    let peer = admission.peer([10, 0, 0, 1].into());
    let (id, _transport) = stuck(&sessions, &peer).await;
    soon(sessions.admit(&peer)).await.expect("its permit");
    assert_eq!(known(&sessions, &[&id]), [false]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_heard_of_while_others_end_keeps_its_session() {
    let (sessions, peer) = (Sessions::new(HOUR), Peer::unlimited());
    let (one, _first) = stuck(&sessions, &peer).await;
    let (other, _second) = stuck(&sessions, &peer).await;
    tokio::time::advance(HOUR).await;
    let mut ending = Box::pin(sessions.end_idle());
    // The first of them takes its time; of the other one its client is heard meanwhile.
    assert!(ending.as_mut().now_or_never().is_none());
    for id in [&one, &other] {
        sessions.has_session(id).await.expect("an answer");
    }
    let ended = tokio::time::timeout(Duration::from_secs(5), ending).await;
    ended.expect("in its time");
    assert_eq!(lock(&sessions.open).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_client_has_left_ends_although_nothing_is_sent() {
    let (sessions, peer) = (Sessions::new(HOUR), Peer::unlimited());
    let id = begin(&sessions, &peer).await;
    let (written, messages) = mpsc::channel::<ServerSseMessage>(1);
    let messages = futures_util::stream::unfold(messages, async |mut messages| {
        let message = messages.recv().await?;
        Some((message, messages))
    });
    drop(sessions.stream(&id, messages));
    let ended = tokio::time::timeout(Duration::from_secs(1), written.closed()).await;
    ended.expect("the session's end of the stream is gone");
}
