"""The life of a skill, by grpcurl and nothing but the server's own reflection."""

import base64

from harness import as_json, bundle_digest, digest, publish, refused, skill_md, timeless

REFUNDS = {
    "SKILL.md": skill_md("refunds", "# Refunds\n\nSay é, and mean it.\n", version="1.2.0", category="money"),
    "references/rules.md": b"# Rules\n",
    "scripts/pay.py": b"print('pay')\n",
}
PAGE_TOKEN_INVALID = refused(
    "INVALID_ARGUMENT",
    "The page token is not one of this query",
    "PAGE_TOKEN_INVALID",
    1012,
    fields=[("page_token", "The page token is not one of this query")],
    help=["Repeat the query with the filters that gave the token, or begin with the first page"],
)


def published(grpcurl, skill_id, files, **more):
    return grpcurl.call("Registry/PublishSkill", {"skillId": skill_id, "files": as_json(files), **more}).answer


def version(number, semantic, files, **more):
    """A version as the answers tell it."""
    return {
        "versionNumber": number,
        "semanticVersion": semantic,
        "digest": bundle_digest(files),
        "createdBy": "anonymous",
        "sizeBytes": str(sum(map(len, files.values()))),
        "fileCount": len(files),
        **more,
    }


def entry(skill_id, path, content, mime_type):
    return {
        "path": path,
        "digest": digest(content),
        "sizeBytes": str(len(content)),
        "mimeType": mime_type,
        "uri": f"skill://{skill_id}/{path}",
    }


def test_files_make_a_skill_once_and_the_same_bytes_make_no_second_version(grpcurl):
    first = published(grpcurl, "github/acme/refunds", REFUNDS, changeSummary="The first")
    again = published(grpcurl, "github/acme/refunds", REFUNDS, changeSummary="Again")
    expected = {
        "skillId": "github/acme/refunds",
        "outcome": "PUBLISH_OUTCOME_CREATED",
        "version": version(1, "1.2.0", REFUNDS, active=True, changeSummary="The first"),
        "uri": "skill://github/acme/refunds/SKILL.md",
        "securityScanStatus": "SCAN_STATUS_PASSED",
    }
    assert timeless(first) == expected
    assert timeless(again) == {**expected, "outcome": "PUBLISH_OUTCOME_UNCHANGED"}


def test_fields_make_a_skill_of_one_file(grpcurl):
    answer = grpcurl.call(
        "Registry/PublishSkill",
        {
            "name": "lookup-orders",
            "description": "Looks orders up.",
            "category": "database",
            "coreContent": "# Orders\n",
            "toolConfigs": [
                {
                    "name": "order_query",
                    "description": "Asks for orders.",
                    "method": "query",
                    "args": [
                        {"name": "text", "description": "What to look for.", "required": True},
                        {"name": "limit", "type": "integer", "default": 5},
                    ],
                }
            ],
        },
    ).answer
    assert (answer["skillId"], answer["outcome"]) == ("local/global/lookup-orders", "PUBLISH_OUTCOME_CREATED")

    skill = grpcurl.call("Lookup/GetSkill", {"skillId": "lookup-orders", "includeVersions": True}).answer
    size = answer["version"]["sizeBytes"]
    versions = [version(1, "1.0.0", {}, active=True, digest=answer["version"]["digest"], sizeBytes=size, fileCount=1)]
    assert 0 < skill["skill"]["qualityScore"] < 1
    assert timeless(skill) == {
        "skill": {
            "id": "local/global/lookup-orders",
            "name": "lookup-orders",
            "slug": "lookup-orders",
            "description": "Looks orders up.",
            "author": {"id": "local:global", "name": "global"},
            "trustTier": "TRUST_TIER_UNVERIFIED",
            "categories": ["database"],
            "currentVersion": "1.0.0",
            "hasSkillMd": True,
            "estimatedCharBudget": size,
            "securityScanStatus": "SCAN_STATUS_PASSED",
            "qualityScore": skill["skill"]["qualityScore"],
            "versions": versions,
            "readmeExcerpt": "# Orders",
            "location": "LOCATION_GLOBAL",
            "uri": "skill://local/global/lookup-orders/SKILL.md",
            "versionNumber": 1,
            "digest": answer["version"]["digest"],
            "definition": {"name": "lookup-orders", "description": "Looks orders up.", "version": "1.0.0"},
            "toolConfigs": [
                {
                    "name": "order_query",
                    "description": "Asks for orders.",
                    "method": "query",
                    "args": [
                        {
                            "name": "text",
                            "type": "string",
                            "description": "What to look for.",
                            "required": True,
                        },
                        {"name": "limit", "type": "integer", "default": 5},
                    ],
                }
            ],
            "fileCount": 1,
            "sizeBytes": size,
        }
    }


