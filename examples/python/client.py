"""Publishes the skill text_stats, finds it, loads it, and calls its tool."""

import os
import sys
import time
from pathlib import Path

from repertoire_client import RepertoireError, connect, v1

SKILL = Path(__file__).parent.parent / "skills" / "text_stats"
TEXT = "The quick fox. The lazy dog! Don't the fox and the dog agree?"


def address():
    """In clear, or behind TLS where REPERTOIRE_CA names the authorities to trust."""
    address = os.environ.get("REPERTOIRE_ADDRESS", "127.0.0.1:50051")
    return f"https://{address}" if os.environ.get("REPERTOIRE_CA") else address


def main():
    with connect(address()) as repertoire:
        # Publishing the same bytes again gives the version that there is.
        published = repertoire.publish(SKILL, "examples/text/text_stats")
        print(f"published {published.skill_id} {published.version.semantic_version}")

        # What was published is found within a second.
        for _ in range(20):
            found = [skill.id for skill in repertoire.search("how long a text is, and its most frequent words", limit=1)]
            if found == [published.skill_id]:
                break
            time.sleep(0.1)
        print(f"found {', '.join(found)}")

        # What the client has no method of its own for, the generated stubs do.
        together = repertoire.composition.ComposeSkills(v1.ComposeSkillsRequest(skills=["text_stats", "write_sql"]))
        print(f"composed: allowed {', '.join(together.allowed_tools)}; forbidden {', '.join(together.forbidden_tools)}")

        session = repertoire.load("text_stats")
        print(f"loaded: tools {', '.join(session.tools)}; resources {', '.join(session.resources)}")
        print(next(line for line in session.content.splitlines() if line.startswith("Words are counted by")))

        called = session.call("text_count_words", text=TEXT, top=3)
        print(f"called: {called.text} ({called.value['words']:.0f})")
        print(f"read: {session.read('samples').splitlines()[1]}")

        # The worker refuses this one: with a code for programs, a sentence, and what to do next.
        try:
            session.call("text_count_words", text=TEXT, top=0)
        except RepertoireError as error:
            print(f"refused: {error.code}: {error.message}")
            for step in error.next:
                print(f"  next: {step}")


if __name__ == "__main__":
    try:
        main()
    except RepertoireError as error:
        sys.exit(str(error))
