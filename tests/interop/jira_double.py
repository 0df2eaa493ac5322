"""A Jira on this machine, in the shapes that Atlassian publishes, for tests that
drive the whole server.

    with JiraDouble() as double:                # Jira Cloud
        double.url                              # for tools.jira.url
        double.user, double.token               # for tools.jira.user and .token
        double.requests                         # what was asked, in order
        double.fail_next(429, headers={"Retry-After": "0"})

    with JiraDouble(cloud=False) as double:     # Data Center: no user

Only the standard library is used.
"""

import base64
import collections
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

USER = "ada@acme.example"
TOKEN = "planted-token-0123456789"


@dataclass
class Request:
    """What was asked."""

    method: str
    path: str
    query: dict
    authorization: str
    body: dict = field(default_factory=dict)

    def get(self, name, default=""):
        """A parameter, of the address or the body."""
        return self.query.get(name, self.body.get(name, default))

    def number(self, name, default):
        return int(self.get(name, default))


@dataclass
class Reply:
    """What is answered. `hang`: after the body, which is said to be longer, nothing comes."""

    status: int
    body: object = None
    headers: dict = field(default_factory=dict)
    hang: bool = False

    def bytes(self):
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps({} if self.body is None else self.body).encode()


def error(status, message):
    return Reply(status, {"errorMessages": [message], "errors": {}})


def person(name, cloud):
    return {"accountId": "5b10", "displayName": name} if cloud else {"name": "ada", "key": "ada", "displayName": name}


def issue(number, cloud, assigned=True):
    """A member of a search."""
    return {
        "id": str(10_000 + number), "key": f"ABC-{number}",
        "fields": {
            "summary": f"Summary {number}",
            "status": {"name": "In Progress", "statusCategory": {"key": "indeterminate", "name": "In Progress"}},
            "assignee": person("Ada Lovelace", cloud) if assigned else None,
            "updated": "2025-03-04T05:06:07.000+0100",
            "priority": {"name": "High"}, "issuetype": {"name": "Bug"},
        },
    }


def text(words, cloud):
    """A long text: a document of Cloud, or as it is."""
    if not cloud:
        return words
    return {"type": "doc", "version": 1, "content": [
        {"type": "paragraph", "content": [{"type": "text", "text": words}]}]}


