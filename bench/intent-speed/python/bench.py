"""Repairs the same documents with json_repair: one line in, one round out."""

import json
import sys
import time
from importlib.metadata import version

import json_repair

with open(sys.argv[1], encoding="utf-8") as file:
    groups = json.load(file)

print(json.dumps({"python": sys.version.split()[0], "json_repair": version("json_repair")}), flush=True)
for line in sys.stdin:
    group = groups[int(line)]
    begun = time.process_time()
    values = [json_repair.loads(document["text"]) for document in group]
    took = time.process_time() - begun
    exact = sum(value == document["wanted"] for value, document in zip(values, group))
    print(json.dumps({"seconds": took, "exact": exact}), flush=True)
