mod arriving;
mod limits;

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use tokio::sync::mpsc;

use super::*;

const LIMITS: Amounts = Amounts {
    connections: 10,
    handshakes: 2,
    calls: 4,
    streams: 1,
    workers: 4,
    sessions: 3,
    request_kib: 400,
    answer_kib: 100,
};

fn admission() -> Admission {
    Admission::new(LIMITS, 50, Pace::default())
}

/// Ends by itself: where nothing else happens, time that stands still goes on.
async fn in_time<F: Future>(work: F) -> F::Output {
    let hour = Duration::from_secs(3600);
    let done = tokio::time::timeout(hour, work).await;
    done.expect("it waits for ever")
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn an_address_has_its_share_and_others_have_the_rest() {
    let admission = admission();
    let (one, other) = (
        admission.peer(address("10.0.0.1")),
        admission.peer(address("10.0.0.2")),
    );
    let take = |peer: &Peer| peer.try_take(Resource::Calls, 1);
    let mine = [take(&one), take(&one)].map(|permit| permit.expect("its share"));
    assert_eq!(take(&one).map(drop), Err(Full::Share));
    let theirs = [take(&other), take(&other)].map(|permit| permit.expect("its share"));
    let third = admission.peer(address("10.0.0.3"));
    assert_eq!(take(&third).map(drop), Err(Full::All));
    assert_eq!(admission.taken(Resource::Calls), 4);
    drop(mine);
    take(&third).expect("a permit again");
    drop(theirs);
    assert_eq!(admission.taken(Resource::Calls), 0);
}

#[test]
fn a_caller_has_its_share_wherever_it_calls_from_and_behind_a_proxy_nobody_else_has_one() {
    let admission = admission().by_caller();
    let take = |peer: &Peer| peer.try_take(Resource::Calls, 1);
    let ada = [admission.caller("token:ada"), admission.caller("token:ada")];
    let permits = ada.each_ref().map(|peer| take(peer).expect("its share"));
    assert_eq!(take(&ada[0]).map(drop), Err(Full::Share));
    let proxy = admission.peer(address("10.0.0.1"));
    let names = [&ada[0], &proxy, &admission.local()].map(Peer::name);
    assert_eq!(
        names,
        [
            Some("token:ada".to_owned()),
            Some("10.0.0.1".to_owned()),
            None
        ]
    );
    let all = [take(&proxy), take(&admission.caller("token:bob"))];
    let all = all.map(|permit| permit.expect("of the rest"));
    drop(permits);
    let rest = [take(&proxy), take(&proxy)].map(|permit| permit.expect("more than a share"));
    assert_eq!(take(&proxy).map(drop), Err(Full::All));
    drop((all, rest, proxy, ada));
    assert_eq!(admission.peer_count(), 0);
}

#[test]
fn a_share_is_at_least_one_and_workers_have_no_share() {
    let admission = admission();
    let shares = Resource::ALL.map(|resource| admission.share(resource));
    assert_eq!(shares, [5, 1, 2, 1, 4, 2, 200, 50]);
}

#[test]
fn what_runs_in_the_process_has_no_share() {
    let local = admission().local();
    let permits: Vec<_> = (0..4).map(|_| local.try_take(Resource::Calls, 1)).collect();
    assert!(permits.iter().all(Result::is_ok));
    assert_eq!(local.try_take(Resource::Calls, 1).map(drop), Err(Full::All));
}

#[test]
fn a_network_of_64_bits_is_one_peer_and_so_is_a_mapped_address() {
    let admission = admission();
    let peer = |text: &str| admission.peer(address(text));
    assert!(peer("2001:db8::1").is(&peer("2001:db8::2")) || admission.peer_count() == 0);
    let (first, second) = (peer("2001:db8:0:1::1"), peer("2001:db8:0:1:ffff::2"));
    assert!(first.is(&second));
    assert!(!first.is(&peer("2001:db8:0:2::1")));
    let (plain, mapped) = (peer("10.0.0.1"), peer("::ffff:10.0.0.1"));
    assert!(plain.is(&mapped));
    assert!(!peer("::1").is(&peer("::2")));
}

#[test]
fn a_peer_is_forgotten_with_the_last_that_it_has() {
    let admission = admission();
    let permit = admission
        .peer(address("10.0.0.1"))
        .try_take(Resource::Sessions, 1)
        .expect("a session");
    assert_eq!(admission.peer_count(), 1);
    assert_eq!(
        admission
            .peer(address("10.0.0.1"))
            .try_take(Resource::Sessions, 2)
            .map(drop),
        Err(Full::Share)
    );
    drop(permit);
    assert_eq!(admission.peer_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_what_another_gives_back_and_more_than_there_is_never() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let mut first = peer.try_take(Resource::Answers, 50).expect("a share");
    assert_eq!(
        peer.take(Resource::Answers, 51).await.map(drop),
        Err(Full::Share)
    );
    let mut waits = Box::pin(peer.take(Resource::Answers, 20));
    assert!((&mut waits).now_or_never().is_none());
    first.shrink_to(30);
    let second = in_time(waits).await.expect("what was given back");
    assert_eq!((first.units(), second.units()), (30, 20));
    assert_eq!(admission.taken(Resource::Answers), 50);
    // Who gives up waiting holds nothing.
    let waits = Box::pin(peer.take(Resource::Answers, 1)).now_or_never();
    assert!(waits.is_none());
    drop((first, second));
    assert_eq!(admission.taken(Resource::Answers), 0);
}

type Sender = mpsc::UnboundedSender<Bytes>;

/// A body that a test sends piece by piece.
fn body() -> (Sender, impl Body<Data = Bytes, Error = Infallible> + Unpin) {
    let (send, pieces) = mpsc::unbounded_channel();
    let pieces = stream::unfold(
        pieces,
        async |mut pieces: mpsc::UnboundedReceiver<Bytes>| {
            let piece: Bytes = pieces.recv().await?;
            Some((Ok(Frame::data(piece)), pieces))
        },
    );
    (send, StreamBody::new(Box::pin(pieces)))
}

fn zeros(bytes: usize) -> Bytes {
    vec![0; bytes].into()
}

/// A message of gRPC with its prefix.
fn message(bytes: u32) -> Bytes {
    let mut message = vec![0];
    message.extend(bytes.to_be_bytes());
    message.resize(message.len() + bytes as usize, 7);
    message.into()
}

#[tokio::test(start_paused = true)]
async fn a_body_is_booked_by_what_has_arrived_and_not_by_what_it_says() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let (send, body) = body();
    let length = Length::Bytes(Some(150 << 10));
    let mut reading = Box::pin(Intake::collect(&peer, body, length, 1 << 20));
    let taken = |read: Option<Result<Collected, IntakeError<Infallible>>>| {
        assert!(read.is_none(), "it is not whole");
        admission.taken(Resource::Requests)
    };
    let nothing = taken((&mut reading).now_or_never());
    assert_eq!(nothing, 1);
    send.send(zeros(10 << 10)).expect("a reader");
    assert_eq!(taken((&mut reading).now_or_never()), 10);
    send.send(zeros(60 << 10)).expect("a reader");
    let proven = taken((&mut reading).now_or_never());
    assert_eq!(proven, 150, "it has shown that it sends");
    send.send(zeros(80 << 10)).expect("a reader");
    drop(send);
    let (bytes, memory) = reading.await.expect("a body").into_bytes();
    assert_eq!(bytes.len(), 150 << 10);
    assert_eq!(admission.taken(Resource::Requests), 150);
    drop(memory);
    assert_eq!(admission.taken(Resource::Requests), 0);
}

#[tokio::test(start_paused = true)]
async fn a_small_body_that_is_there_takes_no_permit() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let body = http_body_util::Full::new(message(1000));
    let read = Intake::collect(&peer, body, Length::Message, 1 << 20).await;
    let (body, memory) = read.expect("a body").into_body();
    assert!(memory.is_none());
    assert_eq!(
        body.collect().await.expect("a body").to_bytes(),
        message(1000)
    );
}

