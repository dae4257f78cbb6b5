# SPDX-License-Identifier: BSD-3-Clause
"""Writes what was measured into docs/performance.md: tables between markers, and the pictures beside it.

The text around the markers is written by people and stays as it is.  A region that nothing is known about yet says so.
"""

import os
import re
import statistics

import plan
from plot import Canvas
from runner import TESTS, BenchError, size_text, speed

MARK = re.compile(r"(<!-- measured: begin (\w+) -->\n).*?(<!-- measured: end -->)", re.S)
ROWS = {1, 8} | {1 << k for k in range(6, 23)} | {3 << k for k in range(5, 21)}  # sizes that a table shows; bars look at all
UNITS = {"us": ("us", 1), "MB/s": ("GB/s", 1e-3), "msg/s": ("M/s", 1e-6), "instructions": ("instructions", 1), "": ("", 1)}
FIELDS = {"init": ("MPI_Init, ms", 1e3), "own": ("memory a rank, KB", 1), "wall": ("the whole job, s", 1)}


# ---- words -----------------------------------------------------------------------------------------------------------


def digits(value):
    """Three digits that matter."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio_digits(value):
    return "-" if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def label(test, size):
    if isinstance(size, str):
        return FIELDS.get(size, (size, 1))[0]
    return f"{size} entries" if test.title.startswith("behind") else size_text(size) if size else "-"


def shown(test, size, figure):
    """A figure in the unit that tables use."""
    if not figure:
        return "-"
    return digits(figure.median * (FIELDS.get(size, ("", 1)) if isinstance(size, str) else UNITS[test.unit])[1])


def unit_of(test):
    return UNITS[test.unit][0]


def counted(data, name):
    """How many rounds count, and how many do not."""
    rounds = data.rounds(name)
    words = [f"{rounds} round{'s' * (rounds != 1)}"]
    discarded = data.discarded(name)
    if discarded:
        words.append(f"{sum(discarded.values())} discarded (" + ", ".join(f"{n} {w}" for w, n in sorted(discarded.items())) + ")")
    if data.kept(name):
        words.append(f"{data.kept(name)} of them on a machine that was not fit")
    return ", ".join(words)


def excuses(data, name):
    """Lines about peers that failed."""
    by_reason = {}
    for peer, why in data.failures(name).items():
        by_reason.setdefault(why, []).append(peer or "not measured")
    return [f"{', '.join(peers)}: {why}." for why, peers in by_reason.items()]


# ---- the machine -----------------------------------------------------------------------------------------------------


def all_rows():
    return plan.PARTS + plan.SWITCHES + plan.COMMITS


def machines(data):
    """{what tells a machine and its manner of measuring from others: the sittings there}, in the order of the tables."""
    found = {}
    for row in all_rows():
        for sitting in data.sittings_of(row.name):
            key = tuple(sitting.get(name) for name in ("cpu", "cores", "kernel", "mpi", "quick", "median", "apart"))
            found.setdefault(key, []).append(sitting)
    return found


def where(data, names):
    """Which of the machines the figures of these parts come from; nothing where there is one."""
    keys = list(machines(data))
    there = sorted({1 + keys.index(key) for key, sittings in machines(data).items() for name in names
                    if any(sitting in sittings for sitting in data.sittings_of(name))})
    return f" Machine {', '.join(map(str, there))}." if len(keys) > 1 and there else ""


def machine(data):
    """One line for each machine that figures come from."""
    text = []
    for number, ((cpu, cores, kernel, mpi, quick, median, apart), sittings) in enumerate(machines(data).items(), 1):
        dates = [sitting["date"][:10] for sitting in sittings]
        commits = dict.fromkeys(sitting["commit"] or sitting["build"] for sitting in sittings)
        when = min(dates) if min(dates) == max(dates) else f"{min(dates)} to {max(dates)}"
        text.append(f"{number}. {cpu}, {cores} cores, Linux {kernel}, {mpi}; {when}, commit {', '.join(commits)}"
                    + ("; between two ranks a run's figure is its median iteration" if median else "")
                    + (f"; only rounds with the processors about {apart:.0f} ns apart" if apart else "")
                    + ("; **a quick run, which says nothing of speed**" if quick else ""))
    words = [f"{peer}: {why}." for peer, why in data.absent().items()]
    rounds = sum(data.rounds(row.name) for row in all_rows())
    discarded = {}
    for row in all_rows():
        for word, n in data.discarded(row.name).items():
            discarded[word] = discarded.get(word, 0) + n
    total = f"{rounds} rounds count; the probe discarded {sum(discarded.values())}"
    total += f" ({discarded.get('shared', 0)} on one core, {discarded.get('busy', 0)} on a busy machine"
    total += f", {discarded['moved']} on one that changed)." if "moved" in discarded else ")."
    return text + [""] + [total, *floor(data), *words] if text else ["Nothing is measured yet."]


def floor(data):
    """What the probe said of the rounds that count."""
    values = [line["probe"]["oneway_ns"] for line in data.lines if line["kind"] == "run" and line["probe"]]
    return [f"The probe's ping-pong took {statistics.median(values):.0f} ns one way (median)."] if values else []


# ---- the bars --------------------------------------------------------------------------------------------------------


def values_for(data, part, bar):
    """[(what the bar looks at, size)] of qnix."""
    by_peer = data.figures(part.name, part.test)
    mine = by_peer.get("qnix", {})
    if bar.absolute:
        return [(figure.median, size) for size, figure in mine.items() if bar.covers(size)]
    pairs = [(plan.ratio_of(figure, plan.rival_of(part, by_peer, size)), size)
             for size, figure in mine.items() if bar.covers(size)]
    return [(value, size) for value, size in pairs if value is not None]


def limit_words(part, bar):
    if bar.absolute == "passes":
        return "they pass"
    side = ("above" if bar.below else "at least") if part.test.rises else ("below" if bar.below else "at most")
    return f"{side} {bar.limit:g} {bar.absolute}" if bar.absolute else f"{side} {bar.limit:.2f} x"


def value_words(part, bar, value, size):
    if bar.absolute == "passes":
        return "passed" if value == 1 else "failed"
    if bar.absolute:
        return f"{digits(value)} {bar.absolute}"
    return f"{value:.2f} x" + (f" at {label(part.test, size)}" if size else "")


def bar_row(data, part, bar):
    values = sorted(values_for(data, part, bar), key=lambda v: v[0], reverse=not part.test.rises)
    if not values:
        why = "; ".join(excuses(data, part.name)).rstrip(".") or "not measured"
        return [bar.text, limit_words(part, bar), "-", "-", why]
    met = sum(plan.is_met(part, bar, value) for value, _ in values)
    verdict = "met" if met == len(values) else "**not met**" + (f" (met at {met} of {len(values)} sizes)" if len(values) > 1 else "")
    theirs = plan.rival_of(part, data.figures(part.name, part.test), values[0][1])
    versus = f" ({part.against} {shown(part.test, values[0][1], theirs)} {bar.absolute})" if bar.absolute == "us" and theirs else ""
    best = value_words(part, bar, *values[-1]) if len(values) > 1 else ""
    return [bar.text, limit_words(part, bar), value_words(part, bar, *values[0]) + versus, best, verdict]


def bars(data):
    rows = [bar_row(data, part, bar) for part in plan.PARTS for bar in part.bars]
    return table(["qnix against vader", "wanted", "worst", "best", "reached"], rows)


# ---- results ---------------------------------------------------------------------------------------------------------


def size_rows(part, by_peer, peers):
    test = part.test
    sizes = sorted({size for sizes in by_peer.values() for size in sizes})
    entries = test.title.startswith("behind")
    for size in (s for s in sizes if s == 0 or entries or s in ROWS):
        ratio = plan.ratio_of(by_peer.get("qnix", {}).get(size), plan.rival_of(part, by_peer, size))
        cells = [shown(test, size, by_peer[peer].get(size)) for peer in peers]
        yield [label(test, size)] + cells + [ratio_digits(ratio)]


def result(data, part):
    """The section of one part."""
    lines = [f"### {part.title}", ""]
    by_peer = data.figures(part.name, part.test)
    if not by_peer:
        return lines + (excuses(data, part.name) or ["Not measured yet."]) + [""]
    peers = [peer for peer in part.peers if peer in by_peer]
    better = "more is better" if part.test.rises else "less is better"
    case = plan.median_case(part.case) if data.medians(part.name) else part.case
    options = "".join(f" {word}" for word in case.options)
    lines += [f"`bench/{case.test}{options}`, {data.ranks(part.name)} ranks, {unit_of(part.test)}, medians; {better}. "
              f"{counted(data, part.name)}.{where(data, [part.name])}", ""]
    lines += table(["size"] + peers + [f"qnix / {part.against}"], size_rows(part, by_peer, peers))
    said = excuses(data, part.name)
    return lines + ([""] + said if said else []) + [""]


def start_rows(data):
    """Of each number of ranks and peer: times, memory, and what of it grows with the peers."""
    smallest = {}
    for part in (p for p in plan.PARTS if p.case.test == "start"):
        by_peer = data.figures(part.name, part.test)
        ranks = data.ranks(part.name) if by_peer else 0
        for peer in (p for p in part.peers if p in by_peer):
            value = {name: figure.median for name, figure in by_peer[peer].items()}
            first_ranks, first = smallest.setdefault(peer, (ranks, value))
            idle = "-" if ranks == first_ranks else f"{(value['own'] - first['own']) / (ranks - first_ranks):.1f}"
            connected = f"{(value['own_connected'] - value['own']) / (ranks - 1):.1f}"
            yield [str(ranks), peer, f"{value['init']:.2f}", f"{value['wall']:.2f}", f"{value['memory']:.0f}",
                   f"{value['own']:.0f}", idle, connected]


def start(data):
    lines = ["### More ranks than cores: start and memory", ""]
    rows = list(start_rows(data))
    said = [line for part in plan.PARTS if part.case.test in ("start", "many") for line in excuses(data, part.name)]
    if not rows:
        return lines + (said or ["Not measured yet."]) + [""]
    names = [part.name for part in plan.PARTS if part.case.test == "start"]
    rounds = "; ".join(f"{name}: {counted(data, name)}" for name in names)
    lines += [f"`bench/start`; the launcher gives no hint. {rounds}.{where(data, names)}", ""]
    lines += table(["ranks", "peer", "MPI_Init, s", "the whole job, s", "KB a rank", "of it no files",
                    "KB for a peer not talked to", "KB more for one talked to"], rows)
    for part in (p for p in plan.PARTS if p.case.test == "many"):
        for peer, by_field in data.figures(part.name, part.test).items():
            passed = "passed" if by_field["passed"].median == 1 else "did not pass"
            lines += ["", f"{part.title} over {peer}: {passed}, in {by_field['wall'].median:.1f} s."]
    return lines + ([""] + said if said else []) + [""]


def results(data, drawn):
    lines = []
    for name, title, parts in plan.PICTURES:
        if name in drawn:
            lines += [f"![{title}](figures/performance-{name}.svg)", ""]
        for part in (p for p in plan.PARTS if p.name in parts):
            lines += result(data, part)
    pictured = {part for _, _, parts in plan.PICTURES for part in parts}
    for part in plan.PARTS:
        if part.name not in pictured and part.case.test not in ("start", "many"):
            lines += result(data, part)
    return (lines + start(data))[:-1]


def layers(data):
    """What ob1's matching above the BTL costs against C-MPI's under the MTL, and in the PML."""
    rows = []
    for part in (p for p in plan.PARTS if p.name in ("latency", "rate", "bandwidth", "match-posted", "match-unexpected")):
        by_peer = data.figures(part.name, part.test)
        btl, mtl, pml = (by_peer.get(peer, {}) for peer in ("btl-qnix", "mtl-qnix", "qnix"))
        for size in (s for s in sorted(set(btl) & set(mtl) & set(pml)) if s in (8, 64, 1 << 10, 1 << 13, 1 << 16, 1 << 20)):
            rows.append([f"{part.title}, {unit_of(part.test)}", label(part.test, size)]
                        + [shown(part.test, size, figure[size]) for figure in (btl, mtl, pml)]
                        + [f"{speed(part.test, figure[size], btl[size]):.2f} x" for figure in (mtl, pml)])
    return table(["", "size", "BTL", "MTL", "PML", "MTL, BTL = 1", "PML, BTL = 1"], merge(rows)) if rows else ["Not measured yet."]


def merge(rows):
    """Without repeating the first cells of the row above."""
    above = None
    for row in rows:
        yield ['"' if above and row[0] == above else row[0]] + row[1:]
        above = row[0]


# ---- optimisations ---------------------------------------------------------------------------------------------------


def effect_rows(data, row, first):
    """A line a size: what it was without, what it is with, and how many times better that is."""
    test = TESTS[row.case.test]
    by_peer = data.figures(row.name, test)
    before, after = by_peer.get("before", {}), by_peer.get("after", {})
    sizes = [size for size in row.sizes if size in before and size in after]
    ranks = f", {row.case.ranks} ranks" if row.case.ranks != 2 else ""
    unit = f", {unit_of(test)}" if unit_of(test) else ""
    what = test.title + ranks + unit + (", real data" if "-r" in row.case.options else "")
    if not sizes:
        yield [*first, what, "-", "-", "-", "; ".join(excuses(data, row.name)).rstrip(".") or "not measured"]
    for number, size in enumerate(sizes):
        begin = list(first) + [what] if number == 0 else [""] * (len(first) + 1)
        yield begin + [label(test, size), shown(test, size, before[size]), shown(test, size, after[size]),
                       f"{speed(test, after[size], before[size]):.2f} x"]


def located(data, of, lines):
    """Behind the word where it was measured, if that has to be said."""
    words = where(data, [row.name for row in of]).strip()
    return [words, "", *lines] if words else lines


def switches(data):
    rows = []
    for row in plan.SWITCHES:
        framework = "mtl" if row.peer == "mtl-qnix" else "btl"
        off = ", ".join(f"`{framework}_qnix_{name} {value}`" for name, value in row.off)
        rows += effect_rows(data, row, (row.what, off))
    head = ["optimisation", "switched off by", "benchmark", "size", "before", "after", "times better"]
    return located(data, plan.SWITCHES, table(head, rows))


def commits(data):
    rows = []
    for row in plan.COMMITS:
        rows += effect_rows(data, row, (row.what, f'"{row.subject}"'))
    return located(data, plan.COMMITS, table(["optimisation", "commit", "benchmark", "size", "before", "after", "times better"], rows))


# ---- pictures --------------------------------------------------------------------------------------------------------


def curve_panel(canvas, part, by_peer):
    if part.test.unit == "us":
        return lambda: canvas.times(part.title, by_peer)
    if part.test.unit == "msg/s":
        return lambda: canvas.rates(part.title, by_peer, "million messages a second", 1e-6)
    return lambda: canvas.rates(part.title, by_peer)


def ratio_panel(canvas, part, by_peer):
    return lambda: canvas.ratio(f"{part.title}: speed, {part.reference} = 1", [(part.test, by_peer)], part.reference)


def panels_of(canvas, measured):
    """A panel of figures and one of ratios for each part."""
    if all(part.test.title.startswith("behind") for part, _ in measured):
        tests = [(part.name.removeprefix("match-"), by_peer) for part, by_peer in measured]
        return [lambda: canvas.entries("An 8-byte message behind other entries", tests)]
    panels = []
    plain = [(f"{part.case.ranks} ranks", {peer: figures[0].median for peer, figures in by_peer.items()})
             for part, by_peer in measured if not part.test.largest]
    if plain:
        panels.append(lambda: canvas.bars("Barrier", plain))
    for part, by_peer in (pair for pair in measured if pair[0].test.largest):
        panels.append(curve_panel(canvas, part, by_peer))
        others = [p for p in canvas.peers if p != part.reference] if not part.rivals else []
        if part.reference in by_peer and any(canvas.speeds(part.test, by_peer, p, part.reference) for p in others):
            panels.append(ratio_panel(canvas, part, by_peer))
    return panels


EMPTY = """<svg xmlns="http://www.w3.org/2000/svg" width="400" height="60">
<text x="200" y="35" text-anchor="middle" font-family="sans-serif">{}: not measured yet</text>
</svg>
"""


def picture(data, name, title, parts, folder, say):
    """Whether there was anything to draw; the file is there in any case, so that a release has it."""
    measured = [(part, data.figures(part.name, part.test)) for part in plan.PARTS if part.name in parts]
    measured = [(part, by_peer) for part, by_peer in measured if by_peer]
    if not measured:
        (folder / f"performance-{name}.svg").write_text(EMPTY.format(title), encoding="utf-8")
        return False
    canvas = Canvas([peer for peer in plan.PEERS if any(peer in by_peer for _, by_peer in measured)])
    sitting = data.sittings_of(measured[0][0].name)[-1]
    least = min(data.rounds(part.name) for part, _ in measured)
    two = all(part.case.ranks == 2 for part, _ in measured)
    subtitle = (f"{'2 ranks on ' if two else ''}one host, {sitting['cpu']}, {sitting['cores']} cores, {sitting['mpi']}; medians of "
                f"{least} or more interleaved rounds, shaded to the best; {sitting['date'][:10]}")
    script = canvas.draw(panels_of(canvas, measured), title, subtitle)
    return canvas.write(folder / f"performance-{name}", script, (".svg",), say)


# ---- the document ----------------------------------------------------------------------------------------------------


def write(data, doc, say):
    """Replaces the regions of the document; it is written whole or not at all."""
    if not doc.exists():
        raise BenchError(f"no {doc}")
    folder = doc.parent / "figures"
    folder.mkdir(exist_ok=True)
    drawn = {name for name, title, parts in plan.PICTURES if picture(data, name, title, parts, folder, say)}
    regions = {"machine": machine(data), "bars": bars(data), "results": results(data, drawn), "layers": layers(data),
               "switches": switches(data), "commits": commits(data)}
    text = doc.read_text(encoding="utf-8")
    lacking = set(regions) - {found.group(2) for found in MARK.finditer(text)}
    if lacking:
        raise BenchError(f"{doc} has no place for {', '.join(sorted(lacking))}: <!-- measured: begin NAME --> ... "
                         "<!-- measured: end -->")

    def region(found):
        lines = regions.get(found.group(2))
        return found.group() if lines is None else "\n".join([found.group(1).rstrip("\n"), *lines, found.group(3)])

    text = MARK.sub(region, text)
    aside = doc.with_name(doc.name + ".new")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, doc)
    say(f"written: {doc}")
