// What each client does, whichever SDK it is made of. Arguments: what to do, the
// target as JSON, more. Says what happens as a JSON document a line.

const [, , step, target, ...rest] = process.argv;
const server = JSON.parse(target);

export function say(document) {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

// `sdk` has what differs: how to connect, to call a tool, to hear of changes.
export async function run(sdk) {
  const client = await sdk.connect(server);
  try {
    await steps[step](client, sdk, ...rest);
  } finally {
    await client.close();
  }
  // Version 1 leaves timers behind, which would hold the process for seconds.
  process.exit();
}

async function all(list, page) {
  const items = [];
  let cursor;
  do {
    const answer = await list(cursor === undefined ? {} : { cursor });
    items.push(...answer[page]);
    cursor = answer.nextCursor;
  } while (cursor !== undefined);
  return items;
}

const steps = {
  async list(client, sdk) {
    say({ revision: sdk.revision(client) });
    say({ tools: (await all((p) => client.listTools(p), "tools")).map((tool) => tool.name) });
    say({ prompts: (await all((p) => client.listPrompts(p), "prompts")).map((prompt) => prompt.name) });
    say({ resources: (await all((p) => client.listResources(p), "resources")).map((resource) => resource.uri) });
  },

  // A call whose answer is held against its output schema, which the listing brings.
  async call(client, sdk, name, ...manyArguments) {
    await client.listTools();
    for (const one of manyArguments) {
      const { content, structuredContent, isError } = await sdk.call(client, { name, arguments: JSON.parse(one) });
      say({ content, structuredContent, isError: isError ?? false });
    }
  },

  async read(client, _sdk, ...uris) {
    for (const uri of uris) {
      try {
        const { contents } = await client.readResource({ uri });
        say({ contents: contents.map(({ uri, mimeType, text, blob }) => ({ uri, mimeType, text, blob })) });
      } catch (error) {
        say({ code: error.code });
      }
    }
  },

  // Says each change until it has heard of the resource and of all three lists.
  async subscribe(client, sdk, uri) {
    const missing = new Set(["tools", "prompts", "resources", uri]);
    const heard = new Promise((done) => {
      sdk.hear(client, (what) => {
        if (missing.delete(what)) say({ changed: what });
        if (missing.size === 0) done();
      });
    });
    const leave = await sdk.subscribe(client, uri);
    say({ subscribed: uri });
    await heard;
    await leave();
  },

  // Begins a call that would never end, and leaves it when it has begun; so often.
  async cancel(client, sdk, times) {
    let refused = 0;
    for (let left = Number(times); left > 0; ) {
      const leaving = new AbortController();
      const options = { signal: leaving.signal, onprogress: () => leaving.abort(), timeout: 20_000 };
      try {
        const early = await sdk.call(client, { name: "watch_skills", arguments: {} }, options);
        // What was freed is free soon, if not at once.
        refused += 1;
        if (!early.isError || refused === 1000) throw new Error(`not cancelled: ${JSON.stringify(early)}`);
      } catch (error) {
        if (!leaving.signal.aborted) throw error;
        left -= 1;
      }
    }
    const { isError } = await sdk.call(client, { name: "list_skills", arguments: { page_size: 1 } });
    say({ cancelled: Number(times), isError: isError ?? false });
  },

  // The Skills extension: each file of each skill, held against its digest.
  async skills(client, sdk) {
    const skills = sdk.skills(client);
    for (const skill of (await skills.list()).skills) {
      const files = [];
      for (const { uri } of skill.resources) {
        const { bytes, verified } = await skills.read(skill, uri);
        files.push({ uri, size: bytes.length, verified });
      }
      say({ skill: skill.uri, files });
    }
  },
};
