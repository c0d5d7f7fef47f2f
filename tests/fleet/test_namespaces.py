"""Hosts in namespaces of their own share no file and no process, and can be cut off."""

import os

import pytest

from tests.fleet.site import HUB, Times, must_have_servers, opened, plays

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


def test_hosts_see_no_file_and_no_process_of_each_other_nor_of_the_people(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 0.1)}) as site:
        one, two = site.add("h1"), site.add("h2")
        (one.own / "home" / "secret").write_text("of one\n")

        assert one.run("cat", str(one.own / "home" / "secret"))[1] == "of one\n"
        for path in (one.own, site.people.place, site.repository, site.servers.postgres_socket):
            assert two.run("ls", str(path))[0] != 0, path
        assert two.run("ls", "-A", "/tmp", "/dev/shm")[1].count("\n") < 6  # noqa: S108 - a look
        assert two.run("ls", str(tmp_path))[1].split() == ["h2"]
        assert len([it for it in two.processes() if "ls" not in it]) == 0
        assert os.getpid() not in [int(it.split()[0]) for it in one.processes()]
        assert one.run("cat", "/proc/sys/kernel/random/boot_id") != two.run(
            "cat", "/proc/sys/kernel/random/boot_id"
        )


def test_a_task_is_done_by_a_host_that_has_only_its_wires(tmp_path) -> None:
    must_have_servers()
    with opened(tmp_path, {"a": plays("a", 0.1)}, times=Times(4, 8)) as site:
        (host,) = site.started("h1")
        id = site.people.create("a")
        took = site.until_done(id)

        assert site.on_main() == ["a"], took
        host.network(up=False)
        assert host.run("git", "ls-remote", HUB)[0] != 0
        host.network(up=True)
        assert host.run("git", "ls-remote", HUB)[0] == 0
        host.power_off()
        assert not host.alive()
