"""The faces of the server, each of which takes the same request and gives the same answer.

A request is the name of an rpc and JSON arguments; an answer is JSON, or a refusal. How
messages become JSON, and which tool and route an rpc has, is worked out here from what the
proto files say, independently of the server.
"""

import base64
import http.client
import json
import re
import warnings
from datetime import datetime, timezone
from urllib.parse import quote, urlencode

import grpc
from anyio.from_thread import start_blocking_portal
from google.api import annotations_pb2
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass
from harness import BIN, CALL_SECONDS, SERVICES, clean_environment, told
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from repertoire.v1 import options_pb2

RPCS = {method.name: method for service in SERVICES for method in service.methods}
FREE = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def tools(rpc):
    """How an rpc appears as a tool."""
    return RPCS[rpc].GetOptions().Extensions[options_pb2.tool]


def tool_name(rpc):
    return tools(rpc)[0].name or snake(rpc)


def option(field):
    return field.GetOptions().Extensions[options_pb2.field]


def json_name(field):
    return option(field).json or field.name


def short(enum, number):
    """`official` of `TRUST_TIER_OFFICIAL`."""
    return enum.values_by_number[number].name.removeprefix(snake(enum.name).upper() + "_").lower()


def time(stamp):
    """RFC 3339, with the digits that the fraction needs."""
    fraction = f"{stamp.nanos:09}".rstrip("0")
    whole = datetime.fromtimestamp(stamp.seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def to_json(message):
    """A message as the other faces show it."""
    kind = message.DESCRIPTOR.full_name
    if kind == "google.protobuf.Timestamp":
        return time(message)
    if kind in FREE:
        return json_format.MessageToDict(message)
    shown = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        absent = not message.HasField(field.name) if field.has_presence else option(field).omit_empty and not value
        if not absent:
            one = _writer(field)
            shown[json_name(field)] = [one(item) for item in value] if field.is_repeated else one(value)
    return shown


def _writer(field):
    if field.message_type:
        return to_json
    if field.enum_type:
        return lambda number: short(field.enum_type, number)
    if field.type == field.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode()
    return lambda value: value


def from_json(message, arguments):
    """Fills a message in with what the other faces take."""
    if message.DESCRIPTOR.full_name in (*FREE, "google.protobuf.Timestamp"):
        return json_format.ParseDict(arguments, message)
    for field in message.DESCRIPTOR.fields:
        if json_name(field) not in arguments:
            continue
        value = arguments[json_name(field)]
        if field.message_type and field.is_repeated:
            for item in value:
                from_json(getattr(message, field.name).add(), item)
        elif field.message_type:
            from_json(getattr(message, field.name), value)
        elif field.is_repeated:
            getattr(message, field.name).extend(_reader(field)(item) for item in value)
        else:
            setattr(message, field.name, _reader(field)(value))
    return message


def _reader(field):
    if field.enum_type:
        numbers = {short(field.enum_type, number): number for number in field.enum_type.values_by_number}
        return numbers.__getitem__
    if field.type == field.TYPE_BYTES:
        return base64.b64decode
    return lambda value: value


def takes(names):
    """What a refusal of a wrong argument says besides."""
    return f"It takes: {', '.join(names)}" if names else "It takes no arguments"


def as_others(refusal, names):
    """A refusal without the arguments that this face takes, which are those of the contract."""
    told = [step for step in refusal["suggestions"] if step.startswith("It takes")]
    assert told in ([], [takes(names)]), refusal
    refusal["suggestions"] = [step.split(":")[0] for step in refusal["suggestions"]] if told else refusal["suggestions"]
    return refusal


class Refused(dict):
    """A refusal: `code`, `message`, `facts`, `fields`, `suggestions`, `retry_after_ms`."""

    # The HTTP status, where the face has one, or something that goes with one.
    status = None


def refused(code, message, facts, fields, suggestions, retry_after_ms, status=None):
    fields = [(field["field"], field["message"]) for field in fields]
    if "validation_errors" in facts:
        # Their sentences, which the fields have as well, have no room in the metadata of gRPC.
        errors = facts["validation_errors"]
        errors = json.loads(errors) if isinstance(errors, str) else errors
        facts = {**facts, "validation_errors": [{**error, "message": None} for error in errors]}
    told = Refused(
        code=code, message=message, facts=facts, fields=fields, suggestions=suggestions, retry_after_ms=retry_after_ms
    )
    told.status = status
    return told


# What a gRPC status is as an HTTP status.
STATUSES = {
    "INVALID_ARGUMENT": 400,
    "OUT_OF_RANGE": 400,
    "NOT_FOUND": 404,
    "FAILED_PRECONDITION": 409,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "PERMISSION_DENIED": 403,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class Grpc:
    """gRPC by a generated client, which every other face is compared with."""

    def __init__(self, server):
        self.channel = server.channel()
        # How long a caller waits.
        self.seconds = CALL_SECONDS

    def ask(self, rpc, arguments):
        method = RPCS[rpc]
        path = f"/{method.containing_service.full_name}/{method.name}"
        kind = self.channel.unary_stream if method.server_streaming else self.channel.unary_unary
        call = kind(
            path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        request = from_json(GetMessageClass(method.input_type)(), arguments)
        try:
            answer = call(request, timeout=self.seconds)
            return [to_json(one) for one in answer] if method.server_streaming else to_json(answer)
        except grpc.RpcError as error:
            status = told(error)
            info = status["ErrorInfo"]
            assert info["domain"] == "repertoire", status
            facts = {name: value for name, value in info["metadata"].items() if name != "number"}
            violations = status.get("BadRequest", {}).get("fieldViolations", [])
            links = status.get("Help", {}).get("links", [])
            retry = status.get("RetryInfo")
            return refused(
                info["reason"],
                status["message"],
                facts | {"number": int(info["metadata"]["number"])},
                [{"field": one.get("field", ""), "message": one["description"]} for one in violations],
                [link["description"] for link in links],
                retry and round(float(retry["retryDelay"].rstrip("s")) * 1000),
                STATUSES[status["code"]],
            )

    def close(self):
        pass


def shown(rpc, answer):
    """What of an answer a model sees: texts, an image, a link."""
    fields = [json_name(field) for field in RPCS[rpc].output_type.fields if option(field).block]
    seen = [(name, answer[name]) for name in fields if answer.get(name)]
    return {
        "texts": [value for name, value in seen if name not in ("image", "link")],
        **{name: value for name, value in seen if name in ("image", "link")},
    }


class Mcp:
    """MCP by the official client: `connect` makes one for a toolset, or for all tools."""

    def __init__(self, connect, one_toolset):
        self.connect = connect
        self.one_toolset = one_toolset
        self._portal = start_blocking_portal()
        self.portal = self._portal.__enter__()
        self.clients = {}

    def client(self, toolset):
        toolset = toolset if self.one_toolset else None
        if toolset not in self.clients:
            manager = self.portal.wrap_async_context_manager(self.connect(toolset))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                client = manager.__enter__()
            self.clients[toolset] = client, manager
            # The client holds every answer against the schemas that it knows of.
            self.portal.call(client.list_tools)
        return self.clients[toolset][0]

    def call(self, tool, arguments, toolset):
        client = self.client(toolset)

        async def call():
            return await client.call_tool(tool, arguments, read_timeout_seconds=CALL_SECONDS)

        return self.portal.call(call)

    def read(self, uri):
        """The contents of a resource."""
        client = self.client("skills")
        (contents,) = self.portal.call(client.read_resource, uri).contents
        return contents

    def ask(self, rpc, arguments):
        (tool, *_) = tools(rpc)
        result = self.call(tool_name(rpc), arguments, tool.toolsets[0])
        structured, meta = result.structured_content, result.meta or {}
        names = [json_name(field) for field in RPCS[rpc].input_type.fields]
        names = [name for name in names if not tool.fields or name in tool.fields]
        if tool.envelope:
            return self._unwrapped(structured, result.is_error, meta, names)
        if tool.text_only and not result.is_error:
            return self._shown(rpc, result)
        (content,) = result.content
        if result.is_error:
            assert structured is None, result
            error = of_mcp(meta["repertoire.v1/error"])
            told = [line for line in content.text.split("\n") if not line.startswith(f"Next: {TWO_FORMS}")]
            assert "\n".join(told) == sentence(error)
            return as_others(error, names)
        assert "repertoire.v1/error" not in meta, result
        if RPCS[rpc].server_streaming:
            assert json.loads(content.text) == structured
            assert structured.keys() == {"messages", "left_out"} and structured["left_out"] == 0, structured
            return structured["messages"]
        shown = [json_name(field) for field in RPCS[rpc].output_type.fields if option(field).block]
        if shown:
            assert content.text == next(structured[name] for name in shown if structured.get(name))
        else:
            assert json.loads(content.text) == structured
        return structured

    @staticmethod
    def _shown(rpc, result):
        """The fields of an answer that a model sees: all that there is of it."""
        assert result.structured_content is None, result
        seen = {"texts": [block.text for block in result.content if block.type == "text" and block.text]}
        for block in result.content:
            match block.type:
                case "image":
                    seen["image"] = block.data
                case "resource_link":
                    seen["link"] = block.uri
        return seen

    def forget(self):
        """Ends the connections: each remembers the session that skills were loaded in."""
        for _, manager in self.clients.values():
            manager.__exit__(None, None, None)
        self.clients.clear()

    @staticmethod
    def _unwrapped(envelope, is_error, meta, names):
        metadata = envelope.pop("metadata")
        of_index = {"index_version"} if metadata.get("index_version") else set()
        assert metadata.keys() == {"execution_time_ms", "cached", "request_id"} | of_index, metadata
        assert metadata["request_id"] and metadata["cached"] is False, metadata
        assert metadata["execution_time_ms"] >= 0
        if is_error:
            assert envelope == {"success": False, "error": meta["repertoire.v1/error"]}, envelope
            return as_others(of_mcp(envelope["error"]), names)
        if "error" in envelope:
            # The answer says itself why the call did not do what it was asked.
            assert envelope.keys() == {"success", "data", "error"} and envelope["success"] is False, envelope
            return {**envelope["data"], "error": envelope["error"]}
        assert envelope.keys() == {"success", "data"} and envelope["success"] is True, envelope
        return envelope["data"]

    def close(self):
        for _, manager in self.clients.values():
            manager.__exit__(None, None, None)
        self._portal.__exit__(None, None, None)


TWO_FORMS = "It takes the arguments of one form: "


def of_mcp(error):
    """A refusal as MCP tells it."""
    assert error.keys() == {"code", "message", "details", "recovery_suggestions"}, error
    facts = dict(error["details"])
    fields, retry = facts.pop("fields", []), facts.pop("retry_after_ms", None)
    # Where two sets share a tool, its arguments have two forms, which no other face has.
    steps = [step for step in error["recovery_suggestions"] if not step.startswith(TWO_FORMS)]
    return refused(error["code"], error["message"], facts, fields, steps, retry)


def sentence(error):
    """What a model reads of a refusal."""
    lines = [error["message"]]
    for field, text in error["fields"]:
        if field and error["message"] != f"{field}: {text}":
            lines.append(f"Field {field}" + ("" if text == error["message"] else f": {text}"))
    return "\n".join(lines + [f"Next: {step}" for step in error["suggestions"]])


def over_http(server, mode):
    """MCP over HTTP."""

    def connect(toolset):
        return Client(f"http://{server.address}/mcp" + (f"/{toolset}" if toolset else ""), mode=mode)

    return Mcp(connect, one_toolset=mode == "auto")


def over_stdio(errors, *options, mode, one_toolset):
    """MCP over stdio, by a process of its own."""

    def connect(toolset):
        arguments = ["mcp", *options, "--toolset", toolset or "all"]
        program = StdioServerParameters(command=BIN, args=arguments, env=clean_environment())
        return Client(stdio_client(program, errlog=errors), mode=mode)

    return Mcp(connect, one_toolset)


class Rest:
    """REST, by the routes that the proto files give."""

    def __init__(self, server):
        self.server = server

    def ask(self, rpc, arguments):
        status, headers, body = exchange(self.server, *request(rpc, arguments))
        kind = headers["content-type"]
        if kind == "application/problem+json":
            problem = json.loads(body)
            assert problem["type"] == f"/errors#{problem['code']}" and problem["title"], problem
            assert problem["status"] == status, problem
            facts = problem.get("details", {}) | {"number": problem["number"]}
            errors, retry = problem.get("errors", []), problem.get("retry_after_ms")
            steps = problem["recovery_suggestions"]
            told = refused(problem["code"], problem["detail"], facts, errors, steps, retry, status)
            return as_others(told, [json_name(field) for field in RPCS[rpc].input_type.fields])
        assert status == 200, (status, body)
        if RPCS[rpc].server_streaming:
            assert kind == "text/event-stream"
            return [event["data"] for event in events(body.decode())]
        assert kind == "application/json"
        return json.loads(body)

    def close(self):
        pass


def exchange(server, verb, target, body=None, **headers):
    """One HTTP exchange: status, headers, body."""
    host, port = server.address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=CALL_SECONDS)
    try:
        if body is not None and not isinstance(body, bytes):
            body, headers = json.dumps(body), {"content_type": "application/json", **headers}
        connection.request(verb, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def events(text):
    """Server-sent events with data."""
    for block in text.split("\n\n"):
        lines = [line.split(": ", 1) for line in block.splitlines() if not line.startswith(":")]
        fields = {name: value for name, value in lines}
        if "data" in fields:
            assert fields.get("event") is None, fields
            yield {"id": fields.get("id"), "data": json.loads(fields["data"])}


def routes(rpc):
    """Verb, template and body of each route."""
    rule = RPCS[rpc].GetOptions().Extensions[annotations_pb2.http]
    for rule in (rule, *rule.additional_bindings):
        verb = rule.WhichOneof("pattern")
        if verb:
            yield verb.upper(), getattr(rule, verb), rule.body


def request(rpc, arguments):
    """Verb, target and body of the route that takes the arguments as they stand."""
    verb, template, body = next(
        (route for route in routes(rpc) if _suits(route[1], arguments)), next(iter(routes(rpc)))
    )
    rest = dict(arguments)
    path = template
    for variable, name, pattern in _variables(template):
        # A number that is left out is 0, which a path has to say.
        path = path.replace(variable, quote(str(rest.pop(name, 0)), safe="/" if pattern else ""))
    if body:
        return verb, path, rest
    pairs = [
        (name, str(item).lower() if isinstance(item, bool) else item)
        for name, value in rest.items()
        for item in (value if isinstance(value, list) else [value])
    ]
    return verb, path + ("?" + urlencode(pairs) if pairs else ""), None


def _variables(template):
    for variable in re.findall(r"\{[^}]+\}", template):
        name, _, pattern = variable.strip("{}").partition("=")
        yield variable, name, pattern


def _suits(template, arguments):
    """The values have as many segments as the template wants."""
    return all(
        pattern == "**" or str(arguments.get(name, 0)).count("/") == pattern.count("/")
        for _, name, pattern in _variables(template)
    )
