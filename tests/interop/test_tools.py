"""A question answered with a database: the flow of progressive disclosure, by the official MCP client and over
gRPC, with the sample database that is there when none is set."""

import grpc
import pytest
from faces import Grpc, over_http, over_stdio
from harness import told
from repertoire.v1 import lookup_pb2

COUNT = {"query": "SELECT count(*) AS n FROM customers"}
LOCKED = (
    "The 'sql_query' tool requires the 'write_sql' skill to be loaded first.\n"
    "Please use load_skill('write_sql') before using this tool."
)


@pytest.fixture(params=["stdio", "bridge", "http-legacy"])
def connection(request, server, tmp_path):
    """MCP over a connection that lasts, with the set `gated`."""
    with (tmp_path / "stderr").open("w+") as errors:
        if request.param == "stdio":
            face = over_stdio(errors, "--data", str(tmp_path / "data"), mode="legacy", one_toolset=True)
        elif request.param == "bridge":
            face = over_stdio(errors, "--server", f"http://{server.address}", mode="legacy", one_toolset=True)
        else:
            face = over_http(server, "legacy")
            face.one_toolset = True
        yield lambda tool, **arguments: face.call(tool, arguments, "gated")
        face.close()


def text(result):
    (content,) = result.content
    return content.text


def test_an_agent_loads_the_skill_and_asks_the_database(connection):
    refused = connection("sql_query", **COUNT)
    assert (refused.is_error, text(refused)) == (True, LOCKED)

    loaded = connection("load_skill", skill_id="write_sql")
    assert not loaded.is_error
    level = text(loaded)
    assert level.startswith("## SQL Skill Activated\n")
    assert "- Dialect: sqlite" in level and "CREATE TABLE customers" in level and "# SQL Query Expert" in level
    assert "- `patterns`" in level

    # The connection keeps the session.
    answer = connection("sql_query", **COUNT)
    assert not answer.is_error, answer
    assert "42" in text(answer)
    assert answer.structured_content["rows"] == [[42]]

    patterns = connection("load_skill_detail", skill_id="write_sql", resource="patterns")
    assert not patterns.is_error and "CTE" in text(patterns)
    again = connection("load_skill", skill_id="write_sql")
    assert text(again).startswith("The skill 'write_sql' is already loaded")

    write = connection("sql_query", query="DELETE FROM customers")
    assert write.is_error and "DELETE operations not allowed in read-only mode" in text(write)
    assert connection("sql_query", **COUNT).structured_content["rows"] == [[42]]

    connection("unload_skill", skill_id="write_sql")
    assert text(connection("sql_query", **COUNT)) == LOCKED


def test_the_same_over_grpc_outlives_a_restart(start, tmp_path):
    server = start(data=tmp_path / "data").ready()
    face = Grpc(server)
    assert face.ask("CallTool", {"name": "sql_query", "arguments": COUNT})["message"] == LOCKED
    session = face.ask("LoadSkill", {"skill_id": "write_sql"})["session_id"]
    assert server.stop() == 0

    server = start(data=tmp_path / "data").ready()
    face = Grpc(server)
    call = {"session_id": session, "name": "sql_query", "arguments": COUNT}
    assert face.ask("CallTool", call)["structured"]["rows"] == [[42]]
    tables = face.ask("CallTool", {"session_id": session, "name": "sql_list_tables"})
    assert tables["content"] == "customers, orders, products"
    calls = face.ask("ListToolCalls", {})["calls"]
    assert [(call["tool"], call["error_code"]) for call in calls] == [
        ("sql_list_tables", ""), ("sql_query", ""), ("sql_query", "SKILL_NOT_LOADED"),
    ]
    assert session not in str(calls) and "SELECT" not in str(calls)


def test_a_worker_without_a_token_is_not_let_in(server):
    from repertoire.v1 import tool_host_pb2, tool_host_pb2_grpc

    host = tool_host_pb2_grpc.ToolHostStub(server.channel())
    skill = tool_host_pb2.ServedSkill(skill_id="a/b/c", methods=["m"])
    hello = tool_host_pb2.AttachRequest(hello=tool_host_pb2.Hello(name="w", skills=[skill]))
    with pytest.raises(grpc.RpcError) as refused:
        list(host.Attach(iter([hello]), timeout=10))
    assert told(refused.value)["ErrorInfo"]["reason"] == "WORKER_REFUSED"


def test_a_session_is_not_made_by_its_caller(server):
    request = lookup_pb2.LoadSkillRequest(skill_id="xlsx", session_id="0" * 32)
    with pytest.raises(grpc.RpcError) as refused:
        server.lookup().LoadSkill(request, timeout=10)
    assert told(refused.value)["ErrorInfo"]["reason"] == "SESSION_NOT_FOUND"
