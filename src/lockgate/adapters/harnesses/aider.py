"""aider: text only, no events, no hooks, and exit code 0 whatever happened. Its gates judge it.

What it leaves lies in the HOME, not in the workspace; its work is committed by Lockgate.
"""

import re
from collections.abc import Mapping
from functools import partial

from lockgate.adapters.harnesses import programs
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.programs import last_line, limited_until, shortened, unexplained
from lockgate.core.model.agents import Exit, Job, Launch, Report, Usage

KEYS = (
    "OPENAI_API_KEY",
    "OPENAI_API_BASE",  # a server on this machine may ask for no key
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "DEEPSEEK_API_KEY",
)
VARIABLES = ("AIDER_MODEL", *KEYS)
PROVIDERS = {  # by how the name of a model begins
    "openai/": ("OPENAI_API_KEY", "OPENAI_API_BASE"),
    "anthropic/": ("ANTHROPIC_API_KEY",),
    "claude": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY",),
    "openrouter/": ("OPENROUTER_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
}
SWITCHES = (
    *("--yes-always", "--no-check-update", "--no-show-release-notes", "--analytics-disable"),
    *("--no-gitignore", "--add-gitignore-files", "--no-auto-commits", "--no-dirty-commits"),
    *("--no-pretty", "--no-stream", "--no-fancy-input", "--no-suggest-shell-commands"),
)
SURROUNDINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "COLUMNS": "1000",  # what it says of a failure or a cost stays on one line
}
# Its index of the repository has no option for its place, which is the workspace.
START = """\
import os, sys
from aider.main import main
from aider.repomap import RepoMap
RepoMap.TAGS_CACHE_DIR = os.path.expanduser("~/.aider/tags")
sys.exit(main())
"""

LIMITED = r"litellm\.RateLimitError|The API provider has rate limited you|Retrying in \d"
_COUNT = re.compile(r"^Tokens: ([\d.,]+[kM]?) sent,.*? ([\d.,]+[kM]?) received\.", re.MULTILINE)
_COST = re.compile(r"\$([\d.]+) session\.")
_ERROR = re.compile(r"^litellm\.\w+Error: .*$|^Model .* has hit a token limit!$", re.MULTILINE)
_UNITS = {"k": 1_000.0, "M": 1_000_000.0}


def launch(found: Found, job: Job) -> Launch:
    begin = job.native or job.session
    folder = f"{job.home}/.aider"
    message = () if job.interactive else ("--message-file", f"{job.home}/{programs.PROMPT_FILE}")
    return Launch(
        argv=(
            *_program(found),
            *SWITCHES,
            *("--chat-history-file", f"{folder}/{begin}.md"),
            *("--input-history-file", f"{folder}/input"),
            *(("--restore-chat-history",) if job.native else ()),
            *("--read", "AGENTS.md", "--read", "CLAUDE.md"),
            *(*message, "TASK.md"),
        ),
        env={**SURROUNDINGS, **job.environ},
        files={programs.PROMPT_FILE: job.prompt},
        kept={".aider/input": ""},
        native=begin,
        limited=LIMITED,
    )


def login(given: Mapping[str, str]) -> str:
    return programs.key_in_use(given.get("AIDER_MODEL", ""), PROVIDERS, given)


def read(output: str, exit: Exit, now: float) -> Report:
    errors = _ERROR.findall(output)
    counts = [_number(count) for pair in _COUNT.findall(output) for count in pair]
    costs = _COST.findall(output)
    why = errors[-1] if errors else unexplained(exit, output, finished=True)
    return Report(
        usage=Usage(float(costs[-1]) if costs else 0.0, int(sum(counts))),
        exhausted="ContextWindowExceeded" in why or "token limit" in why,
        limited_until=limited_until(why, now) if "RateLimitError" in why else None,
        refused="AuthenticationError" in why,
        failure=shortened(why),
        said=last_line(output),
    )


def _program(found: Found) -> tuple[str, ...]:
    """Its script is started by the Python that its first line names; so is ours."""
    interpreter = found.argv[:-1]
    return (*interpreter, "-c", START) if interpreter else found.argv


def _number(count: str) -> float:
    digits = count.rstrip("kM").replace(",", "").rstrip(".")
    return float(digits or 0) * _UNITS.get(count[-1], 1.0)


HARNESS = Harness(
    install="pipx install aider-chat==0.86.2",
    find=partial(programs.find, "aider"),
    launch=launch,
    read=read,
    variables=VARIABLES,
    keys=KEYS,
    login=login,
)
