"""The six tools of the skill `jira`, through the whole server, against a Jira in the shapes that Atlassian publishes:
by the official MCP client with the set `gated`, over gRPC and over REST, which all say the same."""

import contextlib
import gzip
import json
import socket
import time
from pathlib import Path

import harness
import pytest
import yaml
from agents import FACES, Answer, everything, refusal
from faces import Grpc
from jira_double import TOKEN, JiraDouble, Request

SKILL = Path(__file__).parents[2] / "skills" / "jira"
TOOLS = {
    "jira_search", "jira_get_issue", "jira_list_projects", "jira_get_sprints", "jira_get_changelog",
    "jira_jql_reference",
}
JQL = "project = ABC ORDER BY key"
FIELDS = "summary,status,assignee,priority,issuetype,updated"
# How the double writes moments, and how the tools show them.
UPDATED = "2025-03-04T05:06:07.000+0100", "2025-03-04 05:06 +0100"

OPERATOR = "Tell the user that the operator "
CHECK_URL = OPERATOR + "should check tools.jira.url, and that the token is still good"
EXPIRED = refusal(
    "TOOL_DENIED",
    "Jira does not accept the operator's token: it was refused or has expired",
    OPERATOR + "has to renew tools.jira.token (and check tools.jira.user); another query will not help",
)
ASKED_TOO_OFTEN = (
    "TOOL_UNAVAILABLE",
    "Jira is asked too often by this account; it may be asked again in {} seconds",
    "Wait for the stated time, then ask for less: fewer fields, a narrower query",
)
NARROW_QUERY = "Ask for fewer fields with `fields`, or for fewer issues with `max_results`"
NO_TOKEN = "next_page_token is not one that this tool gave for the same arguments"
NO_TOKEN_ADVICE = (
    "Repeat the call with the same arguments as for the previous page, or leave out next_page_token to begin again"
)
NOT_CONNECTED = refusal(
    "TOOL_UNAVAILABLE",
    "Jira is not connected: the operator of this server has configured none",
    "Tell the user; a repeated call will not help",
    "Write the JQL for the user to run in Jira, and say that it was not run",
    "The operator sets tools.jira.url, tools.jira.user (Cloud) and tools.jira.token",
)


def settings(double, url=None):
    """The config file for a Jira."""
    jira = {"url": url or double.url, "token": double.token} | ({"user": double.user} if double.cloud else {})
    return {"tools": {"jira": jira}}


@contextlib.contextmanager
def serving(folder, config):
    """A server with these settings; nothing of it may panic."""
    folder.mkdir(exist_ok=True)
    path = folder / "repertoire.yaml"
    path.write_text(yaml.safe_dump(config))
    server = harness.Server(folder / "data", "--config", str(path)).ready()
    try:
        yield server
    finally:
        code = server.stop()
    assert code == 0, server.log.text()
    assert "panicked" not in server.log.text(), server.log.text()


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """A server for each flavour of Jira, with its Jira."""
    with contextlib.ExitStack() as stack:
        found = {}
        for cloud in (True, False):
            double = stack.enter_context(JiraDouble(cloud))
            folder = tmp_path_factory.mktemp("jira")
            found[cloud] = double, stack.enter_context(serving(folder, settings(double)))
        yield found


@pytest.fixture(params=["cloud", "data-center"])
def site(request, sites):
    double, server = sites[request.param == "cloud"]
    double.renew()
    double.server = server
    return double


@pytest.fixture
def cloud(sites):
    """Where the flavour makes no difference."""
    double, server = sites[True]
    double.renew()
    double.server = server
    return double


@pytest.fixture
def agent(request, face, hire):
    """An agent with the skill loaded; what loading asked of Jira is forgotten."""
    double = request.getfixturevalue("site" if "site" in request.fixturenames else "cloud")
    agent = hire(face, double.server)
    agent.load("jira")
    double.requests.clear()
    return agent


@pytest.fixture(params=FACES)
def face(request):
    return request.param


def api(double):
    return "/rest/api/3" if double.cloud else "/rest/api/2"


def asked(double, path, method="GET", body=None, **query):
    """A request as Jira got it."""
    query = {name: str(value) for name, value in query.items()}
    return Request(method, path, query, double.authorization, body or {})


