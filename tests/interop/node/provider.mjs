// An issuer of OpenID Connect on this machine, where `ada` signs in and consents without being
// asked. `node provider.mjs RESOURCE SCOPES`: says where it is, then the scopes that each token
// was asked for with.

import { createServer } from "node:http";
import Provider from "oidc-provider";

const [resource, scopes] = process.argv.slice(2);
// The provider's own notices: the test reads the other stream.
console.info = console.error;
const told = (said) => console.log(JSON.stringify(said));
const server = createServer();
// Longer than a client keeps an idle connection: Node's 5 s are httpx's, too, and then a request
// may meet the end of its connection.
server.keepAliveTimeout = 60_000;
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  cookies: { keys: ["made for these tests"] },
  // Programs on this machine: they come back to a port of it.
  clientDefaults: { application_type: "native" },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      // Without the format they would be opaque.
      getResourceServerInfo: (_, audience) => ({ scope: scopes, audience, accessTokenFormat: "jwt", accessTokenTTL: 600 }),
    },
  },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  ttl: { Session: 600, Grant: 600, Interaction: 600 },
});

async function interact(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    return provider.interactionFinished(request, response, { login: { accountId: "ada" } });
  }
  const { Grant } = provider;
  const grant = grantId ? await Grant.find(grantId) : new Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  grant.addResourceScope(params.resource ?? resource, params.scope);
  const consent = { grantId: await grant.save() };
  told({ asked: params.scope.split(" ").sort(), resource: params.resource, challenge: params.code_challenge_method });
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

/** A client registers with the scopes of its first challenge; here it may ask for others later. */
async function register(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const { scope, ...metadata } = JSON.parse(Buffer.concat(pieces).toString());
  request.body = metadata;
}

const answer = provider.callback();
server.on("request", async (request, response) => {
  if (request.url === "/reg" && request.method === "POST") await register(request);
  if (!request.url.startsWith("/interaction/")) return answer(request, response);
  interact(request, response).catch((error) => {
    response.statusCode = 500;
    response.end(String(error.stack));
  });
});
told({ issuer });
