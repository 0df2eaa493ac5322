#!/usr/bin/env python3
"""A search of an agent over stdio, against agent-skill-search of PyPI: both over the same skills, in turn, in one run.

    cargo build --release && benches/peer.py [PROGRAM]

It makes skills of the texts in `../shared/corpus` (of words where that is missing), each with a name of its own; gives
them to both; and asks both the same queries by MCP over stdio: `find_skills` of the set `agent`, and `skill_search`, with
`limit` 20. Rounds take turns. It prints, for each, the time of a call by the clock and on a processor (of all processes
of a side: the window and the server behind it here), the size of an answer, and the ratios: by the clock the middle of
the rounds, on a processor of all rounds together. The other side is quick for rare words and slow for frequent ones, so
by the clock both the middle of the calls and their average are told. The bars: ratios below 1.

The other side is installed below `target/peer`. `BENCH_SKILLS` (10,000), `BENCH_ROUNDS` (9) and `BENCH_CALLS` (60) change the sizes.
"""

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PEER = "agent-skill-search==0.4.0"
SKILLS = int(os.environ.get("BENCH_SKILLS", "10000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "9"))
# Calls of a side in a round, one after the other.
CALLS = int(os.environ.get("BENCH_CALLS", "60"))
LIMIT = 20
TICK = os.sysconf("SC_CLK_TCK")


def install():
    """The other side, in an environment of its own."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")) / "peer"
    stamp = folder / "stamp"
    if not stamp.is_file() or stamp.read_text() != PEER:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", PEER]
        subprocess.run(pip, check=True)
        stamp.write_text(PEER)
    return folder / "bin" / "skill-search-mcp"


def texts():
    """Front matter without its name, and body, of skills."""
    found = []
    for page in sorted((TOP.parent / "shared" / "corpus").glob("**/SKILL.md")):
        head, mark, body = page.read_text(errors="replace").removeprefix("---\n").partition("\n---\n")
        lines = head.splitlines()
        if mark and sum(line.startswith("name:") for line in lines) == 1:
            found.append(("\n".join(line for line in lines if not line.startswith("name:")), body))
    if not found:
        words = "review deploy test query database image report invoice plan search merge chart release".split()
        draw = random.Random(1)
        some = lambda count: " ".join(draw.choices(words, k=count))  # noqa: E731
        found = [(f"description: {some(20)}", some(900)) for _ in range(500)]
    return found


def catalog(folder):
    """Folders of skills, which both sides read."""
    made = texts()
    draw = random.Random(7)
    for number in range(SKILLS):
        front, body = made[number % len(made)]
        # Not all alike: another part of the body, and a word of its own.
        skill = folder / f"skill-{number:05}"
        skill.mkdir(parents=True)
        start = draw.randrange(max(1, len(body) // 2))
        (skill / "SKILL.md").write_text(f"---\nname: {skill.name}\n{front}\n---\n\nNo. {number}\n\n{body[start:]}")


def queries():
    rows = (TOP / "tests" / "relevance" / "queries.tsv").read_text().splitlines()
    return sorted({row.split("\t")[2] for row in rows})


class Side:
    """A server over stdio, with one call after the other."""

    def __init__(self, name, command, environment, tool, argument, owned):
        self.name, self.tool, self.argument, self.owned = name, tool, argument, owned
        self.process = subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "bench", "version": "1"})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            assert line, f"{self.name} is gone"
            # Notices are not answers; nor is an answer taken apart that nobody reads.
            if b'"method"' not in line[:200]:
                return line

    def search(self, query):
        return self.ask("tools/call", name=self.tool, arguments={self.argument: query, "limit": LIMIT})

    def pids(self):
        """Its process, and those that have its data directory in their command line."""
        found = [self.process.pid]
        for entry in Path("/proc").iterdir():
            if self.owned and entry.name.isdigit() and int(entry.name) != self.process.pid:
                try:
                    if self.owned.encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    pass
        return found

    def on_processor(self):
        """Seconds on a processor so far."""
        ticks = 0
        for pid in self.pids():
            after = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
            ticks += int(after[11]) + int(after[12])
        return ticks / TICK

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def measure(side, asked):
    """Milliseconds of a call: by the clock, in the middle and on average; and on a processor."""
    before, times = side.on_processor(), []
    for query in asked:
        start = time.perf_counter()
        side.search(query)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times), statistics.mean(times), (side.on_processor() - before) * 1000 / len(asked)


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"))
    program = sys.argv[1] if len(sys.argv) > 1 else str(target / "release" / "repertoire")
    peer = install()
    with tempfile.TemporaryDirectory(prefix="peer-") as work:
        work = Path(work)
        catalog(work / "skills")
        config = work / "config.yaml"
        config.write_text("limits:\n  linger_seconds: 5\n")
        data = str(work / "data")
        ours_environment = {"REPERTOIRE_CONFIG": str(config)}
        ours = Side("repertoire", [program, "mcp", "--data", data], ours_environment, "find_skills", "task", data)
        imported = subprocess.run(
            [program, "import", "--json", "--data", data, "--source", "github", "--author", "bench", work / "skills"],
            env=os.environ | ours_environment, stdout=subprocess.PIPE,
        )
        created = json.loads(imported.stdout)["created"]
        home = work / "home"
        home.mkdir()
        theirs_environment = {"SKILL_CATALOG_DIRS": str(work / "skills"), "HOME": str(home)}
        theirs = Side(PEER, [peer], theirs_environment, "skill_search", "query", "")
        asked = queries()
        # Until the index has caught up, and both have read what they read once.
        subprocess.run([program, "search", "--data", data, "skill"], env=os.environ | ours_environment, stdout=subprocess.DEVNULL)
        sizes = {}
        for side in (ours, theirs):
            sizes[side.name] = statistics.mean(len(side.search(query)) for query in asked)
        draw = random.Random(3)
        rounds = {ours.name: [], theirs.name: []}
        for number in range(ROUNDS):
            some = draw.sample(asked, CALLS)
            for side in (ours, theirs) if number % 2 else (theirs, ours):
                rounds[side.name].append(measure(side, some))
        print(f"{created} of {SKILLS} skills, limit {LIMIT}, {ROUNDS} rounds of {CALLS} calls in turn")
        # The system counts processor time in hundredths of a second: only all rounds together say something.
        named = {"by the clock, in the middle": 0, "by the clock, on average": 1, "on a processor": 2}
        ratios = {}
        for name, at in named.items():
            of = statistics.mean if at == 2 else statistics.median
            mine, other = (of(one[at] for one in rounds[side.name]) for side in (ours, theirs))
            turns = zip(rounds[ours.name], rounds[theirs.name])
            ratios[name] = mine / max(other, 1e-3) if at == 2 else statistics.median(a[at] / b[at] for a, b in turns)
            print(f"{name:28} {mine:7.2f} ms, theirs {other:7.2f} ms")
        print(f"an answer: {sizes[ours.name] / 1024:.1f} KiB, theirs {sizes[theirs.name] / 1024:.1f} KiB")
        for name, ratio in ratios.items():
            print(f"ours / theirs, {name}: {ratio:.2f} x (bar: < 1) {'ok' if ratio < 1 else 'MISSED'}")
        for side in (ours, theirs):
            side.close()
        # The server behind the window leaves by itself; asked to, it leaves at once.
        for pid in ours.pids()[1:]:
            os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    main()
