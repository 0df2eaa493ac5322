"""A server with TLS: its own, or that of nginx in front of it, as docs/proxies.md has it."""

import contextlib
import datetime
import http.client
import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import grpc
import pytest
from conftest import need
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from harness import BIN, CALL_SECONDS, clean_environment, held_port

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


class Endpoint:
    """An address with TLS, and clients that trust it."""

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


@contextlib.contextmanager
def in_front_of(server, folder):
    """The recipe of the document, run."""
    need(NGINX, "nginx (nginx-light)")
    ca = certificate(folder)
    with held_port() as port:
        (folder / "nginx.conf").write_text(config(folder, port, server.address))
        process = subprocess.Popen([NGINX, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")])
        try:
            until = time.monotonic() + CALL_SECONDS
            with socket.socket() as probe:
                while probe.connect_ex(("127.0.0.1", port)) != 0:
                    assert process.poll() is None and time.monotonic() < until, "nginx does not start"
            yield Endpoint(port, ca)
        finally:
            process.terminate()
            process.wait(CALL_SECONDS)


@pytest.fixture(params=[pytest.param("nginx", marks=pytest.mark.nightly), "own"])
def secured(request, start, tmp_path):
    """A server with TLS, whoever speaks it."""
    settings = tmp_path / "config.yaml"
    settings.write_text("limits: {share_percent: 100}\n")
    if request.param == "nginx":
        with in_front_of(start("--config", str(settings)).ready(), tmp_path) as endpoint:
            yield endpoint
        return
    ca = certificate(tmp_path)
    (tmp_path / "skills.key").chmod(0o600)
    with settings.open("a") as file:
        file.write(f"tls: {{certificate: {ca}, key: {tmp_path}/skills.key}}\n")
    server = start("--config", str(settings)).ready()
    assert server.scheme == "https"
    yield Endpoint(int(server.address.rpartition(":")[2]), ca)
