// A client whose types are those of the OpenAPI document, as openapi-typescript writes
// them; it says as JSON what it was answered.

import createClient from "openapi-fetch";
import type { components, paths } from "./api.mjs";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });
const id = "github/acme/typescript-refunds";
const content = btoa("---\nname: typescript-refunds\ndescription: Pays customers back.\n---\n\nAsk for the order.\n");

const published = await client.POST("/api/v1/skills", {
  body: { skill_id: id, files: [{ path: "SKILL.md", content }] },
});
// The index follows what is published.
let found: string[] = [];
for (const end = Date.now() + 15_000; !found.includes(id) && Date.now() < end; ) {
  const { data } = await client.POST("/api/v1/skills:search", { body: { query: "typescript-refunds" } });
  found = data?.results.map((result) => result.id) ?? [];
}
const got = await client.GET("/api/v1/skills/{skill_id_1}/{skill_id_2}/{skill_id_3}", {
  params: {
    path: { skill_id_1: "github", skill_id_2: "acme", skill_id_3: "typescript-refunds" },
    query: { include_readme: false },
  },
});
const missing = await client.GET("/api/v1/skills/{skill_id}", { params: { path: { skill_id: "refundz" } } });
const problem: components["schemas"]["ProblemDetails"] | undefined = missing.error;

console.log(
  JSON.stringify({
    published: published.data?.outcome,
    found: found.includes(id),
    got: got.data?.skill?.description,
    missing: problem?.code,
  }),
);

// What the compiler must refuse: never called.
export async function mistakes() {
  // @ts-expect-error There is no such path.
  await client.GET("/api/v1/skill");
  // @ts-expect-error The path has a parameter.
  await client.GET("/api/v1/skills/{skill_id}");
  // @ts-expect-error A file has a path and content.
  await client.POST("/api/v1/skills", { body: { files: ["SKILL.md"] } });
  // @ts-expect-error A query is text.
  await client.POST("/api/v1/skills:search", { body: { query: 1 } });
  // @ts-expect-error A format is one of a list.
  await client.GET("/api/v1/skills/{skill_id}/export", { params: { path: { skill_id: "a" }, query: { format: "rar" } } });
  // @ts-expect-error An outcome is one of a list.
  return published.data?.outcome === "perhaps";
}
