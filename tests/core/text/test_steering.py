"""Files that steer agents, editors, hooks and CI; and base's versions of those that instruct."""

import pytest
from msgspec.structs import replace

from lockgate.core.text.steering import LINK, asked_of, shown_first, steering, swapped, told_of
from tests.given import RULES

STEERS = [
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "src/app/AGENTS.md",
    "src/app/CLAUDE.md",
    "docs/GEMINI.md",
    "agents.MD",
    "Claude.md",
    "CLAUDE.local.md",
    ".claude/settings.json",
    ".claude",
    "web/.claude/hooks/stop.sh",
    ".Claude/settings.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".opencode/agent/x.md",
    "opencode.json",
    "web/opencode.json",
    ".mcp.json",
    ".cursor/rules/a.mdc",
    ".cursorrules",
    ".aider.conf.yml",
    ".aiderignore",
    ".vscode/tasks.json",
    "web/.vscode/settings.json",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".envrc",
    "api/.envrc",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".gitmodules",
    ".github/workflows/ci.yml",
    ".github/actions/x/action.yml",
    ".GITHUB/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    ".buildkite/pipeline.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
    "deploy/Jenkinsfile",
    ".travis.yml",
    "bitbucket-pipelines.yml",
    ".drone.yml",
    ".woodpecker/build.yml",
]
PLAIN = [
    "README.md",
    "src/app.py",
    "docs/agents.md.txt",
    "AGENTS.mdx",
    "MYAGENTS.md",
    "docs/claude.txt",
    "src/claude/__init__.py",
    "src/cursor/a.py",
    "vscode/a.json",
    ".env.example",
    "src/.github/workflows/ci.yml",
    "docs/.travis.yml",
    "Jenkinsfile2",
    "package.json",
]


@pytest.mark.parametrize("path", STEERS)
def test_a_file_that_steers_agents_editors_hooks_or_ci_is_named(path) -> None:
    assert steering([path, "README.md"]) == (path,)


@pytest.mark.parametrize("path", PLAIN)
def test_another_file_is_not_named(path) -> None:
    assert steering([path]) == ()


MANUAL = replace(RULES, protect=(".lockgate/**", "secrets/**"))
AUTO = replace(MANUAL, lands_alone=True)
FILES = ("a.py", ".lockgate/config.toml", "AGENTS.md", "secrets/key", "web/.vscode/tasks.json")


def test_a_human_sees_first_what_is_protected_and_what_steers() -> None:
    assert shown_first(FILES, MANUAL) == shown_first(FILES, AUTO) == FILES[1:]
    assert shown_first(("a.py", "b.py"), AUTO) == ()


@pytest.mark.parametrize(
    ("rules", "asked"),
    [
        (MANUAL, (".lockgate/config.toml", "secrets/key")),
        (AUTO, FILES[1:]),
        (None, ()),
    ],
)
def test_a_gate_is_added_for_what_steers_only_where_changes_land_alone(rules, asked) -> None:
    assert asked_of(FILES[1:], rules) == asked


def test_a_line_names_the_first_steering_files_and_counts_the_rest() -> None:
    told = told_of([f"{n}/AGENTS.md" for n in range(7)])

    assert told.endswith(
        "CI: 0/AGENTS.md, 1/AGENTS.md, 2/AGENTS.md, 3/AGENTS.md, 4/AGENTS.md, 2 more"
    )


def plain(word: str) -> str:
    return f"100644 {word}"


def link(target: str) -> str:
    return f"{LINK}{target}"


def nothing(blob: str) -> str:
    raise AssertionError(f"{blob} need not be read")


def holding(**texts: str):
    """What blobs hold by the word that stands for their id; a link's id is where it leads."""
    return lambda blob: (
        blob.removeprefix(LINK) if blob.startswith(LINK) else texts.get(blob[7:], "")
    )


