# SPDX-License-Identifier: BSD-3-Clause
"""The data file of bench/performance: JSON lines that accumulate over many calls, and the figures in them.

Kinds of lines: sitting (one call: machine, versions), run (one program over one peer, in a round that counts), discarded
(a round that does not), failure, absent (a peer that is not installed).  A part's figures are those of the newest build and
machine that the file has of it: lines of older ones stay until they are forgotten, and are not read.
"""

import json
import os

from runner import BenchError, figure_of

KEY = ("build", "cpu", "cores", "mpi", "quick", "median", "apart")  # rounds with the same of these may be put together


class Data:
    """What the file holds, and what is added to it while it is open."""

    def __init__(self, path):
        self.path = path
        self.lines = []
        self.sitting = None  # the name of this call's, once there is one
        if path.exists():
            for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                try:
                    self.lines.append(json.loads(text))
                except ValueError:
                    raise BenchError(f"{path}:{number}: no JSON object") from None
        self.sittings = {line["sitting"]: line for line in self.lines if line.get("kind") == "sitting"}

    # ---- adding

    def begin(self, journal, fields, absent):
        self.sitting = 1 + max(self.sittings, default=0)
        self.sittings[self.sitting] = self.add(journal.write("sitting", sitting=self.sitting, **fields))
        for peer, why in absent.items():
            self.add(journal.write("absent", sitting=self.sitting, peer=peer, why=why))

    def add(self, line):
        self.lines.append(line)
        return line

    def forget(self, parts):
        """Without what was measured of these; the file is replaced in one step."""
        self.lines = [line for line in self.lines if line.get("part") not in parts]
        if not self.path.exists():
            return
        aside = self.path.with_name(self.path.name + ".new")
        aside.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        os.replace(aside, self.path)

    # ---- reading

    def key(self, sitting):
        return tuple(self.sittings.get(sitting, {}).get(name) for name in KEY)

    def of(self, part):
        """The lines of a part that go together: of this call's build and machine, or else of the newest ones."""
        lines = [line for line in self.lines if line.get("part") == part]
        if not lines:
            return []
        runs = [line for line in lines if line["kind"] == "run"] or lines
        current = self.sitting and self.key(self.sitting)
        keys = {self.key(line["sitting"]) for line in runs}
        wanted = current if current in keys else self.key(runs[-1]["sitting"])
        return [line for line in lines if self.key(line["sitting"]) == wanted]

    def rounds(self, part):
        """How many rounds count."""
        return len({(line["sitting"], line["round"]) for line in self.of(part) if line["kind"] == "run"})

    def rounds_now(self, part):
        """The same, but only of the build and machine of this call."""
        lines = self.of(part)
        return self.rounds(part) if lines and self.key(lines[-1]["sitting"]) == self.key(self.sitting) else 0

    def ranks(self, part):
        """With how many ranks it ran."""
        return next(line["np"] for line in reversed(self.of(part)) if line["kind"] == "run")

    def figures(self, part, test):
        """{peer: {size: Figure}}."""
        samples = {}
        for line in self.of(part):
            if line["kind"] == "run":
                for size, figure in line["rows"]:
                    samples.setdefault(line["peer"], {}).setdefault(size, []).append(figure)
        return {peer: {size: figure_of(test, values) for size, values in by_size.items()} for peer, by_size in samples.items()}

    def failures(self, part):
        """{peer: why} of those that have no figures; the peer "" is the part as a whole."""
        lines = self.of(part)
        ran = {line["peer"] for line in lines if line["kind"] == "run"}
        return {line["peer"]: line["why"] for line in lines if line["kind"] == "failure" and line["peer"] not in ran
                and (line["peer"] or not ran)}

    def discarded(self, part):
        """{what was wrong, in a word: how many rounds}."""
        words = {}
        for line in self.of(part):
            if line["kind"] == "discarded":
                word = line["why"][-1].split(":")[0]
                words[word] = words.get(word, 0) + 1
        return words

    def kept(self, part):
        """Rounds that count although the machine was not fit."""
        return len({(line["sitting"], line["round"]) for line in self.of(part) if line["kind"] == "run" and line["wrong"]})

    def sittings_of(self, part):
        """The calls in which a part was measured."""
        names = {line["sitting"] for line in self.of(part) if line["kind"] == "run"}
        return [self.sittings[name] for name in sorted(names) if name in self.sittings]

    def medians(self, part):
        """Is a run's figure its median iteration, not the mean?"""
        return any(sitting.get("median") for sitting in self.sittings_of(part))

    def absent(self):
        """{peer: why}, of the newest call."""
        newest = max(self.sittings, default=None)
        return {line["peer"]: line["why"] for line in self.lines if line["kind"] == "absent" and line["sitting"] == newest}

