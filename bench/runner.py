# SPDX-License-Identifier: BSD-3-Clause
"""How benchmark programs are started, in rounds that count only when the machine was fit for them.

A round is one benchmark over every peer, one right after the other.  The probe looks at the machine before it and after each peer,
programs of two ranks before and after each size, and between the two the share of other processes is taken; a round that fails any
of this is discarded as a whole, so what is left was measured under the same conditions for all peers.

Not here: what is measured (run, plan.py) and what is made of the figures (run, report.py, plot.py).
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Test:
    """One benchmark program: what its figure is and how it is called."""

    title: str
    unit: str
    rises: bool              # a larger figure is a better one
    column: int              # of the figure, in a row of the output
    largest: int             # default size limit, 0: the benchmark has no sizes
    iterations: tuple        # (small, large) of a full run
    osu: tuple = ()          # more options when it is an OSU program
    any_ranks: bool = False  # makes sense with more than two ranks
    fields: tuple = ()       # names of the columns of a row, where each is a figure
    plain: bool = False      # knows none of the options of bench.h
    passes: bool = False     # a test: its only figure is that it passed


TESTS = {
    "latency": Test("latency", "us", False, 1, 4 * MIB, (10000, 1000)),
    "bw": Test("bandwidth", "MB/s", True, 1, 4 * MIB, (200, 40)),
    "bibw": Test("bidirectional bandwidth", "MB/s", True, 1, 4 * MIB, (200, 40)),
    "mbw_mr": Test("message rate", "msg/s", True, 2, 8192, (300, 40), any_ranks=True),
    "barrier": Test("barrier", "us", False, 0, 0, (10000, 10000), any_ranks=True),
    "bcast": Test("broadcast", "us", False, 1, MIB, (2000, 200), any_ranks=True),
    "bcast_turns": Test("broadcast, roots in turn", "us", False, 1, MIB, (2000, 200), any_ranks=True),
    "ibarrier": Test("overlap of a barrier", "%", True, 1, 0, (10000, 10000), any_ranks=True),
    "ibcast": Test("overlap of a broadcast", "%", True, 2, MIB, (2000, 200), any_ranks=True),
    "allreduce": Test("allreduce", "us", False, 1, MIB, (2000, 200), any_ranks=True),
    "put_latency": Test("put latency", "us", False, 1, 4 * MIB, (10000, 1000), ("-w", "create", "-s", "flush")),
    "put_bw": Test("put bandwidth", "MB/s", True, 1, 4 * MIB, (200, 40), ("-w", "create", "-s", "flush")),
    "put_rate": Test("put rate", "msg/s", True, 1, 8192, (300, 40), ("-w", "create", "-s", "flush")),
    "get_bw": Test("get bandwidth", "MB/s", True, 1, 4 * MIB, (200, 40), ("-w", "create", "-s", "flush")),
    "get_rate": Test("get rate", "msg/s", True, 1, 8192, (300, 40), ("-w", "create", "-s", "flush")),
    "get_latency": Test("get latency", "us", False, 1, 4 * MIB, (10000, 1000), ("-w", "create", "-s", "flush")),
    "match_posted": Test("behind posted receives", "us", False, 1, 131072, (2000, 500)),
    "match_unexpected": Test("behind unexpected messages", "us", False, 1, 131072, (2000, 500)),
    "instructions": Test("instructions of a message", "instructions", False, 1, 256, (100, 100)),
    "start": Test("start and memory", "", False, 0, 0, (1, 1), any_ranks=True, plain=True,
                  fields=("init", "memory", "own", "own_connected")),
    "many": Test("collectives", "", False, 0, 0, (1, 1), any_ranks=True, plain=True, fields=("passed",), passes=True),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A benchmark as it is run: one column of figures for each peer."""

    test: str
    ranks: int = 2
    options: tuple = ()      # of the program
    low: int = 1             # sizes
    high: int = 0            # 0: as far as the benchmark goes
    slots: int = 0           # a hostfile that says there are so many cores: mpirun gives no hint that there are fewer


