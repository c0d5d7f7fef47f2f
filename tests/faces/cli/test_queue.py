"""`lockgate queue`: the merge train on the command line."""

import json
from xml.etree import ElementTree as ET

import pytest

from lockgate.faces.plot import Series, line_plot
from lockgate.services.train.simulator import chain_throughput

SVG = "{http://www.w3.org/2000/svg}"


def test_a_simulation_prints_the_train_beside_the_chain_and_the_serial_queue(plain):
    said = plain.did("queue", "simulate", "--changes", "60", "--window", "4")

    rows = [line.split("  ")[0] for line in said.splitlines()]
    assert rows[1:4] == ["the train", "chain formula", "serial queue"]
    assert " landed and " in said
    assert "broken" not in said


def test_a_simulation_is_the_same_for_the_same_seed_and_another_for_another(plain):
    asked = ("queue", "simulate", "--changes", "60", "--failure-rate", "0.3", "--json", "--seed")

    one, same, other = (json.loads(plain.did(*asked, seed)) for seed in ("1", "1", "2"))

    assert one == same
    assert one != other
    assert one["broken_promises"] == []
    assert one["landed"] + one["dropped"] >= 60
    assert one["chain"] == pytest.approx(chain_throughput(0.3, 4))


def test_a_simulation_needs_no_project_and_opens_no_database(plain, tmp_path):
    plain.repo = tmp_path

    answer = plain.program("queue", "simulate", "--changes", "5", "--early", "--batch", "2")

    assert (answer.code, answer.err) == (0, "")
    assert not (plain.home / "lockgate.db").exists()


def test_a_simulation_draws_itself(plain, tmp_path):
    where = tmp_path / "train.svg"

    plain.did("queue", "simulate", "--changes", "40", "--svg", str(where))

    drawn = ET.parse(where).getroot()  # noqa: S314 - our own
    assert len(drawn.findall(f".//{SVG}polyline")) == 3
    words = [it.text for it in drawn.iter(f"{SVG}text")]
    assert {"the train", "chain formula", "serial queue", "time in T"} <= set(words)


def test_a_plot_that_cannot_be_written_is_refused(plain, tmp_path):
    where = tmp_path / "no" / "train.svg"

    answer = plain.run("queue", "simulate", "--changes", "4", "--svg", str(where))

    assert answer.code == 1
    assert answer.err.startswith("the plot was not written: ")
    assert "name a file that can be written" in answer.err


@pytest.mark.parametrize(
    "asked",
    [
        ("--failure-rate", "1"),
        ("--failure-rate", "-0.1"),
        ("--failure-rate", "nan"),
        ("--window", "0"),
        ("--batch", "65"),
        ("--changes", "0"),
        ("--seed", "x"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_refused(plain, asked):
    answer = plain.run("queue", "simulate", *asked)

    assert answer.code == 2
    assert "lockgate queue simulate --help" in answer.err


def test_a_plot_of_nothing_is_a_plot():
    drawn = ET.fromstring(line_plot(("a < b", "x"), [Series("none", [])]))  # noqa: S314 - our own

    assert drawn.findtext(f"{SVG}title") == "a < b"
