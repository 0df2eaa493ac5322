"""The code of the bundled skill `xlsx`, as an agent would run it: every Python
block of its pages, in order, and its recalculation script with and without
LibreOffice.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
from conftest import need

SKILL = Path(__file__).parents[2] / "skills" / "xlsx"
SCRIPT = SKILL / "scripts" / "recalc.py"
SOFFICE = next(filter(None, map(shutil.which, [os.environ.get("SOFFICE", ""), "soffice", "libreoffice"])), "")
# LibreOffice makes its profile anew for each workbook.
OFFICE_SECONDS = 120


def python_blocks(page):
    """The code of a page with the line that it begins on."""
    text = (SKILL / page).read_text()
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start()) + 2, found[1]


# Runs the blocks that come on its standard input, each with names of its own.
RUNNER = """
import json, sys
for line, code in json.load(sys.stdin):
    # Lines of a traceback are those of the page.
    exec(compile("\\n" * (line - 1) + code, sys.argv[1], "exec"), {"__name__": "__main__"})
"""


def run_blocks(page, folder, wanted=lambda code: True):
    """Runs the code of a page in order; a warning is an error."""
    blocks = [block for block in python_blocks(page) if wanted(block[1])]
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER, page], input=json.dumps(blocks),
        cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The workbooks that the pages make. Tests that change them take a copy."""
    folder = tmp_path_factory.mktemp("made")
    for page in ["examples.md", "formatting.md"]:
        ran = run_blocks(page, folder, lambda code: not needs_values(code))
        assert ran.returncode == 0, ran.stderr
    return folder


def recalc(*arguments, folder, without_office=False):
    """Runs the script: its exit code and the object that it printed."""
    environment = dict(os.environ)
    if without_office:
        # The script looks nowhere else on Linux.
        environment.pop("SOFFICE", None)
        environment["PATH"] = str(folder / "no-programs")
    ran = subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=OFFICE_SECONDS)
    assert not ran.stderr, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def need_office():
    need(SOFFICE, "LibreOffice (libreoffice-calc-nogui)")


def needs_values(code):
    """The block checks computed values, which only LibreOffice gives."""
    return "was never computed" in code


