"""MCP authorization: the clients of Python and TypeScript find the issuer, register, sign in, sign
in again for more, and are refused, all by their own OAuth code, against a real issuer
(npm `oidc-provider`) on this machine."""

import json
import warnings

import anyio
import httpx2
import pytest
from harness import as_json, skill_md
from javascript import Script
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.timeout(120)]

SECONDS = 60
BACK = "http://127.0.0.1:1/back"
SCOPES = "read load call publish sync"


@pytest.fixture
def issuer(tmp_path):
    """Starts an issuer for a server at an address."""
    scripts = []

    def issuer(address):
        scripts.append(Script("provider.mjs", f"http://{address}/mcp", SCOPES, home=tmp_path / "issuer"))
        return scripts[-1], scripts[-1].next()["issuer"]

    yield issuer
    for script in scripts:
        script.__exit__()


@pytest.fixture
def protected(start, issuer, port, tmp_path):
    """A server that takes the tokens of an issuer; and the issuer."""
    address = f"127.0.0.1:{port}"
    script, url = issuer(address)
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"access": {
        "sign_in": "tokens",
        "public_url": f"http://{address}",
        "issuers": [{
            "issuer": url, "name": "corp", "scopes": "require", "allow_networks": ["127.0.0.1"],
            "rules": [{"claims": {"sub": "ada"}, "role": "publisher", "skills": ["github/acme/*"]}],
        }],
    }}))
    server = start("--config", str(config), listen=address).ready()
    return server, script


def publish(skill_id):
    return ["publish_skill", {"skill_id": skill_id, "files": as_json({"SKILL.md": skill_md("hello")})}]


CALLS = [["list_skills", {}], publish("github/acme/hello"), publish("github/other/hello"), ["refresh_index", {}]]
# A token has these scopes, at first and after a call that needs another.
FIRST, MORE = ["load", "read"], ["load", "publish", "read"]


OTHER = "oidc:corp/ada may publish skills for github/acme/* alone, not for github/other/hello"
NEVER = "oidc:corp/ada may not sync sources"


def outcomes(said):
    """What became of the calls."""
    return [(call["tool"], call["isError"], [text for text in (OTHER, NEVER) if text in call["text"]]) for call in said]


EXPECTED = [
    ("list_skills", False, []),
    ("publish_skill", False, []),
    # Another namespace, and what no scope brings, since no rule allows it.
    ("publish_skill", True, [OTHER]),
    ("refresh_index", True, [NEVER]),
]


def test_the_client_for_typescript_signs_in_steps_up_and_is_refused(protected, tmp_path):
    server, issuer = protected
    url = f"http://{server.address}/mcp"
    with Script("oauth.mjs", url, *map(json.dumps, CALLS), home=tmp_path / "home") as script:
        said = script.rest()
    assert [line for line in said if "failed" in line] == []
    assert [line["signed_in"] for line in said if "signed_in" in line] == [FIRST, MORE]
    assert outcomes([line for line in said if "tool" in line]) == EXPECTED
    asked = [issuer.next(), issuer.next()]
    assert asked == [{"asked": scopes, "resource": url, "challenge": "S256"} for scopes in (FIRST, MORE)]


class Storage:
    """Keeps what the client for Python wants kept."""

    def __init__(self):
        self.tokens, self.client, self.scopes = None, None, []

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens
        self.scopes.append(sorted(tokens.scope.split()))

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def browse(url):
    """What a browser does, until it is sent back to the client."""
    async with httpx2.AsyncClient() as browser:
        for _ in range(20):
            answer = await browser.get(url)
            assert answer.is_redirect, answer.text
            url = httpx2.URL(url).join(answer.headers["location"])
            if str(url).startswith(BACK):
                assert "code" in url.params, url
                return AuthorizationCodeResult(
                    code=url.params["code"], state=url.params.get("state"), iss=url.params.get("iss"),
                )
    raise AssertionError("redirects without an end")


def test_the_client_for_python_signs_in_steps_up_and_is_refused(protected):
    server, issuer = protected
    url, storage, sent = f"http://{server.address}/mcp", Storage(), {}

    async def redirect(url):
        sent["to"] = url

    async def called_back():
        return await browse(sent["to"])

    async def scenario():
        auth = OAuthClientProvider(
            server_url=url,
            client_metadata=OAuthClientMetadata(
                client_name="interop", redirect_uris=[BACK], grant_types=["authorization_code"],
                token_endpoint_auth_method="none",
            ),
            storage=storage, redirect_handler=redirect, callback_handler=called_back,
        )
        said = []
        async with httpx2.AsyncClient(auth=auth, timeout=SECONDS) as http:
            async with Client(streamable_http_client(url, http_client=http), mode="legacy") as client:
                for name, arguments in CALLS:
                    result = await client.call_tool(name, arguments)
                    said.append({"tool": name, "isError": result.is_error, "text": result.content[0].text})
        return said

    async def bounded():
        with anyio.fail_after(SECONDS):
            return await scenario()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = anyio.run(bounded)
    assert outcomes(said) == EXPECTED
    assert storage.scopes == [FIRST, MORE]
    asked = [issuer.next(), issuer.next()]
    assert asked == [{"asked": scopes, "resource": url, "challenge": "S256"} for scopes in (FIRST, MORE)]


def test_a_client_of_a_server_with_tokens_alone_is_told_which_header_to_send(start, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("access: {sign_in: tokens}\n")
    server = start("--config", str(config)).ready()
    with Script("oauth.mjs", f"http://{server.address}/mcp", home=tmp_path / "home") as script:
        [said] = script.rest()
    assert "This server takes tokens: send `authorization: Bearer TOKEN` with each call" in said["failed"]
