//! What every place on the web has to get past.

use std::time::Duration;

use secrecy::SecretString;

use super::*;

async fn error(reply: Reply, change: impl FnOnce(&mut Limits)) -> Error {
    let double = Double::start(move |_| reply.clone()).await;
    let (_folder, mut work) = work();
    change(&mut work.limits);
    let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
    place.look(None, &work).await.expect_err("refused")
}

#[tokio::test]
async fn a_server_that_drips_is_given_up_after_the_time_of_a_look() {
    let error = error(Reply::fine("").drips(), |limits| {
        limits.time = Duration::from_millis(300);
    });
    let error = error.await;
    assert!(
        error.is_transient() && error.to_string().contains("which is the limit"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_is_silent_is_given_up() {
    let error = error(Reply::fine("").silent(), |limits| {
        limits.silence = Duration::from_millis(200);
    });
    let error = error.await;
    assert!(
        error.is_transient() && error.to_string().contains("sent nothing for 0.2 seconds"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let error = error(Reply::fine("{\"skills\": []}").half(), |_| {}).await;
    assert!(
        error.is_transient() && error.to_string().contains("broke off"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_sends_without_end_is_stopped_at_the_limit() {
    let error = error(Reply::fine("").endless(), |limits| limits.bytes = 1 << 20).await;
    assert!(
        matches!(&error, Error::TooLarge(why) if why.contains("1048576")),
        "{error}"
    );
}

#[tokio::test]
async fn what_unpacks_on_the_way_is_counted_unpacked() {
    use std::io::Write as _;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&vec![b' '; 32 << 20]).expect("packed");
    let bomb = packer.finish().expect("a gzip");
    assert!(bomb.len() < 1 << 20);
    let reply = Reply::fine(bomb).header("content-encoding", "gzip");
    let error = error(reply, |limits| limits.bytes = 1 << 20).await;
    assert!(
        matches!(&error, Error::TooLarge(why) if why.contains("1048576")),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_the_limits_say() {
    let again = Reply::new(302, "").header("location", "/again");
    let error = error(again, |limits| limits.redirects = 2).await;
    assert!(
        error.to_string().contains("more than 2 redirects"),
        "{error}"
    );
}

#[tokio::test]
async fn json_that_is_none_or_of_another_form_or_too_deep_is_told() {
    let cut = "{\"skills\": [\n".to_owned();
    let deep = format!("{{\"skills\":{}", "[".repeat(10_000));
    // Closed, it would be JSON of another form.
    let closed = format!(
        "{{\"skills\":{}{}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    for (body, told) in [
        ("<html>".to_owned(), "is no JSON (line 1)"),
        (cut, "ends in the middle (line 2)"),
        ("[]".to_owned(), "is JSON of another form (line 1)"),
        (deep, "is JSON of another form (line 1)"),
        (closed, "is JSON of another form (line 1)"),
    ] {
        let double = Double::start(move |_| Reply::fine(body.clone())).await;
        let (_folder, work) = work();
        let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
        let error = place.look(None, &work).await.expect_err("no index");
        let index = format!("{}/.well-known/agent-skills/index.json", double.url);
        let expected = format!("what {index} answers {told}");
        assert!(
            matches!(&error, Error::Unavailable(why) if *why == expected),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_says_no_is_told_with_its_address_and_without_secrets() {
    for (status, is_transient) in [
        (401, false),
        (403, false),
        (418, false),
        (500, true),
        (502, true),
    ] {
        let double = Double::start(move |_| Reply::new(status, "no")).await;
        let (_folder, work) = work();
        let token = SecretString::from("very-secret");
        let place = WellKnown::new(&double.url, Some(&token), loopback()).expect("a place");
        let error = place.look(None, &work).await.expect_err("refused");
        assert_eq!(error.is_transient(), is_transient, "{error}");
        let text = format!("{error} {error:?} {place:?}");
        assert!(
            text.contains(&double.url) && !text.contains("very-secret"),
            "{text}"
        );
        let asked = double.asked();
        assert_eq!(asked[0].header("authorization"), Some("Bearer very-secret"));
    }
}

#[tokio::test]
async fn whoever_asks_for_a_pause_gets_it() {
    let soon = Reply::new(429, "").header("retry-after", 7_u64);
    let error = error(soon, |_| {}).await;
    assert!(matches!(error, Error::RateLimited { after, limit: None } if after.as_secs() == 7));

    let date = Reply::new(503, "")
        .header("date", "Wed, 25 Nov 2026 12:00:00 GMT")
        .header("retry-after", "Wed, 25 Nov 2026 12:01:30 GMT");
    let error = super::requests::error(date, |_| {}).await;
    assert!(
        matches!(error, Error::RateLimited { after, .. } if after.as_secs() == 90),
        "{error:?}"
    );
}

#[tokio::test]
async fn private_addresses_are_refused_as_they_are_and_by_redirect() {
    let (_folder, work) = work();
    for address in [
        "http://127.0.0.1:9/",
        "http://169.254.169.254/",
        "http://[::1]/",
        "http://0x7f000001/",
    ] {
        let place = WellKnown::new(address, None, Egress::public()).expect("a place");
        let error = place.look(None, &work).await.expect_err("refused");
        assert!(matches!(error, Error::Address { .. }), "{error}");
    }
    // By name, as the machine resolves it.
    let place = WellKnown::new("http://localhost:9/", None, Egress::public()).expect("a place");
    let error = place.look(None, &work).await.expect_err("refused");
    assert!(
        matches!(&error, Error::Address { address, .. } if address == "localhost"),
        "{error}"
    );

    let to = Reply::new(302, "").header("location", "http://169.254.169.254/latest/meta-data");
    let error = super::requests::error(to, |_| {}).await;
    let expected =
        "`169.254.169.254` is the address of a cloud's metadata, which this server may not call";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_look_that_nobody_wants_ends() {
    let double = Double::start(|_| Reply::fine("").silent()).await;
    let (_folder, work) = work();
    let place = WellKnown::new(&double.url, None, loopback()).expect("a place");
    work.stop.cancel();
    let error = place.look(None, &work).await.expect_err("stopped");
    assert!(matches!(error, Error::Stopped), "{error}");
}

#[test]
fn an_address_that_is_none_or_holds_a_secret_is_refused() {
    for address in [
        "",
        "skills.example.com",
        "file:///etc",
        "ftp://example.com/",
        "https://u:secret@example.com/",
        "https://example.com/?token=secret",
    ] {
        let error = WellKnown::new(address, None, Egress::public()).expect_err(address);
        let text = error.to_string();
        assert!(
            matches!(error, Error::Invalid(_)) && !text.contains("secret"),
            "{text}"
        );
    }
}
