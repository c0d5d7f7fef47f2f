"""A connection to Temporal, for code that does not wait in an event loop of its own."""

import asyncio
import os
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as TookTooLong
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import TypeVar

from temporalio.client import Client
from temporalio.service import KeepAliveConfig, RPCError, RPCStatusCode, TLSConfig

from lockgate.core.fleet import Cluster
from lockgate.errors import BadConfig, Unavailable

PATIENCE = 5.0  # seconds for one answer of the server
# One that is silent for 15 s is opened again. Temporal allows a ping every 10 s, and no more.
ALIVE = KeepAliveConfig(interval_millis=12_000, timeout_millis=3_000)
CREDENTIALS = "CREDENTIALS_DIRECTORY"
T = TypeVar("T")


class Connection:
    """A client, and the event loop that all its work is done in, in a thread."""

    def __init__(self, cluster: Cluster, identity: str = "") -> None:
        self._cluster = cluster
        self.shown = f"Temporal at {cluster.address}, namespace {cluster.namespace}"
        tls = _tls(cluster)
        self.events = asyncio.new_event_loop()
        self._thread = Thread(target=self._turn, name="temporal", daemon=True)
        self._thread.start()
        try:
            self.client = self.wait(_connected(cluster, identity, tls), PATIENCE * 2)
        except BaseException as error:
            self.close()
            if isinstance(error, ValueError):  # a key without a certificate
                raise _unfit(str(error)) from error
            raise

    def wait(self, work: Coroutine[object, object, T], seconds: float = PATIENCE) -> T:
        """What it gives; Unavailable where the server does not do it in time."""
        told = asyncio.run_coroutine_threadsafe(work, self.events)
        try:
            return told.result(seconds)
        except (RPCError, RuntimeError, TookTooLong) as error:  # a failed connect is a RuntimeError
            told.cancel()
            why = str(error).partition("\n")[0] or f"no answer in {seconds:g} seconds"
            what, fix = f"{self.shown} did not answer", _fix(error, self._cluster)
            raise Unavailable(what, why=why, fix=fix) from error

    def close(self) -> None:
        self.events.call_soon_threadsafe(self.events.stop)
        self._thread.join(PATIENCE)

    def _turn(self) -> None:
        asyncio.set_event_loop(self.events)
        self.events.run_forever()
        self.events.close()


async def _connected(cluster: Cluster, identity: str, tls: TLSConfig | None) -> Client:
    """Where the namespace is not there, the first call says so, and not the first job."""
    client = await Client.connect(
        cluster.address,
        namespace=cluster.namespace,
        tls=tls or False,
        identity=identity or None,
        connect_timeout=timedelta(seconds=PATIENCE),
        keep_alive_config=ALIVE,
    )
    await client.count_workflows("WorkflowType='Lane'", rpc_timeout=timedelta(seconds=PATIENCE))
    return client


def _fix(error: BaseException, cluster: Cluster) -> str:
    """What to do where the server, or the namespace, is not there."""
    lacks = isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND
    if lacks and "namespace" in str(error).casefold():
        server = f"--address {cluster.address} --namespace {cluster.namespace}"
        make = f"temporal operator namespace create {server}"
        return f"{make}; or set namespace below [temporal] in fleet.toml"
    tls = ", and cert, key and ca where it asks for TLS"
    return f"start it, or set address below [temporal] in fleet.toml{tls}"


def _tls(cluster: Cluster) -> TLSConfig | None:
    if not (cluster.cert or cluster.key or cluster.ca):
        return None
    return TLSConfig(
        server_root_ca_cert=_file(cluster.ca),
        client_cert=_file(cluster.cert),
        client_private_key=_file(cluster.key),
    )


def _file(name: str) -> bytes | None:
    """Below $CREDENTIALS_DIRECTORY systemd puts what LoadCredential= of the unit names."""
    given = os.environ.get(CREDENTIALS, "")
    place = (
        Path(given, *Path(name).parts[1:]) if name.startswith(f"${CREDENTIALS}/") else Path(name)
    )
    try:
        return place.read_bytes() if name else None
    except OSError as error:
        raise _unfit(f"{name} cannot be read: {error.strerror}") from error


def _unfit(why: str) -> BadConfig:
    fix = "see cert, key and ca of [temporal] in fleet.toml"
    return BadConfig("Temporal was not reached", why=why, fix=fix)
