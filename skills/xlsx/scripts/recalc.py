#!/usr/bin/env python3
"""Recalculate a spreadsheet with LibreOffice and report the cells that hold errors.

    recalc.py WORKBOOK [--timeout SECONDS] [--check-only] [--max-places N]

The workbook (.xlsx) is converted by a headless LibreOffice, which computes every formula and stores the
results. The new file replaces the old one in one step, and only after it was written and read back. If
anything fails before that, the workbook is left as it was.

One JSON object is printed on standard output:

    {"status": "ok", "file": "report.xlsx", "recalculated": true, "total_formulas": 12,
     "formulas_without_value": 0, "total_errors": 0, "errors": {}}

Exit codes: 0 no error values ("ok"); 1 error values found ("errors_found"); 2 the check could not be done
("failed") or some formulas were never computed ("not_calculated"). A wrong command line also exits with 2
and prints its usage on standard error.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ERROR_VALUES = ("#REF!", "#DIV/0!", "#NAME?", "#VALUE!", "#N/A", "#NULL!", "#NUM!")
FORMATS = (".xlsx",)

MAC_SOFFICE = "/Applications/LibreOffice.app/Contents/MacOS/soffice"
WINDOWS_SOFFICE = r"C:\Program Files\LibreOffice\program\soffice.exe"


# By default LibreOffice trusts the values stored in an .xlsx file. 0 means "always recalculate on load".
ALWAYS_RECALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
  <item oor:path="/org.openoffice.Office.Calc/Formula/Load">
    <prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop>
  </item>
</oor:items>
"""


class Failure(Exception):
    """The check could not be done. `hint` says what to do about it."""

    def __init__(self, message, hint=None):
        super().__init__(message)
        self.hint = hint


def find_soffice():
    """The path of the LibreOffice program, from $SOFFICE, $PATH or the usual places."""
    named = os.environ.get("SOFFICE")
    if named:
        found = shutil.which(named)
        if found:
            return found
        raise Failure(f"SOFFICE names {named!r}, which is not a program",
                      "Correct the environment variable SOFFICE or unset it.")
    for candidate in ("soffice", "libreoffice", MAC_SOFFICE, WINDOWS_SOFFICE):
        found = shutil.which(candidate)
        if found:
            return found
    raise Failure(
        "LibreOffice was not found",
        "Install LibreOffice Calc (Debian and Ubuntu: apt-get install --no-install-recommends libreoffice-calc; "
        "macOS: brew install --cask libreoffice), or set SOFFICE to the path of the soffice program. "
        "To look at the stored values without recalculating, use --check-only.")


def load_openpyxl():
    try:
        import openpyxl
    except ImportError:
        raise Failure("the Python package openpyxl is not installed",
                      "Run: python3 -m pip install openpyxl") from None
    return openpyxl


def run_with_limit(command, seconds):
    """Run a command in its own process group, so that a time-out ends its children too."""
    options = {"start_new_session": True} if os.name == "posix" else {}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        stop(process)
        raise Failure(f"LibreOffice did not finish within {seconds:g} seconds",
                      "Give more time with --timeout, or check that the workbook opens at all.") from None
    except BaseException:
        stop(process)
        raise
    return process.returncode, output.strip()


def stop(process):
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    else:
        process.kill()
    process.communicate()


def recalculate(workbook, seconds, openpyxl):
    """Replace the workbook by a copy whose formulas were computed by LibreOffice."""
    soffice = find_soffice()
    with tempfile.TemporaryDirectory(prefix="recalc-") as scratch_name:
        scratch = Path(scratch_name)
        source = scratch / ("source" + workbook.suffix.lower())
        shutil.copyfile(workbook, source)
        before = workbook.stat()
        result_dir = scratch / "result"
        result_dir.mkdir()
        # A profile of our own: a running LibreOffice would otherwise take the job and return at once.
        profile = scratch / "profile"
        settings = profile / "user" / "registrymodifications.xcu"
        settings.parent.mkdir(parents=True)
        settings.write_text(ALWAYS_RECALCULATE, encoding="utf-8")
        command = [
            soffice, "--headless", "--norestore", "--nolockcheck", "--nodefault",
            f"-env:UserInstallation={profile.as_uri()}",
            "--convert-to", "xlsx:Calc MS Excel 2007 XML",
            "--outdir", str(result_dir), str(source),
        ]
        code, output = run_with_limit(command, seconds)
        result = result_dir / "source.xlsx"
        # LibreOffice can exit with 0 and write nothing, so the file decides.
        if code != 0 or not result.is_file() or result.stat().st_size == 0:
            raise Failure(f"LibreOffice wrote no workbook (exit code {code}): {output or 'no message'}",
                          "Check that LibreOffice Calc is installed, not only the base package, "
                          "and that the file is a valid workbook.")
        report = scan(result, openpyxl)
        now = workbook.stat()
        if (now.st_mtime_ns, now.st_size) != (before.st_mtime_ns, before.st_size):
            raise Failure(f"{workbook.name} was changed by another program during the recalculation",
                          "Close other programs that write the file and run the script again.")
        replace_file(result, workbook)
    return report


