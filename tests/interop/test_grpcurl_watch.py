"""Following the log with grpcurl: no gap, no repeat."""

from harness import as_json, bundle_digest, skill_md, timeless, without


def publish(grpcurl, name, **front_matter):
    files = {"SKILL.md": skill_md(name, **front_matter)}
    grpcurl.call("Registry/PublishSkill", {"skillId": f"github/watch/{name}", "files": as_json(files)}).answer
    return {
        "type": "EVENT_TYPE_PUBLISHED",
        "skillId": f"github/watch/{name}",
        "versionNumber": 1,
        "semanticVersion": front_matter.get("version", "1.0.0"),
        "digest": bundle_digest(files),
        "activeVersion": 1,
        "actor": "anonymous",
    }


def event(answer):
    return without(timeless(answer["event"]), "sequence")


def test_a_watch_shows_what_happens_after_it_began_and_its_token_goes_on_from_there(grpcurl):
    publish(grpcurl, "before")
    with grpcurl.stream("Registry/Watch", {}) as watch:
        assert list(watch.next()) == ["resumeToken"]
        during = publish(grpcurl, "during")
        seen = watch.next()
        assert event(seen) == during

    missed = [publish(grpcurl, name) for name in ("missed-1", "missed-2")]
    with grpcurl.stream("Registry/Watch", {"resumeToken": seen["resumeToken"]}) as watch:
        assert watch.next() == {"resumeToken": seen["resumeToken"]}
        later = [watch.next() for _ in missed]
        # One more: had anything come twice, it would stand in its place.
        last = publish(grpcurl, "last")
        later.append(watch.next())
    assert [event(answer) for answer in later] == [*missed, last]
    sequences = [int(answer["event"]["sequence"]) for answer in (seen, *later)]
    assert sequences == sorted(set(sequences))


def test_a_list_gives_the_token_that_continues_it(grpcurl):
    listed = grpcurl.call("Lookup/ListSkills", {"pageSize": 1}).answer
    after = publish(grpcurl, "after-list")
    with grpcurl.stream("Registry/Watch", {"resumeToken": listed["resumeToken"]}) as watch:
        watch.next()
        assert event(watch.next()) == after


def test_a_watch_shows_only_what_was_asked_for(grpcurl):
    asked = {"skillIds": ["github/watch/asked"], "types": ["EVENT_TYPE_YANKED", "EVENT_TYPE_DELETED"]}
    with grpcurl.stream("Registry/Watch", asked) as watch:
        watch.next()
        publish(grpcurl, "other")
        grpcurl.call("Registry/DeleteSkill", {"skillId": "github/watch/other"}).answer
        published = publish(grpcurl, "asked")
        grpcurl.call("Registry/YankVersion", {"skillId": "github/watch/asked", "versionNumber": 1}).answer
        grpcurl.call("Registry/DeleteSkill", {"skillId": "github/watch/asked"}).answer
        yanked, deleted = event(watch.next()), event(watch.next())
    withdrawn = {**without(published, "activeVersion"), "type": "EVENT_TYPE_YANKED"}
    gone = {"type": "EVENT_TYPE_DELETED", "skillId": "github/watch/asked", "actor": "anonymous"}
    assert [yanked, deleted] == [withdrawn, gone]


def test_a_token_that_is_none_is_refused(grpcurl):
    refusal = grpcurl.call("Registry/Watch", {"resumeToken": "nonsense"}).refusal
    assert (refusal["code"], refusal["ErrorInfo"]["reason"], refusal["ErrorInfo"]["metadata"]) == (
        "INVALID_ARGUMENT",
        "RESUME_TOKEN_INVALID",
        {"number": "1014"},
    )
