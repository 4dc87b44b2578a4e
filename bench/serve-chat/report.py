"""The table of a result file, with the aims: met, missed, or not measured. Fails when one is missed."""

import json
import statistics
import sys

result = json.load(open(sys.argv[1]))
held = {row["kind"]: row for row in result["held"]}
# Those of the most demanding kind count for us: runs with tools, kept on disk.
runs = held["holdfast-runs"]


def median(kind, pick):
    return statistics.median(pick(row) for row in result["rounds"] if row["kind"] == kind)


def added(percentile):
    return lambda row: row["paced"][percentile] - row["floor"][percentile]


# What only passes on is the floor of what stands in between. Older files do not have it.
names = [kind for kind in ("direct", "proxy", "holdfast", "litellm", "portkey") if any(row["kind"] == kind for row in result["rounds"])]
head = ["", "requests/s", "CPU µs", "at rate", "+p50 ms", "+p99 ms", "idle MB", "1,000 MB", "answered", "ready ms"]
print("".join(f"{name:>12}" for name in head))
for kind in names:
    row = [
        kind,
        f"{median(kind, lambda row: row['flood']['requestsPerSecond']):.0f}",
        f"{median(kind, lambda row: row['cpuMicrosPerRequest']):.0f}",
        f"{median(kind, lambda row: row['ratePerSecond']):.0f}",
        f"{median(kind, added('p50Ms')):.2f}",
        f"{median(kind, added('p99Ms')):.2f}",
        f"{median(kind, lambda row: row['rssIdleKb']) / 1024:.0f}",
        f"{held[kind]['rssHeldKb'] / 1024:.0f}" if kind in held else "",
        f"{held[kind]['outcome']['answered']}" if kind in held else "",
        f"{median(kind, lambda row: row['readyMs']):.0f}",
    ]
    print("".join(f"{cell:>12}" for cell in row))


def times(other):
    """How many times the other's requests per second are ours; nothing where it was not measured."""
    if other not in names:
        return None
    rate = {kind: median(kind, lambda row: row["flood"]["requestsPerSecond"]) for kind in ("holdfast", other)}
    return rate["holdfast"] / rate[other]


def at_least(least, found):
    return None if found is None else found >= least


aims = [
    ("at least 20 times LiteLLM's requests per second", at_least(20, times("litellm"))),
    ("at least 3 times Portkey's requests per second", at_least(3, times("portkey"))),
    ("added p99 under 1 ms at 1,000 requests a second",
     median("holdfast", lambda row: row["ratePerSecond"]) >= 1000 and median("holdfast", added("p99Ms")) < 1),
    ("under 40 MB idle", median("holdfast", lambda row: row["rssIdleKb"]) < 40 * 1024),
    ("under 200 MB with 1,000 runs in flight, all answered",
     runs["rssHeldKb"] < 200 * 1024 and runs["outcome"]["failed"] == 0),
    ("ready within 100 ms", median("holdfast", lambda row: row["readyMs"]) <= 100),
]
print(f"1,000 runs with tools, kept on disk: {runs['rssHeldKb'] / 1024:.0f} MB, {runs['outcome']['answered']} answered")
for row in result["rounds"]:
    for part in ("flood", "paced", "floor"):
        if row[part]["errors"]:
            print(f"{row['kind']}, round {row['round']}, {part}: {row[part]['errors']} errors ({row[part]['why']})")
for aim, is_met in aims:
    print(f"aim, {aim}: {'not measured' if is_met is None else 'met' if is_met else 'MISSED'}")
if any(is_met is False for _, is_met in aims):
    sys.exit("an aim is missed")
