"""The official MCP client for Python: over HTTP, over stdio with a server of its own, and
over stdio with the shared server behind it; in both eras of the protocol."""

import base64
import warnings

import anyio
import mcp_types as types
import pytest
from harness import BIN, clean_environment, publish, read_file, skill_md, tools_of, unlocked
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

SECONDS = 30
XLSX = "skill://builtin/repertoire/xlsx/SKILL.md"
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
# Those with a server whose bounds can be set.
SHARED = ["http", "bridge"]
NOT_FOUND = {"auto": -32602, "legacy": -32002}


@pytest.fixture(params=["http", "stdio", "bridge"])
def transport(request):
    return request.param


@pytest.fixture(params=["auto", "legacy"])
def mode(request):
    return request.param


@pytest.fixture
def connect(server, tmp_path, transport, mode):
    """Makes clients of the product."""
    log = (tmp_path / "stderr").open("a")

    def connect(behind=server, toolset=None, **more):
        option = ["--toolset", toolset or "all"]
        if transport == "http":
            target = f"http://{behind.address}/mcp" + (f"/{toolset}" if toolset else "")
            return Client(target, mode=mode, **more)
        if transport == "stdio":
            arguments = ["mcp", "--data", str(tmp_path / "own"), *option]
        else:
            arguments = ["mcp", "--server", f"http://{behind.address}", *option]
        program = StdioServerParameters(command=BIN, args=arguments, env=clean_environment())
        return Client(stdio_client(program, errlog=log), mode=mode, **more)

    yield connect
    log.close()


def run(scenario):
    """Runs a scenario within a bound."""

    async def bounded():
        with anyio.fail_after(SECONDS):
            return await scenario()

    with warnings.catch_warnings():
        # The client warns of what the newest revision gave up, which the older one still has.
        warnings.simplefilter("ignore")
        return anyio.run(bounded)


async def everything(lists, page):
    """The items of all pages of a list."""
    items, cursor = [], None
    while True:
        answer = await lists(cursor=cursor)
        items += getattr(answer, page)
        cursor = answer.next_cursor
        if cursor is None:
            return items


def test_the_newest_revision_that_both_speak_is_agreed_on(connect, mode):
    async def scenario():
        async with connect() as client:
            return client.protocol_version, client.server_info.name

    assert run(scenario) == (REVISIONS[mode], "repertoire")


def test_the_tools_are_those_of_the_contract(connect):
    async def scenario():
        async with connect() as client:
            return await everything(client.list_tools, "tools")

    tools = run(scenario)
    assert sorted(tool.name for tool in tools) == sorted(tools_of())
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)
    assert {tool.name for tool in tools if not tool.title} == unlocked()


def test_a_call_answers_with_the_text_and_its_structure(server, connect):
    async def scenario():
        async with connect(toolset="skills") as client:
            used = await client.call_tool("skill", {"command": "XLSX"})
            read = await client.call_tool("get_skill", {"uri": XLSX})
            return used, read

    used, read = run(scenario)
    text = read_file(server, "xlsx", "SKILL.md").decode()
    assert (used.is_error, [c.text for c in used.content]) == (False, [text])
    assert used.structured_content["skill_id"] == "builtin/repertoire/xlsx"
    assert (read.is_error, [c.text for c in read.content]) == (False, [text])
    assert read.structured_content == {"uri": XLSX, "mimeType": "text/markdown", "text": text}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "Required"),
        ({"command": ""}, "Skill name cannot be empty"),
        ({"command": "xlsx", "extra": 1}, "Unrecognized key(s) in object: 'extra'"),
        ({"command": 7}, "Expected string, received number"),
        ({"command": "no-such-skill"}, "no-such-skill"),
    ],
)
def test_a_refusal_is_a_result_that_says_what_is_wrong(connect, arguments, sentence):
    async def scenario():
        async with connect(toolset="skills") as client:
            return await client.call_tool("skill", arguments)

    result = run(scenario)
    assert result.is_error
    assert sentence in result.content[0].text


