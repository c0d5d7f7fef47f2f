"""Plays a script as an agent would work: a program of its own, with the standard library alone.

    python -I -S scripted_player.py ROLE TASK SESSION NATIVE SCRIPT [STOP COMMAND ...]

It runs in the workspace and reads its prompt from standard input. See docs/scripted.md.
"""

import fcntl
import json
import os
import resource
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, cast

Table = dict[str, object]
FOLDER = Path(".lockgate")
PLAYED = ".lockgate-played"  # in the HOME: which sessions have played, by role and condition
BAD_SCRIPT = 2
CHUNK = 64 * 1024


class Unplayable(Exception):
    """The script is missing or wrong; the words are for its author."""


@dataclass(slots=True)
class Player:
    role: str
    task: str
    session: str
    native: str
    script: str
    stop_command: Sequence[str]
    prompt: str = ""
    usd: float = 0.0
    tokens: int = 0


def main(argv: Sequence[str]) -> int:
    role, task, session, native, script, *stop = argv
    player = Player(role, task, session, native, script, stop, prompt=sys.stdin.read())
    say("session", id=native or session)
    try:
        for step in entry(player):
            play(player, step)
    except Unplayable as error:
        say("failure", text=str(error))
        return BAD_SCRIPT
    say("end")
    return 0


def say(type: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"type": type, **fields}) + "\n")
    sys.stdout.flush()


# --- which script, and which of its entries -----------------------------------------------------


def entry(player: Player) -> list[Table]:
    """The steps of this session's entry. Past the last one, the last repeats."""
    entries = tables(load(player).get(player.role, []), f"[[{player.role}]]")
    group = chosen(entries, player.prompt)
    if not group:
        raise Unplayable(f"the script has no [[{player.role}]] for this session")
    place = min(turn(f"{player.role} {group[0].get('when', '')}", player.session), len(group) - 1)
    return tables(group[place].get("steps", []), "steps")


def load(player: Player) -> Table:
    for path in places(player):
        if path.is_file():
            return parsed(path)
    looked = ", ".join(map(str, places(player)))
    raise Unplayable(f"there is no script for the scripted agent; it looked for {looked}")


def places(player: Player) -> list[Path]:
    if player.script:
        return [Path(player.script)]
    names = [f"agents/{name}" for name in (player.task, branch()) if name]
    return [FOLDER / f"{name}.{end}" for name in (*names, "script") for end in ("toml", "json")]


def branch() -> str:
    """As TASK.md names it."""
    try:
        lines = Path("TASK.md").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2] for line in lines if line.startswith("branch:")]
    return names[0].strip().strip("'\"") if names else ""


def parsed(path: Path) -> Table:
    loads = json.loads if path.suffix == ".json" else tomllib.loads
    try:
        return dict(loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise Unplayable(f"{path}: {error}") from error


def tables(value: object, what: str) -> list[Table]:
    found = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(it, dict) for it in found):
        raise Unplayable(f"{what} is not a list of tables")
    return cast("list[Table]", found)


def chosen(entries: list[Table], prompt: str) -> list[Table]:
    """The entries of the first `when` that the prompt contains, else those without one."""
    words = dict.fromkeys(str(it.get("when", "")) for it in entries)
    for word in sorted(words, key=lambda it: not it):
        if word in prompt:
            return [it for it in entries if str(it.get("when", "")) == word]
    return []


def turn(key: str, session: str) -> int:
    """How many other sessions came before this one. Asked again, it is the same."""
    with Path(os.environ["HOME"], PLAYED).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        sessions = [line for line in file.read().splitlines() if line.startswith(f"{key!r}\t")]
        if (line := f"{key!r}\t{session}") not in sessions:
            file.write(line + "\n")
            sessions.append(line)
    return sessions.index(line)


# --- the steps ----------------------------------------------------------------------------------


def play(player: Player, step: Table) -> None:
    verb = next((it for it in STEPS if it in step), None)
    if verb is None:
        raise Unplayable(f"no step is called {', '.join(step) or 'nothing'}")
    try:
        STEPS[verb](player, step)
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise Unplayable(f"{verb}: {error!r}") from error