def workbook(path, **cells):
    """A workbook of one sheet."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Data"
    for place, value in cells.items():
        sheet[place] = value
    book.save(path)
    return path


def values(path, sheet):
    """The stored values of a sheet."""
    read = openpyxl.load_workbook(path, data_only=True)[sheet]
    return [[cell.value for cell in row] for row in read.iter_rows()]


@pytest.mark.parametrize(("page", "count"), [("examples.md", 16), ("formatting.md", 8)])
def test_the_pages_hold_the_code_that_is_run_here(page, count):
    assert len(list(python_blocks(page))) == count


@pytest.mark.timeout(300)
def test_every_example_runs_and_makes_its_workbook(made):
    assert sorted(path.name for path in made.glob("*.xlsx")) == [
        "chart.xlsx", "large.xlsx", "model.xlsx", "months.xlsx", "named.xlsx", "plan.xlsx", "sales.xlsx",
        "sales_updated.xlsx", "summary.xlsx", "table.xlsx", "text.xlsx",
    ]


@pytest.mark.timeout(300)
def test_the_check_of_values_says_that_nothing_was_computed(made):
    ran = run_blocks("examples.md", made, needs_values)
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (
        1, "AssertionError: Summary!B2 was never computed: run recalc.py first")


@pytest.mark.timeout(300)
def test_every_block_of_the_formatting_guide_did_what_it_says(made):
    book = openpyxl.load_workbook(made / "plan.xlsx")
    plan = book["Plan"]
    assert book.sheetnames == ["Plan", "Title"]
    assert [plan[f"{column}2"].number_format for column in "BCDE"] == [
        "#,##0", "#,##0.00", '#,##0;(#,##0);"-"', "0.0%"]
    assert (plan["B2"].font.color.rgb[-6:], plan["D2"].font.color.rgb[-6:]) == ("0000FF", "000000")
    assert (plan["A1"].fill.start_color.rgb[-6:], plan["C4"].fill.start_color.rgb[-6:]) == ("1F3864", "FFF2CC")
    assert (plan.freeze_panes, plan.auto_filter.ref) == ("B2", "A1:E4")
    assert [str(rule.sqref) for rule in plan.data_validations.dataValidation] == ["B2:B4", "H3"]
    assert len(plan.conditional_formatting) == 3
    assert plan.protection.sheet


def test_without_libreoffice_the_script_says_so_and_leaves_the_file_alone(tmp_path):
    path = workbook(tmp_path / "book.xlsx", A1=1, A2="=A1+1")
    before = path.read_bytes()
    code, answer = recalc(path, folder=tmp_path, without_office=True)
    hint = answer.pop("hint")
    assert (code, answer) == (2, {
        "status": "failed", "file": str(path), "recalculated": False, "message": "LibreOffice was not found",
    })
    assert "libreoffice-calc" in hint and "--check-only" in hint
    assert path.read_bytes() == before


def test_a_soffice_that_is_named_and_not_there_is_told(tmp_path):
    path = workbook(tmp_path / "book.xlsx", A1=1)
    ran = subprocess.run(
        [sys.executable, SCRIPT, path], env=os.environ | {"SOFFICE": "/no/such/soffice"},
        capture_output=True, text=True, timeout=60)
    assert (ran.returncode, json.loads(ran.stdout)["message"]) == (
        2, "SOFFICE names '/no/such/soffice', which is not a program")


def test_without_libreoffice_stored_values_can_still_be_scanned(tmp_path):
    plain = workbook(tmp_path / "plain.xlsx", A1=1, A2="text")
    never = workbook(tmp_path / "never.xlsx", A1="=1+1", A2="=A1*2")
    scan = {"recalculated": False, "formulas_without_value": 0, "total_formulas": 0, "total_errors": 0, "errors": {}}
    assert recalc(plain, "--check-only", folder=tmp_path, without_office=True) == (
        0, scan | {"status": "ok", "file": str(plain)})
    assert recalc(never, "--check-only", folder=tmp_path, without_office=True) == (2, scan | {
        "status": "not_calculated", "file": str(never), "total_formulas": 2, "formulas_without_value": 2,
        "hint": "Some formulas hold no value. Run the script without --check-only.",
    })


@pytest.mark.parametrize(("name", "message"), [
    ("missing.xlsx", "missing.xlsx is not a file"),
    ("macros.xlsm", "macros.xlsm is not an .xlsx file"),
    ("broken.xlsx", "broken.xlsx cannot be read as a workbook"),
])
def test_what_is_no_workbook_is_refused_by_its_name(tmp_path, name, message):
    if not name.startswith("missing"):
        (tmp_path / name).write_bytes(b"no workbook")
    code, answer = recalc(name, "--check-only", folder=tmp_path)
    assert (code, answer["status"]) == (2, "failed")
    assert answer["message"].startswith(message), answer


@pytest.mark.timeout(OFFICE_SECONDS + 60)
@pytest.mark.nightly
def test_with_libreoffice_formulas_are_computed_and_stored(tmp_path):
    need_office()
    path = workbook(tmp_path / "book.xlsx", A1=20, A2=1, A3="=A1*2+A2*2", A4='=IF(A3=42,"right","wrong")')
    assert recalc(path, folder=tmp_path) == (0, {
        "status": "ok", "file": str(path), "recalculated": True,
        "total_formulas": 2, "formulas_without_value": 0, "total_errors": 0, "errors": {},
    })
    assert values(path, "Data") == [[20], [1], [42], ["right"]]
    assert openpyxl.load_workbook(path)["Data"]["A3"].value == "=A1*2+A2*2"


@pytest.mark.timeout(OFFICE_SECONDS + 60)
@pytest.mark.nightly
def test_with_libreoffice_errors_are_listed_by_kind_and_place(tmp_path):
    need_office()
    path = workbook(
        tmp_path / "book.xlsx", A1=0, A2="=1/A1", A3="=A2+1", A4="=NOSUCHFUNCTION(1)",
        A5="=MATCH(5,A1:A1,0)", A6='=IFERROR(1/A1,"none")', A7="#N/A (a text)")
    code, answer = recalc(path, "--max-places", 1, folder=tmp_path)
    assert (code, answer) == (1, {
        "status": "errors_found", "file": str(path), "recalculated": True,
        "total_formulas": 5, "formulas_without_value": 0, "total_errors": 4,
        "errors": {
            "#DIV/0!": {"count": 2, "places": ["Data!A2"], "not_shown": 1},
            "#N/A": {"count": 1, "places": ["Data!A5"]},
            "#NAME?": {"count": 1, "places": ["Data!A4"]},
        },
    })


@pytest.mark.timeout(OFFICE_SECONDS + 60)
@pytest.mark.nightly
def test_a_value_that_is_stale_is_computed_again(tmp_path):
    need_office()
    path = workbook(tmp_path / "book.xlsx", A1=1, A2="=A1*10")
    recalc(path, folder=tmp_path)
    book = openpyxl.load_workbook(path)
    book["Data"]["A1"] = 5
    book.save(path)
    assert recalc(path, folder=tmp_path)[0] == 0
    assert values(path, "Data") == [[5], [50]]


@pytest.mark.timeout(7 * OFFICE_SECONDS)
@pytest.mark.nightly
def test_the_workbooks_of_the_pages_have_no_errors_and_the_right_values(made, tmp_path):
    need_office()
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    for name in ["sales", "sales_updated", "summary", "named", "model", "plan"]:
        code, answer = recalc(f"{name}.xlsx", folder=tmp_path)
        assert (code, answer["total_errors"], answer["formulas_without_value"]) == (0, 0, 0), (name, answer)
    assert values(tmp_path / "sales.xlsx", "Sales")[-1] == pytest.approx(["Total", 23, None, 2181.8, 2618.16])
    assert values(tmp_path / "sales_updated.xlsx", "Sales")[-1][1:] == pytest.approx([28, None, 2626.8, 3152.16])
    assert [row[1] for row in values(tmp_path / "summary.xlsx", "Summary")] == ["Paid", 120, 140, None, "South"]
    assert values(tmp_path / "model.xlsx", "Model")[3][1] == pytest.approx(190000)
    # And the block that compares them with pandas agrees.
    ran = run_blocks("examples.md", tmp_path, needs_values)
    assert (ran.returncode, ran.stdout) == (0, "paid amounts agree\n"), ran.stderr


@pytest.mark.timeout(60)
def test_an_office_that_hangs_is_stopped_and_the_file_left_alone(tmp_path):
    path = workbook(tmp_path / "book.xlsx", A1="=1+1")
    before = path.read_bytes()
    office = tmp_path / "soffice"
    office.write_text("#!/bin/sh\nexec sleep 600\n")
    office.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, SCRIPT, path, "--timeout", "0.5"], env=os.environ | {"SOFFICE": str(office)},
        capture_output=True, text=True, timeout=30)
    assert (ran.returncode, json.loads(ran.stdout)["message"]) == (
        2, "LibreOffice did not finish within 0.5 seconds")
    assert path.read_bytes() == before