def test_a_tool_that_does_not_exist_is_a_fault_of_the_caller(connect):
    async def scenario():
        async with connect() as client:
            with pytest.raises(MCPError) as refusal:
                await client.call_tool("no_such_tool", {})
            return refusal.value.code

    assert run(scenario) == types.INVALID_PARAMS


def test_a_resource_is_the_file_byte_for_byte(server, connect, mode):
    async def scenario():
        async with connect() as client:
            read = await client.read_resource(XLSX)
            with pytest.raises(MCPError) as refusal:
                await client.read_resource("skill://builtin/repertoire/no-such-skill/SKILL.md")
            return read.contents, refusal.value.code

    contents, code = run(scenario)
    text = read_file(server, "xlsx", "SKILL.md").decode()
    assert [(c.uri, c.mime_type, c.text) for c in contents] == [(XLSX, "text/markdown", text)]
    assert code == NOT_FOUND[mode]


def test_each_skill_is_a_resource(connect):
    async def scenario():
        async with connect() as client:
            return await everything(client.list_resources, "resources")

    listed = {resource.uri: resource for resource in run(scenario)}
    xlsx = listed[XLSX]
    assert (xlsx.name, xlsx.mime_type) == ("xlsx", "text/markdown")
    assert xlsx.description


def test_each_skill_is_a_prompt(server, connect):
    async def scenario():
        async with connect() as client:
            prompts = await everything(client.list_prompts, "prompts")
            return prompts, await client.get_prompt("xlsx")

    prompts, got = run(scenario)
    assert {"jira", "write_sql", "xlsx"} <= {prompt.name for prompt in prompts}
    text = read_file(server, "xlsx", "SKILL.md").decode()
    assert text in "".join(message.content.text for message in got.messages)


def test_each_part_of_an_address_is_completed(connect):
    by_id, by_name = "skill://{source}/{author}/{name}/{+path}", "skill://{name}"
    asked = [
        (by_id, "source", "bui", {}),
        (by_id, "author", "rep", {"source": "builtin"}),
        (by_id, "name", "xl", {"source": "builtin", "author": "repertoire"}),
        (by_id, "path", "SK", {"source": "builtin", "author": "repertoire", "name": "xlsx"}),
        (by_name, "name", "XL", {}),
        (by_id, "path", "", {"source": "builtin", "author": "repertoire", "name": "no-such-skill"}),
        (by_name, "name", "no-such", {}),
    ]

    async def scenario():
        async with connect() as client:
            templates = (await client.list_resource_templates()).resource_templates
            found = []
            for template, name, value, known in asked:
                reference = types.ResourceTemplateReference(uri=template)
                answer = await client.complete(reference, {"name": name, "value": value}, known)
                found.append(answer.completion.values)
            return {template.uri_template for template in templates}, found

    assert run(scenario) == (
        {by_id, by_name},
        [["builtin"], ["repertoire"], ["xlsx"], ["SKILL.md"], ["xlsx"], [], []],
    )


WATCHED = "skill://github/python/{}/SKILL.md"


async def next_version(server, client, transport, name, description, body="# Steps\n"):
    """Publishes: through gRPC, or where the server is out of reach, by its tool."""
    content = skill_md(name, body, description=description)
    if transport != "stdio":
        await anyio.to_thread.run_sync(publish, server, f"github/python/{name}", {"SKILL.md": content})
        return
    files = [{"path": "SKILL.md", "content": base64.b64encode(content).decode()}]
    result = await client.call_tool("publish_skill", {"skill_id": f"github/python/{name}", "files": files})
    assert not result.is_error, result


