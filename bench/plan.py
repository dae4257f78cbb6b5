# SPDX-License-Identifier: BSD-3-Clause
"""What bench/performance measures, as data: the parts of docs/performance.md, the bars that are set, the optimisations.

A part is one benchmark over some peers.  A bar says what the figure of qnix must be, as a multiple of the reference's or
as it is.  Nothing here runs anything.
"""

import dataclasses
import math

from runner import COLL, MIB, TESTS, Case, peer_arguments

KIB = 1 << 10
LARGEST = 1 << 40
MTL = ("--mca", "pml", "cm", "--mca", "mtl", "qnix", "--mca", "btl", "qnix,self")
# Without the last eight it looks for a network first, and declines a host that has none.  The programs ask how far apart processors are in a shared window, which is osc/sm's.
UCX = ("--mca", "pml", "ucx", "--mca", "osc", "ucx,sm", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
       "--mca", "osc_ucx_tls", "any", "--mca", "osc_ucx_devices", "any")
PEERS = {
    "qnix": peer_arguments("qnix"),
    "btl-qnix": peer_arguments("btl-qnix"),
    "mtl-qnix": MTL,
    "vader": peer_arguments("vader"),
    "ucx": UCX,
    "mpich": (),
    **{name: words for name, words in COLL.items() if name != "qnix"},
}


@dataclasses.dataclass(frozen=True)
class Bar:
    """At all sizes from low to high, qnix must be at most (times) or at least (rates) so much."""

    text: str
    low: int = 0
    high: int = LARGEST
    limit: float = 1.0
    below: bool = False       # the limit itself is not good enough: "ahead of"
    field: object = None      # of a benchmark with named figures
    absolute: str = ""        # a unit: the figure itself counts, not its ratio to the reference's

    def covers(self, size):
        return size == self.field if self.field else isinstance(size, int) and self.low <= size <= self.high


@dataclasses.dataclass(frozen=True)
class Part:
    """One benchmark over some peers."""

    name: str
    title: str
    case: Case
    peers: tuple = ("qnix", "btl-qnix", "mtl-qnix", "vader", "ucx", "mpich")
    bars: tuple = ()
    reference: str = "vader"
    rivals: tuple = ()        # the best of these, at each size, is what bars and ratios are about; else the reference
    milliseconds: int = 0     # a size, if not as usual
    most: int = 1 << 30       # rounds, of one that takes long and varies little

    @property
    def test(self):
        return TESTS[self.case.test]

    @property
    def against(self):
        return "best other" if self.rivals else self.reference


@dataclasses.dataclass(frozen=True)
class Switch:
    """An optimisation that a parameter switches off: the same benchmark with it and without."""

    name: str
    what: str
    off: tuple                # (parameter, value) pairs of the peer "before"
    case: Case
    sizes: tuple              # those that the table shows
    peer: str = "btl-qnix"
    on: tuple = ()            # of the peer "after"


@dataclasses.dataclass(frozen=True)
class Commit:
    """An optimisation that no parameter switches off: the commit before it against the commit, found by its subject."""

    name: str
    what: str
    subject: str
    case: Case
    sizes: tuple


def ahead(text):
    return (Bar(text, below=True),)


LATENCY_BARS = (
    Bar("latency 1 - 64 B", 1, 64, 0.80),
    Bar("latency 128 - 256 B", 128, 256, 0.75),
    Bar("latency 512 B - 4 KiB", 512, 4 * KIB, 0.55),
    Bar("latency 8 - 16 KiB", 8 * KIB, 16 * KIB, 0.70),
    Bar("latency 32 KiB - 4 MiB", 32 * KIB, 4 * MIB, 0.60),
)
BANDWIDTH_BARS = (
    Bar("bandwidth 1 - 16 KiB", KIB, 16 * KIB, 1.6),
    Bar("bandwidth 64 - 256 KiB", 64 * KIB, 256 * KIB, 1.4),
    Bar("bandwidth 1 MiB and up", MIB, LARGEST, 2.0),
)
# Three times a power of two: where a copy or a protocol changes its ways need not be at a power of two.
BETWEEN = 3
ALLOC_BARS = (Bar("bidirectional bandwidth, MPI_Alloc_mem, 64 - 512 KiB", 64 * KIB, 512 * KIB, 1.8),)
OTHER_COLL = tuple(name for name in COLL if not name.startswith("qnix"))
CROWD = ("qnix", "btl-qnix", "mtl-qnix", "vader", "ucx", "mpich")
ONE_SIDED = ("qnix", "vader", "ucx", "mpich")


