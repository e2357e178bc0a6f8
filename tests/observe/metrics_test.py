#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Reads the metrics of metrics_program with the OpenMetrics parser of the Prometheus client, and compares them with what
the runtime has counted. Ends with status 77 if there is no parser.

usage: metrics_test.py <metrics_program>
"""
import subprocess
import sys


def check(condition, sentence):
    if not condition:
        sys.exit(sentence)


sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, where the interpreter is another one
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError:
    print("skipped: python3-prometheus-client is not installed")
    sys.exit(77)

output = subprocess.run([sys.argv[1]], check=True, capture_output=True).stdout.decode("utf-8")
counted, text = output.split("\n\n", 1)
counted = {name: int(number) for name, number in map(str.split, counted.splitlines())}
check(counted["deferred"] >= 100, "the program has deferred nothing")

name = "q\"uote, back\\slash, line\nend, brace} \u00e9 \ufffd#"
families = {f.name: f for f in parse(text)}
check(len(families) == len(counted) + 2, f"{len(families)} families for {len(counted)} counters")
for f in families.values():
    check(f.documentation.endswith("."), f"help of {f.name}: {f.documentation}")
    check([s.labels for s in f.samples] == [{"runtime": name}, {"runtime": "other"}], f"labels of {f.name}")
for counter, number in counted.items():
    f = families["weft_" + counter]
    check(f.type == "counter" and f.unit == "", f"type of {counter}: {f.type} {f.unit}")
    check(f.samples[0].name == f"weft_{counter}_total" and f.samples[0].value == number, f"{f.samples[0]}, not {number}")
high = families["weft_stack_high_water_bytes"]
check(high.type == "gauge" and high.unit == "bytes" and high.samples[0].value > 0, f"{high}")
workers = families["weft_workers"]
check(workers.type == "gauge" and [s.value for s in workers.samples] == [3, 1], f"{workers}")

for fault in (text.replace("# EOF\n", ""), text.replace("_total", ""), text.replace('back\\\\slash', 'x" y'),
              text.replace("_bytes", "")):
    check(fault != text, "a control changes nothing")
    try:
        list(parse(fault))
    except ValueError:
        continue
    sys.exit("the parser accepts a fault")
print(f"{len(families)} families read")
