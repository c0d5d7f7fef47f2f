"""The repository's own tree: no link that leads nowhere, nothing unknown at the root."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
AT_THE_ROOT = {
    "action.yml",
    *(".ci", ".editorconfig", ".gitignore", "AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md"),
    *("LICENSE", "Makefile", "README.md", "bench", "bin", "changes", "docs", "pyproject.toml"),
    *("scripts", "src", "tests"),
}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [Path(it) for it in listed.stdout.decode().split("\0") if it]


def test_every_tracked_link_leads_somewhere() -> None:
    lost = [str(it) for it in tracked() if (ROOT / it).is_symlink() and not (ROOT / it).exists()]

    assert lost == []


def test_nothing_unknown_lies_at_the_root() -> None:
    assert {it.parts[0] for it in tracked()} == AT_THE_ROOT