def test_the_fields_that_a_version_tells_make_the_same_version_again(grpcurl):
    fields = {"name": "there-and-back", "description": "Goes there and back.", "coreContent": "# Steps\n"}
    grpcurl.call("Registry/PublishSkill", fields).answer
    told = grpcurl.call("Registry/GetVersion", {"skillId": "there-and-back"}).answer["version"]
    again = grpcurl.call("Registry/PublishSkill", {field: told[field] for field in fields}).answer
    assert again["outcome"] == "PUBLISH_OUTCOME_UNCHANGED"


def test_every_page_but_the_last_is_full_and_a_token_opens_its_own_query_only(grpcurl):
    names = [f"page-{n}" for n in range(7)]
    for name in names:
        published(grpcurl, f"github/paging/{name}", {"SKILL.md": skill_md(name, category="paging")})
    published(grpcurl, "github/paging/other", {"SKILL.md": skill_md("other", category="elsewhere")})

    pages, token = [], ""
    for _ in range(4):
        query = {"category": "Paging", "pageSize": 3, "pageToken": token}
        answer = grpcurl.call("Lookup/ListSkills", query).answer
        pages.append([skill["id"] for skill in answer["skills"]])
        token = answer.get("nextPageToken", "")
        if not token:
            break
        last_token = token
    ids = [f"github/paging/{name}" for name in names]
    assert pages == [ids[:3], ids[3:6], ids[6:]]

    other = grpcurl.call("Lookup/ListSkills", {"category": "elsewhere", "pageToken": last_token})
    assert other.refusal == PAGE_TOKEN_INVALID
    no_token = grpcurl.call("Lookup/ListSkills", {"category": "paging", "pageToken": "nonsense"})
    assert no_token.refusal == PAGE_TOKEN_INVALID


def test_a_list_shows_level_one_and_where_to_watch_from(grpcurl):
    published(grpcurl, "github/solo/one", {"SKILL.md": skill_md("one", category="solo", version="3.0.0")})
    answer = grpcurl.call("Lookup/ListSkills", {"source": "github", "author": "solo"}).answer
    assert answer.pop("resumeToken")
    one = {"id": "github/solo/one", "name": "one", "description": "Use it in a test.", "category": "solo"}
    one |= {"version": "3.0.0", "shortName": "one", "standard": True, "uri": "skill://github/solo/one/SKILL.md"}
    one["securityScanStatus"] = "SCAN_STATUS_PASSED"
    assert answer == {"skills": [one]}


def history(grpcurl, skill_id):
    """Publishes two versions of a skill."""
    name = skill_id.rsplit("/", 1)[1]
    old = {"SKILL.md": skill_md(name, "one\ntwo\n", version="1.0.0"), "old.md": b"old\n"}
    new = {"SKILL.md": skill_md(name, "one\n2\n", version="1.1.0"), "new.npy": b"\xff\x00"}
    published(grpcurl, skill_id, old)
    published(grpcurl, skill_id, new, changeSummary="Two")
    return old, new


