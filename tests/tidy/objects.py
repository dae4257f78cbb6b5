#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
objects.py ROOT BUILD: what the built objects refer to, and what the shared objects export.

A source whose first line says HOT lies on the way of a message: its object may not refer to memory allocation, printing,
pthread_* or clocks.  A layer's objects refer to the layer below and to no other.
"""

import glob
import os
import re
import subprocess
import sys

from tap import Tap, files, makefile, read

HOT_REFUSED = re.compile(
    r"^_*("
    r"malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|memalign|valloc|strdup|strndup|"
    r"v?(f|s|sn|d|as)?printf|v?w?printf|puts|fputs|putchar|putc|fputc|fwrite|perror|syslog|"
    r"pthread_\w+|"
    r"clock_gettime|clock_nanosleep|clock|gettimeofday|time|nanosleep|usleep|sleep"
    r")(_chk)?$")
CLOCKS = re.compile(r"^_*(clock_gettime|clock_nanosleep|clock|gettimeofday|time|nanosleep|usleep|sleep)(_chk)?$")

ABOVE_NIC = r"^(Vip|vipl_|qx_|cmpi_|via_|btl_qnix|mca_|opal_|ompi_|MPI_)"
# For sources that start so (the longest that fits counts): symbols that their objects may not refer to.
REFUSED = {
    "nicemu/": ABOVE_NIC,
    "qx/src/": r"^(Vip|vipl_|cmpi_|via_|mpip_|btl_qnix|mca_|opal_|ompi_|MPI_)",
    "vipl/src/": r"^(cmpi_|via_|btl_qnix|mca_|opal_|ompi_|MPI_)",
    "cmpi/": r"^(nic_|Vip|vipl_|via_|btl_qnix|mca_|opal_|ompi_|MPI_)",
    "cmpi/pm_via/": r"^(nic_|vipl_|btl_qnix|mca_|opal_|ompi_|MPI_)",
    "btl_qnix/": r"^(nic_|Vip|vipl_|via_|mpip_)",
    "mtl_qnix/": r"^(nic_|Vip|vipl_|via_|mpip_)",
    "pml_qnix/": r"^(nic_|Vip|vipl_|via_|mpip_)",
    "coll_qnix/": r"^(nic_|Vip|vipl_|via_|mpip_)",
}


def nm(*words):
    return subprocess.run(["nm", *words], check=True, capture_output=True, text=True).stdout.splitlines()


def undefined(objects):
    """For each object, the names it refers to; one nm for all of them."""
    names = {o: set() for o in objects}
    for line in nm("-u", "-A", *names) if names else []:
        at, name = line.rsplit(None, 1)
        names[at.rsplit(":", 1)[0]].add(name.split("@")[0])
    return names


def defined(shared):
    """Dynamic symbols that can be linked with; names of versions are none."""
    rows = [line.split() for line in nm("-D", "--defined-only", shared)]
    return {row[2].split("@")[0] for row in rows if len(row) == 3 and row[1] != "A"}


def objects_of(build, source):
    """Of a source X/Y.c: X/Y.o, or X/TARGET-Y.o where a target has flags of its own; libtool's are in .libs."""
    folder, name = os.path.split(source[:-2])
    found = []
    for at in (folder, f"{folder}/.libs"):
        found += [o for o in glob.glob(f"{build}/{at}/*.o") if re.search(rf"(^|[-/]){re.escape(name)}\.o$", o)]
    return found


def longest(table, path):
    fits = [prefix for prefix in table if path.startswith(prefix)]
    return max(fits, key=len) if fits else None


def public_calls(root):
    """Functions that nic.h declares or its inline functions are."""
    text = "".join(read(root, p) for p in ["nicemu/nic.h", *files(root, r"^nicemu/mem/.*\.h$")])
    return set(re.findall(r"\b(nic_\w+)\s*\(", text))


def main():
    root, build, tap = sys.argv[1], sys.argv[2], Tap()
    component = f"{build}/btl_qnix/.libs/mca_btl_qnix.so"
    without_mpi = None if makefile(build, "MPICC") else "this build has no Open MPI"
    without_mtl = without_mpi or not makefile(build, "OMPI_MTL_LIBS")
    layers = [s for s in files(root, r"^(nicemu|vipl/src|qx/src|cmpi|btl_qnix|mtl_qnix|pml_qnix|coll_qnix)/.*\.c$")
              if not (without_mpi and s.startswith("btl_qnix/")) and not (without_mtl and s.startswith(("mtl_qnix/", "pml_qnix/", "coll_qnix/")))]
    objects = {s: objects_of(build, s) for s in layers}
    names = undefined([o for found in objects.values() for o in found])
    refers = {s: sorted(set().union(*(names[o] for o in found))) for s, found in objects.items()}
    public = public_calls(root)
    hot = [s for s in layers if "HOT" in read(root, s).split("\n", 1)[0]]

    tap.check("every source of the layers has an object", [f"{s} has none in {build}" for s, o in objects.items() if not o])
    tap.check("there are hot sources", [] if hot else ["no source says HOT"])
    tap.check("hot objects neither allocate, print, lock with pthreads, nor look at a clock", [
        f"{s} refers to {name}" for s in hot for name in refers[s] if HOT_REFUSED.match(name)])
    tap.check("the control program looks at no clock", [
        f"{s} refers to {name}" for s in layers if s.startswith(("nicemu/ctl/", "nicemu/strat/"))
        for name in refers[s] if CLOCKS.match(name)])
    tap.check("each layer refers to the next one down, and no further", [
        f"{s} refers to {name}" for s in layers for name in refers[s]
        if re.match(REFUSED[longest(REFUSED, s)], name)])
    tap.check("vipl and qx call only what nic.h declares", [
        f"{s} refers to {name}" for s in layers if s.startswith(("vipl/src/", "qx/src/"))
        for name in refers[s] if name.startswith("nic_") and name not in public])

    vipl = f"{build}/vipl/.libs/libvipl.so"
    exported = defined(vipl) if os.path.exists(vipl) else set()
    tap.check("libvipl.so exports Vip* and nothing else",
              sorted(n for n in exported if not re.match(r"Vip[A-Zx]", n)) or ([] if "VipOpenNic" in exported else ["no VipOpenNic"]))
    library = f"{build}/qx/.libs/libqnix.so"
    exported = defined(library) if os.path.exists(library) else set()
    tap.check("libqnix.so exports qx_* and nothing else",
              sorted(n for n in exported if not n.startswith("qx_")) or ([] if "qx_init" in exported else ["no qx_init"]))
    exported = defined(component) if os.path.exists(component) else set()
    wanted = {"mca_btl_qnix_component"} | (set() if without_mtl else {"mca_mtl_qnix_component", "mca_pml_qnix_component", "mca_coll_qnix_component"})
    tap.check("mca_btl_qnix.so exports its components and nothing else",
              [] if exported == wanted else sorted(exported) or ["nothing, or there is no such file"], without_mpi)
    tap.done()


main()
