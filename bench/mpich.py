# SPDX-License-Identifier: BSD-3-Clause
"""MPICH as a peer, where it is installed: the same programs, compiled by its compiler and started by its launcher."""

import pathlib
import shutil
import tempfile

from runner import HERE, BenchError, run_limited

SOURCES = {"put_rate": ("put_bw.c", "-DRATE"), "get_rate": ("get_bw.c", "-DRATE"), "match_posted": ("match.c",),
           "match_unexpected": ("match.c", "-DUNEXPECTED")}


def first_of(*names):
    for name in names:
        if shutil.which(name):
            return name
    return None


class Mpich:
    """A launcher; programs are compiled when they are first asked for."""

    def __init__(self, timeout):
        self.compiler = first_of("mpicc.mpich")
        self.mpiexec = first_of("mpiexec.mpich", "mpirun.mpich", "mpiexec.hydra")
        self.timeout = timeout
        self.folder = None

    def absent(self):
        """Why it cannot be used, or None."""
        if not self.compiler or not self.mpiexec:
            return "not installed"
        return None

    def program(self, name):
        if not self.folder:
            self.folder = tempfile.TemporaryDirectory(prefix="bench-mpich-")
        path = pathlib.Path(self.folder.name) / name
        if not path.exists():
            source, *more = SOURCES.get(name, (f"{name}.c",))
            words = [self.compiler, "-O2", "-std=gnu11", *more, "-I", str(HERE.parent), "-o", str(path), str(HERE / source)]
            run_limited(words, 60)
        return path

    def run(self, case, peer, program):
        bind = ["-bind-to", "core"] if case.ranks == 2 else []
        line = [self.mpiexec, *bind, *peer.args, "-n", str(case.ranks), str(self.program(pathlib.Path(program[0]).name))]
        return run_limited(line + program[1:], self.timeout, peer.environment)