#[tokio::test(start_paused = true)]
async fn who_sends_too_slowly_is_let_go_and_who_keeps_the_rate_is_not() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    for (bytes, seconds, slow) in [(2048, 1, false), (2048, 3, true), (1, 1, true)] {
        let (send, body) = body();
        let sender = tokio::spawn(async move {
            for _ in 0..60 {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                if send.send(zeros(bytes)).is_err() {
                    return;
                }
            }
        });
        let started = tokio::time::Instant::now();
        let read = Intake::collect(&peer, body, Length::Bytes(None), 1 << 20).await;
        match read.map(drop) {
            Ok(()) => assert!(!slow, "{bytes} bytes in {seconds} s were accepted"),
            Err(IntakeError::Slow { .. }) => assert!(slow, "{bytes} bytes in {seconds} s"),
            Err(error) => panic!("{error}"),
        }
        assert!(!slow || started.elapsed() < Duration::from_secs(40));
        sender.await.expect("the sender");
        assert_eq!(admission.taken(Resource::Requests), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_without_a_permit_wait_for_it_and_are_refused_after_their_time() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let first = peer.try_take(Resource::Requests, 120).expect("a permit");
    let read = |bytes: u32| {
        let body = http_body_util::Full::new(message(bytes << 10));
        let split = http_body_util::BodyExt::into_data_stream(body);
        let pieces = futures_util::StreamExt::flat_map(split, |whole| {
            let whole: Bytes = whole.expect("bytes");
            let pieces: Vec<_> = whole.chunks(8192).map(Bytes::copy_from_slice).collect();
            stream::iter(
                pieces
                    .into_iter()
                    .map(|piece| Ok::<_, Infallible>(Frame::data(piece))),
            )
        });
        let peer = peer.clone();
        async move { Intake::collect(&peer, StreamBody::new(pieces), Length::Message, 1 << 20).await }
    };
    let refused = read(100).await.expect_err("no permit");
    assert!(
        matches!(refused, IntakeError::Full(Full::Share)),
        "{refused}"
    );
    let mut waits = Box::pin(read(100));
    assert!((&mut waits).now_or_never().is_none());
    drop(first);
    waits.await.expect("a permit");
    let refused = read(300).await.expect_err("more than a share");
    assert!(
        matches!(refused, IntakeError::Full(Full::Share)),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_beginning_of_a_body_waits_for_a_permit_and_is_refused_after_its_time() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let first = peer.try_take(Resource::Requests, 200).expect("its share");
    let (_send, silent) = body();
    let refused = Intake::collect(&peer, silent, Length::Message, 1 << 20).await;
    let refused = refused.expect_err("no permit");
    assert!(
        matches!(refused, IntakeError::Full(Full::Share)),
        "{refused}"
    );
    let (send, begun) = body();
    send.send(message(2048).slice(..1000)).expect("a reader");
    let mut waits = Box::pin(Intake::collect(&peer, begun, Length::Message, 1 << 20));
    assert!((&mut waits).now_or_never().is_none());
    drop(first);
    assert!((&mut waits).now_or_never().is_none());
    assert_eq!(admission.taken(Resource::Requests), 1);
    send.send(message(2048).slice(1000..)).expect("a reader");
    drop(send);
    let (bytes, _memory) = waits.await.expect("a body").into_bytes();
    assert_eq!(bytes, message(2048));
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_messages_is_booked_message_by_message_and_may_rest_between_them() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let (send, body) = body();
    let mut body = Metered::new(&peer, body, None);
    let long = message(100 << 10);
    send.send([message(3), long.slice(..50 << 10)].concat().into())
        .expect("a reader");
    body.frame().await.expect("a frame").expect("data");
    assert_eq!(admission.taken(Resource::Requests), 50);
    send.send([&long[50 << 10..], &[0, 0]].concat().into())
        .expect("a reader");
    body.frame().await.expect("a frame").expect("data");
    assert_eq!(admission.taken(Resource::Requests), 0);
    // Two bytes of the next message are there, and then nothing.
    let slow = in_time(body.frame())
        .await
        .expect("an end")
        .expect_err("too slow");
    assert!(matches!(slow, IntakeError::Slow { .. }), "{slow}");
    let (send, body) = super::tests::body();
    let mut body = Metered::new(&peer, body, Some(Duration::from_secs(300)));
    send.send(message(3)).expect("a reader");
    body.frame().await.expect("a frame").expect("data");
    let rest = tokio::time::timeout(Duration::from_secs(299), body.frame()).await;
    assert!(rest.is_err(), "between two messages there is no hurry");
    let idle = in_time(body.frame())
        .await
        .expect("an end")
        .expect_err("too long");
    assert!(matches!(idle, IntakeError::Idle { .. }), "{idle}");
}

#[tokio::test(start_paused = true)]
async fn bodies_of_unknown_length_do_not_wait_for_one_another() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let read = |pieces: usize| {
        let (send, body) = body();
        for _ in 0..pieces {
            send.send(zeros(16 << 10)).expect("a reader");
        }
        let peer = peer.clone();
        async move {
            let read = Intake::collect(&peer, body, Length::Bytes(None), 1 << 20).await;
            read.map(|body| body.into_bytes().0.len())
        }
    };
    // Two of 144 KiB in a share of 200.
    let (one, other) = tokio::join!(read(9), read(9));
    assert_eq!(one.expect("a body"), 144 << 10);
    assert_eq!(other.expect("a body"), 144 << 10);
    assert_eq!(admission.taken(Resource::Requests), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_waits_for_its_bytes_has_the_permit_of_a_call() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let memory = peer.try_take(Resource::Requests, 200).expect("its share");
    let read = || {
        let (send, body) = body();
        send.send(zeros(20 << 10)).expect("a reader");
        let peer = peer.clone();
        async move { Intake::collect(&peer, body, Length::Bytes(None), 1 << 20).await }
    };
    let mut waiting = [Box::pin(read()), Box::pin(read())];
    for body in &mut waiting {
        assert!(body.now_or_never().is_none());
    }
    assert_eq!(admission.taken(Resource::Calls), 2);
    let refused = read().now_or_never().expect("at once");
    let refused = refused.expect_err("a peer has two calls");
    assert!(matches!(refused, IntakeError::Full(Full::Share)));
    drop(memory);
    for body in waiting {
        body.await.expect("a body");
    }
    assert_eq!(admission.taken(Resource::Calls), 0);
}

#[tokio::test(start_paused = true)]
async fn all_waits_of_a_body_together_take_no_longer_than_one_may() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let started = tokio::time::Instant::now();
    let mut memory = peer.try_take(Resource::Requests, 200).expect("its share");
    let (send, body) = body();
    send.send(zeros(20 << 10)).expect("a reader");
    let reading = tokio::spawn({
        let peer = peer.clone();
        async move { Intake::collect(&peer, body, Length::Bytes(None), 1 << 20).await }
    });
    let wait = Pace::default().wait;
    tokio::time::sleep(wait / 2).await;
    memory.shrink_to(180);
    tokio::task::yield_now().await;
    send.send(zeros(20 << 10)).expect("a reader");
    let refused = reading.await.expect("a task").expect_err("no permit");
    assert!(matches!(refused, IntakeError::Full(Full::Share)));
    assert_eq!(started.elapsed().as_secs(), wait.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_messages_waits_for_a_permit_and_goes_on() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let long = message(100 << 10);
    for begun in [long.slice(..50 << 10), long.slice(..3)] {
        let memory = peer.try_take(Resource::Requests, 200).expect("its share");
        let (send, body) = body();
        let mut body = Metered::new(&peer, body, None);
        send.send(begun.clone()).expect("a reader");
        send.send(long.slice(begun.len()..60 << 10))
            .expect("a reader");
        send.send(long.slice(60 << 10..)).expect("a reader");
        drop(send);
        let first = body.frame().now_or_never();
        assert_eq!(first.is_none(), begun.len() > 3, "a little needs no permit");
        let read = async {
            let mut read = first.map_or(0, |frame| {
                let frame = frame.expect("a frame").expect("data");
                frame.into_data().expect("data").len()
            });
            while let Some(frame) = body.frame().await {
                read += frame.expect("data").into_data().expect("data").len();
            }
            read
        };
        let mut read = Box::pin(read);
        assert!((&mut read).now_or_never().is_none());
        drop(memory);
        assert_eq!(read.await, long.len());
        assert_eq!(admission.taken(Resource::Requests), 0);
    }
    let _memory = peer.try_take(Resource::Requests, 200).expect("its share");
    let (send, body) = body();
    let mut body = Metered::new(&peer, body, None);
    send.send(long.slice(..50 << 10)).expect("a reader");
    let refused = body.frame().await.expect("an end").expect_err("no permit");
    assert!(matches!(refused, IntakeError::Full(Full::Share)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_has_its_permit_before_it_is_made_and_no_more_than_it_needs_after() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1")).for_call();
    let taken = || admission.taken(Resource::Answers);
    with_reader(peer.clone(), async {
        reserve(1000).await.expect("a little");
        assert_eq!(taken(), 0);
        // A share of answers is 50 KiB here: what is longer has all of it.
        reserve(1 << 20).await.expect("its share");
        assert_eq!(taken(), 50);
        reserve(1 << 20).await.expect("one after the other");
        assert_eq!(taken(), 50);
    })
    .await;
    let memory = peer.reserve(20).await.expect("less than it had");
    assert_eq!((memory.units(), taken()), (20, 20));
    let another = peer.for_call();
    let waits = with_reader(another.clone(), reserve(1 << 20));
    let mut waits = Box::pin(waits);
    assert!((&mut waits).now_or_never().is_none());
    drop(memory);
    waits.await.expect("its share");
    let longer = another.reserve(60).now_or_never().expect("no wait");
    assert_eq!(longer.map(drop), Err(Full::Share));
    assert_eq!(taken(), 0);
    reserve(1 << 20).await.expect("nobody reads it");
    assert_eq!(taken(), 0);
}
