#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
manual.py ROOT BUILD: the manual is without fault and complete: every page passes mandoc's lint, every parameter, counter,
subcommand and call of VIPL is in it, and nothing in it or in the README files refers to what does not exist.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

from tap import Tap, files, read, without_comments

SYSTEM = {"mpirun", "ompi_info", "man", "process_vm_readv", "memfd_create", "fork", "unix", "proc", "fcntl", "taskset"}


def lint(page):
    run = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
    return run.stdout.splitlines() + ([] if run.returncode == 0 or run.stdout else [f"{page}: mandoc failed"])


def rows(root, path, pattern):
    return re.findall(pattern, without_comments(read(root, path)), re.M)


def plain(page):
    """The text of a page, without the language it is written in."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    return re.sub(r"\\[&e]|\\-", lambda m: "-" if m.group(0) == "\\-" else "", text)


def lacks(text, names):
    return [f"{n} is not there" for n in names if not re.search(rf"(?<![A-Za-z0-9_]){re.escape(n)}(?![A-Za-z0-9_])", text)]


def references(pages):
    known = {os.path.basename(p) for p in pages}
    for page in pages:
        for name, section in re.findall(r"^\.Xr ([^ ]+) (\d)", plain(page), re.M):
            if f"{name}.{section}" not in known and name not in SYSTEM:
                yield f"{os.path.basename(page)} refers to {name}({section}), which does not exist"


def dead_links(root):
    for path in files(root, r"\.md$"):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(root, path)):
            if "://" not in target and not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
                yield f"{path} leads to {target}, which does not exist"
    for path in files(root, r"\.(c|h|def|md|in|[1-9])$"):
        for target in re.findall(r"\bdocs/[\w-]+\.\w+", read(root, path)):
            if not os.path.exists(os.path.join(root, target)):
                yield f"{path} names {target}, which does not exist"


def foreign_code(root):
    """What README.md shows as C is a part of an example, which is compiled (headers.py)."""
    examples = "\n".join(read(root, e) for e in files(root, r"^examples/.*\.c$"))
    shown = re.findall(r"```c\n(.*?)```", read(root, "README.md"), re.S) if os.path.exists(f"{root}/README.md") else []
    if not shown:
        yield "README.md shows no code"
    for code in shown:
        if code.strip() not in examples:
            yield f"README.md: {code.strip().splitlines()[0]} ... is not that of examples/"


def main():
    root, build, tap = sys.argv[1], sys.argv[2], Tap()
    pages = {os.path.basename(p): p for p in glob.glob(f"{build}/man/*.[1-9]") + glob.glob(f"{root}/man/*.[1-9]")}
    wanted = ["qnix.1", "qnix.conf.5", "qnix.7", "qnix-counters.7", "vipl.7", "qx.3"]
    tap.check("the pages are there", [f"no {w}" for w in wanted if w not in pages])
    tap.check("every page passes mandoc -T lint", [f for p in sorted(pages.values()) for f in lint(p)],
              None if shutil.which("mandoc") else "mandoc is not installed")
    text = {name: plain(page) for name, page in pages.items()}

    parameters = rows(root, "nicemu/util/params.def", r'^P\("(\w+)"')
    tap.check("qnix.conf(5) has every parameter",
              lacks(text.get("qnix.conf.5", ""), parameters) if parameters else ["no parameter found in params.def"])
    counters = rows(root, "nicemu/obs/counters.def", r"^C\((\w+)") + rows(root, "cmpi/pm_via/counters.h", r'C\(\w+, "(\w+)"')
    tap.check("qnix-counters(7) has every counter",
              lacks(text.get("qnix-counters.7", ""), counters) if len(counters) > 20 else ["counters not found"])
    commands = rows(root, "nicemu/tools/qnix.c", r"&tool_(\w+)")
    options = [o for c in commands for o in re.findall(r'\[OPTION_\w+\] = \{ "(\w+)"', read(root, f"nicemu/tools/{c}.c"))]
    tap.check("qnix(1) has every subcommand and option",
              lacks(text.get("qnix.1", ""), commands + options) if commands else ["no subcommand found"])
    calls = sorted(set(rows(root, "vipl/include/vipl.h", r"\b(Vip\w+)\(")))
    vip = "\n".join(t for n, t in text.items() if re.match(r"(Vip|vipl)", n))
    tap.check("the pages of VIPL have every call", lacks(vip, calls) if len(calls) > 40 else ["calls not found"])
    library = sorted(set(rows(root, "qx/include/qnix.h", r"\b(qx_\w+)\(")))
    tap.check("qx(3) has every call of the QNIX library", lacks(text.get("qx.3", ""), library) if len(library) > 15 else ["calls not found"])
    tap.check("no page refers to one that does not exist", references(list(pages.values())))
    tap.check("what README files and comments lead to exists", dead_links(root))
    tap.check("the code in README.md is from examples/", foreign_code(root))
    tap.done()


main()
