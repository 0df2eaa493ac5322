"""The files of a folder that make a skill."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from repertoire_client._errors import refuse

MAX_FILES = 2_048
MAX_BYTES = 16 * 1024 * 1024

# What version control and tools make, and files that programs keep secrets in: the names that
# `repertoire publish` leaves out.
FOLDERS = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", "target", ".tox", ".nox"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".idea", "__MACOSX"}
)
FILES = frozenset(
    {".git", ".DS_Store", "Thumbs.db", "desktop.ini", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".envrc", ".netrc"}
    | {"_netrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials"}
)
ENDINGS = frozenset({"pyc", "pyo", "swp", "pem", "p12", "pfx", "jks", "keystore", "kdbx", "ppk"})
# Endings of `.env` files that hold no values of anybody's.
TEMPLATES = frozenset({"example", "sample", "template", "dist", "defaults", "md"})


def is_left_out(name: str) -> bool:
    """Whether a file of this name is no part of a skill."""
    lower = name.lower()
    ending = lower.rpartition(".")[2] if "." in lower else ""
    if lower == ".env" or (lower.startswith(".env.") and ending not in TEMPLATES):
        return True
    return name in FILES or lower in FILES or ending in ENDINGS or name.startswith("._") or name.endswith("~")


def read(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """Files by their paths inside the skill. Links are not followed. What there is is looked at before
    anything is read, so that a skill that is too large costs nothing."""
    top = Path(folder).resolve()
    paths, total = [], 0
    try:
        for path, size in _files(top, ""):
            if path.rpartition("/")[2] == ".skillignore":
                message = f"{path} says what stays out of the skill, which this client does not read"
                raise refuse("SKILL_INVALID", message, "Publish the folder with `repertoire publish`, which does")
            if len(paths) == MAX_FILES:
                raise refuse("SKILL_INVALID", f"the skill has more than {MAX_FILES} files")
            total += size
            if total > MAX_BYTES:
                raise refuse("SKILL_INVALID", f"with {path} the skill has more than {MAX_BYTES >> 20} MiB")
            paths.append(path)
        if not paths:
            message = "the folder has no file of a skill"
            raise refuse("SKILL_INVALID", message, "A skill is a folder with a SKILL.md")
        return {path: (top / path).read_bytes() for path in paths}
    except OSError as error:
        raise refuse("LOCAL_FILE_FAILED", f"{error.filename or top}: {error.strerror}") from error


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_symlink():
                continue
            if entry.is_dir():
                if entry.name not in FOLDERS:
                    yield from _files(folder / entry.name, f"{prefix}{entry.name}/")
            elif entry.is_file() and not is_left_out(entry.name):
                yield f"{prefix}{entry.name}", entry.stat().st_size
