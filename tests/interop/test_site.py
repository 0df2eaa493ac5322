"""The documentation as a site, built by mdBook as `make site` builds it, and followed link by link."""

import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import need
from harness import BIN, clean_environment

TOP = Path(__file__).parents[2]
SECONDS = 60


class Page(HTMLParser):
    """What a page names, and what in it can be named."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[name] for name in ("id", "name") if name in attrs}
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        elif tag == "link" and "href" in attrs:
            self.loaded.append(attrs["href"])
        elif "src" in attrs:
            self.loaded.append(attrs["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([TOP / "deploy" / "site", folder], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode == 3:
        need(Path("mdBook"), "mdBook (`deploy/site --install`)")
    assert done.returncode == 0, done
    # What mdBook has to say of a page, such as a tag that is no HTML, is a mistake in it.
    assert not re.search(r"WARN|ERROR", done.stdout + done.stderr), done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site).as_posix(): Page(path) for path in site.rglob("*.html")}


def test_every_page_is_in_the_site(pages):
    sources = [*TOP.glob("*.md"), *(TOP / "docs").glob("*.md")]
    names = {"index.html" if page.name == "README.md" else f"{page.stem}.html" for page in sources} - {"SUMMARY.html"}
    assert names - set(pages) == set()


def test_no_link_of_the_site_is_dead(site, pages):
    dead = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(name), unquote(parts.path))) if parts.path else name
            there = (site / target).is_file()
            # 404.html is shown in the place of any page, and its links begin at the top.
            if not there or (parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids):
                dead.append(f"{name}: {link}")
    assert dead == []


def test_the_site_loads_nothing_from_a_network_and_has_a_search(site, pages):
    away = [link for page in pages.values() for link in page.loaded if urlsplit(link).netloc]
    assert away == []
    styles = [style for style in site.rglob("*.css") if re.search(r"url\(['\"]?(https?:)?//", style.read_text())]
    assert styles == []
    index = next(site.glob("searchindex*.js")).read_text()
    found = set(re.findall(r"[\w.-]+#[\w-]+", index))
    assert {"rpcs.html#yankversion", "mcp-tools.html#find_skills", "containers.html#kubernetes"} <= found


def keys_of(folder, prefix=""):
    """The keys that a config file may have there, as `config check` names them."""
    lines = "".join(f"{'  ' * depth}{key}:\n" for depth, key in enumerate(filter(None, prefix.split("."))))
    file = folder / "keys.yaml"
    file.write_text(f"{lines}{'  ' * len(prefix.split('.')) if prefix else ''}no_such_key: 1\n")
    done = subprocess.run([BIN, "config", "check", str(file)], env=clean_environment(), capture_output=True, text=True, timeout=SECONDS)
    found = re.search(r"there is no such key; here are (.*)", done.stdout + done.stderr)
    keys = found[1].split(", ") if found else []
    return [f"{prefix}.{key}" if prefix else key for key in keys]


def keys_on(block):
    """The keys of a block of YAML by their whole paths, also those that are commented out."""
    found, above = set(), []
    for line in block.splitlines():
        key = re.match(r"( *)(?:# )?([a-z_]+):(?: |$)", line)
        if key:
            above = [*above[: len(key[1]) // 2], key[2]]
            found.add(".".join(above))
    return found


def test_a_key_is_found_in_its_place_alone():
    block = 'access:  # such as "token:ci"\n  # url: http://a.example\n  quotas:\n    calls: 1\nstore_kib: 1\n'
    assert keys_on(block) == {"access", "access.url", "access.quotas", "access.quotas.calls", "store_kib"}


def test_the_page_of_settings_names_every_key_and_no_other(tmp_path):
    page = (TOP / "docs" / "operations.md").read_text()
    block = re.search(r"```yaml\n(listen:.*?)```", page, re.DOTALL)[1]
    known = set(keys_of(tmp_path))
    # Sources have keys by kind, which docs/sources.md lists.
    level = known - {"sources"}
    while level:
        level = {deep for key in level for deep in keys_of(tmp_path, key)}
        known |= level
    # Each secret may be in the environment or in a file, which the page says once.
    known = {key for key in known if not key.endswith((".env", ".file"))}
    assert keys_on(block) == known
    assert len(known) > 70