def test_a_change_is_told_to_whoever_listens(server, connect, transport, mode):
    name = f"told-{transport}-{mode}"
    uri = WATCHED.format(name)

    async def listening():
        async with connect() as client:
            await next_version(server, client, transport, name, "Before.", "Body 1\n")
            seen = set()
            async with client.listen(
                tools_list_changed=True,
                prompts_list_changed=True,
                resources_list_changed=True,
                resource_subscriptions=[uri],
            ) as changes:
                await next_version(server, client, transport, name, "After.", "Body 2\n")
                async for change in changes:
                    seen.add(change)
                    if len(seen) == 4:
                        break
            listed = {r.uri: r.description for r in await everything(client.list_resources, "resources")}
            read = await client.read_resource(uri)
            return seen, listed[uri], read.contents[0].text

    async def subscribing():
        told, seen = anyio.create_memory_object_stream(100)

        async def hear(message):
            await told.send(message)

        async with connect(message_handler=hear) as client:
            await next_version(server, client, transport, name, "Before.", "Body 1\n")
            await client.subscribe_resource(uri)
            await next_version(server, client, transport, name, "After.", "Body 2\n")
            changes = set()
            async for message in seen:
                match message:
                    case types.ToolListChangedNotification():
                        changes.add(ToolsListChanged())
                    case types.PromptListChangedNotification():
                        changes.add(PromptsListChanged())
                    case types.ResourceListChangedNotification():
                        changes.add(ResourcesListChanged())
                    case types.ResourceUpdatedNotification():
                        changes.add(ResourceUpdated(uri=message.params.uri))
                if len(changes) == 4:
                    break
            listed = {r.uri: r.description for r in await everything(client.list_resources, "resources")}
            read = await client.read_resource(uri)
            return changes, listed[uri], read.contents[0].text

    seen, description, text = run(listening if mode == "auto" else subscribing)
    assert seen == {ToolsListChanged(), PromptsListChanged(), ResourcesListChanged(), ResourceUpdated(uri=uri)}
    assert (description, text) == ("After.", skill_md(name, "Body 2\n", description="After.").decode())


@pytest.mark.parametrize("transport", SHARED)
def test_a_cancelled_call_frees_what_it_held(start, tmp_path, connect):
    # Three streams at once: a call that went on after its end would take one for good.
    (tmp_path / "config.yaml").write_text("limits:\n  streams: 3\n")
    server = start("--config", str(tmp_path / "config.yaml")).ready()

    async def watch_and_leave(client):
        async with anyio.create_task_group() as tasks:

            async def began(*_):
                tasks.cancel_scope.cancel()

            return await client.call_tool("watch_skills", {}, progress_callback=began)

    async def scenario():
        async with connect(server, toolset="skills") as client:
            refused = 0
            for _ in range(10):
                # What was freed is free soon, if not at once.
                while (early := await watch_and_leave(client)) is not None:
                    refused += 1
                    assert early.is_error and refused < 1000, early
            return await client.call_tool("list_skills", {"page_size": 1})

    assert not run(scenario).is_error


@pytest.mark.parametrize("transport", SHARED)
def test_an_agent_that_asked_for_progress_hears_how_far_its_sync_is(start, tmp_path, connect):
    folder = tmp_path / "skills"
    for name in [f"skill-{number}" for number in range(50)]:
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_bytes(skill_md(name))
    config = tmp_path / "sources.yaml"
    config.write_text(
        f"sources:\n  team:\n    kind: directory\n    location: {folder}\n"
        "    namespace: team/shared\n    interval_seconds: 0\n"
    )
    server = start("--config", str(config)).ready()
    told = []

    async def scenario():
        async with connect(server, toolset="sync") as client:

            async def hear(progress, total, message):
                told.append((progress, message))

            return await client.call_tool("refresh_index", {}, progress_callback=hear)

    answer = run(scenario)
    assert answer.structured_content["data"]["total_skills_updated"] == 50
    # It increases with each notification (MCP, "Progress").
    heard = [progress for progress, _ in told]
    assert heard == sorted(set(heard))
    # Steps that come faster than they are read are left out, and what comes after the answer is late.
    sync_id = answer.structured_content["data"]["sync_id"]
    assert any(sync_id in message for _, message in told), told