def test_versions_are_listed_newest_first_page_by_page(grpcurl):
    old, new = history(grpcurl, "github/acme/listed")
    first = grpcurl.call("Registry/ListVersions", {"skillId": "listed", "pageSize": 1}).answer
    token = first.pop("nextPageToken")
    assert timeless(first) == {
        "skillId": "github/acme/listed",
        "activeVersion": 2,
        "versions": [version(2, "1.1.0", new, active=True, changeSummary="Two")],
    }
    second = grpcurl.call("Registry/ListVersions", {"skillId": "listed", "pageSize": 1, "pageToken": token}).answer
    assert timeless(second) == {
        "skillId": "github/acme/listed",
        "activeVersion": 2,
        "versions": [version(1, "1.0.0", old)],
    }
    other = grpcurl.call("Registry/ListVersions", {"skillId": "write_sql", "pageToken": token})
    assert other.refusal == PAGE_TOKEN_INVALID


def test_a_version_is_told_in_full(grpcurl):
    published(grpcurl, "github/acme/told", REFUNDS)
    answer = grpcurl.call("Registry/GetVersion", {"skillId": "told", "semanticVersion": "1.2.0"}).answer
    definition = {"name": "refunds", "description": "Use it in a test.", "version": "1.2.0"}
    skill_id = "github/acme/told"
    assert timeless(answer) == {
        "skillId": skill_id,
        "version": {
            "info": version(1, "1.2.0", REFUNDS, active=True),
            "name": "refunds",
            "description": "Use it in a test.",
            "category": "money",
            "coreContent": "# Refunds\n\nSay é, and mean it.\n",
            "resources": [
                entry(skill_id, "SKILL.md", REFUNDS["SKILL.md"], "text/markdown"),
                entry(skill_id, "references/rules.md", REFUNDS["references/rules.md"], "text/markdown"),
            ],
            "scripts": [entry(skill_id, "scripts/pay.py", REFUNDS["scripts/pay.py"], "text/x-python")],
            "definition": definition,
            "frontMatter": {**definition, "category": "money"},
        },
    }


def test_two_versions_are_compared_field_by_field_and_file_by_file(grpcurl):
    old, new = history(grpcurl, "github/acme/compared")
    answer = timeless(grpcurl.call("Registry/DiffVersions", {"skillId": "compared"}).answer)
    changed = """\
--- a/SKILL.md
+++ b/SKILL.md
@@ -1,8 +1,8 @@
 ---
 name: compared
 description: Use it in a test.
-version: 1.0.0
+version: 1.1.0
 ---
 
 one
-two
+2
"""
    removed = "--- a/old.md\n+++ b/old.md\n@@ -1 +0,0 @@\n-old\n"
    assert answer == {
        "skillId": "github/acme/compared",
        "from": version(1, "1.0.0", old),
        "to": version(2, "1.1.0", new, active=True, changeSummary="Two"),
        "fields": [
            {"field": "version", "type": "CHANGE_TYPE_MODIFIED", "oldValue": "1.0.0", "newValue": "1.1.0"},
        ],
        "files": [
            {
                "path": "SKILL.md",
                "type": "CHANGE_TYPE_MODIFIED",
                "oldDigest": digest(old["SKILL.md"]),
                "newDigest": digest(new["SKILL.md"]),
                "oldSizeBytes": str(len(old["SKILL.md"])),
                "newSizeBytes": str(len(new["SKILL.md"])),
                "unifiedDiff": changed,
                "lineComparison": "LINE_COMPARISON_COMPARED",
            },
            {
                "path": "new.npy",
                "type": "CHANGE_TYPE_ADDED",
                "newDigest": digest(new["new.npy"]),
                "newSizeBytes": "2",
                "lineComparison": "LINE_COMPARISON_NOT_TEXT",
            },
            {
                "path": "old.md",
                "type": "CHANGE_TYPE_REMOVED",
                "oldDigest": digest(old["old.md"]),
                "oldSizeBytes": "4",
                "unifiedDiff": removed,
                "lineComparison": "LINE_COMPARISON_COMPARED",
            },
        ],
    }