class JiraDouble:
    """The double, while the `with` lasts. Its data may be changed before it is asked."""

    def __init__(self, cloud=True):
        self.cloud = cloud
        self._orders = collections.deque()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.renew()

    def renew(self):
        """As if it had never been asked or changed."""
        cloud = self.cloud
        self._orders.clear()
        self.user = USER if cloud else None
        self.token = TOKEN
        self.account = "Ada Lovelace"
        self.issues = [issue(number, cloud, number != 2) for number in range(1, 6)]
        self.projects = [
            {"id": str(number), "key": f"P{number:03}", "name": f"Project {number}", "projectTypeKey": "software"}
            for number in range(130)]
        self.sprints = [
            {"id": number, "name": f"Sprint {number}", "originBoardId": 7,
             "state": {59: "active", 60: "future"}.get(number, "closed"),
             "startDate": "2025-03-01T09:00:00.000Z", "endDate": "2025-03-15T09:00:00.000Z"}
            for number in range(1, 61)]
        self.changes = [
            {"id": str(number), "author": person("Ada Lovelace", cloud),
             "created": f"2025-03-01T{number // 60:02}:{number % 60:02}:00.000+0000",
             "items": [{"field": "status", "from": "1", "fromString": "To Do", "to": "3", "toString": "Done"}]}
            for number in range(130)]
        self.requests = []

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def authorization(self):
        """What a request must show."""
        if not self.cloud:
            return f"Bearer {self.token}"
        return "Basic " + base64.b64encode(f"{self.user}:{self.token}".encode()).decode()

    def fail_next(self, status, body=None, headers=None, times=1, hang=False):
        """The next requests are answered so, whatever they ask. A body of bytes is sent as it is."""
        with self._lock:
            self._orders.extend([Reply(status, body, headers or {}, hang)] * times)

    def redirect_next(self, place="https://elsewhere.example/login"):
        self.fail_next(302, headers={"Location": place})

    def expire_token(self):
        """From now on the token is refused."""
        self.token = "renewed-" + TOKEN

    def _answer(self, request):
        with self._lock:
            self.requests.append(request)
            if self._orders:
                return self._orders.popleft()
        if request.authorization != self.authorization:
            return Reply(401, {"message": "Client must be authenticated to access this resource.", "status-code": 401})
        if request.path.startswith("/rest/agile/1.0/board/"):
            return self._sprints(request)
        return self._cloud(request) if self.cloud else self._data_center(request)

    def _whole_issue(self, key):
        for member in self.issues:
            if member["key"] == key:
                comments = [{"author": person("Grace Hopper", self.cloud), "created": "2025-03-05T00:00:00.000+0000",
                             "body": text("A comment.", self.cloud)}]
                more = {"description": text("It fails.", self.cloud), "customfield_10016": 5.0,
                        "comment": {"comments": comments, "total": 1, "startAt": 0, "maxResults": 1}}
                return member | {"fields": member["fields"] | more, "names": {"customfield_10016": "Story Points"}}
        return None

    def _cloud(self, request):
        path = request.path.removeprefix("/rest/api/3")
        if path == "/search":
            return error(410, "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API.")
        if path == "/search/jql":
            if refused := self._refused(request):
                return refused
            start = int(request.get("nextPageToken", "page-from-0").removeprefix("page-from-"))
            end = start + request.number("maxResults", 50)
            answer = {"issues": self.issues[start:end], "isLast": end >= len(self.issues)}
            if not answer["isLast"]:
                answer["nextPageToken"] = f"page-from-{end}"
            return Reply(200, answer)
        if path == "/myself":
            return Reply(200, {"accountId": "5b10", "displayName": self.account, "emailAddress": self.user})
        if path == "/project/search":
            return Reply(200, self._page(request, self.projects, 50, total=True))
        parts = path.split("/")
        if len(parts) in (3, 4) and parts[1] == "issue":
            found = self._whole_issue(parts[2])
            if found and parts[3:] == ["changelog"]:
                return Reply(200, self._page(request, self.changes, 100, total=True))
            if found and not parts[3:]:
                return Reply(200, found)
            return error(404, "Issue does not exist or you do not have permission to see it.")
        return Reply(404, b"<html>Not here</html>", {"Content-Type": "text/html"})

    def _data_center(self, request):
        path = request.path.removeprefix("/rest/api/2")
        if path == "/search":
            if refused := self._refused(request):
                return refused
            start, size = request.number("startAt", 0), request.number("maxResults", 50)
            return Reply(200, {"startAt": start, "maxResults": size, "total": len(self.issues),
                               "issues": self.issues[start:start + size]})
        if path == "/myself":
            return Reply(200, {"key": "ada", "name": "ada", "displayName": self.account})
        if path == "/project":
            return Reply(200, self.projects)
        if path.startswith("/issue/"):
            found = self._whole_issue(path.removeprefix("/issue/"))
            if not found:
                return error(404, "Issue Does Not Exist")
            if "changelog" in request.get("expand"):
                found["changelog"] = {"startAt": 0, "maxResults": len(self.changes), "total": len(self.changes),
                                      "histories": self.changes}
            return Reply(200, found)
        return Reply(404, b"<html>Not here</html>", {"Content-Type": "text/html"})

    def _refused(self, request):
        if "nonsense" in request.get("jql"):
            return error(400, "Field 'nonsense' does not exist or you do not have permission to view it.")
        return None

    def _sprints(self, request):
        if request.path == "/rest/agile/1.0/board/8/sprint":
            return error(400, "The board does not support sprints")
        if request.path != "/rest/agile/1.0/board/7/sprint":
            return error(404, "The requested board cannot be viewed because it either does not exist "
                              "or you do not have permission to view it.")
        states = [state for state in request.get("state").split(",") if state]
        found = [sprint for sprint in self.sprints if not states or sprint["state"] in states]
        return Reply(200, self._page(request, found, 50, total=False))

    @staticmethod
    def _page(request, members, most, total):
        start, size = request.number("startAt", 0), min(request.number("maxResults", most), most)
        page = {"startAt": start, "maxResults": size, "isLast": start + size >= len(members),
                "values": members[start:start + size]}
        return page | ({"total": len(members)} if total else {})

    def _handler(self):
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                address = urlsplit(self.path)
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else {}
                request = Request(self.command, address.path, dict(parse_qsl(address.query)),
                                  self.headers.get("Authorization", ""), body)
                reply = double._answer(request)
                content = reply.bytes()
                self.send_response(reply.status)
                for name, value in ({"Content-Type": "application/json;charset=UTF-8"} | reply.headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content) + reply.hang))
                self.end_headers()
                try:
                    self.wfile.write(content)
                    self.wfile.flush()
                except OSError:
                    self.close_connection = True
                    return
                if reply.hang:
                    double._ended.wait()
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        return Handler