def between(bars):
    """The same bars at the sizes between."""
    return tuple(dataclasses.replace(bar, text=f"{bar.text}, at 3 x 2^n") for bar in bars)


def coll(test, title, ranks):
    """A collective beside those of Open MPI; where ranks take turns, the launcher says so to all."""
    return Part(f"coll-{test}-{ranks}", f"{title} of {ranks} ranks, and other coll components",
                Case(test, ranks, high=64 * KIB if TESTS[test].largest else 0), tuple(COLL),
                (Bar(f"{title.lower()}, {ranks} ranks, to the best other coll component", below=True),), "tuned", OTHER_COLL,
                milliseconds=0 if TESTS[test].largest else 300)


PARTS = (
    Part("latency", "Latency, one way", Case("latency"), bars=LATENCY_BARS),
    Part("latency-real", "Latency, real data", Case("latency", options=("-r",)), bars=ahead("latency, real data")),
    Part("instructions", "Instructions of a message, sender and receiver", Case("instructions"), ("qnix", "btl-qnix", "mtl-qnix", "vader", "ucx"),
         most=3),
    Part("rate", "Message rate", Case("mbw_mr"), bars=(Bar("message rate 8 B", 8, 8, 1.3),)),
    Part("rate-real", "Message rate, real data", Case("mbw_mr", options=("-r",)), bars=ahead("message rate, real data")),
    Part("bandwidth", "Bandwidth", Case("bw"), bars=BANDWIDTH_BARS),
    Part("bandwidth-real", "Bandwidth, real data", Case("bw", options=("-r",)), bars=ahead("bandwidth, real data")),
    Part("bibw", "Bidirectional bandwidth", Case("bibw"), bars=(Bar("bidirectional bandwidth", limit=0.95),)),
    Part("bibw-alloc", "Bidirectional bandwidth, buffers from MPI_Alloc_mem", Case("bibw", options=("-a",)),
         bars=ALLOC_BARS),
    Part("bibw-real", "Bidirectional bandwidth, real data", Case("bibw", options=("-r",)),
         bars=ahead("bidirectional bandwidth, real data")),
    Part("latency-between", "Latency, at 3 x 2^n bytes", Case("latency", low=BETWEEN), bars=between(LATENCY_BARS)),
    Part("bandwidth-between", "Bandwidth, at 3 x 2^n bytes", Case("bw", low=BETWEEN), bars=between(BANDWIDTH_BARS)),
    Part("bandwidth-real-between", "Bandwidth, real data, at 3 x 2^n bytes", Case("bw", options=("-r",), low=BETWEEN),
         bars=ahead("bandwidth, real data, at 3 x 2^n")),
    Part("put", "Put, flushed", Case("put_latency"), ONE_SIDED, ahead("one-sided put")),
    Part("put-rate", "Puts, 64 for a flush", Case("put_rate"), ONE_SIDED, ahead("rate of puts, 64 for a flush")),
    Part("put-bw", "Put bandwidth, 64 for a flush", Case("put_bw"), ONE_SIDED, ahead("bandwidth of puts, 64 for a flush")),
    Part("get", "Get, flushed", Case("get_latency"), ONE_SIDED, ahead("one-sided get")),
    Part("get-rate", "Gets, 64 for a flush", Case("get_rate"), ONE_SIDED, ahead("rate of gets, 64 for a flush")),
    Part("get-bw", "Get bandwidth, 64 for a flush", Case("get_bw"), ONE_SIDED, ahead("bandwidth of gets, 64 for a flush")),
    Part("put-alloc-mem", "Put, window of MPI_Alloc_mem memory", Case("put_latency", options=("-a",)), ONE_SIDED,
         ahead("one-sided put, MPI_Alloc_mem")),
    Part("get-alloc-mem", "Get, window of MPI_Alloc_mem memory", Case("get_latency", options=("-a",)), ONE_SIDED,
         ahead("one-sided get, MPI_Alloc_mem")),
    # On one host osc/sm has these windows, and no BTL is asked: no bar.
    Part("put-allocate", "Put, window of MPI_Win_allocate", Case("put_latency", options=("-w", "allocate")), ONE_SIDED),
    Part("get-allocate", "Get, window of MPI_Win_allocate", Case("get_latency", options=("-w", "allocate")), ONE_SIDED),
    Part("barrier-8", "Barrier of 8 ranks", Case("barrier", 8, slots=8), CROWD,
         (Bar("barrier, 8 ranks, no hint", limit=50, absolute="us"),), milliseconds=300),
    *(coll("barrier", "Barrier", ranks) for ranks in (2, 4, 8)),
    *(coll("bcast", "Broadcast", ranks) for ranks in (2, 4, 8)),
    Part("start-2", "Start of 2 ranks", Case("start", 2, slots=2), ("qnix", "btl-qnix", "mtl-qnix", "vader")),
    Part("start-16", "Start of 16 ranks", Case("start", 16, slots=16), ("qnix", "btl-qnix", "mtl-qnix", "vader")),
    Part("start-64", "Start of 64 ranks", Case("start", 64, slots=64), ("qnix", "btl-qnix", "mtl-qnix", "vader"),
         (Bar("start-up, 64 ranks", limit=10, field="init", absolute="s"),), most=3),
    Part("collectives-64", "All collectives with 64 ranks", Case("many", 64, slots=64), ("qnix", "btl-qnix", "mtl-qnix"),
         (Bar("collectives, 64 ranks", limit=1, field="passed", absolute="passes"),), most=3),
    Part("match-posted", "Matching behind posted receives", Case("match_posted"), ("qnix", "btl-qnix", "mtl-qnix", "vader")),
    Part("match-unexpected", "Matching behind unexpected messages", Case("match_unexpected"), ("qnix", "btl-qnix", "mtl-qnix", "vader")),
)

