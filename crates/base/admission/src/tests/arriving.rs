//! Bodies and streams as they arrive: how fast, how long, and with how much memory.

use super::*;

/// How a body of which these pieces come, each after some seconds, is taken, and after how
/// many seconds that is known.
async fn arriving(
    peer: &Peer,
    pieces: &[(u64, usize)],
) -> (Result<usize, IntakeError<Infallible>>, u64) {
    let (send, body) = body();
    let pieces = pieces.to_vec();
    let begun = Instant::now();
    tokio::spawn(async move {
        for (seconds, bytes) in pieces {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            if send.send(zeros(bytes)).is_err() {
                return;
            }
        }
        // It neither sends nor ends.
        send.closed().await;
    });
    let read = Intake::collect(peer, body, Length::Bytes(None), 1 << 20);
    let read = in_time(read).await;
    let read = read.map(|body| body.into_bytes().0.len());
    (read, begun.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn nobody_saves_up_for_a_long_silence() {
    let peer = admission().peer(address("10.0.0.1"));
    let cases: [(&[(u64, usize)], u64); 4] = [
        (&[], 10),
        (&[(0, 100 << 10)], 10),
        (&[(5, 60 << 10), (8, 60 << 10)], 23),
        // A byte buys next to nothing.
        (&[(9, 1)], 10),
    ];
    for (pieces, expected) in cases {
        let (read, seconds) = arriving(&peer, pieces).await;
        assert!(matches!(read, Err(IntakeError::Slow { .. })), "{read:?}");
        assert_eq!(seconds, expected, "{pieces:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_least_rate_a_peer_still_has_to_send() {
    let pace = Pace {
        bytes_per_second: 0,
        ..Pace::default()
    };
    let peer = Admission::new(LIMITS, 50, pace).peer(address("10.0.0.1"));
    let (read, seconds) = arriving(&peer, &[(9, 1)]).await;
    assert!(matches!(read, Err(IntakeError::Slow { .. })), "{read:?}");
    assert_eq!(seconds, 11, "a byte is a second then");
}

#[tokio::test(start_paused = true)]
async fn the_time_for_which_a_body_waits_for_memory_is_not_that_of_its_sender() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let memory = peer.try_take(Resource::Requests, 200).expect("its share");
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        drop(memory);
    });
    let (read, seconds) = arriving(&peer, &[(0, 20 << 10), (25, 20 << 10)]).await;
    assert!(matches!(read, Err(IntakeError::Slow { .. })), "{read:?}");
    assert_eq!(seconds, 35, "ten seconds after the last that it sent");
}

/// A body that is there, and how it is taken.
async fn whole(
    peer: &Peer,
    bytes: Bytes,
    length: Length,
    max: usize,
) -> Result<Option<u32>, IntakeError<Infallible>> {
    let body = http_body_util::Full::new(bytes);
    let read = in_time(Intake::collect(peer, body, length, max)).await;
    read.map(|body| body.into_bytes().1.map(|memory| memory.units()))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_there_is_booked_as_it_is_if_it_is_more_than_a_little() {
    let peer = admission().peer(address("10.0.0.1"));
    for (bytes, booked) in [
        (16 << 10, None),
        ((16 << 10) + 1, Some(17)),
        (100 << 10, Some(100)),
    ] {
        for length in [Length::Bytes(None), Length::Bytes(Some(10))] {
            let read = whole(&peer, zeros(bytes), length, 1 << 20).await;
            assert_eq!(read.expect("a body"), booked, "{bytes} {length:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_may_be_as_long_as_the_limit_and_a_message_without_its_prefix() {
    let peer = admission().peer(address("10.0.0.1"));
    let plain = Length::Bytes(None);
    for (bytes, length, max, fits) in [
        (zeros(1000), plain, 1000, true),
        (zeros(1001), plain, 1000, false),
        (message(1000), Length::Message, 1000, true),
        (message(1001), Length::Message, 1000, false),
    ] {
        let read = whole(&peer, bytes, length, max).await;
        let is_too_large = matches!(read, Err(IntakeError::TooLarge { .. }));
        assert_eq!((read.is_ok(), is_too_large), (fits, !fits), "{length:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_says_that_it_is_too_long_is_not_waited_for() {
    let peer = admission().peer(address("10.0.0.1"));
    let (send, body) = body();
    send.send(message(2 << 20).slice(..20 << 10))
        .expect("a reader");
    let read = Intake::collect(&peer, body, Length::Message, 1 << 20);
    let read = read
        .now_or_never()
        .expect("no wait")
        .expect("its beginning");
    assert_eq!(read.into_bytes().0.len(), 20 << 10);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_has_sent_a_part_has_the_memory_for_all_of_it_until_it_is_there() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let (send, body) = body();
    let length = Length::Bytes(None);
    let mut reading = Box::pin(Intake::collect(&peer, body, length, 1 << 20));
    for (bytes, booked) in [((64 << 10) - 1, 64), (1, 200)] {
        send.send(zeros(bytes)).expect("a reader");
        assert!((&mut reading).now_or_never().is_none());
        assert_eq!(admission.taken(Resource::Requests), booked);
    }
    drop(send);
    let read = in_time(reading).await.expect("a body");
    assert_eq!(admission.taken(Resource::Requests), 64, "what it needs");
    drop(read);
    assert_eq!(admission.taken(Resource::Requests), 0);
}

/// Sends these parts of messages, each after some seconds, and says how many bytes a stream
/// that may be silent for five minutes takes of them, and how it ends.
async fn streamed(
    peer: &Peer,
    parts: Vec<(u64, Bytes)>,
) -> (usize, Option<IntakeError<Infallible>>) {
    let (send, body) = body();
    tokio::spawn(async move {
        for (seconds, part) in parts {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            if send.send(part).is_err() {
                return;
            }
        }
    });
    let mut body = Metered::new(peer, body, Some(Duration::from_secs(300)));
    let mut read = 0;
    while let Some(frame) = in_time(body.frame()).await {
        match frame {
            Ok(frame) => read += frame.into_data().map_or(0, |data| data.len()),
            Err(error) => return (read, Some(error)),
        }
    }
    (read, None)
}

#[tokio::test(start_paused = true)]
async fn each_silence_between_two_messages_has_its_own_time() {
    let peer = admission().peer(address("10.0.0.1"));
    let parts = (0..4).map(|_| (200, message(3))).collect();
    let (read, end) = streamed(&peer, parts).await;
    assert!(end.is_none(), "{end:?}");
    assert_eq!(read, 4 * 8);
}

#[tokio::test(start_paused = true)]
async fn a_message_after_a_silence_has_its_time_from_its_first_byte() {
    let peer = admission().peer(address("10.0.0.1"));
    let long = message(4000);
    let (first, rest) = (long.slice(..1000), long.slice(1000..));
    for silence in [0, 200] {
        let parts = vec![
            (silence, first.clone()),
            (9, rest.clone()),
            (silence, first.clone()),
            (9, rest.clone()),
        ];
        let (read, end) = streamed(&peer, parts).await;
        assert!(end.is_none(), "{end:?} after {silence} s");
        assert_eq!(read, 2 * long.len());
    }
    let parts = vec![(200, first), (11, rest)];
    let (read, end) = streamed(&peer, parts).await;
    assert!(matches!(end, Some(IntakeError::Slow { .. })), "{end:?}");
    assert_eq!(read, 1000);
}

#[tokio::test(start_paused = true)]
async fn each_message_of_a_stream_may_wait_for_its_memory() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let holder = peer.clone();
    tokio::spawn(async move {
        for _ in 0..2 {
            let memory = holder.try_take(Resource::Requests, 200);
            let memory = memory.expect("its share");
            tokio::time::sleep(Duration::from_secs(20)).await;
            drop(memory);
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    });
    let long = message(40 << 10);
    let halves = [long.slice(..20 << 10), long.slice(20 << 10..)];
    let parts = vec![
        (1, halves[0].clone()),
        (20, halves[1].clone()),
        (6, halves[0].clone()),
        (20, halves[1].clone()),
    ];
    let (read, end) = streamed(&peer, parts).await;
    assert!(end.is_none(), "{end:?}");
    assert_eq!(read, 2 * long.len());
    assert_eq!(admission.taken(Resource::Requests), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_last_message_waits_for_memory_has_not_ended() {
    let admission = admission();
    let peer = admission.peer(address("10.0.0.1"));
    let memory = peer.try_take(Resource::Requests, 200).expect("its share");
    let last = message(50 << 10).slice(..40 << 10);
    let mut body = Metered::new(&peer, http_body_util::Full::new(last), None);
    assert!(body.frame().now_or_never().is_none());
    assert!(!body.is_end_stream());
    drop(memory);
    let frame = in_time(body.frame()).await.expect("a frame");
    let data = frame.expect("its memory").into_data().expect("data");
    assert_eq!((data.len(), body.is_end_stream()), (40 << 10, true));
}