def replace_file(new, target):
    """Put `new` in the place of `target` in one step, on the target's own file system."""
    target = target.resolve()  # follow a symbolic link instead of replacing it
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out, open(new, "rb") as source:
            shutil.copyfileobj(source, out)
            out.flush()
            os.fsync(out.fileno())
        shutil.copymode(target, name)
        os.replace(name, target)
    except BaseException:
        try:
            os.unlink(name)
        except FileNotFoundError:
            pass
        raise


def scan(path, openpyxl):
    """Count the formulas and collect the places of error values, and of formulas that have no value yet."""
    try:
        values = openpyxl.load_workbook(path, data_only=True)
        formulas = openpyxl.load_workbook(path, data_only=False)
    except Exception as error:  # openpyxl raises many kinds for a damaged file
        raise Failure(f"{path.name} cannot be read as a workbook: {error}",
                      "Check that the file is a real .xlsx file and is not encrypted.") from None
    total = 0
    without_value = 0
    errors = {}
    for sheet in formulas.worksheets:
        computed = values[sheet.title]
        for row in sheet.iter_rows():
            for cell in row:
                is_formula = cell.data_type == "f"
                if not is_formula and cell.value is None:
                    continue
                value = computed.cell(row=cell.row, column=cell.column)
                if is_formula:
                    total += 1
                    # An empty text is a result, and has the type "str"; a formula never computed has "n".
                    if value.value is None and value.data_type == "n":
                        without_value += 1
                # Only a cell of type "error" counts: a text that reads "#N/A" is a text.
                if value.data_type == "e":
                    kind = value.value if value.value in ERROR_VALUES else "other"
                    place = f"{sheet.title}!{cell.coordinate}"
                    errors.setdefault(kind, []).append(place)
    return {"total_formulas": total, "formulas_without_value": without_value, "errors": errors}


def as_answer(report, max_places):
    total_errors = sum(len(places) for places in report["errors"].values())
    errors = {}
    for kind in sorted(report["errors"]):
        places = report["errors"][kind]
        errors[kind] = {"count": len(places), "places": places[:max_places]}
        if len(places) > max_places:
            errors[kind]["not_shown"] = len(places) - max_places
    return {
        "total_formulas": report["total_formulas"],
        "formulas_without_value": report["formulas_without_value"],
        "total_errors": total_errors,
        "errors": errors,
    }


def positive(kind):
    def parse(text):
        number = kind(text)
        if not 0 < number < float("inf"):
            raise argparse.ArgumentTypeError("must be greater than 0")
        return number
    parse.__name__ = kind.__name__
    return parse


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description="Recalculate a workbook with LibreOffice and report error values as JSON.")
    parser.add_argument("workbook", type=Path)
    parser.add_argument("--timeout", type=positive(float), default=120.0, metavar="SECONDS",
                        help="time limit for LibreOffice (default 120)")
    parser.add_argument("--check-only", action="store_true",
                        help="scan the stored values; do not recalculate, do not change the file")
    parser.add_argument("--max-places", type=positive(int), default=100, metavar="N",
                        help="cell places shown per kind of error (default 100)")
    options = parser.parse_args(arguments)

    answer = {"status": "failed", "file": str(options.workbook), "recalculated": False}
    try:
        workbook = options.workbook
        if not workbook.is_file():
            raise Failure(f"{workbook} is not a file", "Check the path.")
        if workbook.suffix.lower() not in FORMATS:
            raise Failure(f"{workbook.name} is not an .xlsx file",
                          "Save the workbook as .xlsx first. Files with macros (.xlsm) are refused, "
                          "since the conversion would lose the macros.")
        openpyxl = load_openpyxl()
        if options.check_only:
            report = scan(workbook, openpyxl)
        else:
            report = recalculate(workbook, options.timeout, openpyxl)
            answer["recalculated"] = True
        answer.update(as_answer(report, options.max_places))
        if answer["total_errors"]:
            answer["status"], code = "errors_found", 1
        elif answer["formulas_without_value"]:
            answer["status"], code = "not_calculated", 2
            answer["hint"] = "Some formulas hold no value. Run the script without --check-only."
        else:
            answer["status"], code = "ok", 0
    except Failure as failure:
        answer["message"] = str(failure)
        if failure.hint:
            answer["hint"] = failure.hint
        code = 2
    except OSError as error:
        answer["message"] = f"{error.strerror or error}: {error.filename or options.workbook}"
        code = 2
    print(json.dumps(answer, indent=2, ensure_ascii=False))
    return code


if __name__ == "__main__":
    sys.exit(main())