# Which parts share a picture, and how each is drawn.
PICTURES = (
    ("latency", "Latency", ("latency", "latency-real")),
    ("rate", "Message rate", ("rate", "rate-real")),
    ("bandwidth", "Bandwidth", ("bandwidth", "bandwidth-real")),
    ("bibw", "Bidirectional bandwidth", ("bibw", "bibw-alloc", "bibw-real")),
    ("onesided", "One-sided communication", ("put", "get")),
    ("puts", "Many puts, one flush", ("put-rate", "put-bw")),
    ("gets", "Many gets, one flush", ("get-rate", "get-bw")),
    ("collectives", "Collectives", tuple(f"coll-{test}-{ranks}" for test in ("barrier", "bcast") for ranks in (2, 4, 8))),
    ("matching", "Matching", ("match-posted", "match-unexpected")),
)

LARGE = Case("latency", low=64 * KIB, high=4 * MIB)
STREAM = Case("bw", low=64 * KIB, high=4 * MIB)
SWITCHES = (
    Switch("cma", "cross-memory attach: large data are copied once, from process to process, not twice through the card",
           (("cma", "off"),), LARGE, (64 * KIB, MIB, 4 * MIB)),
    Switch("cma-bw", "the same, bandwidth", (("cma", "off"),), STREAM, (64 * KIB, MIB, 4 * MIB)),
    Switch("both-ends", "the NICs of both ends work on a transfer, each on a half",
           (("rdma", "alone"),), LARGE, (64 * KIB, 256 * KIB, MIB, 4 * MIB)),
    Switch("both-ends-bw", "the same, bandwidth", (("rdma", "alone"),), STREAM, (64 * KIB, 256 * KIB, MIB, 4 * MIB)),
    Switch("large-pages", "buffers that are used again and again get large pages", (("large_pages", "off"),), LARGE,
           (256 * KIB, MIB, 4 * MIB)),
    Switch("large-pages-bw", "the same, bandwidth", (("large_pages", "off"),), STREAM, (64 * KIB, 256 * KIB, MIB, 4 * MIB)),
    Switch("both-ends-real", "the choice of alone, halves and stream by size and pull speed, real data; before: always alone",
           (("rdma", "alone"),), dataclasses.replace(LARGE, options=("-r",)), (64 * KIB, 256 * KIB, MIB)),
    Switch("stream", "the same; before: always halves, never a stream of buffers",
           (("rdma", "halves"),), dataclasses.replace(LARGE, options=("-r",)), (64 * KIB, 256 * KIB, MIB)),
    Switch("bcast-direct", "2 ranks: the receiver of a long broadcast copies it from the root's memory where that is faster; before: always by way of buffers",
           (("bcast_direct", "off"),), Case("bcast", low=16 * KIB, high=64 * KIB), (16 * KIB, 32 * KIB, 64 * KIB)),
    Switch("demote", "the lines of an answer are let go of for the core that waits (where the processor can)",
           (("demote", "off"),), Case("latency", low=64, high=8 * KIB), (64, 256, 512, KIB, 2 * KIB, 8 * KIB)),
    Switch("demote-real", "the same, real data", (("demote", "off"),), Case("latency", options=("-r",), low=64, high=8 * KIB),
           (64, 512, KIB, 2 * KIB, 8 * KIB)),
    Switch("demote-bw", "the same, bandwidth", (("demote", "off"),), Case("bw", low=64, high=8 * KIB), (256, KIB, 8 * KIB)),
    Switch("migrate", "lines that go back to their sender migrate (on processors where that pays)",
           (("migrate", "off"),), Case("bw", low=8, high=32 * KIB), (8, 256, KIB, 2 * KIB, 4 * KIB, 16 * KIB, 32 * KIB)),
    Switch("foresee", "all lines of an awaited message are asked for when its first one comes", (("foresee", "off"),),
           Case("latency", low=256, high=8 * KIB), (256, 512, KIB, 2 * KIB, 4 * KIB, 8 * KIB)),
    Switch("hasten", "while a message is on the way the processor gets hold of what an answer goes in (on processors where that pays)",
           (("hasten", "off"),), Case("latency", low=8, high=4 * KIB), (8, 64, 256, 512, KIB, 2 * KIB)),
    Switch("buffers", "messages of 1 to 32 KB go in payload buffers that change hands; before: by RDMA, as longer ones do",
           (("eager_limit", "1068"), ("rndv_eager_limit", "1068"), ("max_send_size", "32832")),
           Case("latency", low=2 * KIB, high=32 * KIB), (2 * KIB, 4 * KIB, 16 * KIB, 32 * KIB)),
    Switch("buffers-bw", "the same, bandwidth",
           (("eager_limit", "1068"), ("rndv_eager_limit", "1068"), ("max_send_size", "32832")),
           Case("bw", low=2 * KIB, high=32 * KIB), (2 * KIB, 4 * KIB, 16 * KIB, 32 * KIB)),
    Switch("credits", "receives for a window and more posted per connection, credit returned in batches; before: 8 receives",
           (("prepost_depth", "8"), ("dynamic_credit_threshold", "1")), Case("mbw_mr", low=8), (8, 64, KIB, 8 * KIB)),
    Switch("credits-both", "the same, 64 messages each way at once; before: 64 receives, and then there is none for an answer",
           (("prepost_depth", "64"),), Case("bibw", low=8, high=KIB), (8, 64, KIB)),
    Switch("registrations", "registrations stay in the cache after their use; before: they are taken back each time",
           (("lazy_deregister", "false"),), LARGE, (64 * KIB, MIB)),
    Switch("waiting", "8 ranks on 2 cores: they find out that cores are short, and sleep; before: they spin",
           (("wait", "spin"),), Case("barrier", 8, slots=8), (0,)),
    Switch("waiting-yield", "the same; before: they yield the core and never sleep",
           (("wait", "yield"),), Case("barrier", 8, slots=8), (0,)),
    Switch("waiting-2", "2 ranks on 2 cores: they find out that there is a core for each, and spin; before: they sleep",
           (("wait", "sleep"),), Case("latency", high=64), (1, 8, 64)),
    Switch("lazy", "64 ranks: a connection is made on first use; before: all at the start",
           (("connect", "all"),), Case("start", 64, slots=64), ("init", "own")),
    Switch("alloc-mem", "MPI_Alloc_mem takes memory from the card, where transfers are plain copies; before: from the C library",
           (("alloc_mem", "0"),), Case("bibw", options=("-a",), low=64 * KIB, high=512 * KIB), (64 * KIB, 256 * KIB, 512 * KIB)),
    Switch("mtl-rget", "MTL: the receiver reads long messages (RGET); before: packets (R3)",
           (("rendezvous", "r3"),), LARGE, (64 * KIB, MIB), "mtl-qnix"),
    Switch("mtl-window", "MTL: about 1 MB of eager messages of a peer may wait; before: 64 KB",
           (("eager_window", "64k"),), Case("bw", low=2 * KIB, high=8 * KIB), (2 * KIB, 8 * KIB), "mtl-qnix"),
)

