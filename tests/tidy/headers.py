#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
headers.py ROOT BUILD: the public headers compile alone, with every warning an error; vipl.h as C99 and C++ too, because
programs from elsewhere include it; and each header says what it needs itself.  So do the examples.
"""

import os
import subprocess
import sys
import tempfile

from tap import Tap, files, makefile

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
PUBLIC = [
    # header, language, standard, further definitions
    ("vipl.h", "c", "c99", []),
    ("vipl.h", "c", "c11", []),
    ("vipl.h", "c", "c99", ["-DVIPL_NO_EXTENSIONS"]),
    ("vipl.h", "c", "c99", ["-DVIPL095"]),
    ("vipl.h", "c++", "c++98", ["-Wno-long-long"]),
    ("vipl.h", "c++", "c++17", []),
    ("qnix.h", "c", "c99", []),
    ("qnix.h", "c++", "c++98", []),
    ("nicemu/nic.h", "c", "c11", []),
    ("cmpi/cmpi.h", "c", "c11", []),
    ("cmpi/protocol.h", "c", "c11", []),
]


def compile_file(root, compiler, source, standard, more):
    """The compiler's complaints."""
    run = subprocess.run([*compiler.split(), f"-std={standard}", *STRICT, *more, f"-I{root}", f"-I{root}/vipl/include", f"-I{root}/qx/include", source],
                         capture_output=True, text=True)
    if run.returncode == 0:
        return []
    return [line for line in run.stderr.splitlines() if "error" in line] or [f"{compiler} failed: {run.stderr.strip()[:200]}"]


def compile_alone(root, compiler, header, language, standard, more):
    """Included twice, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "alone.cc" if language == "c++" else "alone.c")
        with open(source, "w", encoding="ascii") as f:
            f.write(f'#include "{header}"\n#include "{header}"\nint alone;\n')
        return compile_file(root, compiler, source, standard, more)


def main():
    root, build, tap = sys.argv[1], sys.argv[2], Tap()
    compilers = {"c": makefile(build, "CC", "cc"), "c++": makefile(build, "CXX", "c++")}
    for header, language, standard, more in PUBLIC:
        compiler = compilers[language]
        tap.check(f"{header} alone as {standard} {' '.join(more)}".rstrip(),
                  compile_alone(root, compiler, header, language, standard, more) if compiler else [],
                  None if compiler else "there is no C++ compiler")
    inner = files(root, r"^(nicemu|vipl/src|qx/src|cmpi)/.*\.h$")
    more = ["-D_GNU_SOURCE", "-mcx16", "-Wno-pedantic", "-Wno-unused-function"]
    tap.check("every header of the layers compiles alone",
              [f"{h}: {line}" for h in inner for line in compile_alone(root, compilers["c"], h, "c", "gnu11", more)])
    tap.check("the examples compile, as C11 without extensions", [
        f"{e}: {line}" for e in files(root, r"^examples/.*\.c$")
        for line in compile_file(root, compilers["c"], os.path.join(root, e), "c11", [])])
    tap.done()


main()
