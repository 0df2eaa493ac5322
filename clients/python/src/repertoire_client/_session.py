"""A skill that is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import json_format

from repertoire_client import v1

if TYPE_CHECKING:
    from repertoire_client._client import Client


class Answer(NamedTuple):
    """What a tool answered."""

    #: The result as text.
    text: str
    #: The result for programs. None: the handler gives none.
    value: dict[str, Any] | None


class Session:
    """A skill in a session of the server's, which unlocks its tools. A context manager, which unloads it."""

    def __init__(self, client: Client, loaded: v1.LoadSkillResponse) -> None:
        self._client = client
        #: The answer in full.
        self.loaded = loaded
        #: Names the session; another skill is loaded into it with `client.load(skill, session=skill.id)`.
        self.id: str = loaded.session_id
        self.skill_id: str = loaded.skill_id
        #: What an agent reads: the instructions, the tools and the resources.
        self.content: str = loaded.content
        self.tools: list[str] = list(loaded.tools)
        self.resources: list[str] = list(loaded.resources)

    def call(self, tool: str, /, **arguments: Any) -> Answer:
        """Calls a tool. It is sent again only where the server says that it never began."""
        request = v1.CallToolRequest(session_id=self.id, skill_id=self.skill_id, name=tool)
        # Without any, too: a tool without arguments is called with none.
        request.arguments.update(arguments)
        answer = self._client.lookup.CallTool(request)
        value = json_format.MessageToDict(answer.structured) if answer.HasField("structured") else None
        return Answer(answer.content, value)

    def read(self, resource: str) -> str:
        """Reads a resource: a file, or what a handler makes on request."""
        request = v1.LoadSkillDetailRequest(session_id=self.id, skill_id=self.skill_id, resource=resource)
        return self._client.lookup.LoadSkillDetail(request).content

    def unload(self) -> None:
        """Takes the skill out of its session; its tools are locked again."""
        self._client.lookup.UnloadSkill(v1.UnloadSkillRequest(session_id=self.id, skill_id=self.skill_id))

    close = unload

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.unload()
