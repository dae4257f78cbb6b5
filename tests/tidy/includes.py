#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
includes.py ROOT: the include rule.

Each layer sees one public header of the layer below: btl_qnix -> cmpi/cmpi.h, cmpi/pm_via -> vipl.h, vipl -> nicemu/nic.h
(and nicemu/mem/, because descriptors are shared memory).  Inside nicemu: formats know only formats; the control program
knows no clock.  Includes of ours are in quotes and written from the root of the tree; tests and benchmarks, which are
small programs, may also name a header beside them.
"""

import os
import re
import sys

from tap import Tap, files, read, without_comments

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)

# For a path that starts so (the longest that fits counts): what it may include of ours, as regular expressions.
RULES = {
    "btl_qnix/": [r"btl_qnix/", r"cmpi/cmpi\.h$"],
    "mtl_qnix/": [r"mtl_qnix/", r"cmpi/cmpi\.h$", r"btl_qnix/matched\.h$"],
    "pml_qnix/": [r"pml_qnix/", r"cmpi/cmpi\.h$", r"btl_qnix/matched\.h$"],
    "coll_qnix/": [r"coll_qnix/", r"cmpi/cmpi\.h$", r"btl_qnix/common\.h$"],
    "btl_qnix/nic.c": [r"btl_qnix/", r"cmpi/cmpi\.h$", r"(mtl_qnix/mtl|pml_qnix/pml)_qnix\.h$"],
    "cmpi/": [r"cmpi/[^/]+\.h$"],
    "cmpi/share.c": [r"cmpi/cmpi\.h$", r"cmpi/engine/engine\.h$"],
    "cmpi/cmpi.h": [],
    "cmpi/engine/": [r"cmpi/[^/]+\.h$", r"cmpi/engine/", r"cmpi/pm_via/lock\.h$"],
    "cmpi/pm_self/": [r"cmpi/[^/]+\.h$", r"cmpi/engine/engine\.h$"],
    "cmpi/pm_via/": [r"cmpi/", r"vipl\.h$"],
    "vipl/": [r"vipl/src/", r"vipl\.h$", r"nicemu/nic\.h$", r"nicemu/mem/"],
    "vipl/include/": [],
    "qx/": [r"qx/src/", r"qnix\.h$", r"nicemu/nic\.h$", r"nicemu/mem/"],
    "qx/include/": [],
    "nicemu/": [r"nicemu/(?!tools/)"],
    "nicemu/nic.h": [r"nicemu/mem/"],
    "nicemu/util/": [r"nicemu/util/", r"nicemu/nic\.h$"],
    "nicemu/mem/": [r"nicemu/mem/", r"nicemu/nic\.h$"],
    "nicemu/obs/": [r"nicemu/(obs|mem|util)/", r"nicemu/nic\.h$", r"nicemu/ctl/ctl\.h$"],
    "nicemu/ctl/": [r"nicemu/(ctl|arch|engine|mem|obs|util)/.*\.h$", r"nicemu/nic\.h$"],
    "nicemu/strat/": [r"nicemu/(ctl|arch|engine|mem|obs|util)/.*\.h$", r"nicemu/nic\.h$", r"nicemu/strat/meet_board\.h$"],
    "nicemu/arch/": [r"nicemu/arch/arch\.h$", r"nicemu/nic\.h$"],
    "nicemu/tools/": [r"nicemu/tools/", r"nicemu/nic\.h$"],
    "bench/": [r"bench/", r"nicemu/nic\.h$", r"vipl\.h$", r"cmpi/cmpi\.h$"],
    "examples/": [r"vipl\.h$", r"qnix\.h$"],
    "man/": [r"nicemu/util/params\.def$", r"nicemu/util/fits\.h$", r"nicemu/obs/counters\.def$", r"cmpi/pm_via/counters\.h$"],
    "tests/": [r""],
    "tests/mpi/": [r"tests/"],
    "tests/func/": [r"tests/", r"vipl\.h$"],
}
# Headers of others that are found with quotes.
FOREIGN = {"btl_qnix/": r"(opal|ompi)/|(opal|ompi)_config\.h$|mpi\.h$", "mtl_qnix/": r"(opal|ompi)/|ompi_config\.h$", "pml_qnix/": r"(opal|ompi)/|ompi_config\.h$", "coll_qnix/": r"(opal|ompi)/|ompi_config\.h$", "tests/": r"(opal|ompi)/|opal_config\.h$|mpi\.h$"}
CLOCKS = r"time\.h$|sys/time(b|x|rfd)?\.h$|linux/time|threads\.h$|bits/time"


def longest(table, path):
    fits = [prefix for prefix in table if path.startswith(prefix)]
    return max(fits, key=len) if fits else None


def includes(root, path):
    text = without_comments(read(root, path))
    for found in INCLUDE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found.group(1), found.group(2)


def resolves(root, name):
    return os.path.exists(os.path.join(root, name)) or (name == "vipl.h" and os.path.exists(f"{root}/vipl/include/vipl.h")) \
        or (name == "qnix.h" and os.path.exists(f"{root}/qx/include/qnix.h"))


def layer_faults(root, sources):
    for path in sources:
        prefix = longest(RULES, path)
        if prefix is None:
            yield f"{path}: no rule says what it may include: add one to tests/tidy/includes.py"
            continue
        for line, quote, name in includes(root, path):
            ours = resolves(root, name)
            if ours and not any(re.match(rule, name) for rule in RULES[prefix]):
                yield f"{path}:{line}: {prefix}* may not include {name}"


def spelling_faults(root, sources):
    for path in sources:
        foreign = FOREIGN.get(longest(FOREIGN, path) or "", r"$^")
        for line, quote, name in includes(root, path):
            beside = path.startswith(("tests/", "bench/")) and os.path.exists(os.path.join(root, os.path.dirname(path), name))
            if quote == '"' and not resolves(root, name) and not re.match(foreign, name) and not beside:
                yield f'{path}:{line}: "{name}" is not a path from the root of the tree'
            if quote == "<" and name not in ("vipl.h", "qnix.h") and resolves(root, name) and "/" in name:
                yield f"{path}:{line}: <{name}> is ours: in quotes"


def clock_faults(root, sources):
    for path in sources:
        if path.startswith(("nicemu/ctl/", "nicemu/strat/", "nicemu/mem/", "nicemu/arch/")):
            for line, quote, name in includes(root, path):
                if re.match(CLOCKS, name):
                    yield f"{path}:{line}: <{name}>: time is an argument here"


def main():
    root, tap = sys.argv[1], Tap()
    sources = files(root, r"\.(c|h|def)$")
    tap.check("there are sources of every layer", [
        f"none in {layer}" for layer in ("btl_qnix/", "cmpi/", "vipl/", "nicemu/ctl/", "nicemu/mem/")
        if not any(s.startswith(layer) for s in sources)])
    tap.check("each layer includes one public header of the layer below", layer_faults(root, sources))
    tap.check("includes of ours are paths from the root", spelling_faults(root, sources))
    tap.check("the control program includes no clock", clock_faults(root, sources))
    tap.done()


main()
