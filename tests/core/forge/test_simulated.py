"""Worlds of people, CI and a late forge: nothing red or unapproved lands, and all ends."""

import pytest

from tests.core.forge.simulated import World


@pytest.mark.parametrize("seed", range(50))
def test_no_world_breaks_a_promise(seed):
    World(seed).run()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50, 550))
def test_no_world_of_many_breaks_a_promise(seed):
    World(seed).run()
