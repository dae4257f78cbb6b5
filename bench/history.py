# SPDX-License-Identifier: BSD-3-Clause
"""Older commits as peers: what no parameter switches off is compared with the commit before it.

A commit is found by its subject in the history of HEAD, built once in a folder of its own, and stays there.
"""

import pathlib
import shlex
import shutil
import subprocess

from runner import BenchError, Peer, peer_arguments

NOT_FOR_OLD = ("--prefix", "--enable-werror", "--enable-sanitizers", "--enable-debug")


class History:
    """Builds of commits in a folder."""

    def __init__(self, root, folder, say):
        self.root = root
        self.folder = folder
        self.say = say

    def git(self, *words):
        try:
            done = subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            raise BenchError("no git here, so no older commits") from None
        if done.returncode:
            raise BenchError("this is no clone, so it has no older commits")
        return done.stdout

    def commit(self, subject):
        """The commit with this subject, and the one before it."""
        for line in self.git("log", "--format=%H%x09%P%x09%s").splitlines():
            commit, before, its = line.split("\t", 2)
            if its == subject and before:
                return commit, before.split()[0]
        raise BenchError(f'the history has no commit "{subject}"')

    def configured_as(self):
        """The options of the present build that an old one wants too."""
        status = self.folder.parent / "config.status"
        if not status.exists():
            return []
        done = subprocess.run([str(status), "--config"], capture_output=True, text=True, check=False)
        return [word for word in shlex.split(done.stdout) if not word.startswith(NOT_FOR_OLD)]

    def build(self, commit):
        """The folder of the components of a commit."""
        place = self.folder / commit[:12]
        components = place / "b" / "components"
        if (components / "mca_btl_qnix.so").exists():
            return components
        self.say(f"building commit {commit[:12]}")
        shutil.rmtree(place, ignore_errors=True)
        (place / "src").mkdir(parents=True)
        (place / "b").mkdir()
        steps = f"""set -e
            git -C {shlex.quote(str(self.root))} archive {commit} | tar -x -C src
            (cd src && ./bootstrap)
            cd b && ../src/configure {shlex.join(self.configured_as())}
            make -j2 components/mca_btl_qnix.so"""
        with open(place / "log", "w", encoding="utf-8") as log:
            done = subprocess.run(["sh", "-c", steps], cwd=place, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode or not (components / "mca_btl_qnix.so").exists():
            self.say(f"it does not build: see {place / 'log'}")
            raise BenchError(f"commit {commit[:12]} does not build here")
        return components

    def peers(self, subject):
        """The peers "before" and "after"."""
        commit, before = self.commit(subject)
        return [self.peer("before", before), self.peer("after", commit)]

    def peer(self, name, commit):
        components = pathlib.Path(self.build(commit)).resolve()
        return Peer(name, peer_arguments("btl-qnix"), None, (("OMPI_MCA_mca_base_component_path", f"{components}:SYSTEM_DEFAULT"),))
