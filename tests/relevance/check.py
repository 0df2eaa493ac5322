#!/usr/bin/env python3
"""Check a file of graded test queries against the corpus of skills it judges.

FILE is UTF-8, one judgment a line: class, half (tune or test), query, grade (1 to 3) and path,
separated by tabs; a path is the folder of a SKILL.md below CORPUS. Each violation is printed as
one line (class, query, rule); the exit status is 1 if there is any, 2 on wrong use.
"""
import argparse
import itertools
import pathlib
import re
import sys

CLASSES = ("exact", "part", "typo", "keywords", "task", "synonym", "language", "body")
MIN_QUERIES = 20  # of each class that occurs in the file
STOP = set("""a about after all an and any are as at be before but by can do does for from get has have how
i if in into is it its me my no not of off on one or our out over so some than that the their them then
there these they this to too up us use using want was we what when where which while who why will with
without you your""".split())
FOREIGN = set("""aan che como con dans das de dei della den der des di die ein eine el en est et het il
ist ja jak la las le les lo los mit na nicht och oder para por pour que se som sur un und une voor y""".split())
IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # kana, Han, Hangul


def words(text):
    """The words of a text: lower-case runs of letters and digits; ideographs apart from others."""
    return re.findall(r"[%s]+|[^\W_%s]+" % (IDEOGRAPHS, IDEOGRAPHS), text.lower())


def has(word, vocabulary):
    """Whether a word, by its first letters (a crude stem), is in a set of words."""
    if re.match("[%s]" % IDEOGRAPHS, word):  # no spaces in such text: look inside the runs
        return any(word in other for other in vocabulary)
    if len(word) < 4:
        return word in vocabulary or word + "s" in vocabulary
    stem = word[:4 if len(word) < 7 else 5]
    return any(other.startswith(stem) for other in vocabulary)


def near(a, b):
    """Whether two words are within two edits (Damerau: a swap of neighbours is one edit)."""
    cost = {(i, j): i + j for i in range(len(a) + 1) for j in range(len(b) + 1) if not i * j}
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        cost[i, j] = min(cost[i - 1, j] + 1, cost[i, j - 1] + 1, cost[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
        if i > 1 and j > 1 and a[i - 2:i] == b[j - 1] + b[j - 2]:
            cost[i, j] = min(cost[i, j], cost[i - 2, j - 2] + 1)
    return cost[len(a), len(b)] <= 2


class Skill:
    """A skill folder: its name, the words of name and description (card) and those of its body."""

    def __init__(self, folder):
        self.folder = folder
        text = (folder / "SKILL.md").read_text("utf-8", "replace")
        match = re.match(r"\ufeff?---[ \t]*\n(.*?)\n---[ \t]*(?:\n|$)(.*)", text, re.S)
        head, body = match.groups() if match else ("", text)
        name, description = (re.search(r"^%s:(.*(?:\n(?:[ \t]+.*|(?=\n)))*)" % key, head, re.M)
                             for key in ("name", "description"))  # front matter, read crudely
        self.name = words(name.group(1) if name else folder.name)
        self.card = self.name + words(description.group(1) if description else "")
        self.body = set(words(body))

    def text_words(self):
        """The words of the body and of the folder's text files (not of skills within it)."""
        found = set(self.body)
        for path in self.folder.rglob("*"):
            skill = next(p for p in path.parents if (p / "SKILL.md").exists())
            if path.is_file() and path.name != "SKILL.md" and skill == self.folder:
                data = path.read_bytes()
                found.update(words(data.decode("utf-8", "ignore")) if b"\0" not in data else ())
        return found


def class_rule(kind, query, best, graded, known):
    """The rule of its class a query breaks, or None (best: skills of grade 3, known: words of the corpus)."""
    asked = words(query)
    content = [w for w in asked if w not in STOP]
    cards = {w for s in best for w in s.card}
    if kind == "exact" and any(s.name != asked for s in best):
        return "the query is the whole name of each grade-3 skill"
    if kind == "part" and not any(set(asked) < set(s.name) for s in best):
        return "the words are some, not all, of the words of a grade-3 skill's name"
    if kind == "typo":
        right = cards | {a + b for s in best for a, b in zip(s.card, s.card[1:])}
        if not any(near(w, r) for w in asked if w not in known for r in right):
            return "a word unknown to the corpus is within two edits of one of a grade-3 skill"
    if kind == "keywords" and not (2 <= len(asked) <= 5 and all(has(w, cards) for w in asked)):
        return "2 to 5 words, each in the name or description of a grade-3 skill"
    if kind == "task":
        names = "|".join(" ".join(s.name) for s in best)
        if len(asked) < 6 or re.search(r"\b(%s)\b" % names, " ".join(asked)):
            return "a sentence of at least 6 words without the name of a grade-3 skill"
    if kind == "synonym" and any(has(w, cards) for w in content):
        return "no word is in the name or description of a grade-3 skill"
    if kind == "language" and query.isascii() and len(FOREIGN.intersection(asked)) < 2:
        return "not English: non-ASCII characters or two foreign function words"
    if kind == "body":
        if all(has(w, {c for s in graded for c in s.card}) for w in content):
            return "a word is in no graded skill's name and description"
        if not all(has(w, text) for text in (s.text_words() for s in best) for w in content):
            return "every word is in the body or a text file of each grade-3 skill"
    return None


def violations(corpus, lines):
    """Yield (class, query, rule) for every rule broken."""
    folders = (file.parent for file in corpus.rglob("SKILL.md"))
    skills = {folder.relative_to(corpus).as_posix(): Skill(folder) for folder in folders}
    known = {w for s in skills.values() for w in itertools.chain(s.card, s.body)}
    queries = {}
    for number, line in enumerate(lines, 1):
        fields = line.split("\t")
        if len(fields) != 5 or fields[0] not in CLASSES or fields[1] not in ("tune", "test"):
            yield "?", "line %d" % number, "known class, tune or test, query, grade, path"
            continue
        kind, half, query, grade, path = fields
        grades = queries.setdefault((kind, half, query), {})
        if path in grades or path not in skills or grade not in ("1", "2", "3"):
            yield kind, query, "grade 1 to 3, path of a skill, no path twice: %s %s" % (grade, path)
        grades[path] = grade
    for (kind, _, query), grades in queries.items():
        graded = [skills[p] for p in grades if p in skills]
        best = [skills[p] for p, grade in grades.items() if grade == "3" and p in skills]
        rule = class_rule(kind, query, best, graded, known) if best else "a skill of grade 3"
        if rule:
            yield kind, query, rule
        if sum(other[2] == query for other in queries) > 1:
            yield kind, query, "a query has one class and one half"
    for kind in sorted({kind for kind, _, _ in queries}):
        tune, test = (sum(q[:2] == (kind, half) for q in queries) for half in ("tune", "test"))
        if tune + test < MIN_QUERIES or tune != test:
            yield kind, "-", "%d queries or more, halves even: %d, %d" % (MIN_QUERIES, tune, test)


def main():
    """Print the violations of the file named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("corpus", type=pathlib.Path, help="folder of the skills")
    parser.add_argument("file", type=pathlib.Path, help="the judgments")
    arguments = parser.parse_args()
    broken = list(violations(arguments.corpus, arguments.file.read_text("utf-8").splitlines()))
    for violation in broken:
        print("\t".join(violation))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
