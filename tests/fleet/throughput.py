"""How much more three hosts test than one: `python -m tests.fleet.throughput`.

Every gate sleeps for 20 seconds, so that the machine's cores do not count. What is counted are
trees of the train, which any host may test. Prints one table; it ends by itself.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from lockgate.core.model.task import Status
from tests.fleet.site import Site, Times, opened, plays

GATE = "sleep {seconds}; ! grep -rq bad n-*"
JUDGES = 2
AT_LEAST = 2.5


@dataclass(frozen=True)
class Rate:
    hosts: int
    trees: int
    seconds: float
    cpu: float  # seconds of all workers
    jobs: int  # claims that were seen

    @property
    def an_hour(self) -> float:
        return self.trees / self.seconds * 3600


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fleet.throughput")
    parser.add_argument("--trees", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=20.0, help="that a gate sleeps")
    asked = parser.parse_args()
    rates = [measured(hosts, asked.trees, asked.seconds) for hosts in (1, 3)]
    print("hosts  trees  seconds  trees an hour  CPU a job")
    for it in rates:
        cpu = f"{it.cpu / max(1, it.jobs) * 1000:.0f} ms"
        print(f"{it.hosts:5}  {it.trees:5}  {it.seconds:7.1f}  {it.an_hour:13.0f}  {cpu:>9}")
    gain = rates[1].an_hour / rates[0].an_hour
    print(f"three hosts test {gain:.2f} times what one does; at least {AT_LEAST} is asked for")
    return 0 if gain >= AT_LEAST else 1


def measured(hosts: int, trees: int, seconds: float) -> Rate:
    """From the first tree under test to the last landing."""
    names = [f"h{number + 1}" for number in range(hosts)]
    branches = [f"t{number}" for number in range(trees)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scripts = {it: plays(it, 0.1) for it in branches}
        gate = GATE.format(seconds=f"{seconds:g}")
        with opened(Path(folder), scripts, command=gate, times=Times(10, 60)) as site:
            site.started(*names, slots=trees, judges=JUDGES)
            return _rate(site, branches, hosts, trees * seconds * 3 + 300)


def _rate(site: Site, branches: list[str], hosts: int, patience: float) -> Rate:
    for it in branches:
        site.people.create(it)
    jobs, began, cpu = set[tuple[object, object]](), 0.0, 0.0
    last = time.monotonic() + patience
    while any(it.status is not Status.DONE for it in site.all_tasks()):
        assert time.monotonic() < last, site.story()
        lanes = site.lanes()
        jobs |= {(it["lane"], it["token"]) for it in lanes.values() if it["token"]}
        if not began and any(it.startswith("test ") for it in lanes):
            began, cpu = time.monotonic(), _cpu(site)
            jobs.clear()
        time.sleep(0.2)
    return Rate(hosts, len(branches), time.monotonic() - began, _cpu(site) - cpu, len(jobs))


def _cpu(site: Site) -> float:
    return sum(it.cpu() for it in site.hosts.values())


if __name__ == "__main__":
    sys.exit(main())