@dataclasses.dataclass(frozen=True)
class Peer:
    """A transport: how mpirun is told to use it."""

    name: str
    args: tuple = ()
    launcher: object = None  # another MPI's
    environment: tuple = ()  # pairs


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long a program may take."""

    milliseconds: int        # a size
    divisor: int = 1         # of the iterations
    osu: bool = False        # the programs are OSU's


class BenchError(Exception):
    """Something the user must know, in one line."""


# ---- progress on stderr ----------------------------------------------------------------------------------------------


class Progress:
    """A line that is rewritten on a terminal, and a line a step elsewhere."""

    def __init__(self):
        self.start = time.monotonic()
        self.live = sys.stderr.isatty()

    def step(self, done, total, text):
        line = f"[{done:3d}/{total}] {time.monotonic() - self.start:5.1f} s  {text}"
        sys.stderr.write(f"\r\033[K{line}" if self.live else line + "\n")
        sys.stderr.flush()

    def say(self, text):
        sys.stdout.flush()  # where both go to one file, a table printed before stays whole
        sys.stderr.write(f"\r\033[K{text}\n" if self.live else text + "\n")
        sys.stderr.flush()

    def clear(self):
        if self.live:
            sys.stderr.write("\r\033[K")


# ---- launchers -------------------------------------------------------------------------------------------------------


def cores():
    """How many cores this process may use: hardware threads of one core count once, as mpirun counts them."""
    firsts = set()
    for cpu in os.sched_getaffinity(0):
        try:
            siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
            firsts.add(re.split("[,-]", siblings.strip())[0])
        except OSError:
            firsts.add(str(cpu))
    return len(firsts)


def tail_reason(text, status):
    """The line of a failed run's output that says most."""
    missing = re.search(r"component was not found.*?Component:\s*(\S+)", text, re.S)
    if missing:
        return f"Open MPI finds no component called {missing.group(1)}"
    lines = [l.strip() for l in text.splitlines() if l.strip(" -") and "ORTE_ERROR_LOG" not in l]
    for pattern in (r"invalid option", r"unable to reach|unreachable", r"error occurred in", r"signal|segmentation",
                    r"error|fail|cannot|invalid"):
        for line in lines:
            if re.search(pattern, line, re.I):
                return line[:160]
    return f"status {status}" + (f", last line: {lines[-1][:120]}" if lines else "")


def run_limited(line, timeout, environment=()):
    """The output of a command; BenchError when it fails or does not end."""
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, **dict(environment)})
    except subprocess.TimeoutExpired:
        raise BenchError(f"no end after {timeout:g} s") from None
    except OSError as error:
        raise BenchError(str(error)) from None
    if done.returncode != 0:
        raise BenchError(tail_reason(done.stdout + done.stderr, done.returncode))
    return done.stdout


