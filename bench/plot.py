# SPDX-License-Identifier: BSD-3-Clause
"""Plots by gnuplot: a canvas of panels that share colours, size axis and grid.

Figures come as {peer: {size: Figure}}.  Which panels there are, and of what, is up to run and report.py.
"""

import pathlib
import shutil
import subprocess
import tempfile

from runner import MIB, speed

KNOWN_COLOURS = {"qnix": "#c8102e", "btl-qnix": "#e0669a", "mtl-qnix": "#e88b00", "vader": "#1f5fa8", "tcp": "#7a7a7a", "sm": "#1f5fa8",
                 "ucx": "#2a8f57", "mpich": "#7b3fa0", "before": "#8a8a8a", "after": "#c8102e"}
MORE_COLOURS = ["#0f8b8d", "#b5651d", "#5b5b00", "#2a8f57", "#7b3fa0"]
TICS = [(1, "1 B"), (16, "16 B"), (256, "256 B"), (4096, "4 KiB"), (65536, "64 KiB"), (MIB, "1 MiB"), (16 * MIB, "16 MiB")]
STEPS = (0.2, 0.25, 0.33, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', "'") + '"'


def short(value):
    """Three digits, for a label."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


class Canvas:
    """A gnuplot script in the making."""

    PANEL = 540  # pixels of height

    def __init__(self, peers):
        self.peers = peers
        spare = iter(MORE_COLOURS * 3)
        self.colours = {peer: KNOWN_COLOURS.get(peer) or next(spare) for peer in peers}
        self.lines = []
        self.blocks = 0
        self.rows = 1
        self.heading = None

    def emit(self, *lines):
        self.lines.extend(lines)

    def block(self, rows):
        """A named data block of (x, y...) rows."""
        self.blocks += 1
        name = f"$data{self.blocks}"
        self.emit(f"{name} << EOD", *(" ".join(str(v) for v in row) for row in rows), "EOD")
        return name

    def style(self, peer, dashed=False):
        wide = 3.4 if peer == self.peers[0] else 2.4
        point = (7, 5, 9, 11, 13)[self.peers.index(peer) % 5]
        if dashed:  # an open point, and dashes that fit between two of them
            return f"lc rgb {quoted(self.colours[peer])} lw {wide - 0.8} dt (5,3) pt {point - 1} ps 0.7"
        return f"lc rgb {quoted(self.colours[peer])} lw {wide} dt 1 pt {point} ps 0.75"

    def size_axis(self, sizes):
        tics = ", ".join(f"{quoted(text)} {at}" for at, text in TICS)
        self.emit("set logscale x 2", f"set xtics ({tics}) nomirror",
                  f"set xrange [{max(1, min(sizes)) / 1.3}:{max(sizes) * 1.3}]",
                  "set xlabel 'message size' offset 0,0.3", "unset mxtics")

    def panel(self, title, ylabel):
        self.emit("reset",
                  "set grid xtics ytics back lt 1 lc rgb '#dcdcdc' lw 0.7",
                  "set border 3 lc rgb '#888888'",
                  "set tics nomirror scale 0.6 textcolor rgb '#333333'",
                  f"set title {quoted(title)} font ',15' offset 0,-0.3 textcolor rgb '#111111'",
                  f"set ylabel {quoted(ylabel)} offset 0.5,0",
                  "set key top left Left reverse samplen 2.2 spacing 1.25 font ',12' opaque fc rgb '#ffffff'")
        if self.heading:
            for label, (text, pixels, size, colour) in enumerate(self.heading, 100):
                place = f"at screen 0.5,{self.head_at(pixels)} center"
                self.emit(f"set label {label} {quoted(text)} {place} font ',{size}' textcolor rgb '{colour}'")
            self.heading = None

    def head_at(self, pixels):
        """A place so many pixels below the upper edge, in parts of the whole height."""
        return 1 - pixels / (self.PANEL * self.rows)

    # ---- panels

    def curves(self, by_peer, scale=1.0):
        """The plot elements of one test, and the sizes they cover: a line at the medians, a shadow from there to the best."""
        elements = []
        for peer in self.peers:
            rows = [(size, figure.median * scale, figure.best * scale) for size, figure in by_peer.get(peer, {}).items() if size]
            if rows:
                data = self.block(rows)
                shadow = f"fc rgb {quoted(self.colours[peer])} fs transparent solid 0.16 noborder"
                elements.insert(0, f"{data} using 1:2:3 with filledcurves {shadow} notitle")
                elements.append(f"{data} using 1:2 with linespoints {self.style(peer)} title {quoted(peer)}")
        return elements, {size for sizes in by_peer.values() for size in sizes}

    def times(self, title, by_peer):
        self.panel(title, "microseconds, logarithmic")
        elements, sizes = self.curves(by_peer)
        self.size_axis(sizes)
        low, high = min(sizes), max(figure.median for by_size in by_peer.values() for figure in by_size.values())
        left = max(figure.median for by_size in by_peer.values() for size, figure in by_size.items() if size <= 64 * low)
        if 20 * left > high:  # the key would lie on it
            self.emit(f"set yrange [*:{20 * high}]")
        self.emit("set logscale y 10", "set format y '%g'", "plot " + ", ".join(elements))

    def rates(self, title, by_peer, unit="GB/s", scale=1e-3):
        self.panel(title, unit)
        elements, sizes = self.curves(by_peer, scale)
        self.size_axis(sizes)
        self.emit("set yrange [0:*]", "set format y '%g'", "plot " + ", ".join(elements))

    def entries(self, title, tests):
        """Cost of matching, behind so many entries of a queue; tests: (what, by_peer), the first drawn in full lines."""
        self.panel(title, "microseconds one way, logarithmic")
        elements, sizes = [], set()
        for dashed, (what, by_peer) in enumerate(tests):
            for peer in (p for p in self.peers if p in by_peer):
                rows = [(depth, figure.median) for depth, figure in by_peer[peer].items()]
                sizes |= {depth for depth, _ in rows}
                title = quoted(f"{peer}, {what}")
                elements.append(f"{self.block(rows)} using 1:2 with linespoints {self.style(peer, dashed)} title {title}")
        self.size_axis(sizes)
        self.emit("set logscale x 10", "set format x '%g'", "set xtics autofreq nomirror", "set xlabel 'entries' offset 0,0.3",
                  "set logscale y 10", "set format y '%g'", "plot " + ", ".join(elements))

    @staticmethod
    def speeds(test, by_peer, peer, reference):
        """(size, speed); a gap where it is so far from the reference that the scale would suffer."""
        base = by_peer.get(reference, {})
        rows = [(size, speed(test, figure, base.get(size))) for size, figure in by_peer.get(peer, {}).items() if size]
        return [(size, r if r and 0.2 <= r <= 8 else "NaN") for size, r in rows]

    def ratio(self, title, tests, reference):
        """How many times as fast as the reference; tests: (Test, by_peer), the first drawn in full lines."""
        self.panel(title, f"times as fast as {reference}, logarithmic")
        curves, sizes, values = [], {1}, [1]
        for peer in (p for p in self.peers if p != reference):
            for dashed, (test, by_peer) in enumerate(tests):
                rows = self.speeds(test, by_peer, peer, reference)
                seen = [r for _, r in rows if r != "NaN"]
                if not seen:
                    continue
                sizes |= {size for size, _ in rows}
                values += seen
                name = quoted(f"{peer}, {test.title}" if len(tests) > 1 else peer)
                curves.append(f"{self.block(rows)} using 1:2 with linespoints {self.style(peer, dashed)} title {name}")
        self.size_axis(sizes)
        level = f"1 with lines lc rgb {quoted(self.colours[reference])} lw 2.4 title {quoted(reference)}"
        low, high = min(min(values) / 1.15, 0.75), max(max(values) * 1.15, 1.3)
        tics = ", ".join(f"'{step:g}x' {step}" for step in STEPS)
        self.emit("set logscale y 2", f"set yrange [{low}:{high * (high / low) ** 0.22}]", f"set ytics ({tics})",
                  "set key top left horizontal maxcols 2 width 1",
                  "set object 1 rectangle from graph 0, first 1 to graph 1, graph 1 behind fc rgb '#eef6ee' fs solid noborder",
                  "set label 1 'faster' at graph 0.99, graph 0.95 right textcolor rgb '#4d7a4d' font ',11'",
                  "set label 2 'slower' at graph 0.99, graph 0.05 right textcolor rgb '#996666' font ',11'",
                  "plot " + ", ".join([level] + curves))

    def bars(self, title, groups):
        """groups: (label, {peer: value})."""
        self.panel(title, "microseconds, logarithmic")
        values = [v for _, cells in groups for v in cells.values()]
        width = 0.8 / len(self.peers)
        tics = ", ".join(f"{quoted(label)} {k}" for k, (label, _) in enumerate(groups)).replace("\\\\n", "\\n")
        self.emit("set logscale y 10", "set format y '%g'",
                  f"set yrange [{min(values) / 2.5}:{max(values) * 6}]",
                  f"set xrange [-0.6:{len(groups) - 0.4}]",
                  f"set xtics ({tics}) font ',11'",
                  "set grid noxtics",
                  f"set boxwidth {width * 0.92}",
                  "set style fill solid 0.9 noborder",
                  "set key top left horizontal spacing 1.1")
        curves = []
        for n, peer in enumerate(self.peers):
            left = (n - (len(self.peers) - 1) / 2) * width
            rows = [(k + left, cells[peer], short(cells[peer])) for k, (_, cells) in enumerate(groups) if peer in cells]
            if not rows:
                continue
            data = self.block(rows)
            curves.append(f"{data} using 1:2 with boxes lc rgb {quoted(self.colours[peer])} title {quoted(peer)}")
            curves.append(f"{data} using 1:2:3 with labels offset 0,0.6 font ',9' textcolor rgb '#444444' notitle")
        self.emit("plot " + ", ".join(curves))

    # ---- the whole

    def draw(self, panels, title, subtitle):
        """The panels, functions without arguments, two beside each other; returns the script."""
        self.rows, columns = ((len(panels) + 1) // 2, 2) if len(panels) > 1 else (1, 1)
        self.heading = [(title, 26, 20, "#111111"), (subtitle, 58, 11, "#666666")]
        left, foot, gap = 0.065 if columns > 1 else 0.09, 1 - self.head_at(62), 1 - self.head_at(112)
        margins = f"{left},0.985,{foot},{self.head_at(124)}"
        self.emit("set encoding utf8", f"set multiplot layout {self.rows},{columns} margins {margins} spacing 0.07,{gap}")
        for panel in panels:
            panel()
        self.emit("unset multiplot")
        return "\n".join(self.lines) + "\n"

    @staticmethod
    def tidy(path):
        """Without the blanks that gnuplot leaves at the ends of lines of a text."""
        if path.suffix == ".svg":
            lines = path.read_text(encoding="utf-8").splitlines()
            path.write_text("".join(line.rstrip() + "\n" for line in lines), encoding="utf-8")

    def write(self, target, script, suffixes, say):
        """FILE.svg, FILE.png: one for each suffix; True if they are all there."""
        if not shutil.which("gnuplot"):
            say("no plot: gnuplot is not installed (Debian: gnuplot-nox)")
            return False
        whole = True
        stem = pathlib.Path(target)
        stem = stem.with_suffix("") if stem.suffix in (".svg", ".png") else stem
        height = self.PANEL * self.rows
        terminals = {".svg": f"svg size 1400,{height} font 'DejaVu Sans,Helvetica,sans-serif,12' background '#ffffff'",
                     ".png": f"pngcairo size 1400,{height} font 'DejaVu Sans,11' background '#ffffff'"}
        for suffix in suffixes:
            path = stem.with_suffix(suffix)
            with tempfile.NamedTemporaryFile("w", suffix=".gnuplot", encoding="utf-8") as file:
                file.write(f"set terminal {terminals[suffix]}\nset output {quoted(str(path))}\n{script}")
                file.flush()
                done = subprocess.run(["gnuplot", file.name], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = done.stderr.strip().splitlines()
                say(f"no {path}: gnuplot said: {said[-1] if said else done.returncode}")
                whole = False
            else:
                self.tidy(path)
                say(f"plot: {path}")
        return whole
