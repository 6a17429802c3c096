"""Trace what is not recorded yet, or compare fresh traces with the record, or check the tracer itself."""

from . import device  # isort: skip  (must come before torch)

import argparse
import sys
import warnings

from .groups import CONFIGURATIONS
from .record import forget, recorded, save

assert device


def trace_missing(only: str) -> int:
    """Trace every configuration without a row whose id contains `only`; returns the number that failed."""
    from .tracing import trace

    done = recorded()
    missing = [c for c in CONFIGURATIONS if c.id not in done and only in c.id]
    failures = 0
    for index, configuration in enumerate(missing, 1):
        try:
            row, breakdown = trace(configuration)
        except Exception as error:  # one that fails must not stop the rest
            failures += 1
            print(f"{configuration.id}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
            continue
        save(row, breakdown)
        print(f"{index}/{len(missing)} {configuration.id}: {row['peak']:,} at {row['peak_moment']}", flush=True)
    return failures


def compare_sample(count: int) -> int:
    """Trace `count` recorded rows again, evenly spread; returns the number whose peak changed."""
    from .tracing import trace

    done = [c for c in CONFIGURATIONS if c.id in recorded()]
    changed = 0
    for index in range(count):
        configuration = done[index * len(done) // count]
        before = int(recorded()[configuration.id]["peak"])
        after = trace(configuration)[0]["peak"]
        changed += before != after
        print(f"{configuration.id}: recorded {before:,}, now {after:,} ({(after - before) / before:+.3%})", flush=True)
    return changed


def main() -> int:
    parser = argparse.ArgumentParser(prog="traced", description=__doc__)
    parser.add_argument("--sample", type=int, metavar="N", help="trace N recorded rows again and report the difference")
    parser.add_argument("--check", action="store_true", help="check the tracer itself")
    parser.add_argument(
        "--again", metavar="TEXT", help="drop the rows whose id contains TEXT, then trace what is missing"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only configurations whose id contains TEXT")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.check:
        from .checks import run_checks

        return run_checks()
    if options.again:
        forget({name for name in recorded() if options.again in name})
    return compare_sample(options.sample) if options.sample else trace_missing(options.only)


sys.exit(main())
