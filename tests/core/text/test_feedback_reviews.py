"""The Review that Lockgate writes: its verdict is read as it was meant, whatever was found."""

from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.results import Broken, Failed, Passed, Proof, Waiting
from lockgate.core.text.feedback import rendered
from lockgate.core.text.markdown import sections
from lockgate.core.text.task_file import (
    Verdict,
    extract_review_verdict,
    parse_task_artifacts,
    replace_section,
)

P0, P1, P2, P3 = Priority
PROOF = Proof(ran=("x",), commit="c", tree="t", config_hash="h", sandbox="", seconds=0.0)
LEAK = Finding(P1, "correctness: a leak", Location("a.py", 3), "close it")

nasty = st.lists(
    st.sampled_from(
        [
            *("\n", "\r", "\n\n", "\t", " ", "    ", "\x1b[1m", "\u2028", "x", "PASS", "FAIL"),
            *("# ", "## Review\n", "## Notes\n", "```", "````", "~~~", "> ", "- ", "1. ", "---\n"),
            *("===\n", "<!--", "-->", "<div>", "<pre>", "</pre>", "<![CDATA[", "Verdict: PASS"),
        ]
    ),
    max_size=8,
).map("".join)
findings = st.lists(
    st.builds(
        Finding,
        st.sampled_from(Priority),
        nasty,
        st.none() | st.builds(Location, nasty, st.none() | st.integers(1, 9)),
        st.none() | nasty,
    ),
    max_size=4,
).map(tuple)
results = st.lists(
    st.builds(Passed, nasty, st.just(PROOF), findings)
    | st.builds(Failed, nasty, findings)
    | st.builds(Waiting, nasty, nasty)
    | st.builds(Broken, nasty, nasty),
    max_size=4,
)


def test_a_review_has_its_verdict_alone_and_then_what_each_gate_said() -> None:
    text = rendered(
        Verdict.FAIL,
        [
            Passed("tests", PROOF),
            Passed("lint", PROOF, (Finding(P2, "long"), Finding(P3, "a name"))),
            Failed("code_review", (LEAK,)),
            Failed("types", ()),
            Waiting("human", "Review and\napprove"),
            Broken("bench", "no tool"),
        ],
    )

    assert text == (
        "FAIL\n"
        "\n"
        "> Gate tests passed.\n"
        "\n"
        "> Gate lint passed with 2 findings.\n"
        "\n"
        "> ### P2 Minor\n"
        "> - long\n"
        "\n"
        "> ### P3 Suggestion\n"
        "> - a name\n"
        "\n"
        "> Gate code_review failed with 1 finding.\n"
        "\n"
        "> ### P1 Major\n"
        "> - a.py:3 - correctness: a leak → close it\n"
        "\n"
        "> Gate types failed.\n"
        "\n"
        "> Gate human waits for a human: Review and approve\n"
        "\n"
        "> Gate bench could not judge: no tool\n"
    )


def test_a_review_without_gates_is_its_verdict() -> None:
    assert rendered(Verdict.PASS, []) == "PASS\n"


@given(st.sampled_from(Verdict), results)
def test_the_verdict_that_is_read_is_the_one_that_was_written(verdict, gates) -> None:
    text = rendered(verdict, gates)

    assert text.split("\n", 1)[0] == verdict.upper()
    assert extract_review_verdict(text) is verdict


@given(st.sampled_from(Verdict), results)
def test_nothing_that_a_gate_says_reaches_out_of_its_section(verdict, gates) -> None:
    before = "## Context\n\nwhat was asked\n\n## Review\n\nold\n\n## Notes\n\nmine\n"

    after = replace_section(before, "Review", rendered(verdict, gates))

    assert [it.title for it in sections(after)] == ["Context", "Review", "Notes"]
    assert sections(after)[2].text == "\nmine\n"
    artifacts = parse_task_artifacts(after)
    assert artifacts.verdict is verdict
    assert artifacts.problems == ()
