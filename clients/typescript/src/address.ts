/** Where a server is, and whether what goes there can be read on the way. */

import { BlockList, isIP } from "node:net";
import { refuse } from "./errors.js";

const HINT = "Write it as https://HOST, http://HOST:PORT, or HOST:PORT";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8);
loopback.addAddress("::1", "ipv6");

/** Reads the address of a server. */
export function parse(text: string): URL {
  if (text.includes("@")) {
    // It is not repeated: a log may have it.
    throw refuse("INVALID_PARAMETER", "the address of the server has a user or a password", [HINT]);
  }
  const wrong = (why: string) => refuse("INVALID_PARAMETER", `'${text}' is not the address of a server: ${why}`, [HINT]);
  const isBare = !text.includes("://");
  if (isBare && !/:\d+$/.test(text)) throw wrong("it has no port");
  if (!URL.canParse(isBare ? `http://${text}` : text)) throw wrong("it is no URL");
  const url = new URL(isBare ? `http://${text}` : text);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw wrong("it begins with neither http:// nor https://");
  if (url.pathname !== "/" || url.search || url.hash) throw wrong("gRPC has no paths below an address");
  return url;
}

/** What is sent there stays on this machine. */
export function isLocal({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(host);
  return host === "localhost" || (family !== 0 && loopback.check(host, family === 6 ? "ipv6" : "ipv4"));
}