def write(player: Player, step: Table) -> None:
    path = Path(str(step["write"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(step.get("text", "")), encoding="utf-8")


def append(player: Player, step: Table) -> None:
    with Path(str(step["append"])).open("a", encoding="utf-8") as file:
        file.write(str(step.get("text", "")))


def delete(player: Player, step: Table) -> None:
    Path(str(step["delete"])).unlink(missing_ok=True)


def section(player: Player, step: Table) -> None:
    """Put a section of TASK.md in the place of the one with that heading, or at the end."""
    heading = f"## {step['section']}"
    path = Path("TASK.md")
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    new = [heading, *str(step.get("text", "")).splitlines()]
    begin = old.index(heading) if heading in old else len(old)
    after = [n for n in range(begin + 1, len(old)) if old[n].startswith("## ")]
    end = after[0] if after else len(old)
    path.write_text("\n".join([*old[:begin], *new, *old[end:]]) + "\n", encoding="utf-8")


def shell(player: Player, step: Table) -> None:
    say("shell", code=run(("sh", "-c", str(step["shell"]))))


def send(player: Player, step: Table) -> None:
    """Tell Lockgate, as an agent does: by its command."""
    word, _, status = str(step["signal"]).partition(" ")
    checkpoint = ("lockgate", "checkpoint", "--task-id", player.task, "--done")
    commands = {
        "complete": ("lockgate", "task", "complete"),
        "update": ("lockgate", "task", "update", "--status", status),
        "checkpoint": tuple(player.stop_command) or checkpoint,
    }
    say("signal", code=run(commands[word]))


def run(argv: tuple[str, ...]) -> int:
    """Its output goes where ours goes; the answer is its exit code, or minus its signal."""
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    try:
        child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[nothing])
    except OSError:
        return 127
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def speak(player: Player, step: Table) -> None:
    say("say", text=str(step["say"]))


def use(player: Player, step: Table) -> None:
    used = cast("Table", step["usage"])
    player.usd += float(str(used.get("usd", 0)))
    player.tokens += int(str(used.get("tokens", 0)))
    say("usage", usd=player.usd, tokens=player.tokens)


def rest(player: Player, step: Table) -> None:
    time.sleep(float(str(step["sleep"])))


def hang(player: Player, step: Table) -> NoReturn:
    while True:
        signal.pause()


def ignore_term(player: Player, step: Table) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def flood(player: Player, step: Table) -> None:
    left = int(str(step["flood"]))
    while left > 0:
        sys.stdout.write("x" * (min(left, CHUNK) - 1) + "\n")
        left -= CHUNK
    sys.stdout.flush()


def daemon(player: Player, step: Table) -> None:
    """A process that has left its parent and its session, and keeps our output open."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    os.setsid()
    if not os.fork():
        time.sleep(float(str(step["daemon"])))
    os._exit(0)


def crash(player: Player, step: Table) -> NoReturn:
    how = step["crash"]
    if isinstance(how, int):
        os._exit(how)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    number = signal.Signals[f"SIG{how}"]
    if number is not signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    hang(player, step)


def leave(player: Player, step: Table) -> NoReturn:
    say("end")
    sys.exit(int(str(step["exit"])))


def exhaust(player: Player, step: Table) -> NoReturn:
    say("exhausted")
    sys.exit(1)


def limit(player: Player, step: Table) -> NoReturn:
    """Seconds from now; 0 does not say until when."""
    seconds = float(str(step["limit"]))
    say("limit", until=time.time() + seconds if seconds else 0)
    sys.exit(1)


def refuse(player: Player, step: Table) -> NoReturn:
    """As a program whose login is not accepted."""
    say("refused", text=str(step["refused"]))
    sys.exit(1)


STEPS: dict[str, Callable[[Player, Table], None]] = {
    "write": write,
    "append": append,
    "delete": delete,
    "section": section,
    "shell": shell,
    "signal": send,
    "say": speak,
    "usage": use,
    "sleep": rest,
    "hang": hang,
    "ignore_term": ignore_term,
    "flood": flood,
    "daemon": daemon,
    "crash": crash,
    "exit": leave,
    "exhaust": exhaust,
    "limit": limit,
    "refused": refuse,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
