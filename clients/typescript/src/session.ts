/** A skill that is loaded. */

import type { JsonObject } from "@bufbuild/protobuf";
import type { Client } from "./client.js";
import type { LoadSkillResponse } from "./generated/repertoire/v1/lookup_pb.js";

/** What a tool answered. */
export interface Answer {
  /** The result as text. */
  text: string;
  /** The result for programs; undefined: the handler gives none. */
  value: JsonObject | undefined;
}

/** A skill in a session of the server's, which unlocks its tools. */
export class Session {
  /** Names the session; another skill is loaded into it with `client.load(skill, { session: skill.id })`. */
  readonly id: string;
  readonly skillId: string;
  /** What an agent reads: the instructions, the tools and the resources. */
  readonly content: string;
  readonly tools: string[];
  readonly resources: string[];

  constructor(
    private readonly client: Client,
    /** The answer in full. */
    readonly loaded: LoadSkillResponse,
  ) {
    this.id = loaded.sessionId;
    ({ skillId: this.skillId, content: this.content, tools: this.tools, resources: this.resources } = loaded);
  }

  /** Calls a tool. It is sent again only where the server says that it never began. */
  async call(tool: string, args: JsonObject = {}): Promise<Answer> {
    const { id: sessionId, skillId } = this;
    const answer = await this.client.lookup.callTool({ sessionId, skillId, name: tool, arguments: args });
    return { text: answer.content, value: answer.structured };
  }

  /** Reads a resource: a file, or what a handler makes on request. */
  async read(resource: string): Promise<string> {
    const { id: sessionId, skillId } = this;
    return (await this.client.lookup.loadSkillDetail({ sessionId, skillId, resource })).content;
  }

  /** Takes the skill out of its session; its tools are locked again. */
  async unload(): Promise<void> {
    await this.client.lookup.unloadSkill({ sessionId: this.id, skillId: this.skillId });
  }
}
