"""Finding an agent's program, and the least of this machine that it needs to run."""

import os
import shutil
import sys
from pathlib import Path

from lockgate.adapters.harnesses.harness import Found
from lockgate.core.model.agents import Job

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/nix")))
SHEBANG_BYTES = 256
ARGUMENT_BYTES = 100_000  # the kernel takes 128 KiB
PROMPT_FILE = ".lockgate-prompt.md"


def find(name: str, search: str | None) -> Found | None:
    """The program behind a name, links followed, with the interpreter that its first line names."""
    at = shutil.which(name, path=search)
    if at is None:
        return None
    program = Path(at).resolve()
    interpreter = interpreter_of(program, search)
    argv = (*interpreter, str(program))
    return Found(argv, shown(Path(argv[0]), program))


def python() -> Found:
    """This interpreter, for the programs that we bring along."""
    here = Path(sys.executable)
    return Found((str(here), "-I", "-S"), shown(here))


def shown(*programs: Path) -> tuple[str, ...]:
    """The install prefixes of these files, without what every sandbox shows anyway."""
    found: dict[str, None] = {}
    for program in programs:
        for file in (program, program.resolve()):
            prefix = _prefix(file)
            if not any(prefix.is_relative_to(root) for root in SYSTEM):
                found[str(prefix)] = None
    return tuple(found)


def _prefix(file: Path) -> Path:
    """What a program was installed with: its node_modules, its `bin`'s parent, or itself alone."""
    parts = file.parts
    if "node_modules" in parts:
        return Path(*parts[: parts.index("node_modules") + 1])
    prefix = file.parent.parent
    if file.parent.name == "bin" and not Path.home().is_relative_to(prefix):
        return prefix
    return file


def interpreter_of(program: Path, search: str | None) -> tuple[str, ...]:
    """The first line of a script as arguments, `env` looked up; empty for a native program."""
    with program.open("rb") as file:
        first = file.read(SHEBANG_BYTES).split(b"\n", 1)[0]
    if not first.startswith(b"#!"):
        return ()
    words = os.fsdecode(first[2:]).split()
    if not words or Path(words[0]).name != "env":
        return tuple(words)
    words = [word for word in words[1:] if word != "-S"]
    at = shutil.which(words[0], path=search) if words else None
    return (str(Path(at).absolute()), *words[1:]) if at else ()


def guide(job: Job) -> str:
    """For a program that would not read the project's AGENTS.md by itself."""
    return f"If {job.workspace}/AGENTS.md is there, read it before anything else and follow it."


def prompt_argument(job: Job) -> str:
    """The prompt for a command line; one that is too long for it lies in the HOME."""
    if _fits(job):
        return job.prompt
    return f"Read {job.home}/{PROMPT_FILE} and do what it says."


def prompt_file(job: Job) -> dict[str, str]:
    return {} if _fits(job) else {PROMPT_FILE: job.prompt}


def _fits(job: Job) -> bool:
    return len(job.prompt.encode(errors="surrogateescape")) < ARGUMENT_BYTES
