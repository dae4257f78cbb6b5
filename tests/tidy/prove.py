#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
prove.py ROOT BUILD: a test that cannot fail is a defect.  Breaks every rule once, in a copy of the tree, and sees that the
check for it says so; what it says must name the culprit, and must not be there before.
"""

import contextlib
import io
import multiprocessing
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import traceback

from tap import NOT_OURS, Tap, makefile

HERE = os.path.dirname(os.path.abspath(__file__))


class Copy:
    """The tree, and a build that is made of links to the real one; what is changed in it can be taken back."""

    def __init__(self, root, build, folder):
        self.root, self.build, self.cc = f"{folder}/tree", f"{folder}/build", makefile(build, "CC", "cc").split()
        self.spare, self.kept = f"{folder}/spare", []
        os.mkdir(self.spare)
        ignore = lambda at, names: [n for n in names if NOT_OURS.match(os.path.relpath(os.path.join(at, n), root)) or n == "__pycache__"]
        shutil.copytree(root, self.root, ignore=ignore, symlinks=True)
        for at, _, names in os.walk(build):
            here = os.path.relpath(at, build)
            wanted = [n for n in names if re.search(r"(\.o|\.so|\.[1-9])$", n) or (here == "." and n == "Makefile")]
            if wanted:
                os.makedirs(f"{self.build}/{here}", exist_ok=True)
            for name in wanted:
                os.symlink(os.path.join(os.path.abspath(at), name), f"{self.build}/{here}/{name}")

    def put_away(self, path):
        """The file at this path is kept, and the path is free."""
        keep = f"{self.spare}/{len(self.kept)}"
        os.rename(path, keep)
        self.kept.append((path, keep))
        return keep

    def restore(self):
        for path, keep in reversed(self.kept):
            os.rename(keep, path)
        self.kept = []

    def edit(self, path, function):
        keep = self.put_away(path)
        with open(keep, encoding="utf-8") as f:
            text = function(f.read())
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def compile(self, path, code, *options):
        self.put_away(path)
        subprocess.run([*self.cc, "-x", "c", "-", "-o", path, "-fPIC", "-w", *options], input=code, text=True, check=True)

    def run(self, check):
        """Its status and what it says; here, since to start Python takes as long as a check."""
        said, sys.argv, status = io.StringIO(), [check, self.root, self.build], 0
        with contextlib.redirect_stdout(said):
            try:
                runpy.run_path(f"{HERE}/{check}.py")
            except SystemExit as end:
                status = end.code
            except Exception:
                status = 1
                traceback.print_exc(file=said)
        return status, said.getvalue()

    def object_of(self, folder, name):
        """An object of the build by the name of its source."""
        for at, _, names in os.walk(f"{self.build}/{folder}"):
            for n in names:
                if re.search(rf"(^|-){re.escape(name)}\.o$", n):
                    return os.path.join(at, n)
        return None


# ---- ways to break a rule; each gives a function that does it to a copy, and returns False when this build has no such thing

def append(path, text):
    return lambda copy: copy.edit(f"{copy.root}/{path}", lambda old: old + text)


def substitute(copy, path, old, new):
    def function(text):
        assert re.search(old, text), f"{path} has no {old}"
        return re.sub(old, new, text)
    copy.edit(path, function)


def change(path, old, new):
    return lambda copy: substitute(copy, f"{copy.root}/{path}", old, new)


def in_page(page, old, new):
    """A page of the tree, or one that the build made."""
    def do(copy):
        path = f"{copy.root}/man/{page}"
        substitute(copy, path if os.path.exists(path) else f"{copy.build}/man/{page}", old, new)
    return do


def remove(path):
    return lambda copy: copy.put_away(f"{copy.root}/{path}") and None


def calls(folder, source, function):
    """The object of a source, replaced by one that calls a function."""
    def do(copy):
        target = copy.object_of(folder, source)
        if not target:
            return False
        copy.compile(target, f"void {function}(void); void f(void); void f(void) {{ {function}(); }}", "-c", "-fno-builtin")
        return None
    return do


def exports(shared, function):
    def do(copy):
        target = f"{copy.build}/{shared}"
        if not os.path.lexists(target):
            return False
        copy.compile(target, f"void {function}(void); void {function}(void) {{ }}", "-shared")
        return None
    return do


def no_object(folder, source):
    return lambda copy: copy.put_away(copy.object_of(folder, source)) and None


UNFINISHED = "TO" "DO"
# check, how the rule is broken, what the check must then say
BREAKS = [
    ("includes", append("btl_qnix/send.c", '#include "vipl.h"\n'), r"btl_qnix/send\.c:\d+: .*vipl\.h"),
    ("includes", append("btl_qnix/send.c", '#include "cmpi/pm_via/via.h"\n'), r"btl_qnix/send\.c:\d+"),
    ("includes", append("mtl_qnix/send.c", '#include "vipl.h"\n'), r"mtl_qnix/send\.c:\d+: .*vipl\.h"),
    ("includes", append("mtl_qnix/send.c", '#include "cmpi/protocol.h"\n'), r"mtl_qnix/send\.c:\d+: .*protocol\.h"),
    ("includes", append("pml_qnix/send.c", '#include "vipl.h"\n'), r"pml_qnix/send\.c:\d+: .*vipl\.h"),
    ("includes", append("cmpi/engine/queue.c", '#include "cmpi/pm_via/via.h"\n'), r"cmpi/engine/queue\.c:\d+: .*via\.h"),
    ("includes", append("cmpi/pm_via/am.c", '#include "nicemu/nic.h"\n'), r"cmpi/pm_via/am\.c:\d+"),
    ("includes", append("cmpi/cmpi.h", '#include "vipl.h"\n'), r"cmpi/cmpi\.h:\d+"),
    ("includes", append("vipl/src/vi.c", '#include "nicemu/ctl/ctl.h"\n'), r"vipl/src/vi\.c:\d+"),
    ("includes", append("vipl/include/vipl.h", '#include "nicemu/nic.h"\n'), r"vipl/include/vipl\.h:\d+"),
    ("includes", append("nicemu/mem/vi.h", '#include "nicemu/util/atomic.h"\n'), r"nicemu/mem/vi\.h:\d+"),
    ("includes", append("nicemu/ctl/tx.c", '#include "vipl.h"\n'), r"nicemu/ctl/tx\.c:\d+"),
    ("includes", append("nicemu/tools/stat.c", '#include "nicemu/mem/card.h"\n'), r"nicemu/tools/stat\.c:\d+"),
    ("includes", append("nicemu/ctl/tx.c", "#include <time.h>\n"), r"nicemu/ctl/tx\.c:\d+: <time\.h>"),
    ("includes", append("nicemu/strat/post_ring.c", "#  include <sys/time.h>\n"), r"post_ring\.c:\d+: <sys/time\.h>"),
    ("includes", append("nicemu/ctl/tx.c", '#include "ctl.h"\n'), r"\"ctl\.h\" is not a path"),
    ("includes", append("nicemu/ctl/tx.c", "#include <nicemu/nic.h>\n"), r"<nicemu/nic\.h> is ours"),
    ("objects", calls("nicemu/ctl", "tx", "malloc"), r"nicemu/ctl/tx\.c refers to malloc"),
    ("objects", calls("nicemu/ctl", "rx", "clock_gettime"), r"nicemu/ctl/rx\.c refers to clock_gettime"),
    ("objects", calls("cmpi/pm_via", "am", "__snprintf_chk"), r"am\.c refers to __snprintf_chk"),
    ("objects", calls("vipl/src", "queue", "pthread_mutex_lock"), r"queue\.c refers to pthread_mutex_lock"),
    ("objects", calls("nicemu/ctl", "conn", "nanosleep"), r"nicemu/ctl/conn\.c refers to nanosleep"),
    ("objects", calls("cmpi/pm_via", "flow", "nic_poll"), r"flow\.c refers to nic_poll"),
    ("objects", calls("cmpi/engine", "queue", "via_progress"), r"cmpi/engine/queue\.c refers to via_progress"),
    ("objects", calls("mtl_qnix", "recv", "mpip_init"), r"mtl_qnix/recv\.c refers to mpip_init"),
    ("objects", calls("pml_qnix", "recv", "mpip_init"), r"pml_qnix/recv\.c refers to mpip_init"),
    ("objects", calls("vipl/src", "vi", "cmpi_progress"), r"vi\.c refers to cmpi_progress"),
    ("objects", calls("vipl/src", "vi", "nic_driver_watch"), r"vi\.c refers to nic_driver_watch"),
    ("objects", calls("nicemu/ctl", "mem", "VipCQDone"), r"mem\.c refers to VipCQDone"),
    ("objects", calls("btl_qnix", "send", "VipPostSend"), r"send\.c refers to VipPostSend"),
    ("objects", no_object("nicemu/engine", "dma_here"), r"nicemu/engine/dma_here\.c has none"),
    ("objects", exports("vipl/.libs/libvipl.so", "nic_open"), r"#   nic_open"),
    ("objects", exports("btl_qnix/.libs/mca_btl_qnix.so", "cmpi_open"), r"#   cmpi_open"),
    ("headers", change("vipl/include/vipl.h", r"#include <stdint\.h>", ""), r"not ok \d+ - vipl\.h alone as c99\n"),
    ("headers", change("vipl/include/vipl.h", r"typedef enum \{", "static int class;\ntypedef enum {"), r"not ok \d+ - vipl\.h alone as c\+\+98"),
    ("headers", append("nicemu/nic.h", "uid_t nic_owner(void);\n"), r"not ok \d+ - nicemu/nic\.h alone as c11"),
    ("headers", change("nicemu/mem/card.h", r'#include "nicemu/mem/mmt\.h"', ""), r"nicemu/mem/card\.h: "),
    ("headers", change("examples/vipl_hello.c", r"#include <stdlib\.h>", ""), r"examples/vipl_hello\.c: "),
    ("manual", change("README.md", r"VipPostSend\(vi", "VipPostSend(v"), r"static void listen_to.* is not that of examples"),
    ("manual", append("nicemu/README.md", "[x](nowhere.md)\n"), r"nicemu/README\.md leads to nowhere\.md"),
    ("manual", in_page("qnix.1", r"\.Sh EXIT STATUS\n", ".Xx\n.Sh EXIT STATUS\n"), r"qnix\.1:\d+:\d+: .*Xx"),
    ("manual", in_page("qnix.conf.5", r"\.It Ic arch .*\n", ""), r"arch is not there"),
    ("manual", in_page("qnix-counters.7", r"cmpi_noops_held", "x"), r"cmpi_noops_held is not there"),
    ("manual", in_page("qnix-counters.7", r"link_full", "x"), r"link_full is not there"),
    ("manual", in_page("qnix.1", r"watch", "x"), r"watch is not there"),
    ("manual", in_page("qnix.7", r"\.Xr qnix 1", ".Xr qnixx 1"), r"refers to qnixx\(1\)"),
    ("manual", remove("man/qnix.7"), r"no qnix\.7"),
    ("manual", change("vipl/include/vipl.h", r"VIP_RETURN VipCloseNic", "VIP_RETURN VipNeverWas(void);\nVIP_RETURN VipCloseNic"),
     r"VipNeverWas is not there"),
    ("leftovers", append("nicemu/ctl/tx.c", f"/* {UNFINISHED}: later */\n"), rf"tx\.c:\d+: .*{UNFINISHED}"),
    ("leftovers", append("nicemu/ctl/tx.c", "static volatile int x;\n"), r"tx\.c:\d+: static volatile"),
    ("leftovers", change("nicemu/ctl/tx.c", r"SPDX-License-Identifier", "Licence"), r"tx\.c: no SPDX"),
    ("leftovers", append("CONTRIBUTING.md", "Look in /ro" "ot/x.\n"), r"CONTRIBUTING\.md:\d+: Look"),
    ("leftovers", append("nicemu/ctl/tx.c", "int x; \n"), r"tx\.c:\d+: int x;"),
    ("leftovers", append("nicemu/ctl/tx.c", "\n" * 900), r"nicemu/ctl/tx\.c: \d+"),
    ("leftovers", append("nicemu/ctl/tx.c", "void f(void)\n{\n" + "\t;\n" * 120 + "}\n"), r"tx\.c:\d+: a function of 121 lines"),
    ("leftovers", remove("nicemu/ctl/README.md"), r"nicemu/ctl/README\.md is missing"),
]


def try_one(copy, before, check, damage, expect):
    """Faults, and why it was skipped."""
    try:
        if damage(copy) is False:
            return [], "this build has no such thing"
        status, said = copy.run(check)
    except (AssertionError, OSError, TypeError, subprocess.CalledProcessError) as error:
        return [f"the rule could not be broken: {error!r}"], None
    finally:
        copy.restore()
    if re.search(expect, before):
        return ["it says so of the tree as it is"], None
    if status == 0 or not re.search(expect, said):
        return [f"status {status}, and not a word about it", *said.splitlines()[-5:]], None
    return [], None


def try_share(root, build, n, of):
    """Every of-th one from the n-th on, in a copy of its own: what was found of each, and what was left damaged."""
    damages = BREAKS[n::of]
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(root, build, folder)
        before = {check: copy.run(check)[1] for check in {b[0] for b in damages}}
        found = [try_one(copy, before[check], check, damage, expect) for check, damage, expect in damages]
        return found, [f"{check} says something else than before" for check in before if copy.run(check)[1] != before[check]]


def main():
    root, build, tap = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), Tap()
    workers = os.cpu_count() or 1
    with multiprocessing.Pool(workers) as pool:
        shares = pool.starmap(try_share, [(root, build, n, workers) for n in range(workers)])
    for n, (check, _, expect) in enumerate(BREAKS):
        name = re.sub(r"\\d\+|\.\*", "…", expect.replace("not ok \\d+ - ", "")).replace("\\n", "").replace("\\", "").replace("#   ", "")
        tap.check(f"{check} notices: {name}", *shares[n % workers][0][n // workers])
    tap.check("the copies are whole again", [fault for _, faults in shares for fault in faults])
    tap.done()


main()
