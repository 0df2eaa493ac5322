"""The image of the server: packed as `deploy/image` packs it, and run by podman without a network, without rights, on a
root that nobody can write."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import need
from harness import BIN

TOP = Path(__file__).parents[2]
SECONDS = 240
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(SECONDS)]
PODMAN = shutil.which("podman") or "/usr/bin/podman"
PROGRAM = "/usr/bin/repertoire"
# It takes every kind of cgroups; where it is missing, podman takes what there is.
RUNTIME = ["--runtime", "runc"] if shutil.which("runc", path=f"{os.environ['PATH']}:/usr/sbin") else []


class Podman:
    """podman with storage of its own, on any machine: without systemd, without limits that it may not raise."""

    def __init__(self, folder, run):
        self.options = ["--root", str(folder / "storage"), "--runroot", run, "--storage-driver", "vfs"]
        self.engine = ["--cgroup-manager", "cgroupfs", *RUNTIME]

    def __call__(self, *words, code=0):
        done = subprocess.run(
            [PODMAN, *self.options, *self.engine, *words], capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, (words, done)
        return done.stdout.strip() if code == 0 else done.stderr

    def build(self, tag, binary):
        environment = os.environ | {
            "ENGINE": PODMAN, "ENGINE_OPTIONS": " ".join(self.options), "BUILDAH_ISOLATION": "chroot", "REPERTOIRE_BIN": str(binary),
        }
        done = subprocess.run(
            [TOP / "deploy" / "image", tag], env=environment, capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, done
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def podman(tmp_path_factory):
    need(PODMAN, "podman")
    folder = tmp_path_factory.mktemp("podman")
    # It takes 50 characters at most, which the folders of tests have before they begin.
    run = tempfile.mkdtemp(prefix="podman", dir="/tmp")
    try:
        podman = Podman(folder, run)
        binary = folder / "repertoire"
        # What a release leaves out makes the binary of tests five times as large.
        subprocess.run(["strip", "-o", str(binary), BIN], check=True, timeout=SECONDS)
        podman.log = podman.build("localhost/repertoire:test", binary)
        yield podman
        podman("rm", "--all", "--force", "--volumes")
        podman("rmi", "--all", "--force")
    finally:
        shutil.rmtree(run, ignore_errors=True)


@pytest.fixture
def started(podman):
    """A container as docs/containers.md starts it, whose only network is its own."""
    run = (
        "run", "--detach", "--name", "skills", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges",
        "--network", "none", "--log-driver", "k8s-file", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096",
        "--volume", "skills:/var/lib/repertoire", "localhost/repertoire:test",
    )
    try:
        podman(*run)
        serving(podman)
        yield podman
    finally:
        podman("rm", "--force", "--ignore", "skills")
        podman("volume", "rm", "--force", "skills")


def serving(podman):
    """Waits for the first line of its log."""
    follow = [PODMAN, *podman.options, *podman.engine, "logs", "--follow", "skills"]
    with subprocess.Popen(follow, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as log:
        first = log.stdout.readline()
        log.kill()
    assert first == "listening on http://0.0.0.0:50051\n"


def test_the_image_has_the_program_and_what_it_is_linked_to(podman, tmp_path):
    # Without a network nothing was compiled in an image: the stage that does was not run.
    assert "cargo build" not in podman.log
    (image,) = json.loads(podman("inspect", "localhost/repertoire:test"))
    config = image["Config"]
    assert (config["User"], config["Entrypoint"], config["Cmd"]) == ("65532:65532", [PROGRAM], ["serve"])
    assert list(config["Volumes"]) == ["/var/lib/repertoire"]
    assert config["Labels"]["org.opencontainers.image.version"] == version()
    assert image["Healthcheck"]["Test"] == ["CMD", PROGRAM, "status"]
    tar = tmp_path / "root.tar"
    name = podman("create", "--network", "none", "localhost/repertoire:test")
    podman("export", "--output", str(tar), name)
    listed = subprocess.run(["tar", "tvf", tar, "--numeric-owner"], capture_output=True, text=True, check=True, timeout=SECONDS).stdout
    rows = [line.split(maxsplit=5) for line in listed.splitlines()]
    owners = {row[5].rstrip("/"): (row[0], row[1]) for row in rows}
    assert owners["var/lib/repertoire"] == ("drwx------", "65532/65532")
    assert owners["usr/bin/repertoire"] == ("-rwxr-xr-x", "0/0")
    # No program beside it and the loader of its libraries.
    programs = {path for path, (mode, _) in owners.items() if mode.startswith("-") and "x" in mode}
    assert {path for path in programs if not re.search(r"\.so(\.|$)", path)} == {"usr/bin/repertoire"}
    of_system = ("dev", "proc", "sys")
    loose = [path for path, (mode, _) in owners.items() if mode[0] in "-d" and mode[8] == "w" and not path.startswith(of_system)]
    assert loose == []


def test_it_serves_without_rights_on_a_root_that_cannot_be_written(started):
    assert started("exec", "skills", PROGRAM, "status").startswith("serving /var/lib/repertoire at http://0.0.0.0:50051")
    assert started("healthcheck", "run", "skills") == ""
    # No token, no call; with one, over its port.
    remote = ("--server", "http://127.0.0.1:50051")
    assert "SIGN_IN_REQUIRED" in started("exec", "skills", PROGRAM, "list", *remote, code=1)
    token = json.loads(started("exec", "skills", PROGRAM, "token", "create", "ada", "--role", "reader", "--json"))["token"]
    told = started("exec", "--env", f"REPERTOIRE_TOKEN={token}", "skills", PROGRAM, "list", *remote, "--format", "ids")
    assert "write_sql" in told
    # Not even its own programs can be written, and there is no shell.
    assert "Read-only file system" in started("exec", "skills", PROGRAM, "man", "/usr/share/man", code=1)
    assert "/bin/sh" in started("exec", "skills", "/bin/sh", "-c", "true", code=127)


def test_what_was_written_is_there_after_a_stop(started):
    started("exec", "skills", PROGRAM, "token", "create", "ada", "--role", "reader")
    started("stop", "--time", "10", "skills")
    state = json.loads(started("inspect", "skills"))[0]["State"]
    assert (state["ExitCode"], state["OOMKilled"]) == (0, False)
    started("start", "skills")
    # The command itself waits for whoever has the data directory open.
    assert "ada" in started("exec", "skills", PROGRAM, "token", "list", "--format", "plain")


def test_what_the_image_is_built_from_is_what_the_project_is_built_with():
    file = (TOP / "deploy" / "Containerfile").read_text()
    toolchain = re.search(r'channel = "(.*)"', (TOP / "rust-toolchain.toml").read_text())[1]
    assert re.findall(r"rust:([\d.]+)-|RUSTUP_TOOLCHAIN=([\d.]+)", file) == [(toolchain, ""), ("", toolchain)]
    assert re.search(r"ARG VERSION=(.*)", file)[1] == version()
    # Every file that the build reads is sent to it.
    ignored = (TOP / ".dockerignore").read_text().split()
    assert not {"src", "crates", "proto", "skills", "docs", "benches", "tests", "deploy"} & set(ignored)


def test_a_layout_without_authorities_for_tls_is_refused(tmp_path):
    script = (TOP / "deploy" / "image").read_text().replace("/etc/ssl/certs/ca-certificates.crt", str(tmp_path / "none"))
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "image").write_text(script)
    lay_out = ["bash", tmp_path / "deploy" / "image", "--root", BIN, tmp_path / "root"]
    done = subprocess.run(lay_out, capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (1, f"image: there is no {tmp_path}/none, so the server could call nobody over TLS\n")


def version():
    return re.search(r'^version = "(.*)"', (TOP / "Cargo.toml").read_text(), re.MULTILINE)[1]
