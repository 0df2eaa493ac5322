"""Claude Code itself: two of its windows on one data directory, and the skills that were installed for it."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import need
from harness import BIN, STOP_SECONDS, clean_environment, publish, skill_md

pytestmark = pytest.mark.timeout(120)

CLAUDE = Path(__file__).parent / ".tools" / "node" / "node_modules" / "@anthropic-ai" / "claude-code-linux-x64" / "claude"
SECONDS = 50


class Project:
    """A project of a person who has nothing else."""

    def __init__(self, folder):
        need(CLAUDE, "Claude Code")
        self.home, self.folder = folder / "home", folder / "project"
        self.home.mkdir()
        self.folder.mkdir()
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "NO_COLOR": "1"}
        # No model is asked: where it would be nobody listens.
        nobody = {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
        # Folders that the machine names for its person are none of this one's.
        kept = {k: v for k, v in clean_environment().items() if not k.startswith(("XDG_", "CLAUDE"))}
        self.environment = kept | quiet | nobody | {"HOME": str(self.home)}

    def run(self, *command):
        """What a command prints that ends well here."""
        done = subprocess.run(
            [str(part) for part in command], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS,
        )
        assert done.returncode == 0, done
        return done.stdout

    def skills(self):
        """The skills that Claude Code says it has, before it asks its model anything."""
        told = subprocess.Popen(
            [CLAUDE, "-p", "none", "--output-format", "stream-json", "--verbose"], env=self.environment, cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        try:
            first = json.loads(told.stdout.readline())
        finally:
            told.kill()
            told.communicate(timeout=STOP_SECONDS)
        assert (first["type"], first["subtype"]) == ("system", "init"), first
        return first["skills"]


def test_two_windows_of_claude_code_are_connected(tmp_path):
    project = Project(tmp_path)
    for name in ("one", "two"):
        project.run(CLAUDE, "mcp", "add", name, "--", BIN, "mcp", "--data", tmp_path / "data")
    listed = project.run(CLAUDE, "mcp", "list").splitlines()
    connected = {line.split(":")[0] for line in listed if line.endswith("Connected") and BIN in line}
    assert connected == {"one", "two"}, listed


def test_claude_code_has_the_skills_that_were_installed_for_it_until_they_are_uninstalled(start, tmp_path):
    project, server = Project(tmp_path), start().ready()
    for name in ("refund-handling", "tone-of-voice"):
        publish(server, f"github/acme/{name}", {"SKILL.md": skill_md(name)})
    at = ("--server", f"http://{server.address}", "--agent", "claude")
    its_own = project.skills()
    project.run(BIN, "install", *at, "refund-handling")
    project.run(BIN, "install", *at, "--scope", "user", "--method", "symlink", "tone-of-voice")
    assert sorted(set(project.skills()) - set(its_own)) == ["refund-handling", "tone-of-voice"]
    project.run(BIN, "uninstall", *at[2:], "refund-handling")
    project.run(BIN, "uninstall", *at[2:], "--scope", "user", "tone-of-voice")
    assert project.skills() == its_own
