//! How long a request may take. Each test has one timeout that is far shorter than the others.

use tokio::time::Instant;

use super::*;

/// A timeout that none of these tests comes to.
const FAR: Duration = Duration::from_secs(1_000_000);

/// The addresses of a name, which are never found.
#[derive(Debug)]
struct Never;

impl Lookup for Never {
    fn lookup(&self, _: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

fn waiting(connect: Duration, silence: Duration, total: Duration) -> Client {
    let timeouts = Timeouts {
        connect,
        silence,
        total,
    };
    let egress = Egress::permitting(&["127.0.0.1"]).expect("networks");
    Client::with_lookup(egress, timeouts, 3, Arc::new(Never)).expect("a client")
}

/// What something comes to, and after how many seconds of a clock that goes on where all wait.
async fn timed<T>(future: impl Future<Output = T>) -> (T, u64) {
    let start = Instant::now();
    let done = tokio::time::timeout(FAR / 2, future).await;
    let done = done.expect("an end that a timeout of the client makes");
    (done, start.elapsed().as_secs())
}

/// Why there is no answer, and after how many seconds.
async fn failed(client: &Client, url: &str) -> (String, u64) {
    let (answer, seconds) = timed(get(client, url)).await;
    (answer.expect_err("no answer").to_string(), seconds)
}

/// A server that takes requests and says nothing, and its address.
async fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, format!("http://{address}/"))
}

/// An answer that was half read when its server fell silent. From then on the clock goes on where
/// all wait.
async fn half_read(client: &Client) -> (reqwest::Response, tokio::net::TcpStream) {
    let (listener, url) = silent().await;
    let serve = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut asked = vec![0; 8192];
        let read = stream.read(&mut asked).await.expect("a request");
        assert!(read > 0, "a request");
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no";
        stream.write_all(half).await.expect("written");
        stream
    };
    let both = async { tokio::join!(get(client, &url), serve) };
    let both = tokio::time::timeout(Duration::from_secs(60), both).await;
    let (answer, stream) = both.expect("half of an answer");
    let mut response = answer.expect("an answer").response;
    let first = response.chunk().await.expect("a part");
    assert_eq!(first.as_deref(), Some(&b"o"[..]));
    tokio::time::pause();
    (response, stream)
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_come_about_in_time_fails_the_request() {
    let client = waiting(Duration::from_secs(5), FAR, FAR);
    let failed = failed(&client, "http://never.example/").await;
    assert_eq!(failed, ("it took too long".to_owned(), 5));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_too_long_fails_the_request() {
    let (_listener, url) = silent().await;
    let client = waiting(FAR, Duration::from_secs(7), FAR);
    let failed = failed(&client, &url).await;
    assert_eq!(failed, ("it took too long".to_owned(), 7));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_as_a_whole_fails() {
    let (_listener, url) = silent().await;
    let client = waiting(FAR, FAR, Duration::from_secs(9));
    let failed = failed(&client, &url).await;
    assert_eq!(failed, ("it took too long".to_owned(), 9));
}

#[tokio::test]
async fn a_server_that_is_silent_in_the_middle_of_its_answer_breaks_it_off() {
    let client = waiting(FAR, Duration::from_secs(600), FAR);
    let (mut response, _stream) = half_read(&client).await;
    let (rest, seconds) = timed(response.chunk()).await;
    let error = rest.expect_err("no rest");
    // Less what a busy machine took for the first half, before time stood still.
    assert!(error.is_timeout(), "{error:?}");
    assert!((540..=600).contains(&seconds), "{seconds} s");
}

#[tokio::test]
async fn the_time_of_a_request_is_that_of_its_answer_as_well() {
    let client = waiting(FAR, FAR, Duration::from_secs(600));
    let (mut response, _stream) = half_read(&client).await;
    let (rest, seconds) = timed(response.chunk()).await;
    let error = rest.expect_err("no rest");
    // It began before the clock stood still.
    assert!(
        error.is_timeout() && seconds <= 600,
        "{seconds} s: {error:?}"
    );
}
