"""The agents that share this machine's network run only where that leads nowhere."""

import socket

import pytest


@pytest.fixture(scope="session")
def no_way_out() -> None:
    """The sandbox of a session has the network of whoever started it; see `make test-agents`."""
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if others:
        pytest.skip(f"needs root: without it `make test-agents` leaves the network {others[0]}")
