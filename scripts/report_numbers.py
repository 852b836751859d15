"""Reads results for report.py and computes all numbers and verdicts that it prints.

A result is one line written by `spmv bench --json=FILE`: one matrix (or primitive and size), one
type, one method of spmv, with its peers. The results of one matrix and type are a case. The cases
of one operation on one machine are a group; only results of the same group are compared.

Performance profiles: E. Dolan, J. More, "Benchmarking optimization software with performance
profiles", Mathematical Programming 91 (2002).

SPDX-License-Identifier: BSD-3-Clause
"""

import collections
import json
import math
import statistics

SCHEMA = "spmv/1"
STATES = ("warm", "flushed")  # caches as the previous run left them; caches emptied before each run
# medians closer than this are the same: the variation between processes on one machine
NOISE = 0.02
DRIFT = 0.05  # a larger difference in memory bandwidth gives a warning


class Malformed(Exception):
    """A line that is not a valid result; the message is file:line: reason."""


Timing = collections.namedtuple("Timing", "median min max repeats")
Peer = collections.namedtuple(
    "Peer", "name library settings probe plan first warm flushed repeatable verify passed missing failed"
)
Result = collections.namedtuple(
    "Result",
    "source tool machine place software bandwidth op backend type matrix label rows cols nnz size asked method plan "
    "first warm flushed bytes gbs share flops bitwise verify note doubt peers",
)


def clean(text):
    """Replaces characters that a page cannot contain: control characters and lone surrogates."""
    return "".join(
        "\ufffd" if ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 or c in "\ufffe\uffff" else c
        for c in text
    )


class Part:
    """A JSON object of a line, with its path for messages. An absent or null member is None, "" or
    an empty part."""

    def __init__(self, value, path, where):
        if not isinstance(value, dict):
            raise Malformed(f"{where}: {path or 'the line'} is {shown(value)}, not an object")
        self.value, self.path, self.where = value, path, where

    def __bool__(self):
        return bool(self.value)

    def name(self, key):
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key, wanted):
        return Malformed(f"{self.where}: {self.name(key)} is {shown(self.value[key])}, not {wanted}")

    def part(self, key):
        value = self.value.get(key)
        return Part({} if value is None else value, self.name(key), self.where)

    def parts(self, key):
        value = self.value.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(key, "an array")
        return [Part(v, f"{self.name(key)}[{i}]", self.where) for i, v in enumerate(value)]

    def text(self, key):
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        return clean(value)

    def number(self, key, positive=False):
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(key, "a number")
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self.wrong(key, "a finite number")
        if value < 0 or (positive and value == 0):
            raise self.wrong(key, "above 0" if positive else "at least 0")
        return value

    def truth(self, key):
        value = self.value.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def timing(self, key):
        part = self.part(key)
        median = part.number("median", positive=True)
        if median is None:
            return None
        low, high = part.number("min", positive=True), part.number("max", positive=True)
        if (low is not None and low > median) or (high is not None and high < median):
            raise Malformed(f"{self.where}: {part.path}: the median is not between min and max")
        return Timing(median, low, high, part.number("repeats"))