def test_a_withdrawn_version_answers_only_when_asked_for_exactly(grpcurl):
    old, new = history(grpcurl, "github/acme/withdrawn")
    ask = {"skillId": "github/acme/withdrawn"}
    yanked = grpcurl.call("Registry/YankVersion", {**ask, "versionNumber": 2, "reason": "It pays twice"}).answer
    assert timeless(yanked) == {
        **ask,
        "version": version(2, "1.1.0", new, yanked=True, yankReason="It pays twice", changeSummary="Two"),
        "activeVersion": 1,
    }
    assert grpcurl.call("Lookup/GetSkill", ask).answer["skill"]["currentVersion"] == "1.0.0"
    exactly = grpcurl.call("Lookup/GetSkill", {**ask, "versionNumber": 2}).answer
    assert exactly["skill"]["currentVersion"] == "1.1.0"

    refusal = grpcurl.call("Registry/ActivateVersion", {**ask, "versionNumber": 2}).refusal
    assert refusal == refused(
        "FAILED_PRECONDITION",
        "Version 2 of 'github/acme/withdrawn' was withdrawn: It pays twice",
        "VERSION_YANKED",
        2014,
        metadata={"skill_id": "github/acme/withdrawn", "version": "2"},
        help=["Unyank the version first, or choose another one"],
    )

    back = grpcurl.call("Registry/UnyankVersion", {**ask, "versionNumber": 2}).answer
    assert timeless(back) == {**ask, "version": version(2, "1.1.0", new, changeSummary="Two"), "activeVersion": 1}


def test_activating_an_older_version_is_the_rollback(grpcurl):
    old, _ = history(grpcurl, "github/acme/rolled")
    answer = grpcurl.call("Registry/ActivateVersion", {"skillId": "github/acme/rolled", "versionNumber": 1}).answer
    assert timeless(answer) == {
        "skillId": "github/acme/rolled",
        "version": version(1, "1.0.0", old, active=True),
        "previousVersion": 2,
    }
    used = grpcurl.call("Lookup/ActivateSkill", {"command": "rolled"}).answer
    assert (used["versionNumber"], used["content"].encode()) == (1, old["SKILL.md"])


def test_every_route_gives_the_published_bytes(grpcurl):
    files = {**REFUNDS, "SKILL.md": skill_md("bytes", "CRLF\r\nno end", version="1.0.0"), "logo.png": bytes(range(256))}
    published(grpcurl, "github/acme/bytes", files)
    skill_id = "github/acme/bytes"
    types = ["text/markdown", "image/png", "text/markdown", "text/x-python"]
    entries = [entry(skill_id, path, files[path], kind) for path, kind in zip(sorted(files), types)]
    listed = grpcurl.call("Lookup/ListFiles", {"skillId": "bytes"}).answer
    assert listed == {"skillId": skill_id, "versionNumber": 1, "digest": bundle_digest(files), "files": entries}

    for one in entries:
        read = grpcurl.call("Lookup/ReadFile", {"skillId": "bytes", "path": one["path"]}).answer
        assert read == {
            "file": one,
            "content": base64.b64encode(files[one["path"]]).decode(),
            "versionNumber": 1,
        }
    part = {"skillId": "bytes", "path": "logo.png", "offsetBytes": 10, "limitBytes": 4}
    read = grpcurl.call("Lookup/ReadFile", part).answer
    assert base64.b64decode(read["content"]) == bytes(range(10, 14))

    for uri in (f"skill://{skill_id}/SKILL.md", f"skill://{skill_id}", "skill://bytes", "skill://bytes/SKILL.md"):
        read = grpcurl.call("Lookup/ReadSkill", {"uri": uri}).answer
        text = files["SKILL.md"].decode()
        assert read == {"uri": f"skill://{skill_id}/SKILL.md", "mimeType": "text/markdown", "text": text}, uri
    read = grpcurl.call("Lookup/ReadSkill", {"uri": f"skill://{skill_id}/scripts/pay.py"}).answer
    assert read["text"].encode() == files["scripts/pay.py"]


