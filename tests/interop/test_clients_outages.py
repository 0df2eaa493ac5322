"""What the clients do where a server goes, refuses, or is not there."""

import contextlib
import json
import socket
import threading

import harness
from drivers import LANGUAGES, SKILLS, Driver, counted, drive, each_language, publish, wait_for
from harness import CALL_SECONDS
from repertoire.v1 import registry_pb2


@each_language
def test_clients_watch_over_a_kill_without_loss_or_repeat(start, port, tmp_path, language):
    listen = f"127.0.0.1:{port}"
    server = start(data=tmp_path / "data", listen=listen).ready()
    with Driver(language, server.address, "watch") as driver:
        assert driver.next()["resume_token"] != ""
        publish(server, "first")
        seen = [driver.next()]
        token = seen[0]["resume_token"]
        server.kill()
        server = start(data=tmp_path / "data", listen=listen).ready()
        # While the client waits for its next attempt, or after it.
        publish(server, "second")
        seen.append(driver.next(harness.START_SECONDS))
        publish(server, "third")
        seen.append(driver.next())
        # A graceful stop as well.
        assert server.stop() == 0
        server = start(data=tmp_path / "data", listen=listen).ready()
        publish(server, "fourth")
        seen.append(driver.next(harness.START_SECONDS))
    names = [event["skill_id"].rsplit("/", 1)[1] for event in seen]
    assert names == ["first", "second", "third", "fourth"]
    # Another process goes on where this one was.
    with Driver(language, server.address, "watch", token) as driver:
        assert driver.next() == {"resume_token": token}
        assert [driver.next() for _ in range(3)] == seen[1:]


@each_language
def test_clients_end_a_watch_that_cannot_go_on_with_an_error(server, start, port, tmp_path, language):
    status, listen = LANGUAGES[language][2], f"127.0.0.1:{port}"
    other = start(data=tmp_path / "other", listen=listen).ready()
    with Driver(language, other.address, "watch") as driver:
        token = driver.next()["resume_token"]
    (told,) = drive(language, server.address, "watch", token)
    assert (told["code"], told["kind"], told["status"]) == ("RESUME_TOKEN_EXPIRED", "refused", status("OUT_OF_RANGE"))
    # The same where it goes on for the client: its server comes back with another log.
    with Driver(language, other.address, "watch") as driver:
        driver.next()
        other.kill()
        other = start(data=tmp_path / "anew", listen=listen).ready()
        assert driver.next(harness.START_SECONDS)["code"] == "RESUME_TOKEN_EXPIRED"


class Relay:
    """A port that leads to a server; without one it ends each connection at once."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self.listener.getsockname())
        self.target = None
        # Somebody came while there was no server.
        self.came = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.target is None:
                client.close()
                self.came.set()
                continue
            host, port = self.target.split(":")
            server = socket.create_connection((host, int(port)))
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=ends, daemon=True).start()

    @staticmethod
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Closed alone, it would not wake who accepts.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@each_language
def test_clients_repeat_calls_until_there_is_a_server_again(start, tmp_path, language):
    servers = [start(data=tmp_path / name).ready() for name in ("first", "second", "third")]
    with Relay() as relay, Driver(language, relay.address, "repeat") as driver:
        relay.target = servers[0].address
        driver.next()
        for server, after, end in zip(servers, servers[1:], ["kill", "stop"]):
            relay.target = None
            relay.came.clear()
            getattr(server, end)()
            assert relay.came.wait(CALL_SECONDS), driver.said()
            relay.target = after.address
            wait_for(lambda: counted(after, "Search", "OK") > 1, lambda: f"no search came: {driver.said()}")
        told = [json.loads(line) for line in driver.lines.seen]
    assert all(list(line) == ["seconds"] for line in told), told[-1]


@each_language
def test_clients_wait_where_the_server_has_too_much_to_do(start, tmp_path, language):
    config = tmp_path / "repertoire.yaml"
    config.write_text("limits: {streams: 1, wait_seconds: 0, share_percent: 100}\n")
    server = start("--config", str(config)).ready()
    only = server.registry().Watch(registry_pb2.WatchRequest())
    next(only)
    with Driver(language, server.address, "watch") as driver:
        wait_for(lambda: counted(server, "Watch", "ResourceExhausted") > 0, "nobody was refused")
        only.cancel()
        assert driver.next()["resume_token"] != ""


@each_language
def test_clients_call_a_tool_once(start, tmp_path, language):
    server = start().ready()
    drive(language, server.address, "publish", SKILLS / "skills" / "text_stats", "examples/text/text_stats")
    # That nobody runs it looks like that somebody did who then went away.
    (told,) = drive(language, server.address, "call", "text_stats", "text_count_words")
    assert (told["code"], told["kind"]) == ("TOOL_UNAVAILABLE", "unavailable")
    assert counted(server, "CallTool", "Unavailable") == 1


@each_language
def test_clients_say_that_no_server_is_there(port, language):
    (told,) = drive(language, f"127.0.0.1:{port}", "search", "anything")
    assert (told["code"], told["kind"]) == ("SERVER_UNREACHABLE", "unavailable")
    assert told["next"] == ["Check that the server is running and that its address is right"]
