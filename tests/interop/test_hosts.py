"""The tools of every toolset, made into those of other models by the SDKs of their hosts."""

import json
import subprocess
from pathlib import Path

import anyio
import pytest
from harness import TOOLSETS, clean_environment, publish, skill_md, tools_of
from mcp import Client

HERE = Path(__file__).parent
# Of each type that an author may write.
DECLARED = """tool_configs:
  - name: of_every_type
    description: Takes everything.
    args:
      - {name: text, type: string, required: true, description: A text.}
      - {name: count, type: int, default: 3}
      - {name: share, type: float}
      - {name: exact, type: bool, default: false}
      - {name: items, type: array, default: []}
      - {name: options, type: object}
      - {name: anything, type: whatever}
"""


@pytest.fixture(scope="module")
def listed(server):
    """The tools of each toolset, as a client that has loaded a skill with tools sees them."""
    page = skill_md("with-tools").replace(b"---\n\n", DECLARED.encode() + b"---\n\n", 1)
    publish(server, "github/hosts/with-tools", {"SKILL.md": page})

    async def scenario():
        sets = {}
        for toolset in [None, *TOOLSETS]:
            target = f"http://{server.address}/mcp" + (f"/{toolset}" if toolset else "")
            async with Client(target, mode="legacy") as client:
                if "load_skill" in tools_of(toolset):
                    await client.call_tool("load_skill", {"skill_id": "with-tools"})
                tools, cursor = [], None
                while True:
                    page = await client.list_tools(cursor=cursor)
                    tools += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        break
                sets[toolset or "all"] = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        return sets

    return anyio.run(scenario)


def test_every_tool_of_every_toolset_is_converted_with_all_its_arguments(listed, hosts):
    done = subprocess.run(
        [hosts, HERE / "hosts" / "convert.py"],
        input=json.dumps(listed), env=clean_environment(), capture_output=True, text=True, timeout=50,
    )
    assert done.returncode == 0, done.stderr
    converted = json.loads(done.stdout)
    assert "of_every_type" in {tool["name"] for tool in listed["gated"]}
    for toolset, tools in listed.items():
        wanted = {
            tool["name"]: [
                sorted(tool["inputSchema"].get("properties", {})),
                sorted(tool["inputSchema"].get("required", [])),
            ]
            for tool in tools
        }
        assert converted[toolset] == {sdk: wanted for sdk in converted[toolset]}, toolset
        assert set(converted[toolset]) == {"google_genai", "openai_agents", "openai_agents_strict", "langchain"}
