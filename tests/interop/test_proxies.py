"""TLS by nginx, as docs/proxies.md has it, in front of a real server: gRPC, REST, events, MCP, the command line and the bridge."""

import datetime
import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from conftest import need
from harness import BIN, CALL_SECONDS, clean_environment, skill_md
from repertoire.v1 import lookup_pb2, lookup_pb2_grpc, registry_pb2, registry_pb2_grpc

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx") or ""
DOCUMENT = Path(__file__).parents[2] / "docs" / "proxies.md"
HOST = "localhost"


def certificate(folder):
    """A certificate for localhost, which its clients trust as it is."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "skills.pem").write_bytes(made.public_bytes(pem))
    plain = serialization.NoEncryption()
    (folder / "skills.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return folder / "skills.pem"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def config(folder, port, upstream):
    """The block of the document, with the places of this test."""
    (block,) = re.findall(r"```nginx\n(.*?)```", DOCUMENT.read_text(), re.S)
    for said, here in [
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("skills.example.com", HOST),
        ("127.0.0.1:50051", upstream),
        ("/etc/ssl/", f"{folder}/"),
    ]:
        assert said in block, said
        block = block.replace(said, here)
    paths = "".join(
        f"  {name}_temp_path {folder}/{name};\n" for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    )
    block = block.replace("http {\n", f"http {{\n  access_log off;\n{paths}", 1)
    return f"daemon off;\npid {folder}/nginx.pid;\nerror_log stderr;\n{block}"


class Proxy:
    def __init__(self, port, ca):
        self.port, self.ca = port, ca
        self.url = f"https://{HOST}:{port}"
        self.trust = ssl.create_default_context(cafile=ca)

    def connection(self):
        return http.client.HTTPSConnection(HOST, self.port, context=self.trust, timeout=CALL_SECONDS)

    def channel(self):
        credentials = grpc.ssl_channel_credentials(self.ca.read_bytes())
        return grpc.secure_channel(f"{HOST}:{self.port}", credentials, options=[("grpc.enable_http_proxy", 0)])

    def command(self, *arguments, **more):
        command = [BIN, *arguments, "--server", self.url, "--ca", str(self.ca)]
        return subprocess.run(
            command, env=clean_environment(), capture_output=True, text=True, timeout=CALL_SECONDS, **more
        )


@pytest.fixture
def proxy(start, tmp_path):
    need(NGINX, "nginx (nginx-light)")
    settings = tmp_path / "config.yaml"
    settings.write_text("limits: {share_percent: 100}\n")
    server = start("--config", str(settings)).ready()
    ca = certificate(tmp_path)
    port = free_port()
    (tmp_path / "nginx.conf").write_text(config(tmp_path, port, server.address))
    process = subprocess.Popen([NGINX, "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf")])
    until = time.monotonic() + CALL_SECONDS
    with socket.socket() as probe:
        while probe.connect_ex(("127.0.0.1", port)) != 0:
            assert process.poll() is None and time.monotonic() < until, "nginx does not start"
    yield Proxy(port, ca)
    process.terminate()
    process.wait(CALL_SECONDS)


def test_everything_goes_through_nginx_as_the_document_has_it(proxy):
    files = [registry_pb2.File(path="SKILL.md", content=skill_md("refunds"))]
    with proxy.channel() as channel:
        registry, lookup = registry_pb2_grpc.RegistryStub(channel), lookup_pb2_grpc.LookupStub(channel)
        begun = registry.Watch(registry_pb2.WatchRequest(max_events=1, max_wait_seconds=CALL_SECONDS))
        token = next(begun).resume_token
        registry.PublishSkill(registry_pb2.PublishSkillRequest(skill_id="acme/team/refunds", files=files))
        assert next(begun).event.skill_id == "acme/team/refunds"
        found = lookup.GetSkill(lookup_pb2.GetSkillRequest(skill_id="acme/team/refunds"))
        assert found.skill.id == "acme/team/refunds"

    rest = proxy.connection()
    rest.request("GET", "/api/v1/skills/acme%2Fteam%2Frefunds")
    answer = rest.getresponse()
    assert (answer.status, json.loads(answer.read())["skill"]["id"]) == (200, "acme/team/refunds")

    events = proxy.connection()
    events.request("GET", f"/api/v1/events?resume_token={token}&max_events=1")
    answer = events.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "acme/team/refunds" in answer.read().decode()

    mcp = proxy.connection()
    ask = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        },
    }
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    mcp.request("POST", "/mcp", json.dumps(ask), headers)
    answer = mcp.getresponse()
    assert answer.status == 200
    assert '"repertoire"' in answer.read().decode()

    listed = proxy.command("list", "--source", "acme")
    assert [skill["id"] for skill in json.loads(listed.stdout)["skills"]] == ["acme/team/refunds"], listed.stderr
    bridge = proxy.command("mcp", input=json.dumps(ask) + "\n")
    assert json.loads(bridge.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "repertoire", bridge.stderr
