#!/usr/bin/env python3
"""What checkpoints cost: compare.py DIRECTORY [ROUNDS]

Runs DIRECTORY/bench_plain and DIRECTORY/bench_checkpoints (build/release/sched/checkpoints) in turn, ROUNDS times
(7), and prints the median of each measurement, and of the ratios of neighbouring runs with their range.
"""

import pathlib
import statistics
import subprocess
import sys


def run(program):
    """The measurements of one run: name -> (value, unit, check)."""
    out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()]
    return {name: (float(value), unit, check) for name, value, unit, check in lines}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    rounds = []
    for i in range(int(sys.argv[2]) if len(sys.argv) == 3 else 7):
        order = ["bench_plain", "bench_checkpoints"]
        done = {name: run(directory / name) for name in (order if i % 2 == 0 else reversed(order))}
        rounds.append((done["bench_plain"], done["bench_checkpoints"]))
    print(f"{'':24}{'plain':>9}{'checkpoints':>13}  {'unit':14}{'ratio':>6}  (range)")
    for name, (_, unit, check) in rounds[0][0].items():
        if any(side[name][2] != check for pair in rounds for side in pair):
            sys.exit(f"{name}: the results differ")
        plain, inserted = ([pair[side][name][0] for pair in rounds] for side in (0, 1))
        ratios = [b / a for a, b in zip(plain, inserted)]
        print(f"{name:24}{statistics.median(plain):9.3f}{statistics.median(inserted):13.3f}  {unit:14}"
              f"{statistics.median(ratios):6.2f}  ({min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    main()