def test_a_command_is_a_short_name_in_any_case_and_a_project_comes_first(server, grpcurl):
    theirs = {"SKILL.md": skill_md("Pdf", "theirs\n")}
    ours = {"SKILL.md": skill_md("pdf", "ours\n")}
    published(grpcurl, "github/acme/pdf", theirs)
    publish(server, "local/project/pdf", ours)
    answer = grpcurl.call("Lookup/ActivateSkill", {"command": "PDF"}).answer
    assert answer == {
        "skillId": "local/project/pdf",
        "name": "pdf",
        "location": "LOCATION_PROJECT",
        "uri": "skill://local/project/pdf/SKILL.md",
        "versionNumber": 1,
        "semanticVersion": "1.0.0",
        "content": ours["SKILL.md"].decode(),
        "shadowedIds": ["github/acme/pdf"],
    }


def test_reads_are_counted_by_version_and_session(grpcurl):
    history(grpcurl, "github/acme/counted")
    for session in ("a", "a", "b"):
        grpcurl.call("Lookup/ReadSkill", {"uri": "skill://counted", "sessionId": session}).answer
    grpcurl.call("Lookup/ReadFile", {"skillId": "counted", "path": "old.md", "versionNumber": 1}).answer
    answer = grpcurl.call("Registry/GetMetrics", {"skillId": "counted"}).answer
    assert timeless(answer) == {
        "skillId": "github/acme/counted",
        "totalReads": "4",
        "versions": [
            {"versionNumber": 2, "semanticVersion": "1.1.0", "reads": "3", "distinctSessions": "2"},
            {"versionNumber": 1, "semanticVersion": "1.0.0", "reads": "1"},
        ],
    }


def test_a_deleted_skill_is_gone_and_its_numbers_are_not_used_again(grpcurl):
    history(grpcurl, "github/acme/deleted")
    answer = grpcurl.call("Registry/DeleteSkill", {"skillId": "github/acme/deleted"}).answer
    assert answer == {"skillId": "github/acme/deleted", "versionsDeleted": 2}
    assert grpcurl.call("Lookup/GetSkill", {"skillId": "deleted"}).refusal["ErrorInfo"]["reason"] == "SKILL_NOT_FOUND"
    files = {"SKILL.md": skill_md("deleted", version="9.0.0")}
    anew = published(grpcurl, "github/acme/deleted", files)
    assert timeless(anew)["version"] == version(3, "9.0.0", files, active=True)


def test_a_repeated_key_repeats_its_answer_and_writes_nothing(grpcurl):
    ask = {
        "skillId": "github/acme/keyed",
        "files": as_json({"SKILL.md": skill_md("keyed")}),
        "idempotencyKey": "key-1",
    }
    first = grpcurl.call("Registry/PublishSkill", ask).answer
    assert grpcurl.call("Registry/PublishSkill", ask).answer == first
    other = {**ask, "files": as_json({"SKILL.md": skill_md("keyed", "other\n")})}
    assert grpcurl.call("Registry/PublishSkill", other).refusal == refused(
        "FAILED_PRECONDITION",
        "The idempotency key 'key-1' was used for another request",
        "IDEMPOTENCY_KEY_REUSED",
        1015,
        help=["Use a new key for a new request; repeat a request unchanged to repeat its answer"],
    )


def test_checking_a_skill_stores_nothing(grpcurl):
    bad = {"SKILL.md": b"---\nname: checked\n---\nbody\n"}
    answer = grpcurl.call("Registry/ValidateSkill", {"files": as_json(bad)}).answer
    assert answer.get("valid", False) is False
    assert answer["problems"][0]["rule"] == "description-missing"
    good = {"SKILL.md": skill_md("checked")}
    answer = grpcurl.call("Registry/ValidateSkill", {"files": as_json(good), "folder": "checked"}).answer
    assert (answer["valid"], answer["skillId"], answer["digest"]) == (
        True,
        "local/global/checked",
        bundle_digest(good),
    )
    assert grpcurl.call("Lookup/GetSkill", {"skillId": "checked"}).refusal["code"] == "NOT_FOUND"