def more(token):
    return f'There are more: repeat the call with the same arguments and next_page_token "{token}".'


def page(name, members, total, token=None, **others):
    """A page for programs."""
    shown = {"count": len(members), name: members, "has_more": token is not None} | others
    return shown | ({"total": total} if total is not None else {}) | ({"next_page_token": token} if token else {})


def token_of(answer):
    assert isinstance(answer, Answer), answer
    return answer.structured.get("next_page_token")


# Loading.


def test_level_2_begins_with_the_account_and_the_first_projects(site, face, hire):
    agent = hire(face, site.server)
    level = agent.load("jira")
    kind = "Jira Cloud" if site.cloud else "Jira Data Center"
    begin = (
        "## Jira Skill Activated\n\n"
        f"- Site: {site.url} ({kind})\n"
        "- Status: connected, signed in as Ada Lovelace; `currentUser()` is this account\n"
        "- Access: read only, and only what this account may see\n\n"
        "### Projects\n\n"
        "Projects 1 to 50 of 130. The list is cut here: `jira_list_projects` has all.\n\n"
        + "".join(f"- P{number:03}: Project {number}\n" for number in range(50))
    )
    body = (SKILL / "SKILL.md").read_text().split("\n---\n", 1)[1].strip()
    assert level.startswith(f"{begin}\n{body}\n\n---\n"), level
    projects = (
        asked(site, "/rest/api/3/project/search", startAt=0, maxResults=50, orderBy="key")
        if site.cloud
        else asked(site, "/rest/api/2/project")
    )
    assert sorted(site.requests, key=lambda one: one.path) == [asked(site, f"{api(site)}/myself"), projects]


def test_loading_unlocks_the_six_tools(site, agent):
    assert agent.tools() == TOOLS


def test_a_jira_that_refuses_the_token_does_not_keep_the_skill_from_loading(site, face, hire):
    site.expire_token()
    agent = hire(face, site.server)
    level = agent.load("jira")
    assert (
        "- Status: configured, but not usable now. Jira does not accept the operator's token: it was refused or has "
        "expired.\n"
        f"- {OPERATOR}has to renew tools.jira.token (and check tools.jira.user); another query will not help.\n"
    ) in level
    assert "### Projects\n\nNot known: Jira does not accept the operator's token" in level
    assert "# Jira Query Expert" in level and TOKEN not in level


# Each tool.


def issue_line(number):
    who = "unassigned" if number == 2 else "Ada Lovelace"
    return f"ABC-{number} [In Progress] Summary {number} — {who}, updated {UPDATED[1]}; priority: High; issuetype: Bug\n"


def issue_member(double, number):
    return {
        "key": f"ABC-{number}",
        "url": f"{double.url}/browse/ABC-{number}",
        "fields": {
            "summary": f"Summary {number}", "status": "In Progress", "updated": UPDATED[0], "priority": "High",
            "issuetype": "Bug", "assignee": None if number == 2 else "Ada Lovelace",
        },
    }


def search_request(double, start, size=2, jql=JQL):
    if double.cloud:
        place = {"nextPageToken": f"page-from-{start}"} if start else {}
        return asked(double, "/rest/api/3/search/jql", jql=jql, maxResults=size, fields=FIELDS, **place)
    return asked(double, "/rest/api/2/search", jql=jql, maxResults=size, fields=FIELDS, startAt=start)


def test_a_search_is_read_page_by_page_to_its_end(site, agent):
    arguments, start = {"jql": JQL, "max_results": 2}, 0
    for numbers in ([1, 2], [3, 4], [5]):
        answer = agent.call("jira_search", **arguments)
        token = token_of(answer)
        if site.cloud:
            heading = f"{len(numbers)} issue{'s' * (len(numbers) > 1)} on this page."
        else:
            heading = f"Issues {numbers[0]} to {numbers[-1]} of 5."
        ending = "There are no more." if numbers == [5] else more(token)
        members = [issue_member(site, number) for number in numbers]
        assert answer == Answer(
            f"{heading}\n\n{''.join(map(issue_line, numbers))}\n{ending}",
            page("issues", members, None if site.cloud else 5, token),
        )
        assert site.requests.pop() == search_request(site, start) and not site.requests
        arguments["next_page_token"], start = token, numbers[-1]
    assert token is None


