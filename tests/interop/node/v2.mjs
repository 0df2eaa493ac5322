// The MCP client for TypeScript, version 2: revision 2026-07-28.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { run } from "./steps.mjs";

await run({
  async connect(server) {
    const client = new Client({ name: "interop", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
    const transport = server.url
      ? new StreamableHTTPClientTransport(new URL(server.url))
      : new StdioClientTransport({ ...server, stderr: "inherit" });
    await client.connect(transport);
    return client;
  },
  revision: (client) => client.getNegotiatedProtocolVersion(),
  call: (client, tool, options) => client.callTool(tool, options),
  hear(client, told) {
    client.setNotificationHandler("notifications/tools/list_changed", () => told("tools"));
    client.setNotificationHandler("notifications/prompts/list_changed", () => told("prompts"));
    client.setNotificationHandler("notifications/resources/list_changed", () => told("resources"));
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => told(params.uri));
  },
  async subscribe(client, uri) {
    const subscription = await client.listen({
      toolsListChanged: true,
      promptsListChanged: true,
      resourcesListChanged: true,
      resourceSubscriptions: [uri],
    });
    return () => subscription.close();
  },
  skills: (client) => new SkillsClient(client),
});