SHORT = Case("latency", low=8, high=4 * KIB)
WINDOW = Case("mbw_mr", low=8, high=4 * KIB)
COMMITS = (
    Commit("cut-through", "an inline send on an empty queue and its receive take a short way through the control program",
           "nicemu: short ways past empty queues, review findings", SHORT, (8, 64, KIB)),
    Commit("next", "one call takes a completion and its packet; receives are posted when there is nothing else to do",
           "vipl: VipxCQNext; cmpi: receives are posted when idle", SHORT, (8, 64)),
    Commit("inline", "Send_Short: the message travels inside the command, without descriptor, registration or completion",
           "nicemu, vipl, cmpi: Send_Short, a message inside the command", SHORT, (8,)),
    Commit("cells", "messages of up to 1 KB are several cells of the link, and are handed over by value",
           "nicemu, vipl, cmpi: short messages go in cells and come by value", SHORT, (8, 64, 256, KIB)),
    Commit("cells-rate", "the same, message rate",
           "nicemu, vipl, cmpi: short messages go in cells and come by value", WINDOW, (8, 64, 256, KIB)),
    Commit("lines", "lines of the link are taken hold of ahead of their use",
           "nicemu, cmpi: lines taken hold of ahead, a few looks at a full link, receives after a first packet by value", WINDOW,
           (8, 64, KIB)),
    Commit("first-last", "the line that the peer polls is written last, the others are asked for all at once",
           "nicemu: the line that is polled is written last", Case("latency", low=8, high=KIB), (64, 256, 512)),
    Commit("commands", "a filled buffer is sent by a command without a descriptor, and taken without using up a receive",
           "nicemu, vipl, cmpi: messages in buffers go by command alone and come by value",
           Case("mbw_mr", low=2 * KIB, high=4 * KIB), (2 * KIB, 4 * KIB)),
    Commit("both-ends-commit", "the NICs of both ends work on a transfer (see also the switch)",
           "nicemu: the NICs of both ends work on an RDMA transfer", LARGE, (64 * KIB, MIB)),
    Commit("short-writes", "a short write goes in packets, whatever a system call costs",
           "nicemu: short writes in packets on every machine", Case("put_latency", low=8, high=512), (8, 64, 512)),
    Commit("rdma-now", "what the NIC does alone within the call needs no descriptor and no completion (RDMA in the command)",
           "nicemu, vipl, cmpi, btl: RDMA in the command", Case("put_latency", low=2 * KIB, high=16 * KIB), (2 * KIB, 4 * KIB, 16 * KIB)),
    Commit("rdma-now-get", "the same, get",
           "nicemu, vipl, cmpi, btl: RDMA in the command", Case("get_latency", low=2 * KIB, high=16 * KIB), (2 * KIB, 4 * KIB, 16 * KIB)),
    Commit("short-reads", "the target's NIC puts a short read beside its claim",
           "nicemu: short reads beside their claims", Case("get_latency", low=8, high=512), (8, 64, 512)),
    Commit("waiting-commit", "waiting that knows when cores are short: 8 ranks on 2 cores (see also the switch)",
           "nicemu, vipl, cmpi: waiting that knows when cores are short", Case("barrier", 8, slots=8), (0,)),
)