def test_a_search_names_its_fields_and_has_50_issues_a_page_where_nobody_says(site, agent):
    answer = agent.call("jira_search", jql=JQL, fields=" summary , status")
    assert answer.structured["count"] == 5
    (request,) = site.requests
    assert (request.get("fields"), request.get("maxResults")) == ("summary,status", "50")
    agent.call("jira_search", jql=JQL, max_results=5000)
    assert site.requests[-1].get("maxResults") == "100"


def test_a_query_too_long_for_an_address_goes_in_the_body_of_the_same_question(site, agent):
    jql = f"summary ~ \"{'long ' * 400}\" ORDER BY key"
    answer = agent.call("jira_search", jql=jql, max_results=2)
    assert answer.structured["count"] == 2
    path, place = ("/rest/api/3/search/jql", {}) if site.cloud else ("/rest/api/2/search", {"startAt": 0})
    body = {"jql": jql, "maxResults": 2, "fields": FIELDS.split(",")} | place
    assert site.requests == [asked(site, path, "POST", body)]


def test_an_issue_is_told_whole(site, agent):
    address = f"{site.url}/browse/ABC-1"
    fields = issue_member(site, 1)["fields"] | {"customfield_10016": 5.0}
    comment = {"author": "Grace Hopper", "created": "2025-03-05T00:00:00.000+0000", "body": "A comment."}
    assert agent.call("jira_get_issue", issue_key="abc-1") == Answer(
        f"""\
# ABC-1 Summary 1

- Type: Bug
- Status: In Progress
- Priority: High
- Assignee: Ada Lovelace
- Updated: {UPDATED[1]}
- Address: {address}

## Description

It fails.

## Other fields

- Story Points (customfield_10016): 5.0

## Comments

### Grace Hopper, 2025-03-05 00:00 +0000

A comment.""",
        {
            "key": "ABC-1", "url": address, "fields": fields, "description": "It fails.", "links": [], "subtasks": [],
            "comments": [comment], "comments_total": 1,
        },
    )
    assert site.requests == [asked(site, f"{api(site)}/issue/ABC-1", fields="*all,-worklog", expand="names")]


def test_projects_are_read_page_by_page_to_their_end(site, agent):
    arguments = {}
    # Cloud sends fewer than it is asked for.
    for first, last in ((0, 50), (50, 100), (100, 130)) if site.cloud else ((0, 100), (100, 130)):
        answer = agent.call("jira_list_projects", **arguments)
        token = token_of(answer)
        lines = "".join(f"- P{number:03}: Project {number}\n" for number in range(first, last))
        members = [
            {"key": f"P{number:03}", "name": f"Project {number}", "type": "software"} for number in range(first, last)
        ]
        ending = more(token) if last < 130 else "There are no more."
        assert answer == Answer(
            f"Projects {first + 1} to {last} of 130.\n\n{lines}\n{ending}", page("projects", members, 130, token)
        )
        expected = (
            asked(site, "/rest/api/3/project/search", startAt=first, maxResults=100, orderBy="key")
            if site.cloud
            else asked(site, "/rest/api/2/project")
        )
        assert site.requests.pop() == expected and not site.requests
        arguments = {"next_page_token": token}
    assert token is None


def sprints(numbers):
    states = {59: "active", 60: "future"}
    lines = "".join(
        f"{number} [{states.get(number, 'closed')}] Sprint {number} — 2025-03-01 09:00 Z to 2025-03-15 09:00 Z\n"
        for number in numbers
    )
    members = [
        {"id": number, "name": f"Sprint {number}", "state": states.get(number, "closed"),
         "start": "2025-03-01T09:00:00.000Z", "end": "2025-03-15T09:00:00.000Z"}
        for number in numbers
    ]
    return lines, members


