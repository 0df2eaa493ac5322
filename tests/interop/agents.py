"""An agent at work: it loads a skill into a session and calls the tools that this unlocks.

Over gRPC and REST it keeps the session itself; over MCP it takes the set `gated`, where each tool has its
own name and the connection keeps the session. What a tool answers, and why it does not, is the same.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import faces

FACES = ("grpc", "rest", "mcp")
ERRORS = Path(__file__).parents[2] / "docs" / "errors.md"
ROWS = re.findall(r"^\| `(\w+)` \| (\d+) \| (\w+) \|", ERRORS.read_text(), re.MULTILINE)
NUMBERS = {code: int(number) for code, number, _ in ROWS}
# Those which may pass by themselves say after which time to try again; this one, where nothing else is known.
PASSING = {code: 250 for code, _, status in ROWS if status in ("Unavailable", "ResourceExhausted", "Aborted")}


@dataclass
class Answer:
    """What a tool answered."""

    text: str
    structured: dict | None


class Agent:
    """An agent over one face of a server."""

    def __init__(self, face, server):
        self.over = face
        self.session = ""
        self.loaded = set()
        if face == "mcp":
            self.face = faces.over_http(server, "legacy")
            self.face.one_toolset = True
        else:
            self.face = {"grpc": faces.Grpc, "rest": faces.Rest}[face](server)

    def load(self, skill):
        """Loads a skill; the text of its level 2."""
        self.loaded.add(skill.rsplit("/", 1)[-1])
        if self.over == "mcp":
            result = self.face.call("load_skill", {"skill_id": skill}, "gated")
            assert not result.is_error, result
            self.session = result.structured_content["session_id"]
            (content,) = result.content
            assert content.text == result.structured_content["content"]
            return content.text
        loaded = self.face.ask("LoadSkill", {"skill_id": skill, "session_id": self.session})
        assert not isinstance(loaded, faces.Refused), loaded
        self.session = loaded["session_id"]
        return loaded["content"]

    def tools(self):
        """The names of the tools that are unlocked and that something runs."""
        if self.over == "mcp":
            client = self.face.client("gated")
            listed = self.face.portal.call(client.list_tools).tools
            needs = [(tool, re.search(r"(?:^|\n\n)Needs the skill '(.+?)':", tool.description)) for tool in listed]
            mine = [tool for tool, skill in needs if skill and skill[1] in self.loaded]
            return {tool.name for tool in mine if "Nothing runs it now" not in tool.description}
        listed = self.face.ask("ListTools", {"session_id": self.session})["tools"]
        return {tool["name"] for tool in listed if tool["loaded"] and tool["available"]}

    def call(self, tool, **arguments):
        """Calls a tool: its answer, or the refusal."""
        if self.over == "mcp":
            return self._outcome(self.face.call(tool, arguments, "gated"))
        return self.call_by_name(tool, **arguments)

    def call_by_name(self, tool, **arguments):
        """Calls a tool by `CallTool`, which every face has."""
        asked = {"session_id": self.session, "name": tool, "arguments": arguments}
        if self.over == "mcp":
            return self._outcome(self.face.call("call_tool", asked, "gated"), envelope=True)
        answer = self.face.ask("CallTool", asked)
        if isinstance(answer, faces.Refused):
            return answer
        return Answer(answer["content"], answer.get("structured"))

    @staticmethod
    def _outcome(result, envelope=False):
        (content,) = result.content
        if result.is_error:
            error = faces.of_mcp(result.meta["repertoire.v1/error"])
            assert content.text == faces.sentence(error), content.text
            return error
        structured = result.structured_content
        return Answer(content.text, structured.get("structured") if envelope and structured else structured)

    def close(self):
        self.face.close()


def refusal(code, message, *steps, field=None, retry_seconds=None, **facts):
    """A refusal, as every face tells it."""
    fields = [(f"arguments.{field}", message)] if field else []
    retry = PASSING.get(code) if retry_seconds is None else retry_seconds * 1000
    return faces.refused(
        code,
        message,
        facts | {"number": NUMBERS[code]},
        [{"field": field, "message": text} for field, text in fields],
        list(steps),
        retry,
    )


def everything(outcome):
    """An outcome as one text, to look for what must not be in it."""
    return json.dumps(outcome if isinstance(outcome, dict) else [outcome.text, outcome.structured], ensure_ascii=False)