class Launcher:
    """mpirun of Open MPI with the arguments that this machine needs."""

    def __init__(self, command, timeout):
        self.command = shlex.split(command)
        if not shutil.which(self.command[0]):
            raise BenchError(f"no {self.command[0]} here (Debian: openmpi-bin)")
        self.timeout = timeout
        self.cores = cores()
        self.extra = shlex.split(os.environ.get("QNIX_MPIRUN_ARGS", ""))
        self.hostfile = None
        if os.geteuid() == 0 and "OMPI_ALLOW_RUN_AS_ROOT" not in os.environ:
            self.extra.insert(0, "--allow-run-as-root")
        self.can_bind = self.cores >= 2 and self.binding_works()

    def binding_works(self):
        trial = self.command + self.extra + ["--bind-to", "core", "-np", "2", "true"]
        return subprocess.run(trial, capture_output=True, timeout=120, check=False).returncode == 0

    def info(self, words=()):
        """What Open MPI says of itself, in the colons of ompi_info --parsable, or None."""
        program = pathlib.Path(self.command[0]).with_name("ompi_info")
        try:
            done = subprocess.run([str(program), "--parsable", *words], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    def hosts(self, slots):
        """A hostfile; it goes when this object goes."""
        self.hostfile = tempfile.NamedTemporaryFile("w", prefix="hosts-")
        self.hostfile.write(f"localhost slots={slots}\n")
        self.hostfile.flush()
        return self.hostfile.name

    def arguments(self, case, peer):
        bind = ["--bind-to", "core"] if case.ranks == 2 and self.can_bind else ["--bind-to", "none"]
        crowd = []
        if case.slots:
            crowd = ["--hostfile", self.hosts(case.slots)]
        elif case.ranks > self.cores:
            crowd = ["--oversubscribe"]
            if self.can_bind:  # as many to each core: short runs end before the system has spread them
                bind = ["--map-by", "core", "--bind-to", "core:overload-allowed"]
        return self.command + self.extra + bind + crowd + ["-np", str(case.ranks)] + list(peer.args)

    def run(self, case, peer, program):
        """The program's output; BenchError when it fails."""
        return run_limited(self.arguments(case, peer) + program, self.timeout, peer.environment)


# ---- programs and their output ---------------------------------------------------------------------------------------


def find_folder(bindir):
    """The folder of our programs."""
    places = [pathlib.Path(bindir)] if bindir else [HERE, HERE.parent / "build" / "bench", pathlib.Path("bench")]
    for place in places:
        if (place / "latency").is_file():
            return place
    raise BenchError(f"no benchmark programs in {' or '.join(map(str, places))}: build them, or name them with --bindir")


def parse_rows(output, test):
    """{size: figure} of an OSU table; a benchmark without sizes has size 0, one of several figures their names."""
    rows = {}
    if test.passes:
        return {"passed": float(bool(re.search(r"^PASS ", output, re.M)))}
    for line in output.splitlines():
        words = line.split()
        if not words or not re.fullmatch(r"[0-9.]+", words[0]):
            continue
        if words[-1] == "Fail":
            raise BenchError(f"validation failed at {words[0]} bytes")
        if test.fields:
            rows.update(zip(test.fields, map(float, words)))
        else:
            rows[0 if test.largest == 0 else int(words[0])] = float(words[test.column])
    if not rows:
        raise BenchError("it printed no figures")
    return rows


def program_line(path, case, effort, asks):
    """The command line of one benchmark.  asks: two ranks say how far apart their processors are."""
    test = TESTS[case.test]
    words = [str(path)]
    if test.plain:
        return words + list(case.options)
    small, large = test.iterations
    small, large = small // effort.divisor, max(large // effort.divisor, 10)
    if effort.osu:
        words += ["-i", str(small if test.largest == 0 else large), "-x", "20"] + list(test.osu)
    else:
        warm = 5 if case.slots else max(small // 40, 2)  # more ranks than processors and no hint: each may take 50 ms
        words += ["-i", f"{small}:{large}", "-x", f"{warm}:{max(large // 40, 2)}"]
        words += ["-t", str(effort.milliseconds), "-d", "3"] + ["-p"] * asks
    if test.largest:
        smallest = max(case.low, 4) if case.test == "allreduce" else case.low
        words += ["-m", f"{smallest}:{min(case.high or test.largest, test.largest)}"]
    return words + ([] if effort.osu else list(case.options))


# ---- the machine -----------------------------------------------------------------------------------------------------


def cpu_model():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    found = re.search(r"model name\s*:\s*(.*)", text)
    return re.sub(r"\s+", " ", found.group(1)) if found else platform.machine()


def first_line(command):
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (out.stdout or out.stderr).splitlines()[0] if out.stdout or out.stderr else ""


def mpi_version(launcher):
    return re.sub(r"mpirun |[()]", "", first_line(launcher.command + ["--version"]))


class OtherLoad:
    """How much processor time processes that are not ours took, as a share of the machine."""

    def __init__(self):
        self.total, self.busy, self.ours = self.now()

    @staticmethod
    def now():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = resource.getrusage(resource.RUSAGE_SELF)
        ours = usage.ru_utime + usage.ru_stime + own.ru_utime + own.ru_stime
        try:
            ticks = [int(w) for w in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        except (OSError, ValueError):
            return 0.0, 0.0, ours
        hertz = os.sysconf("SC_CLK_TCK")
        return sum(ticks) / hertz, (sum(ticks) - ticks[3] - ticks[4]) / hertz, ours

    def share(self):
        total, busy, ours = self.now()
        if total <= self.total:
            return 0.0
        return max(0.0, (busy - self.busy) - (ours - self.ours)) / (total - self.total)


class Probe:
    """Asks whether the benchmarks get two cores, each to themselves, and keeps the last answer."""

    SLOWDOWN = 1.3  # of arithmetic on one core while the other calculates too
    MOVED = 1.6     # times as far apart as before: a hypervisor has put the processors elsewhere

    def __init__(self, path, limit_ns, least_share, most_load, apart_ns=None):
        self.path = pathlib.Path(path)
        self.limit = limit_ns
        self.least_share = least_share
        self.most_load = most_load
        self.apart = apart_ns
        self.last = None
        self.ways = []   # of the ping-pongs of a round
        self.heard = []  # of those of its programs, which are others

    def ask(self):
        """None when all is well or nothing can be said; else what is wrong."""
        if not self.path.is_file():
            return None
        try:
            done = subprocess.run([str(self.path)], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        values = {name: float(value) for name, value in re.findall(r"(\w+_ns|slowdown|share)=([\d.]+)", done.stdout)}
        if done.returncode != 0 or not {"oneway_ns", "slowdown", "share"} <= set(values):
            return None
        self.last = values
        self.ways.append(values["oneway_ns"])
        if values["oneway_ns"] < self.limit and values["slowdown"] > self.SLOWDOWN:
            return (f"shared: both processors are on one core (ping-pong {values['oneway_ns']:.0f} ns, "
                    f"slowdown {values['slowdown']:.2f})")
        if values["share"] < self.least_share:
            return f"busy: a processor got {100 * values['share']:.0f} % of a core"
        return None

    def begin(self):
        """A round, with the last answer."""
        self.ways = self.ways[-1:]
        self.heard = []

    def hear(self, output):
        """What a program that was told to ask has found, before and after each size."""
        for pair in re.findall(r"^# apart ([\d.]+) ([\d.]+) ns$", output, re.M):
            self.heard += map(float, pair)

    def moved(self):
        """None when the processors were as far apart all the time: else peers of the round had different machines."""
        for ways in self.ways, self.heard:
            if ways and max(ways) > self.MOVED * min(ways):
                return f"moved: the processors were {min(ways):.0f} and {max(ways):.0f} ns apart"
        return None

    def elsewhere(self):
        """None when the processors are as far apart now as is asked for, or nothing can be said."""
        self.last = None
        if not self.apart or self.ask() or not self.last:
            return None
        far = self.last["oneway_ns"] / self.apart
        return None if 1 / self.MOVED < far < self.MOVED else f"the processors are {self.last['oneway_ns']:.0f} ns apart, not {self.apart:.0f}"

    def load_is_wrong(self, share):
        return f"busy: other processes took {100 * share:.0f} % of the machine" if share > self.most_load else None

    def settle(self, attempts, say):
        """Waits until all is well; else what was wrong each time."""
        wrong = []
        for attempt in range(attempts):
            trouble = self.ask()
            if not trouble:
                return []
            wrong.append(trouble)
            say(f"{trouble}; waiting, {attempt + 1} of {attempts}")
            time.sleep(0.5 + attempt)
        return wrong


# ---- rounds ----------------------------------------------------------------------------------------------------------


class Journal:
    """JSON lines, or nothing when nobody wants them."""

    def __init__(self, path, append=False):
        self.file = open(path, "a" if append else "w", encoding="utf-8") if path else None

    def write(self, kind, **fields):
        line = {"kind": kind, **fields}
        if self.file:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()
        return line


@dataclasses.dataclass
class Round:
    """What one benchmark said over every peer, and whether it counts."""

    rows: dict                # peer -> {size: figure}
    failures: dict            # peer -> why
    wrong: list               # what the probe found wrong: empty if it counts
    seconds: dict             # peer -> how long it took
    load: float = 0.0         # of other processes, a share of the machine
    probe: dict = None
    moved: bool = False       # what was wrong makes it no comparison, whatever else is put up with


def play(case, path, peers, launcher, effort, probe, attempts, say, step):
    """One round.  With something wrong beforehand nothing is run, unless there are no attempts left to wait for: attempts 0."""
    wrong = probe.settle(attempts, say) if attempts else [w for w in [probe.ask()] if w]
    done = Round({}, {}, wrong, {}, probe=probe.last)
    if wrong and attempts:
        return done
    probe.begin()
    asks = launcher.can_bind and probe.path.is_file()
    load = OtherLoad()
    for peer in peers:
        step(peer)
        start = time.monotonic()
        try:
            output = (peer.launcher or launcher).run(case, peer, program_line(path, case, effort, asks))
            done.rows[peer.name] = parse_rows(output, TESTS[case.test])
            probe.hear(output)
        except BenchError as error:
            done.failures[peer.name] = str(error)
        done.seconds[peer.name] = round(time.monotonic() - start, 3)
        done.wrong += [w for w in [probe.ask()] if w]
    done.load = round(load.share(), 3)
    moved = probe.moved()
    done.moved = moved is not None
    done.wrong += [w for w in (probe.load_is_wrong(done.load), None if done.wrong else moved) if w]
    return done


def in_turn(peers, repetition):
    """The peers in another order each time."""
    if not peers:
        return []
    first = repetition % len(peers)
    return peers[first:] + peers[:first]


# ---- figures ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Figure:
    median: float
    best: float
    count: int


def figure_of(test, values):
    return Figure(statistics.median(values), (max if test.rises else min)(values), len(values))


def speed(test, figure, reference):
    """How many times better than the reference: more is better for times and for rates."""
    if not figure or not reference or not figure.median or not reference.median:
        return None
    return figure.median / reference.median if test.rises else reference.median / figure.median


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


# ---- peers -----------------------------------------------------------------------------------------------------------


def peer_arguments(name):
    """mpirun arguments for a BTL: pml ob1 and nothing but this BTL and self; or for an MTL, as mtl-NAME.

    qnix is what a user says: Open MPI takes its PML then; as a BTL under ob1 it is btl-qnix.
    """
    if name == "qnix":
        return ("--mca", "btl", "qnix,self")
    if name.startswith("mtl-"):
        return ("--mca", "pml", "cm", "--mca", "mtl", name[4:])
    name = name.removeprefix("btl-")
    more = ("--mca", "btl_tcp_if_include", "lo") if name == "tcp" else ()
    return ("--mca", "pml", "ob1", "--mca", "btl", f"{name},self") + more


# Collective components of Open MPI side by side, all over shared memory.  Coll han stands aside on one host.
OTHER_COLL = ("sm", "basic", "adapt")
COLL = {
    "qnix": peer_arguments("qnix"),
    "qnix+vader": peer_arguments("vader") + ("--mca", "coll_qnix_priority", "95"),
    "tuned": peer_arguments("vader"),
    **{name: peer_arguments("vader") + ("--mca", f"coll_{name}_priority", "95") for name in OTHER_COLL},
}


def absent_coll(info):
    """{peer: why}: a priority for a component that Open MPI does not have is no error, another one would run under its name."""
    return {name: "Open MPI has no such coll component here" for name in OTHER_COLL if info is not None and f"mca:coll:{name}:" not in info}


def size_argument(text):
    found = re.fullmatch(r"(\d+)([kKmM]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is no size")
    return int(found.group(1)) << {"": 0, "k": 10, "m": 20}[found.group(2).lower()]