def test_sprints_are_read_page_by_page_to_their_end(site, agent):
    path, arguments = "/rest/agile/1.0/board/7/sprint", {"board_id": 7}
    for first, last in ((0, 50), (50, 60)):
        answer = agent.call("jira_get_sprints", **arguments)
        token = token_of(answer)
        lines, members = sprints(range(first + 1, last + 1))
        ending = more(token) if last < 60 else "There are no more."
        assert answer == Answer(
            f"Sprints {first + 1} to {last}.\n\n{lines}\n{ending}", page("sprints", members, None, token, board_id=7)
        )
        assert site.requests.pop() == asked(site, path, startAt=first, maxResults=50) and not site.requests
        arguments["next_page_token"] = token
    assert token is None


def test_sprints_of_one_state_are_asked_for_by_it(site, agent):
    lines, members = sprints([59, 60])
    assert agent.call("jira_get_sprints", board_id=7, state="Active, future") == Answer(
        f"Sprints 1 to 2.\n\n{lines}\nThere are no more.", page("sprints", members, None, board_id=7)
    )
    path = "/rest/agile/1.0/board/7/sprint"
    assert site.requests == [asked(site, path, startAt=0, maxResults=50, state="active,future")]


def test_a_changelog_is_read_page_by_page_to_its_end(site, agent):
    arguments = {"issue_key": "ABC-1"}
    for first, last in ((0, 100), (100, 130)):
        answer = agent.call("jira_get_changelog", **arguments)
        token = token_of(answer)
        lines = "".join(
            f"- 2025-03-01 {number // 60:02}:{number % 60:02} +0000 Ada Lovelace: status: To Do → Done\n"
            for number in range(first, last)
        )
        members = [
            {"created": f"2025-03-01T{number // 60:02}:{number % 60:02}:00.000+0000", "author": "Ada Lovelace",
             "changes": [{"field": "status", "from": "To Do", "to": "Done"}]}
            for number in range(first, last)
        ]
        ending = more(token) if last < 130 else "There are no more."
        assert answer == Answer(
            f"# History of ABC-1\n\nChanges {first + 1} to {last} of 130.\n\n{lines}\n{ending}",
            page("changes", members, 130, token, key="ABC-1"),
        )
        expected = (
            asked(site, "/rest/api/3/issue/ABC-1/changelog", startAt=first, maxResults=100)
            if site.cloud
            else asked(site, "/rest/api/2/issue/ABC-1", fields="summary", expand="changelog")
        )
        assert site.requests.pop() == expected and not site.requests
        arguments["next_page_token"] = token
    assert token is None


def test_the_jql_reference_comes_from_the_skill_and_jira_is_not_asked(cloud, agent):
    assert agent.call("jira_jql_reference") == Answer((SKILL / "jql_reference.md").read_text(), None)
    assert cloud.requests == []


# Arguments.


def test_a_token_of_other_arguments_is_refused_and_jira_is_not_asked(site, agent):
    wrong = refusal("INVALID_PARAMETER", NO_TOKEN, NO_TOKEN_ADVICE, field="next_page_token")
    token = token_of(agent.call("jira_get_sprints", board_id=7))
    site.requests.clear()
    assert agent.call("jira_get_sprints", board_id=7, state="closed", next_page_token=token) == wrong
    assert agent.call("jira_list_projects", next_page_token=token) == wrong
    assert agent.call("jira_get_changelog", issue_key="ABC-1", next_page_token=token) == wrong
    if not site.cloud:
        assert agent.call("jira_search", jql=JQL, next_page_token=token) == wrong
    assert site.requests == []


def test_arguments_that_no_jira_could_take_are_refused_by_name_and_jira_is_not_asked(cloud, agent):
    for tool, arguments, expected in [
        ("jira_search", {"jql": " "}, refusal(
            "INVALID_PARAMETER", "jql is empty",
            "Write a query with a restriction, such as: project = ABC ORDER BY updated DESC", field="jql")),
        ("jira_search", {"jql": JQL, "max_results": 0}, refusal(
            "INVALID_PARAMETER", "max_results is less than 1", field="max_results")),
        ("jira_get_issue", {"issue_key": "../../myself"}, refusal(
            "INVALID_PARAMETER", "issue_key is not the key of an issue",
            "Give a key such as ABC-123; to find one, search with jira_search", field="issue_key")),
        ("jira_get_sprints", {"board_id": 7, "state": "past"}, refusal(
            "INVALID_PARAMETER", "state is not active, future or closed", "Leave it out for all", field="state")),
    ]:
        assert agent.call(tool, **arguments) == expected
    missing = agent.call("jira_search")
    assert (missing["code"], missing["fields"]) == ("MISSING_PARAMETER", [("arguments.jql", "Required")])
    unknown = agent.call("jira_search", jql=JQL, site="https://elsewhere.example")
    assert unknown["code"] == "INVALID_PARAMETER" and "'site'" in unknown["message"], unknown
    assert cloud.requests == []


