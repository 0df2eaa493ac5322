// The MCP SDK for TypeScript, version 1: revisions up to 2025-11-25.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { run } from "./steps.mjs";

await run({
  async connect(server) {
    const client = new Client({ name: "interop", version: "1.0.0" });
    const transport = server.url
      ? new StreamableHTTPClientTransport(new URL(server.url))
      : new StdioClientTransport({ ...server, stderr: "inherit" });
    await client.connect(transport);
    this.transport = transport;
    return client;
  },
  // The client keeps it to itself; over HTTP the transport knows.
  revision: function () {
    return this.transport.protocolVersion ?? null;
  },
  call: (client, tool, options) => client.callTool(tool, undefined, options),
  hear(client, told) {
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => told("tools"));
    client.setNotificationHandler(PromptListChangedNotificationSchema, () => told("prompts"));
    client.setNotificationHandler(ResourceListChangedNotificationSchema, () => told("resources"));
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => told(params.uri));
  },
  async subscribe(client, uri) {
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  },
});
