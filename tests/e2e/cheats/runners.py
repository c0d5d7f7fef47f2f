"""The cases of jest and go with the runners themselves, where they are on PATH."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from lockgate.core.config.settings import EnvSettings
from tests.e2e.cheats.cheats import GO, JEST
from tests.e2e.cheats.stage import Case

GO_CACHE = 'GOCACHE="$PWD/.gocache" GOFLAGS=-count=1 GOTOOLCHAIN=local'


def with_jest(case: Case) -> Case:
    command = 'JEST_JUNIT_OUTPUT_DIR="$OUT" npx --no-install jest --ci --reporters=jest-junit'
    return replace(case, command=command, env=_modules("jest"))


def with_vitest(case: Case) -> Case:
    """Its `expect` and `it` are jest's, where it is told to let them be global."""
    report = '--reporter=default --reporter=junit --outputFile.junit="$OUT/junit.xml"'
    command = f"npx --no-install vitest run --globals {report}"
    return replace(case, command=command, env=_modules("vitest"))


def with_go(case: Case) -> Case:
    """What the standard library takes to be built is the set-up's."""
    env = EnvSettings(setup=f"export {GO_CACHE}; go test ./...", inputs=("go.mod",))
    return replace(case, command=f"export {GO_CACHE}; {GO}", env=env)


# What only jest knows: its settings in package.json, and one of its words.
JESTS_OWN = frozenset({"jest set-up patches expect", "jest exits", "jest xit"})

RUNNERS: dict[str, Callable[[Case], Case]] = {
    "jest": with_jest,
    "vitest": with_vitest,
    "go": with_go,
}


def cases_of(program: str, cases: Iterable[Case]) -> Iterator[Case]:
    """Those that are written for it; vitest takes jest's."""
    command = GO if program == "go" else JEST
    for case in cases:
        if case.command == command and not (program == "vitest" and case.name in JESTS_OWN):
            yield case


def _modules(program: str) -> EnvSettings:
    """As `npm ci` would leave them: the directory that the program was installed into."""
    found = shutil.which(program)
    assert found is not None
    modules = next(it for it in Path(found).resolve().parents if it.name == "node_modules")
    return EnvSettings(setup=f'ln -s "{modules}" node_modules', inputs=("package.json",))