# Failures of Jira.


def test_a_wait_that_jira_asks_for_is_waited(site, agent):
    site.fail_next(429, headers={"Retry-After": "1"})
    began = time.monotonic()
    answer = agent.call("jira_search", jql=JQL, max_results=2)
    assert time.monotonic() - began >= 1
    assert answer.structured["count"] == 2
    assert site.requests == [search_request(site, 0)] * 2


def test_a_wait_beyond_the_callers_time_is_told_at_once(site, agent):
    site.fail_next(429, headers={"Retry-After": "3600"})
    code, message, step = ASKED_TOO_OFTEN
    began = time.monotonic()
    assert agent.call("jira_search", jql=JQL) == refusal(code, message.format(3600), step, retry_seconds=3600)
    assert time.monotonic() - began < 10
    assert len(site.requests) == 1


def test_jira_is_asked_three_times_and_no_more(site, agent):
    site.fail_next(429, headers={"Retry-After": "0"}, times=4)
    code, message, step = ASKED_TOO_OFTEN
    assert agent.call("jira_search", jql=JQL) == refusal(code, message.format(0), step, retry_seconds=0)
    assert len(site.requests) == 3


def test_an_expired_token_is_told_by_every_tool_and_not_shown(site, agent):
    site.expire_token()
    for tool, arguments in [
        ("jira_search", {"jql": JQL}),
        ("jira_get_issue", {"issue_key": "ABC-1"}),
        ("jira_list_projects", {}),
        ("jira_get_sprints", {"board_id": 7}),
        ("jira_get_changelog", {"issue_key": "ABC-1"}),
    ]:
        outcome = agent.call(tool, **arguments)
        assert outcome == EXPIRED, tool
        assert TOKEN not in everything(outcome)
    assert len(site.requests) == 5


def test_a_cloud_that_finds_nothing_because_it_refuses_the_token_says_so(cloud, agent):
    cloud.fail_next(200, {"issues": [], "isLast": True}, {"X-Seraph-LoginReason": "AUTHENTICATED_FAILED"})
    assert agent.call("jira_search", jql=JQL) == EXPIRED


def test_a_wrong_query_is_refused_in_jiras_own_words(site, agent):
    words = "Field 'nonsense' does not exist or you do not have permission to view it."
    assert agent.call("jira_search", jql="nonsense = 1") == refusal(
        "INVALID_PARAMETER",
        f"Jira refuses this query: {words}",
        "Correct the query: check names of fields and values, quotes and parentheses; jira_jql_reference has the "
        "rules",
        field="jql",
    )


def test_what_is_not_there_is_told_by_its_argument(site, agent):
    looks = "Check the key, or look for the issue with jira_search"
    assert agent.call("jira_get_issue", issue_key="ABC-99") == refusal(
        "TOOL_FAILED",
        "The issue ABC-99 does not exist, or the account of this server may not see it", looks, field="issue_key",
    )
    assert agent.call("jira_get_changelog", issue_key="ABC-99") == refusal(
        "TOOL_FAILED",
        "The issue ABC-99 does not exist, or the account of this server may not see it", looks, field="issue_key",
    )
    assert agent.call("jira_get_sprints", board_id=9) == refusal(
        "TOOL_FAILED",
        "The board 9 does not exist, or the account of this server may not see it",
        "Check the number in the board's web address",
        field="board_id",
    )
    assert agent.call("jira_get_sprints", board_id=8) == refusal(
        "INVALID_PARAMETER",
        "Jira refuses the board 8: The board does not support sprints",
        "Only Scrum boards have sprints; for others search with jira_search",
        field="board_id",
    )


