"""PostgreSQL and Redis beside a command: an instance of its own each time, with nothing left."""

import socket
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.sandbox.service_making import Making, make
from lockgate.adapters.sandbox.services import orders, serving
from lockgate.core.config.settings import Service, ServiceKind
from lockgate.errors import Unavailable
from lockgate.ports import Cut
from tests.adapters.gatehouse import NEEDS_BUBBLEWRAP, Gatehouse, a_gatehouse

pytestmark = NEEDS_BUBBLEWRAP
POSTGRES = Service("db", kind=ServiceKind.POSTGRES)
REDIS = Service("cache", kind=ServiceKind.REDIS)
NEEDS_POSTGRES = pytest.mark.skipif(
    bool(serving.missing("postgres")), reason="needs PostgreSQL's programs"
)
NEEDS_REDIS = pytest.mark.skipif(bool(serving.missing("redis")), reason="needs redis-server")


@pytest.fixture
def house(tmp_path: Path) -> Gatehouse:
    return a_gatehouse(tmp_path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a server starts from, made once for all of these tests."""
    target = tmp_path_factory.mktemp("made") / "data"
    make(Making(services=(POSTGRES,), target=target))
    return target


@NEEDS_POSTGRES
@pytest.mark.postgres
def test_a_gate_has_a_database_that_its_variables_lead_to_and_that_is_empty_again(
    house, data
) -> None:
    named = replace(POSTGRES, env=(("PLACE", "$PGHOST:$PGPORT"),))
    asked = 'psql -qtA "$DB_URL" -c "create table t (a int); select 42" && echo "$PLACE"'

    for _ in range(2):
        done = house.attempt(asked, services=(named,), data=data)

        number, place = done.out.split()
        assert (done.exit_code, done.cut, number) == (0, None, "42"), done.why
        assert place.startswith("127.0.0.1:")
    assert house.beside() == set()


@NEEDS_POSTGRES
@pytest.mark.postgres
def test_a_database_lets_nobody_in_who_does_not_know_the_password_of_this_instance(
    house, data
) -> None:
    done = house.attempt('unset PGPASSWORD; psql -w -c "select 1"', services=(POSTGRES,), data=data)

    assert done.exit_code == 2, done.why
    assert "no password supplied" in done.err


@NEEDS_REDIS
def test_a_gate_has_a_redis_of_its_own(house) -> None:
    say = "import os, socket; it = socket.create_connection((os.environ['REDIS_HOST'], "
    say += "int(os.environ['REDIS_PORT']))); it.sendall(b'GET x\\r\\n'); print(it.recv(9))"

    done = house.attempt(f'python3 -c "{say}"; echo "${{REDIS_URL%%:*}}"', services=(REDIS,))

    assert (done.exit_code, done.out) == (0, "b'-NOAUTH A'\nredis\n"), done.why


@NEEDS_POSTGRES
@pytest.mark.postgres
def test_a_database_that_is_killed_in_the_middle_breaks_the_gate_and_blames_no_test(
    house, data
) -> None:
    kills = "pkill -KILL -x postgres; sleep 0.5; exit 1"

    done = house.attempt(kills, services=(POSTGRES,), data=data)

    assert done.cut is Cut.SERVICE
    assert "db was ended by signal 9" in done.why


def test_a_service_that_wants_a_port_that_is_taken_is_told_so(house) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        service = Service("queue", "sleep 60", port=port)

        done = house.bare("true", services=(service,))

    assert done.cut is Cut.SERVICE
    assert f"queue wants port {port}, and another program listens there" in done.why
    assert "Leave out `port`" in done.why


def test_without_a_sandbox_a_service_ends_though_only_its_command_is_killed(
    house, tmp_path
) -> None:
    service = Service(
        "server", f"echo $$ > '{tmp_path}/pid'; exec sleep 86130", f"test -s '{tmp_path}/pid'"
    )

    done = house.bare("kill -KILL $$", services=(service,))

    assert done.exit_code != 0
    until = time.monotonic() + 5
    while _lives(int((tmp_path / "pid").read_text())) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _lives(int((tmp_path / "pid").read_text()))


def test_a_kind_of_service_that_is_not_installed_is_told_with_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(serving, "PROGRAMS", {"redis": ("no-such-redis",)})

    with pytest.raises(Unavailable) as refused:
        orders.must_be_installed((POSTGRES, REDIS))

    assert "cache was not started" in str(refused.value)
    assert "no-such-redis is not installed" in str(refused.value)
    assert "apt-get install redis-server" in refused.value.fix


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
