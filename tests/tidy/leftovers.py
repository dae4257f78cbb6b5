#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
leftovers.py ROOT: what should not stay behind in the tree: unfinished marks, volatile, missing licence lines, paths of one
machine, blanks at line ends, files and functions that have grown too long, folders that do not say what lives in them.
"""

import os
import re
import sys

from tap import Tap, files, read, without_comments

SOURCE = r"\.(c|h|def)$"
SCRIPT = r"(\.(sh|py|m4|mk|ac|am)$|^man/|^(bootstrap|dev/[^.]*|\.ci/run|tests/.*/(run|check|prove)|bench/(run|performance))$)"
TEXT = r"(\.(c|h|def|py|sh|m4|mk|ac|am|in|md|txt|map|svg|[1-9])$|^(bootstrap|NEWS|dev/.*|\.ci/run|tests/.*/(run|check|prove)|bench/(run|performance))$)"

# Spelled so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE = re.compile(r"(/ro" r"ot/|/ho" r"me/[a-z]|/wo" r"rk/|/tmp/br" r"ief)")
LONGEST_FILE, LONGEST_FUNCTION = 900, 110


def matches(root, paths, pattern, code_only=False):
    for path in paths:
        text = read(root, path)
        if code_only:
            text = without_comments(text)
        for number, line in enumerate(text.split("\n"), 1):
            if pattern.search(line):
                yield f"{path}:{number}: {line.strip()[:100]}"


def unlicensed(root, paths):
    for path in paths:
        if "SPDX-License-Identifier: BSD-3-Clause" not in "\n".join(read(root, path).split("\n")[:3]):
            yield f"{path}: no SPDX line at its start"


def long_functions(root, paths):
    for path in paths:
        start = None
        for number, line in enumerate(read(root, path).split("\n"), 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start > LONGEST_FUNCTION:
                    yield f"{path}:{start}: a function of {number - start} lines"
                start = None


def main():
    root, tap = sys.argv[1], Tap()
    sources, texts = files(root, SOURCE), files(root, TEXT)
    ours = [s for s in sources if not s.startswith("tests/")]
    tap.check("there are files to look at", [] if len(sources) > 50 else [f"only {len(sources)} sources"])
    tap.check("nothing is marked as unfinished", matches(root, texts, UNFINISHED))
    tap.check("no volatile: what is shared is atomic",
              matches(root, sources, re.compile(r"(?<!_)\bvolatile\b(?!_)"), code_only=True))
    tap.check("every source and script starts with its licence", unlicensed(root, sources + files(root, SCRIPT)))
    tap.check("no path of one machine", matches(root, texts, MACHINE))
    tap.check("no blanks at the end of a line", matches(root, texts, re.compile(r"[ \t]$")))
    tap.check(f"no source above {LONGEST_FILE} lines",
              [f"{s}: {n}" for s in ours if (n := read(root, s).count("\n")) > LONGEST_FILE])
    tap.check(f"no function above {LONGEST_FUNCTION} lines", long_functions(root, ours))
    rooms = [""] + [f"{r}/" for r in sorted({os.path.dirname(s) for s in sources if s.startswith("nicemu/")})]
    tap.check("every folder of nicemu says what lives there",
              [f"{r}README.md is missing" for r in rooms if not os.path.exists(os.path.join(root, r, "README.md"))])
    tap.done()


main()