def test_a_change_that_touches_no_instructions_is_shown_as_it_is() -> None:
    base = {"a.py": plain("1"), ".claude/settings.json": plain("2")}

    assert swapped(base, {**base, "a.py": plain("9"), "b.py": plain("3")}, nothing) == (
        swapped({}, {}, nothing)
    )


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md",
        "sub/CLAUDE.md",
        "GEMINI.md",
        ".claude/settings.json",
        ".codex/hooks.json",
        ".gemini/settings.json",
        ".opencode/plugin/x.js",
        "opencode.json",
        ".mcp.json",
        ".cursor/rules/a.mdc",
        ".aider.conf.yml",
        ".env",
        ".lockgate/agents/judge.sh",
    ],
)
def test_an_instruction_file_is_bases_whether_the_change_edits_adds_or_deletes_it(path) -> None:
    ours, theirs, rest = {path: plain("ours")}, {path: plain("theirs")}, {"a.py": plain("1")}

    edited = swapped({**rest, **ours}, {**rest, **theirs}, holding())
    added = swapped(rest, {**rest, **theirs}, holding())
    deleted = swapped({**rest, **ours}, rest, holding())

    assert (edited.gone, edited.base) == ((path,), ours)
    assert (added.gone, added.base) == ((path,), {})
    assert (deleted.gone, deleted.base) == ((), ours)


@pytest.mark.parametrize(
    ("base", "change", "gone", "taken"),
    [
        # a directory of instructions becomes a link, a file, or the other way round
        ({".claude/a": plain("1")}, {".claude": link("evil")}, [".claude"], [".claude/a"]),
        ({"AGENTS.md": plain("1")}, {"AGENTS.md/x": plain("2")}, ["AGENTS.md/x"], ["AGENTS.md"]),
        ({"d/AGENTS.md": plain("1")}, {"d": link("evil")}, ["d"], ["d/AGENTS.md"]),
        # base's own link leads to a file that the change edits, or puts there
        (
            {"CLAUDE.md": link("docs/a.md"), "docs/a.md": plain("1")},
            {"CLAUDE.md": link("docs/a.md"), "docs/a.md": plain("2")},
            ["docs/a.md"],
            ["docs/a.md"],
        ),
        (
            {".claude": link("shared"), "shared/settings.json": plain("1")},
            {".claude": link("shared"), "shared/settings.json": plain("2"), "shared/b": plain("3")},
            ["shared/b", "shared/settings.json"],
            ["shared/settings.json"],
        ),
        (
            {"AGENTS.md": link("docs/a.md"), "docs": link("text"), "text/a.md": plain("1")},
            {"AGENTS.md": link("docs/a.md"), "docs": link("text"), "text/a.md": plain("2")},
            ["text/a.md"],
            ["text/a.md"],
        ),
        (
            {"AGENTS.md": link("docs/none.md")},
            {"AGENTS.md": link("docs/none.md"), "docs/none.md": plain("2")},
            ["docs/none.md"],
            [],
        ),
        # base's file imports one that the change edits; that one imports another
        (
            {
                "CLAUDE.md": plain("imports"),
                "docs/rules.md": plain("more"),
                "docs/b.md": plain("b"),
            },
            {"CLAUDE.md": plain("imports"), "docs/rules.md": plain("x"), "docs/b.md": plain("y")},
            ["docs/b.md", "docs/rules.md"],
            ["docs/b.md", "docs/rules.md"],
        ),
        (
            {"CLAUDE.md": plain("imports")},
            {"CLAUDE.md": plain("imports"), "docs/rules.md": plain("x"), "app.py": plain("z")},
            ["docs/rules.md"],
            [],
        ),
        # Lockgate's own papers are never the change's
        ({}, {"TASK.md": plain("x"), "task.json": plain("y")}, ["TASK.md", "task.json"], []),
        ({"TASK.md": plain("x")}, {"TASK.md": plain("x")}, ["TASK.md"], []),
    ],
)
def test_nothing_leads_from_bases_instructions_to_a_file_of_the_change(
    base, change, gone, taken
) -> None:
    texts = holding(imports="Read @docs/rules.md and @app.py, ask x@docs/rules.md", more="@b.md")

    found = swapped(base, change, texts)

    assert list(found.gone) == gone
    assert list(found.base) == taken


def test_a_program_that_the_configuration_names_is_bases() -> None:
    base = {"tools/judge.sh": plain("1"), "tools/other.sh": plain("1")}
    change = {"tools/judge.sh": plain("2"), "tools/other.sh": plain("2")}

    found = swapped(base, change, nothing, ["./tools/judge.sh"])

    assert found.gone == ("tools/judge.sh",)
    assert found.base == {"tools/judge.sh": plain("1")}
