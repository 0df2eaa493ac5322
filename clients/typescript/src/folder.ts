/** The files of a folder that make a skill. */

import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { RepertoireError, refuse } from "./errors.js";

const MAX_FILES = 2_048;
const MAX_BYTES = 16 * 1024 * 1024;

// What version control and tools make, and files that programs keep secrets in: the names that
// `repertoire publish` leaves out.
const words = (text: string) => new Set(text.split(" "));
const FOLDERS = words(
  ".git .hg .svn node_modules __pycache__ .venv venv target .tox .nox .mypy_cache .pytest_cache .ruff_cache .gradle .idea __MACOSX",
);
const FILES = words(".git .hg .svn .DS_Store Thumbs.db desktop.ini");
const SECRETS = words(
  "id_rsa id_dsa id_ecdsa id_ed25519 .env .envrc .netrc _netrc .pypirc .pgpass .my.cnf .htpasswd .git-credentials",
);
const ENDINGS = words("pyc pyo swp pem p12 pfx jks keystore kdbx ppk");
// Endings of `.env` files that hold no values of anybody's.
const TEMPLATES = words("example sample template dist defaults md");

function isLeftOut(name: string): boolean {
  const lower = name.toLowerCase();
  const ending = lower.includes(".") ? lower.slice(lower.lastIndexOf(".") + 1) : "";
  if (lower.startsWith(".env.") && !TEMPLATES.has(ending)) return true;
  return FILES.has(name) || SECRETS.has(lower) || ENDINGS.has(ending) || name.startsWith("._") || name.endsWith("~");
}

async function* list(folder: string, prefix: string): AsyncIterable<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    // Links are neither, and not followed.
    if (entry.isDirectory() && !FOLDERS.has(entry.name)) {
      yield* list(join(folder, entry.name), `${prefix}${entry.name}/`);
    } else if (entry.isFile() && !isLeftOut(entry.name)) {
      yield `${prefix}${entry.name}`;
    }
  }
}

/**
 * Files with their paths inside the skill. What there is is looked at before anything is read, so that a
 * skill that is too large costs nothing.
 */
export async function read(folder: string): Promise<{ path: string; content: Uint8Array }[]> {
  const invalid = (message: string, ...next: string[]) => refuse("SKILL_INVALID", message, next);
  const paths: string[] = [];
  let total = 0;
  try {
    for await (const path of list(folder, "")) {
      if (/(^|\/)\.skillignore$/.test(path)) {
        const message = `${path} says what stays out of the skill, which this client does not read`;
        throw invalid(message, "Publish the folder with `repertoire publish`, which does");
      }
      if (paths.length === MAX_FILES) throw invalid(`the skill has more than ${MAX_FILES} files`);
      total += (await lstat(join(folder, path))).size;
      if (total > MAX_BYTES) throw invalid(`with ${path} the skill has more than ${MAX_BYTES >> 20} MiB`);
      paths.push(path);
    }
    if (paths.length === 0) throw invalid("the folder has no file of a skill", "A skill is a folder with a SKILL.md");
    const files = [];
    for (const path of paths) files.push({ path, content: new Uint8Array(await readFile(join(folder, path))) });
    return files;
  } catch (error) {
    if (error instanceof RepertoireError) throw error;
    throw refuse("LOCAL_FILE_FAILED", (error as Error).message, [], error);
  }
}
