"""The files of a folder that make a skill."""

from __future__ import annotations

import os
from pathlib import Path

from repertoire_client._errors import Refused, refuse

MAX_FILES = 2_048
MAX_BYTES = 16 * 1024 * 1024

# What version control and tools make, and files that programs keep secrets in: the names that
# `repertoire publish` leaves out. It also honours .gitignore and .skillignore, which this does not.
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
    """Files by their paths inside the skill. Links are not followed. Sizes are looked at before
    anything is read."""
    top = Path(folder).resolve()
    try:
        sizes = dict(_sizes(top, ""))
        if len(sizes) > MAX_FILES:
            raise _too_much(top, f"more than {MAX_FILES:,} files")
        if sum(sizes.values()) > MAX_BYTES:
            raise _too_much(top, f"more than {MAX_BYTES >> 20} MiB")
        return {path: (top / path).read_bytes() for path in sorted(sizes)}
    except OSError as error:
        message = f"{error.filename or top}: {error.strerror}"
        raise refuse("LOCAL_FILE_FAILED", message, "Name a folder that holds a SKILL.md") from error


def _too_much(folder: Path, what: str) -> Refused:
    return refuse("SKILL_INVALID", f"{folder} has {what}, which no skill may have", "Publish the skill's own folder")


def _sizes(folder: Path, prefix: str):
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                continue
            if entry.is_dir():
                if entry.name not in FOLDERS:
                    yield from _sizes(folder / entry.name, f"{prefix}{entry.name}/")
            elif entry.is_file() and not is_left_out(entry.name):
                yield f"{prefix}{entry.name}", entry.stat().st_size
