"""Publishes the skill text_stats, finds it, loads it, and calls its tool."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "generated"))

import grpc  # noqa: E402
from google.rpc import error_details_pb2  # noqa: E402
from grpc_status import rpc_status  # noqa: E402
from repertoire.v1 import composition_pb2, composition_pb2_grpc, lookup_pb2, lookup_pb2_grpc  # noqa: E402
from repertoire.v1 import registry_pb2, registry_pb2_grpc, search_pb2  # noqa: E402

SKILL = Path(__file__).parent.parent / "skills" / "text_stats"
TEXT = "The quick fox. The lazy dog! Don't the fox and the dog agree?"


def connect(address, authority):
    """A channel, with TLS where there is an authority to trust."""
    if not authority:
        return grpc.insecure_channel(address)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(Path(authority).read_bytes()))


def main():
    channel = connect(os.environ.get("REPERTOIRE_ADDRESS", "127.0.0.1:50051"), os.environ.get("REPERTOIRE_CA"))
    registry = registry_pb2_grpc.RegistryStub(channel)
    lookup = lookup_pb2_grpc.LookupStub(channel)
    composition = composition_pb2_grpc.CompositionStub(channel)

    # Publishing the same bytes again gives the version that there is.
    files = [registry_pb2.File(path=path.name, content=path.read_bytes()) for path in sorted(SKILL.iterdir())]
    published = registry.PublishSkill(
        registry_pb2.PublishSkillRequest(skill_id="examples/text/text_stats", files=files)
    )
    print(f"published {published.skill_id} {published.version.semantic_version}")

    # What was published is found within a second.
    search = search_pb2.SearchRequest(query="how long a text is, and its most frequent words", limit=1)
    for _ in range(20):
        found = [skill.id for skill in lookup.Search(search).results]
        if found == [published.skill_id]:
            break
        time.sleep(0.1)
    print(f"found {', '.join(found)}")

    together = composition.ComposeSkills(composition_pb2.ComposeSkillsRequest(skills=["text_stats", "write_sql"]))
    print(f"composed: allowed {', '.join(together.allowed_tools)}; forbidden {', '.join(together.forbidden_tools)}")

    # The session is the server's; its id goes with every call.
    loaded = lookup.LoadSkill(lookup_pb2.LoadSkillRequest(skill_id="text_stats"))
    print(f"loaded: tools {', '.join(loaded.tools)}; resources {', '.join(loaded.resources)}")
    print(next(line for line in loaded.content.splitlines() if line.startswith("Words are counted by")))

    call = lookup_pb2.CallToolRequest(session_id=loaded.session_id, name="text_count_words")
    call.arguments.update({"text": TEXT, "top": 3})
    called = lookup.CallTool(call)
    print(f"called: {called.content} ({called.structured['words']:.0f})")

    sample = lookup.LoadSkillDetail(
        lookup_pb2.LoadSkillDetailRequest(skill_id="text_stats", resource="samples", session_id=loaded.session_id)
    )
    print(f"read: {sample.content.splitlines()[1]}")

    # The worker refuses this one; what it says comes as details of the status.
    call.arguments.update({"top": 0})
    try:
        lookup.CallTool(call)
    except grpc.RpcError as error:
        explain(error)


def explain(error):
    """Prints a refusal: a code for programs, a sentence, and what to do next."""
    info, links = error_details_pb2.ErrorInfo(), error_details_pb2.Help()
    for detail in rpc_status.from_call(error).details:
        detail.Unpack(info) or detail.Unpack(links)
    print(f"refused: {info.reason}: {error.details()}")
    for link in links.links:
        print(f"  next: {link.description}")


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
