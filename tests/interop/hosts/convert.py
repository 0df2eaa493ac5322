"""Makes tools of an MCP server into those of other models, as the SDKs of their hosts do.

Reads lists of tools as JSON by the names of their sets; writes, for each set and SDK, the
names of the tools with those of their arguments. Nothing is asked over a network.
"""

import json
import sys

from agents.mcp import MCPServerStdio
from agents.mcp.util import MCPUtil
from google.genai._mcp_utils import mcp_to_gemini_tools
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
from mcp.types import Tool

# What is converted is never called: the server is only named.
SERVER = MCPServerStdio({"command": "repertoire"}, name="repertoire", require_approval="never")
CONNECTION = {"transport": "stdio", "command": "repertoire", "args": ["mcp"]}


def google_genai(tools):
    for tool in mcp_to_gemini_tools(tools):
        (declared,) = tool.function_declarations
        parameters = declared.parameters
        # The request that would be sent can be written.
        tool.model_dump_json(exclude_none=True)
        assert declared.description, declared
        yield declared.name, parameters.properties or {}, parameters.required or []


def openai_agents(tools):
    for tool in tools:
        made = MCPUtil.to_function_tool(tool, SERVER, False)
        assert made.description, made
        yield made.name, made.params_json_schema["properties"], made.params_json_schema.get("required", [])


def openai_agents_strict(tools):
    """Where the schema has a strict form, it has all arguments; else the SDK takes it as it is."""
    for tool in tools:
        made = MCPUtil.to_function_tool(tool, SERVER, True)
        schema = made.params_json_schema
        if made.strict_json_schema:
            assert sorted(schema["required"]) == sorted(schema["properties"]), schema
        yield made.name, schema["properties"], tool.inputSchema.get("required", [])


def langchain(tools):
    for tool in tools:
        made = convert_mcp_tool_to_langchain_tool(None, tool, connection=CONNECTION)
        declared = convert_to_openai_tool(made)["function"]
        assert declared["description"], declared
        parameters = declared["parameters"]
        yield declared["name"], parameters["properties"], parameters.get("required", [])


SDKS = [google_genai, openai_agents, openai_agents_strict, langchain]


def main():
    sets = json.load(sys.stdin)
    converted = {
        name: {
            sdk.__name__: {tool: [sorted(properties), sorted(required)] for tool, properties, required in sdk(tools)}
            for sdk in SDKS
        }
        for name, tools in ((name, [Tool.model_validate(tool) for tool in tools]) for name, tools in sets.items())
    }
    json.dump(converted, sys.stdout)


if __name__ == "__main__":
    main()
