# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of a plan as one HTML page that needs no other file."""

import html
import math

from .. import plot

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .2em .8em .2em 0; vertical-align: top; }
tr { border-bottom: 1px solid #eee; } pre { background: #f6f6f6; padding: .6em; overflow-x: auto; font-size: 12px; }
.passed { color: #1a7f37; } .failed { color: #c00; font-weight: 600; } .verdict { font-size: 1.4em; }
.number { text-align: right; } summary { cursor: pointer; } svg text { font: 12px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } pre { background: #222; }
  tr { border-color: #333; } .passed { color: #5bd778; } .failed { color: #ff6b6b; } svg text { fill: #ddd; } }
"""
CHANGES = (("new", "new failures"), ("still", "failures as before"), ("fixed", "fixed"), ("flaky", "passed and failed"),
           ("gone", "not run any more"))
BAR_PX, ROW_PX, LABEL_PX = 420, 20, 230
LOG_LINES = 2000


def page(run, change, logs, baseline=None):
    """The text of the page. change: the results.Change; logs: {name: text} of the kernel logs; baseline: a Run or None."""
    failed = run.failed()
    verdict = f"{len(run.results) - len(failed)} passed, {len(failed)} failed" if run.results else "no results"
    parts = [f"<h1>{escape(run.what['plan'])}: {escape(run.about.get('commit') or run.about['tree'])}</h1>",
             f"<p class='verdict {'passed' if run.passed() or run.figures and not failed else 'failed'}'>{verdict}</p>",
             table([(name, escape(value)) for name, value in {**run.about, **run.what}.items()]),
             changes(change, baseline), splats(run.splats), figures(run.figures, baseline), results(run, change),
             kernel_logs(logs)]
    title = f"{run.what['plan']}: {verdict}"
    return (f"<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
            f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style></head>\n<body>"
            f"{chr(10).join(part for part in parts if part)}</body></html>\n")


def escape(value):
    return html.escape(str(value))


def table(rows):
    """Rows of cells that are HTML."""
    return "<table>" + "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows) + "</table>"


def folded(summary, text, is_open=False):
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary><pre>{escape(text)}</pre></details>"


def changes(change, baseline):
    """What has changed, each kind with its names; nothing if all is as it was."""
    rows = []
    for kind, text in CHANGES:
        names = getattr(change, kind)
        if names:
            rows.append((f"{text if baseline or kind == 'flaky' else 'failures'}: {len(names)}", "<br>".join(map(escape, names))))
    return f"<h2>What changed</h2>{table(rows)}" if rows else ""


def splats(found):
    if not found:
        return ""
    return "<h2>Reports of the kernel</h2>" + "".join(
        folded(f"<b>{escape(each.function)}</b>: {escape(each.title)} ({escape(each.file)})", each.text) for each in found)


def results(run, change):
    if not run.results:
        return ""
    new = set(change.new)
    rows = []
    for result in run.results:
        word = "passed" if result.passed else "failed, new" if result.name in new else "failed"
        name = escape(result.name)
        if result.notes:
            name = folded(name, "\n".join(result.notes), not result.passed)
        rows.append((f"<span class='{word.split(',')[0]}'>{word}</span>", f"{result.seconds:.1f} s", name))
    return f"<h2>Results</h2>{table(rows)}"


def figures(rows, baseline):
    """Bars on a logarithmic scale, a picture for each unit; beside each its figure, and that of the baseline."""
    if not rows:
        return ""
    before = {key(row): row for row in baseline.figures} if baseline else {}
    pictures = []
    for unit in dict.fromkeys(row["unit"] for row in rows):
        own = [row for row in rows if row["unit"] == unit]
        least = min(row["value"] for row in own) / 2
        span = math.log(max(row["value"] for row in own) / least)
        bars = []
        for number, row in enumerate(own):
            width = BAR_PX * math.log(row["value"] / least) / span
            y, old = number * ROW_PX, before.get(key(row))
            said = f"{row['value']:.4g} {unit}" + (f" ({row['value'] / old['value']:.0%} of the baseline)" if old else "")
            bars.append(f"<text x='0' y='{y + 14}'>{escape(row['test'])} {row['bytes']} {escape(row['subject'])}</text>"
                        f"<rect x='{LABEL_PX}' y='{y + 3}' width='{width:.0f}' height='{ROW_PX - 6}' "
                        f"fill='{plot.COLOURS.get(row['subject'], '#888')}'/>"
                        f"<text x='{LABEL_PX + width + 6:.0f}' y='{y + 14}'>{escape(said)}</text>")
        pictures.append(f"<svg width='900' height='{len(own) * ROW_PX + 4}'>{''.join(bars)}</svg>")
    return f"<h2>Figures</h2><p>Medians, logarithmic.</p>{'<br>'.join(pictures)}"


def key(row):
    return row["test"], row["bytes"], row["subject"]


def kernel_logs(logs):
    if not logs:
        return ""
    parts = []
    for name, text in logs.items():
        lines = text.splitlines()
        left_out = f"({len(lines) - LOG_LINES} lines before are in the file)\n" if len(lines) > LOG_LINES else ""
        parts.append(folded(escape(name), left_out + "\n".join(lines[-LOG_LINES:])))
    return "<h2>Kernel logs</h2>" + "".join(parts)