def shown(value):
    text = clean(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 40 else text[:37] + "..."


def count_text(n):
    """2^24 for a power of two from 1024 on, else digits in groups of three."""
    n = int(n)
    return f"2^{n.bit_length() - 1}" if n >= 1024 and n & (n - 1) == 0 else f"{n:,}"


def read_peer(part):
    verify = part.part("verify")
    missing, failed, passed = part.text("missing"), part.text("failed"), verify.truth("passed")
    if not failed and not missing and passed is False:
        failed = "wrong result"
        if verify.number("worst_error_over_bound") is not None:
            failed += f": {verify.number('worst_error_over_bound'):.3g} times the bound"
    if not part.text("name"):
        raise Malformed(f"{part.where}: {part.path} has no name")
    if not missing and not failed and part.timing("seconds") is None:
        failed = "no time in the results"
    return Peer(
        part.text("name"),
        part.text("library"),
        part.text("settings"),
        bool(part.truth("probe")),
        part.number("plan_seconds"),
        part.number("first_call_seconds"),
        part.timing("seconds"),
        part.timing("flushed"),
        part.truth("repeatable"),
        verify.number("worst_error_over_bound"),
        passed,
        missing,
        failed,
    )


def subject(op, matrix, primitive):
    """(a hashable key of the matrix or primitive, its label)."""
    if matrix.text("name"):
        sizes = tuple(matrix.number(key) for key in ("rows", "cols", "nnz"))
        return (matrix.text("name"),) + sizes, matrix.text("name")
    n, segments, kept = (primitive.number(key) for key in ("n", "segments", "kept"))
    words = [primitive.text(key) for key in ("kind", "operator")]
    label = [f"n = {count_text(n)}"] if n is not None else []
    label += [f"{count_text(number)} {what}" for number, what in ((segments, "segments"), (kept, "kept")) if number]
    label += [w for w in words if w]
    key = tuple(words) + (n, segments, kept)
    return key, ", ".join(label) or op


# Operations in the type's arithmetic; no entry: none, or an unknown number.
FLOPS = {"spmv": lambda nnz, n: None if nnz is None else 2 * nnz}
FLOPS.update(dict.fromkeys(("scan", "segscan", "reduce", "segreduce"), lambda nnz, n: n))


def read_result(line, where):
    """Parses a line to a Result."""

    def refuse(word):
        raise Malformed(f"{where}: {word} is not a JSON number")

    try:
        root = Part(json.loads(line, parse_constant=refuse), "", where)
    except json.JSONDecodeError as error:
        raise Malformed(f"{where}:{error.colno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise Malformed(f"{where}: not JSON: {error}") from None
    if root.text("schema") != SCHEMA:
        raise Malformed(f'{where}: schema is {shown(root.value.get("schema"))}, expected "{SCHEMA}"')
    machine, matrix, result = root.part("machine"), root.part("matrix"), root.part("result")
    primitive, cg, tool = result.part("primitive"), result.part("cg"), root.part("tool")
    op, backend, asked = result.text("op") or "spmv", result.text("backend"), result.text("asked")
    on_gpu = backend == "cuda"
    place = machine.part("device") if on_gpu else machine.part("cpu")
    software = place.text("software")
    if not on_gpu and place.number("threads") is not None:
        software = f"{int(place.number('threads'))} threads"
    key, label = subject(op, matrix, primitive)
    if op == "cg" and cg.text("precond"):
        key, label = key + (cg.text("precond"),), f"{label}, {cg.text('precond')}"
    warm, model = result.timing("seconds"), result.number("model_bytes", positive=True)
    nnz, n = matrix.number("nnz"), primitive.number("n")
    gbs, read = result.number("gbs"), place.number("read_gbs", positive=True)
    if gbs is None and warm and model and op != "cg":
        gbs = 1e-9 * model / warm.median
    share = result.number("share_of_read_bandwidth")
    if share is None and gbs is not None and read:
        share = gbs / read
    verify = root.part("verify").number("worst_error_over_bound")
    method = result.text("method") or primitive.text("rung")
    return Result(
        source=where,
        tool=tuple((k, tool.text(k)) for k in ("version", "commit", "cuda", "flags", "command")),
        machine=" ".join(filter(None, (place.text("name") or "unnamed machine", f"({software})" if software else ""))),
        place=place.text("name"),
        software=software,
        bandwidth={
            k: place.number(k + "_gbs", positive=True) for k in ("read", "copy", "triad") if place.number(k + "_gbs")
        },
        op=op,
        backend=backend,
        type=result.text("type"),
        matrix=key,
        label=label,
        rows=matrix.number("rows"),
        cols=matrix.number("cols"),
        nnz=nnz,
        size=model or nnz or n or 0,
        asked=asked or method or "auto",
        method=method,
        plan=result.number("plan_seconds"),
        first=result.number("first_call_seconds"),
        warm=warm,
        flushed=result.timing("flushed"),
        bytes=model,
        gbs=gbs,
        share=share,
        flops=FLOPS[op](nnz, n) if op in FLOPS else None,
        bitwise=(result.part("bitwise").truth("equal"), result.part("bitwise").number("repeats")),
        verify=verify,
        note=result.text("note"),
        doubt=root.part("trust").text("sentence"),
        peers=[read_peer(p) for p in root.parts("peers")],
    )


def read_file(path):
    """The results of a file. Raises OSError, or Malformed."""
    results = []
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}"
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise Malformed(f"{where}: byte {error.start + 1} is not UTF-8") from None
            if text.strip():
                results.append(read_result(text.rstrip("\r\n"), where))
    return results


# ------------------------------------------------------------------------------ cases and groups


def in_cache(result):
    """Whether the data were in cache: the bandwidth exceeds the memory's, or the note says so."""
    return (result.share is not None and result.share > 1) or "cache" in result.note.lower()


MOST_SPREAD = 0.2  # median over minimum, less 1, the limit that `spmv bench` uses too


def steady(timing):
    """Whether a time is steady enough to compare. A time without a minimum is."""
    return timing.min is None or timing.median <= (1 + MOST_SPREAD) * timing.min


def our_name(asked):
    return "spmv" if asked == "auto" else f"spmv:{asked}"


def wrong_result(result):
    return result.verify is not None and result.verify > 1


class Case:
    """The results of one matrix and type by requested method (asked), and each peer once."""

    def __init__(self, result):
        self.key, self.label, self.type = (result.matrix, result.type), result.label, result.type
        self.ours, self.peers = {}, {}

    def add(self, result):
        """Adds a result; returns the earlier result of the same method, which it replaces."""
        before = self.ours.get(result.asked)
        self.ours[result.asked] = result
        return before

    def finish(self, main):
        """Takes each peer from the result of the main method, else from the first result that has
        it. A measured peer takes precedence over one that is missing or failed in another
        result."""
        order = sorted(self.ours.values(), key=lambda r: r.asked != main)
        self.first = order[0]
        for result in order:
            for peer in result.peers:
                known = self.peers.get(peer.name)
                if known is None or ((known.missing or known.failed) and not (peer.missing or peer.failed)):
                    self.peers[peer.name] = peer

    def timing(self, system, state):
        """The Timing of a system; None if it was not measured or its result is wrong."""
        if system in self.peers:
            peer = self.peers[system]
            return None if peer.missing or peer.failed else getattr(peer, state)
        for result in self.ours.values():
            if our_name(result.asked) == system and not wrong_result(result):
                return getattr(result, state)
        return None

    def failed(self, system):
        """Whether the system was tried on this case and failed."""
        if system in self.peers:
            return bool(self.peers[system].failed)
        return any(our_name(r.asked) == system and wrong_result(r) for r in self.ours.values())

    def competitors(self, state, repeatable=False):
        """{name: Timing} of the peers with a correct result."""
        found = {
            name: self.timing(name, state)
            for name, peer in self.peers.items()
            if not peer.probe and (peer.repeatable or not repeatable)
        }
        return {name: t for name, t in found.items() if t}

    def best(self, state, repeatable=False):
        """(name, Timing) of the fastest peer, or None."""
        found = self.competitors(state, repeatable)
        return min(found.items(), key=lambda item: (item[1].median, item[0])) if found else None


class Group:
    """All cases of one operation on one machine."""

    def __init__(self, key):
        self.op, self.backend, self.machine = key
        self.cases, self.replaced, self.results = {}, [], []

    def add(self, result):
        case = self.cases.setdefault((result.matrix, result.type), Case(result))
        before = case.add(result)
        if before:
            self.replaced.append((before, result))

    def finish(self):
        asked = [r.asked for case in self.cases.values() for r in case.ours.values()]
        self.asked = sorted(dict.fromkeys(asked), key=lambda a: (a != "auto", a))
        self.main = our_name(self.asked[0])
        for case in self.cases.values():
            case.finish(self.asked[0])
        self.cases = dict(
            sorted(self.cases.items(), key=lambda item: (-item[1].first.size, item[1].label, str(item[0])))
        )
        self.results = [r for case in self.cases.values() for r in case.ours.values()]
        self.types = sorted(
            {c.type for c in self.cases.values()}, key=lambda t: (t not in ("f64", "f32"), t != "f64", t)
        )
        self.bandwidth = {}
        for kind in ("read", "copy", "triad"):
            values = [r.bandwidth[kind] for r in self.results if kind in r.bandwidth]
            if values:
                self.bandwidth[kind] = (statistics.median(values), min(values), max(values))
        peers = [p for case in self.cases.values() for p in case.peers.values()]
        self.peers = sorted({p.name for p in peers if not p.missing and not p.probe})
        self.probes = sorted({p.name for p in peers if not p.missing and p.probe})
        self.systems = [our_name(a) for a in self.asked] + self.peers

    def of_type(self, kind):
        return [c for c in self.cases.values() if c.type == kind]


def groups_of(results):
    """The groups of results, in order of appearance."""
    groups = {}
    for result in results:
        key = (result.op, result.backend, result.machine)
        groups.setdefault(key, Group(key)).add(result)
    for group in groups.values():
        group.finish()
    return list(groups.values())


# --------------------------------------------------------------------------------------- numbers


def geometric_mean(values):
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def speedup(ours, theirs):
    """(their median over ours, the least and the greatest ratio of their times, or None)."""
    ratio = theirs.median / ours.median
    if None in (ours.min, ours.max, theirs.min, theirs.max):
        return ratio, None, None
    return ratio, theirs.min / ours.max, theirs.max / ours.min


Comparison = collections.namedtuple(
    "Comparison", "opponent count mean worst worst_case greatest greatest_case wins left_out"
)
BEST, BEST_REPEATABLE = "best peer per matrix", "best repeatable peer per matrix"


def comparisons(cases, ours, peers, state):
    """Compares our system with the best peer of each case, the best repeatable peer, and each peer.
    Ratios of times that are not steady are left out."""
    found = []
    for opponent in [BEST, BEST_REPEATABLE] + list(peers):
        ratios, left_out = [], 0
        for case in cases:
            mine = case.timing(ours, state)
            if opponent in (BEST, BEST_REPEATABLE):
                best = case.best(state, opponent == BEST_REPEATABLE)
                theirs = best[1] if best else None
            else:
                theirs = case.timing(opponent, state)
            if mine and theirs and steady(mine) and steady(theirs):
                ratios.append((theirs.median / mine.median, case.label))
            elif mine and theirs:
                left_out += 1
        if ratios:
            worst, most = min(ratios), max(ratios)
            found.append(
                Comparison(
                    opponent,
                    len(ratios),
                    geometric_mean([r for r, _ in ratios]),
                    worst[0],
                    worst[1],
                    most[0],
                    most[1],
                    sum(r > 1 for r, _ in ratios),
                    left_out,
                )
            )
    return found


def profile_systems(cases, systems, state):
    """The systems with a time in that state, and those that failed on every case."""
    timed = lambda s, *states: any(c.timing(s, one) for c in cases for one in states)
    return [s for s in systems if timed(s, state) or (not timed(s, *STATES) and any(c.failed(s) for c in cases))]


def profile_times(cases, systems, state):
    """{case: {system: seconds, or None if it failed}} of the cases on which every system was tried
    and at least one succeeded."""
    times = {}
    for case in cases:
        row = {}
        for system in systems:
            timing = case.timing(system, state)
            if timing:
                row[system] = timing.median
            elif case.failed(system):
                row[system] = None
        if len(row) == len(systems) and any(row.values()):
            times[case.key] = row
    return times


def performance_profile(times):
    """{system: [(tau, share)]}: the share of the cases in which it took at most tau times as long
    as the fastest. A failure counts as slower than any tau. A share holds up to the next tau; the
    first tau is 1."""
    profile = {}
    systems = list(next(iter(times.values()))) if times else []
    for system in systems:
        ratios = sorted(
            row[system] / min(t for t in row.values() if t is not None)
            for row in times.values()
            if row[system] is not None
        )
        steps = {1.0: 0.0}
        for i, ratio in enumerate(ratios, 1):
            steps[ratio] = i / len(times)
        profile[system] = sorted(steps.items())
    return profile


# ------------------------------------------------------------------------------------- two files

FASTER, SLOWER, SAME, UNKNOWN = "faster", "slower", "same within noise", "not judged"
Change = collections.namedtuple("Change", "op label type backend asked state old new ratio verdict")


def verdict(old, new, noise=NOISE):
    """faster or slower if the intervals [min, max] do not overlap and the medians differ by more
    than noise; not judged without min and max; otherwise the same."""
    if None in (old.min, old.max, new.min, new.max):
        return UNKNOWN
    if new.max < old.min and old.median / new.median > 1 + noise:
        return FASTER
    if new.min > old.max and new.median / old.median > 1 + noise:
        return SLOWER
    return SAME


def change_key(result):
    return result.op, result.matrix, result.type, result.backend, result.asked


def latest(results):
    return {change_key(r): r for r in results}


def changes(old, new, noise=NOISE):
    """(a Change for each result and state in both, the results only in old, those only in new)."""
    before, after = latest(old), latest(new)
    found = []
    for key, result in after.items():
        for state in STATES if key in before else ():
            a, b = getattr(before[key], state), getattr(result, state)
            if a and b:
                found.append(
                    Change(
                        result.op,
                        result.label,
                        result.type,
                        result.backend,
                        result.asked,
                        state,
                        a,
                        b,
                        a.median / b.median,
                        verdict(a, b, noise),
                    )
                )
    return found, [r for k, r in before.items() if k not in after], [r for k, r in after.items() if k not in before]


def peer_drift(old, new):
    """The ratios of old to new warm medians of peers in both files: (geometric mean, number), or
    None."""
    before, ratios = latest(old), []
    for key, result in latest(new).items():
        known = {p.name: p for p in before[key].peers} if key in before else {}
        for peer in result.peers:
            other = known.get(peer.name)
            if other and not (peer.missing or peer.failed or other.missing or other.failed):
                ratios.append(other.warm.median / peer.warm.median)
    return (geometric_mean(ratios), len(ratios)) if ratios else None


def machine_differences(old, new):
    """A sentence for each difference of the machines of two files: their times cannot be
    compared."""
    found = []
    for backend in sorted({r.backend for r in old} & {r.backend for r in new}):
        a, b = ([r for r in results if r.backend == backend] for results in (old, new))
        names = [sorted({r.machine for r in results}) for results in (a, b)]
        if names[0] != names[1]:
            found.append(f"The machines differ: old {', '.join(names[0])}; new {', '.join(names[1])}.")
        reads = [[r.bandwidth["read"] for r in results if "read" in r.bandwidth] for results in (a, b)]
        if all(reads):
            one, two = map(statistics.median, reads)
            if abs(two / one - 1) > DRIFT:
                found.append(
                    f"The read bandwidth measured with the results differs ({backend}): old {one:,.1f} GB/s, "
                    f"new {two:,.1f} GB/s."
                )
    return found
