// The MCP client for TypeScript signs in by its own OAuth code, and again for more.
// `node oauth.mjs URL CALL…`: each call is a tool and its arguments, as JSON.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, ...calls] = process.argv.slice(2);
const BACK = "http://127.0.0.1:1/back";
const told = (said) => console.log(JSON.stringify(said));

/** What a browser does, until it is sent back to the client. */
async function browse(url) {
  const cookies = new Map();
  for (let hop = 0; hop < 20; hop += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const set of answer.headers.getSetCookie()) {
      const [name, value] = set.split(";")[0].split(/=(.*)/s);
      cookies.set(name, value);
    }
    const next = answer.headers.get("location");
    if (!next) throw new Error(`${answer.status} ${await answer.text()}`);
    url = new URL(next, url);
    if (url.href.startsWith(BACK)) {
      const code = url.searchParams.get("code");
      if (!code) throw new Error(url.href);
      return code;
    }
  }
  throw new Error("redirects without an end");
}

const kept = {};
let wanted;
const authProvider = {
  redirectUrl: BACK,
  clientMetadata: {
    client_name: "interop",
    redirect_uris: [BACK],
    grant_types: ["authorization_code"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: (url) => (wanted = url),
};

async function connected() {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  const client = new Client({ name: "interop", version: "1.0.0" });
  await client.connect(transport);
  return { client, transport };
}

/** Does it; signs in where that is wanted, and does it again. */
async function signedIn(doIt, finish) {
  try {
    return await doIt();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await finish(await browse(wanted));
    told({ signed_in: kept.tokens.scope.split(" ").sort() });
    return await doIt();
  }
}

try {
  const first = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  const { client, transport } = await signedIn(connected, (code) => first.finishAuth(code));
  for (const call of calls) {
    const [name, args] = JSON.parse(call);
    const result = await signedIn(
      () => client.callTool({ name, arguments: args }),
      (code) => transport.finishAuth(code),
    );
    told({ tool: name, isError: result.isError ?? false, text: result.content[0].text });
  }
  await client.close();
} catch (error) {
  told({ failed: `${error.name}: ${error.message}` });
}