# What Jira does, and what comes of it.
FAILURES = {
    "not allowed": (
        {"status": 403, "body": {"errorMessages": ["You may not browse."]}},
        refusal(
            "TOOL_DENIED",
            "The account of this server may not see this query: You may not browse.",
            "Tell the user; a Jira administrator can give the account the permission to browse",
        ),
    ),
    "a person is wanted": (
        {"status": 403, "headers": {"X-Authentication-Denied-Reason": "CAPTCHA_CHALLENGE; login-url=http://x/"}},
        refusal(
            "TOOL_DENIED",
            "Jira wants a person to sign in before it accepts the account again",
            OPERATOR + "has to sign in to Jira once with the account of "
            "tools.jira",
        ),
    ),
    "a redirect": (
        {"status": 302, "headers": {"Location": "https://elsewhere.example/login?token=x"}},
        refusal(
            "TOOL_FAILED",
            "Jira answered with a redirect to elsewhere.example, which is not followed, since the token would go along",
            CHECK_URL,
        ),
    ),
    "a web page": (
        {"status": 200, "body": b"<html>Sign in</html>", "headers": {"Content-Type": "text/html"}},
        refusal(
            "TOOL_FAILED",
            "What answers at tools.jira.url sent a web page, perhaps one to sign in, instead of the JSON of Jira's API",
            CHECK_URL,
        ),
    ),
    "no JSON": (
        {"status": 200, "body": b"issues: none"},
        refusal(
            "TOOL_FAILED",
            "What answers at tools.jira.url sent something else instead of the JSON of Jira's API",
            CHECK_URL,
        ),
    ),
    "no such API": (
        {"status": 410},
        refusal(
            "TOOL_FAILED",
            "There is no such API of Jira at tools.jira.url (status 410)",
            OPERATOR + "should check tools.jira.url, and tools.jira.user: it is set for Cloud, and not for Data Center",
        ),
    ),
    "trouble of its own": (
        {"status": 500, "body": {"errorMessages": ["Internal error"]}},
        refusal(
            "TOOL_UNAVAILABLE", "Jira has trouble of its own (status 500): Internal error", "Try again later"
        ),
    ),
    "an answer above 4 MiB": (
        {"status": 200, "body": json.dumps({"issues": [], "filler": "x" * (4 << 20)}).encode()},
        refusal(
            "TOOL_FAILED",
            "Jira's answer about this query is larger than 4 MiB and was not read to its end",
            NARROW_QUERY,
        ),
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_of_jira_is_told_with_what_to_do(cloud, agent, failure):
    reply, expected = FAILURES[failure]
    cloud.fail_next(**reply)
    assert agent.call("jira_search", jql=JQL) == expected
    assert len(cloud.requests) == 1
    # The next question is answered as if nothing had been.
    assert agent.call("jira_search", jql=JQL).structured["count"] == 5


def test_an_answer_that_is_packed_small_is_not_read_beyond_its_bound(cloud, agent):
    body = gzip.compress(json.dumps({"issues": [], "filler": "x" * (64 << 20)}).encode())
    assert len(body) < 1 << 20
    cloud.fail_next(200, body, {"Content-Encoding": "gzip"})
    outcome = agent.call("jira_search", jql=JQL)
    assert outcome == FAILURES["an answer above 4 MiB"][1]


# Time.


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A server whose callers wait for three seconds."""
    with JiraDouble() as double:
        config = settings(double) | {"limits": {"deadline_seconds": 3}}
        with serving(tmp_path_factory.mktemp("hasty"), config) as server:
            double.server = server
            yield double


def test_a_slow_answer_ends_before_the_caller_does_and_says_why(hasty, face, hire):
    hasty.renew()
    agent = hire(face, hasty.server)
    agent.face.seconds = 3
    agent.load("jira")
    hasty.fail_next(200, {"issues": []}, hang=True)
    began = time.monotonic()
    outcome = agent.call_by_name("jira_search", jql=JQL)
    assert 2 < time.monotonic() - began < 3.5
    assert outcome == refusal(
        "TIMEOUT", "Jira did not answer in time", NARROW_QUERY, "Try once more, later or with a longer timeout"
    )


def test_a_wait_longer_than_the_callers_deadline_is_not_begun(hasty, face, hire):
    hasty.renew()
    agent = hire(face, hasty.server)
    agent.face.seconds = 3
    agent.load("jira")
    hasty.requests.clear()
    hasty.fail_next(503, headers={"Retry-After": "5"})
    began = time.monotonic()
    outcome = agent.call_by_name("jira_search", jql=JQL)
    assert time.monotonic() - began < 2
    assert outcome == refusal(
        "TOOL_UNAVAILABLE",
        "Jira has trouble of its own (status 503); it may be asked again in 5 seconds",
        "Try again later",
        retry_seconds=5,
    )
    assert len(hasty.requests) == 1


def test_a_slow_jira_does_not_keep_the_skill_from_loading(hasty, face, hire):
    hasty.renew()
    hasty.fail_next(200, {}, hang=True, times=2)
    agent = hire(face, hasty.server)
    agent.face.seconds = 3
    level = agent.load("jira")
    assert "- Status: configured, but not usable now. Jira did not answer in time.\n" in level
    assert "### Projects\n\nNot known: Jira did not answer in time.\n" in level
    assert "# Jira Query Expert" in level


# No Jira.


def test_without_a_jira_level_2_says_so_and_the_tools_refuse_with_what_to_do(server, face, hire):
    agent = hire(face, server)
    level = agent.load("jira")
    assert level.startswith(
        "## Jira Skill Activated\n\n"
        "- Status: not connected. The operator of this server has configured no Jira, so every tool that asks Jira "
        "will refuse.\n"
        "- What still works: the instructions and `jira_jql_reference`. Write JQL for the user to run, and say that it "
        "was not run.\n"
        "- For the operator: set `tools.jira.url`, `tools.jira.token` and, for Jira Cloud, `tools.jira.user`, and "
        "restart.\n\n"
        "# Jira Query Expert\n"
    )
    assert agent.call("jira_search", jql=JQL) == NOT_CONNECTED
    assert agent.call("jira_get_issue", issue_key="ABC-1") == NOT_CONNECTED
    assert agent.call("jira_list_projects") == NOT_CONNECTED
    assert agent.call("jira_get_sprints", board_id=7) == NOT_CONNECTED
    assert agent.call("jira_get_changelog", issue_key="ABC-1") == NOT_CONNECTED
    assert agent.call("jira_jql_reference").text == (SKILL / "jql_reference.md").read_text()


def test_a_jira_that_is_away_keeps_neither_the_server_from_starting_nor_the_skill_from_loading(tmp_path, hire):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    config = {"tools": {"jira": {"url": nobody, "token": TOKEN}}}
    with serving(tmp_path / "away", config) as server:
        for face in FACES:
            agent = hire(face, server)
            assert "not usable now. Jira cannot be reached: connection refused." in agent.load("jira")
            assert agent.call("jira_list_projects") == refusal(
                "TOOL_UNAVAILABLE",
                "Jira cannot be reached: connection refused",
                "Try again later",
                OPERATOR + "should check tools.jira.url if this lasts",
            )


# The gate.


def test_calls_are_recorded_with_how_they_ended_and_without_what_was_asked(cloud, face, hire):
    agent = hire(face, cloud.server)
    locked = agent.call("jira_search", jql=JQL)
    assert locked["code"] == "SKILL_NOT_LOADED" and locked["message"] == (
        "The 'jira_search' tool requires the 'jira' skill to be loaded first.\n"
        "Please use load_skill('jira') before using this tool."
    )
    agent.load("jira")
    agent.call("jira_search", jql=JQL)
    agent.call("jira_search", jql="nonsense = 1")
    cloud.expire_token()
    agent.call("jira_list_projects")
    calls = newest_records(cloud.server)
    assert [(call["tool"], call["error_code"]) for call in calls] == [
        ("jira_list_projects", "TOOL_DENIED"),
        ("jira_search", "INVALID_PARAMETER"),
        ("jira_search", ""),
        ("jira_search", "SKILL_NOT_LOADED"),
    ]
    assert "ABC" not in json.dumps(calls) and TOKEN not in json.dumps(calls)


def newest_records(server):
    """The last four calls of tools."""
    return Grpc(server).ask("ListToolCalls", {"page_size": 4})["calls"]
