"""The agents that share this machine's network run only where that leads nowhere."""

import socket

import pytest


@pytest.fixture(scope="session")
def no_way_out() -> None:
    """The sandbox of a session has the network of whoever started it; see `make test-agents`."""
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if others:
        pytest.skip(f"needs a network of loopback alone: here is {others[0]}; run it as root")
