"""The documents beside the modules say what the code does."""

import json
import re
from pathlib import Path

import pytest

from lockgate.core.lifecycle import binary_gate, gate_orchestrator
from lockgate.core.lifecycle.binary_gate import evaluate
from lockgate.core.lifecycle.gate_orchestrator import Advance, Complete, Escalate
from lockgate.core.model.escalation import ESCALATION_THRESHOLD
from lockgate.core.model.limits import MAX_CONSECUTIVE_FAILURES
from lockgate.core.model.retry import (
    RETRYABLE,
    TRANSIENT_EXITS,
    RetryAfter,
    RetryOptions,
    ToolResult,
    after_attempt,
)
from lockgate.core.model.task import Status

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src/lockgate/core"
SERVICES = ROOT / "src/lockgate/services"


def text(path: Path) -> str:
    """The document as running text: line breaks do not count."""
    return " ".join(path.read_text(encoding="utf-8").split())


def section(path: Path, heading: str) -> str:
    found = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)",
        path.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"{path.name} has no section {heading!r}"
    return " ".join(found[1].split())


def as_written(result: dict[str, object]) -> str:
    """The JSON of a result as far as it does not differ from case to case."""
    same = {key: value for key, value in result.items() if key not in {"exitCode", "nextNodeId"}}
    return json.dumps(same).removesuffix("}")


@pytest.mark.req("R27")
def test_the_gates_doc_has_the_rule_the_limit_and_both_events() -> None:
    rule = section(CORE / "binary_gate.agent.md", "The rule")
    moves = section(CORE / "binary_gate.agent.md", "Moves")
    events = section(CORE / "binary_gate.agent.md", "Where to look")

    assert "| `0` | pass" in rule
    assert "| any other number | fail" in rule
    assert "| none (`None`, null): killed, or out of time | fail" in rule
    for code in (0, 1, None):
        assert as_written(binary_gate.as_json(evaluate(code))) in rule
    assert f"`max_consecutive_failures` is {MAX_CONSECUTIVE_FAILURES} by default" in moves
    assert "`GATE_FAILED`" in events
    assert "`ESCALATION_TRIGGERED`" in events


@pytest.mark.req("R28")
def test_the_gates_doc_draws_every_move() -> None:
    source = (CORE / "binary_gate.agent.md").read_text(encoding="utf-8")
    diagram = source.split("```mermaid\nstateDiagram-v2\n")[1].split("```")[0]

    arrows = {
        tuple(line.split(":")[0].strip().split(" --> "))
        for line in diagram.splitlines()
        if "-->" in line
    }

    assert arrows >= {
        ("RUNNING", "GATE_PASS"),
        ("GATE_PASS", "NEXT_NODE"),
        ("RUNNING", "GATE_FAIL"),
        ("GATE_FAIL", "RETRY"),
        ("GATE_FAIL", "ESCALATION"),
    }


@pytest.mark.req("R29")
def test_the_architecture_page_has_the_binary_gate_protocol() -> None:
    protocol = section(ROOT / "docs/architecture/sandbox.md", "Binary gate protocol")

    assert "`evaluate(exit_code)`: 0 passes; any other code fails; no code" in protocol
    assert "`BinaryGateOrchestrator.transition(node, result)`" in protocol
    for result in (Advance("green"), Complete(), Escalate()):
        assert as_written(gate_orchestrator.as_json(result)) in protocol
    assert f"({MAX_CONSECUTIVE_FAILURES} in a row)" in protocol
    assert "`USER_ESCALATION`" in protocol


@pytest.mark.req("R30")
def test_the_index_has_both_gates_and_names_files_that_are_there() -> None:
    index = (CORE / "index.agent.md").read_text(encoding="utf-8")

    files = re.findall(r"\| `([\w/]+\.py)` \|", index)
    links = re.findall(r"\]\(([\w.]+)\)", index)

    assert "| `BinaryGate` | `lifecycle/binary_gate.py` |" in index
    assert "| `BinaryGateOrchestrator` | `lifecycle/gate_orchestrator.py` |" in index
    assert [it for it in [*files, *links] if not (CORE / it).is_file()] == []


@pytest.mark.req("R55")
def test_the_retry_doc_has_phases_attempts_waits_classes_and_the_detector() -> None:
    path = CORE / "retry_protocol.agent.md"
    options = RetryOptions()
    trigger = section(path, "When a call is tried again")
    waits = section(path, "Backoff schedule")
    classes = section(path, "Transient or persistent")
    entropy = section(path, "EntropyDetector")

    assert {phase for phase in RETRYABLE if phase in trigger.split(" In RED")[0]} == RETRYABLE
    assert f"At most {options.max_attempts} attempts" in trigger
    for attempt in range(options.max_attempts - 1):
        wait = after_attempt(min(RETRYABLE), attempt, ToolResult(1), options)
        assert isinstance(wait, RetryAfter)
        assert f"| {attempt + 1} | {wait.delay_ms:.0f} ms |" in waits
    transient = classes.split("`TransientError`")[0]
    assert all(str(code) in transient for code in TRANSIENT_EXITS)
    assert "`PersistentError`" in classes
    assert "last failure persistent | called once, then the error is raised" in entropy
    assert "last failure transient | not called" in entropy


@pytest.mark.req("R56")
def test_the_sandbox_doc_points_to_the_retry_protocol_and_its_place_in_the_proxy() -> None:
    doc = text(CORE / "sandbox.agent.md")

    assert "[retry protocol](retry_protocol.agent.md)" in doc
    assert "`ToolProxy` is the only way for a tool call to reach the sandbox" in doc
    assert doc.index("ToolProxy.call") < doc.index("SandboxRetryProtocol.execute_with_retry")


@pytest.mark.req("R197")
def test_the_guards_doc_has_threshold_paused_state_and_resume() -> None:
    path = CORE / "escalation_guard.agent.md"

    assert f"`ESCALATION_THRESHOLD` is {ESCALATION_THRESHOLD}" in section(path, "Threshold")
    paused = section(path, "The paused state")
    assert f"`{Status.PAUSED_FOR_INTERVENTION.name}`" in paused
    assert f"`{Status.PAUSED_FOR_INTERVENTION}`" in paused
    assert "The user sees it" in paused
    resuming = section(path, "Resuming")
    assert resuming.index("commits the row") < resuming.index("resets the guard")
    assert "`lockgate resume ID`" in resuming


@pytest.mark.req("R198")
def test_the_runners_doc_refers_to_the_guard_and_describes_the_event() -> None:
    path = SERVICES / "task_runner.agent.md"

    assert "[the guard](../core/escalation_guard.agent.md)" in text(path)
    assert "`guard.load(task_id, failed_attempts)`" in section(path, "A turn")
    event = section(path, "The `escalation` event")
    assert f'"attemptCount": {ESCALATION_THRESHOLD}' in event
    assert f'"state": "{Status.PAUSED_FOR_INTERVENTION.name}"' in event
    assert '"taskId": ' in event
    resume = section(path, "`resume(task_id)`")
    assert "Commits the row first" in resume
    assert "then resets the guard" in resume