def ratio_of(figure, reference):
    """The figure as a multiple of the reference's: less is better for times, more for rates."""
    return figure.median / reference.median if figure and reference and reference.median else None


def rival_of(part, by_peer, size):
    """The figure that qnix is compared with: the reference's, or the best of several."""
    figures = [by_peer[peer][size] for peer in part.rivals or (part.reference,) if size in by_peer.get(peer, {})]
    best = max if part.test.rises else min
    return best(figures, key=lambda figure: figure.median, default=None)


def is_met(part, bar, value):
    better = value > bar.limit if part.test.rises or bar.absolute == "passes" else value < bar.limit
    return better or (not bar.below and math.isclose(value, bar.limit))


def median_case(case):
    """With a run's median iteration for its figure.  Not of crowded cores: there the stalls are what is asked for."""
    timed = TESTS[case.test].unit in ("us", "MB/s", "msg/s") and case.ranks == 2
    return dataclasses.replace(case, options=case.options + ("-M",)) if timed else case


def quick_case(case):
    """A few sizes and ranks of it: enough to see that it runs."""
    test = TESTS[case.test]
    if test.largest:
        low = case.low if case.low > 1 else 8
        case = dataclasses.replace(case, low=low, high=min(case.high or test.largest, 4 * low))
    ranks = min(case.ranks, 4)
    return dataclasses.replace(case, ranks=ranks, slots=ranks if case.slots else 0)
