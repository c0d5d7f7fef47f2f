"""The coverage floors, read from what `coverage json` wrote; branches count."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

ALL_FLOOR = 95.0
CORE = "src/lockgate/core/"
CORE_FLOOR = 100.0
MODULE_FLOOR = 90.0
MODULES = (
    "lifecycle/binary_gate",
    "lifecycle/gate_orchestrator",
    "model/retry",
    "model/escalation",
)


@dataclass(frozen=True, slots=True)
class Counts:
    """Covered and all, of statements and of branches."""

    covered: int = 0
    total: int = 0
    branches_covered: int = 0
    branches: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.covered + other.covered,
            self.total + other.total,
            self.branches_covered + other.branches_covered,
            self.branches + other.branches,
        )

    def percent(self) -> float:
        whole = self.total + self.branches
        return 100.0 * (self.covered + self.branches_covered) / whole if whole else 100.0

    def branch_percent(self) -> float:
        """Of branches alone; a module without any answers with its statements."""
        return 100.0 * self.branches_covered / self.branches if self.branches else self.percent()


def main(arguments: list[str]) -> int:
    files = read(Path(arguments[0]).read_text(encoding="utf-8"))
    complaints = judge(files)
    print(f"coverage with branches: {sum(files.values(), Counts()).percent():.2f} %")
    for complaint in complaints:
        print(f"coverage too low: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


def read(report: str) -> dict[str, Counts]:
    """Every measured file's counts, by its path with forward slashes."""
    return {
        name.replace("\\", "/"): Counts(
            file["summary"]["covered_lines"],
            file["summary"]["num_statements"],
            file["summary"]["covered_branches"],
            file["summary"]["num_branches"],
        )
        for name, file in json.loads(report)["files"].items()
    }


def judge(files: dict[str, Counts]) -> list[str]:
    return [*_modules(files), *_core(files), *_all(files)]


def _modules(files: dict[str, Counts]) -> list[str]:
    complaints: list[str] = []
    for module in MODULES:
        counts = files.get(f"{CORE}{module}.py")
        if counts is None:
            complaints.append(f"core/{module}.py was not measured")
        elif min(counts.branch_percent(), counts.percent()) < MODULE_FLOOR:
            complaints.append(
                f"core/{module}.py: {counts.branch_percent():.2f} % of branches, "
                f"floor {MODULE_FLOOR:.0f} %"
            )
    return complaints


def _core(files: dict[str, Counts]) -> list[str]:
    return [
        f"{name}: {counts.percent():.2f} %, the core's floor is {CORE_FLOOR:.0f} %"
        for name, counts in sorted(files.items())
        if name.startswith(CORE) and counts.percent() < CORE_FLOOR
    ]


def _all(files: dict[str, Counts]) -> list[str]:
    percent = sum(files.values(), Counts()).percent()
    if not files or percent < ALL_FLOOR:
        return [f"all of it: {percent:.2f} %, floor {ALL_FLOOR:.0f} %"]
    return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
