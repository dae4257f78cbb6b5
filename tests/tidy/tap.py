# SPDX-License-Identifier: BSD-3-Clause
"""What the checks of this folder share: TAP, the files of the tree, the settings of a build."""

import os
import re
import sys

# What a build, a version control system or an editor leaves in a source tree.
NOT_OURS = re.compile(r"^(\.git|build.*|autom4te\.cache|m4/(libtool|lt.*)\.m4|aclocal\.m4|configure~?|Makefile\.in|.*~)$")


class Tap:
    def __init__(self):
        self.number = self.bad = 0

    def check(self, name, faults, skip=None):
        """One test, which holds when there are no faults."""
        self.number += 1
        faults = list(faults)
        if skip:
            print(f"ok {self.number} - {name} # SKIP {skip}")
            return
        print(f"{'not ok' if faults else 'ok'} {self.number} - {name}")
        for fault in faults[:40]:
            print(f"#   {fault}")
        if len(faults) > 40:
            print(f"#   and {len(faults) - 40} more")
        self.bad += bool(faults)

    def done(self):
        print(f"1..{self.number}", flush=True)
        sys.exit(1 if self.bad or not self.number else 0)


def files(root, pattern):
    """Paths below root, from root, whose name matches; what a build made is left out."""
    found = []
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root)
        path = lambda name: name if here == "." else f"{here}/{name}"
        folders[:] = sorted(f for f in folders if not NOT_OURS.match(path(f)) and not f.startswith("__"))
        found += [path(n) for n in sorted(names) if re.search(pattern, path(n)) and not NOT_OURS.match(path(n))]
    return found


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def without_comments(text):
    """C with its comments blanked, strings kept, lines where they were."""
    blank = lambda m: m.group(0) if m.group(0)[0] in "\"'" else re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', blank, text, flags=re.S)


def makefile(build, variable, default=""):
    """A variable of the build, as configure set it."""
    try:
        text = read(build, "Makefile")
    except OSError:
        return default
    found = re.search(rf"^{variable} = ?(.*)$", text, flags=re.M)
    return found.group(1).strip() if found else default
