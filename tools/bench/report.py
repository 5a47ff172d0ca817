# SPDX-License-Identifier: Apache-2.0
"""The figures as a table, as JSON and as a plot."""

import html
import json
import statistics

COSTS = ("cpu", "wall", "exits", "interrupts")
COLOURS = {"mvagent": "#2563a8", "mvagent exclusive": "#5aa469", "mvagent-vmm + virtiofsd": "#b9b9b9", "host": "#dddddd"}


def medians(runs):
    """Of each cost over the runs of one row by one subject."""
    result = {}
    for cost in COSTS:
        values = [run[cost] for run in runs if run[cost] is not None]
        result[cost] = statistics.median(values) if values else None
    return result


def better_peer(row, cost, peers):
    """The lowest of the peers' figures, or None."""
    values = [row["subjects"][name][cost] for name in peers if name in row["subjects"]]
    values = [value for value in values if value]
    return min(values) if values else None


def ratio(row, subject, cost, peers):
    best = better_peer(row, cost, peers)
    value = row["subjects"][subject][cost]
    return None if best is None or value is None else value / best


def cell(value, form):
    return "-" if value is None else format(value, form)


def requests_line(requests, operations):
    """What the share's server was asked in the work, commonest first, for each operation of it."""
    names = sorted((name for name in requests if name not in ("kicks", "interrupts")), key=lambda name: -requests[name])
    total = sum(requests[name] for name in names)
    parts = ", ".join(f"{name} {requests[name] / operations:.2f}" for name in names[:6] if requests[name] / operations >= 0.005)
    kicks = requests.get("kicks", 0)
    return (f"{total / operations:.2f} requests per operation ({total} for {operations}; {kicks} kicks, "
            f"{requests.get('interrupts', 0)} interrupts){': ' + parts if parts else ''}")


def table(report, peers):
    """The report as text."""
    lines = [*(f"{name}: {value}" for name, value in report["measured"].items()), ""]
    head = (f"{'':26}{'CPU s':>8}{'wall s':>8}{'exits':>9}{'irqs':>8}{'CPU':>8}{'wall':>7}"
            "   (the last two: of the better peer's)")
    for row in report["rows"]:
        lines += [f"{row['name']}: {row['what']}", head]
        for name, costs in row["subjects"].items():
            lines.append(f"  {name:24}{cell(costs['cpu'], '8.2f')}{cell(costs['wall'], '8.2f')}"
                         f"{cell(costs['exits'], '9.0f'):>9}{cell(costs['interrupts'], '8.0f'):>8}"
                         f"{cell(ratio(row, name, 'cpu', peers), '8.2f'):>8}{cell(ratio(row, name, 'wall', peers), '7.2f'):>7}")
        lines += [f"  {name}: not measured: {reason.splitlines()[0][:100]}" for name, reason in row["missing"].items()]
        lines += [f"  {name}: {requests_line(counts, row['operations'])}" for name, counts in row["requests"].items()]
        lines.append("")
    return "\n".join(lines)


def plot(report, ours, peers):
    """Bars, one a row and subject: CPU time in parts of the better peer's."""
    bar, gap, left, width = 13, 10, 190, 420
    unit = width / 2  # the axis ends at twice the peer
    parts, y = [], 46
    for row in report["rows"]:
        bars = [(name, ratio(row, name, "cpu", peers)) for name in ours if name in row["subjects"]]
        bars = [(name, value) for name, value in bars if value is not None]
        parts.append(f'<text x="{left - 8}" y="{y + bar}" text-anchor="end">{html.escape(row["name"])}</text>')
        for name, value in bars:
            parts.append(f'<rect x="{left}" y="{y}" width="{min(value, 2) * unit:.1f}" height="{bar - 2}" '
                         f'fill="{COLOURS.get(name, "#888888")}"/>'
                         f'<text x="{left + min(value, 2) * unit + 4:.1f}" y="{y + bar - 3}" font-size="10">{value:.2f}</text>')
            y += bar
        y += gap
    axis = "".join(f'<line x1="{left + at * unit}" y1="40" x2="{left + at * unit}" y2="{y}" stroke="#999999" '
                   f'stroke-dasharray="{dash}"/>' for at, dash in ((0.5, "2 3"), (1, "none")))
    legend, x = "", left
    for name in ours:
        legend += (f'<rect x="{x}" y="24" width="10" height="10" fill="{COLOURS.get(name, "#888888")}"/>'
                   f'<text x="{x + 14}" y="33">{html.escape(name)}</text>')
        x += 160
    title = f"CPU time in parts of the better peer's ({' or '.join(peers)} = 1; dotted: half)"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{y + 10}" '
            f'font-family="sans-serif" font-size="12"><text x="8" y="16">{html.escape(title)}</text>'
            f'{legend}{axis}{"".join(parts)}</svg>\n')


def write(report, place, ours, peers):
    """share.txt, share.json and share.svg in @place; returns the text."""
    text = table(report, peers)
    (place / "share.txt").write_text(text)
    (place / "share.json").write_text(json.dumps(report, indent=1) + "\n")
    (place / "share.svg").write_text(plot(report, ours, peers))
    return text
