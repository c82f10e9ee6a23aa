"""Shared fixtures. `REWARDKIT_SHARED` names the folder of real data, outside the repository."""

from __future__ import annotations

import json
import os
import signal
import socket
from importlib import metadata
from ipaddress import ip_address
from pathlib import Path
from threading import current_thread, main_thread

import pytest
from hypothesis import HealthCheck, settings

from rewardkit import registry
from rewardkit.scorers import load
from tests.command import Commands

# A shell starts background jobs with SIGINT ignored, nohup with SIGHUP ignored, and children inherit
# that.
if current_thread() is main_thread():
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

# There is no deadline, because the time of an example depends on the machine. `same` has the same
# examples in every run; `random` tries new ones, and prints how to repeat a failure.
ANY_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", ANY_TIME, derandomize=True, max_examples=25)
settings.register_profile("random", ANY_TIME, max_examples=100, print_blob=True)
settings.load_profile("same")  # --hypothesis-profile=random replaces it


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Use three processes on two cores: a third of the time of a test is a wait for processes."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_collection_modifyitems(items):
    """Mark tests on real data as `full`, for `make test-full`."""
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.full)


@pytest.fixture(scope="module", autouse=True)
def no_network():
    """Fail a test that connects to another machine or looks up its address."""

    def guarded(real, host_of):
        def call(*arguments, **options):
            host = host_of(*arguments)
            if str(host).endswith(".invalid"):  # reserved: such a host never exists
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            if not is_local(host):
                pytest.fail(f"a test uses the network: {host!r}")
            return real(*arguments, **options)

        return call

    def peer(connection, address, *_):
        return address[0] if connection.family in (socket.AF_INET, socket.AF_INET6) else None

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, guarded(getattr(socket.socket, name), peer))
        patch.setattr(socket, "getaddrinfo", guarded(socket.getaddrinfo, lambda host, *_: host))
        yield


def is_local(host):
    """Return whether a host is this machine: empty, its name, or a loopback address."""
    if host is None or host in ("", b"", "localhost", socket.gethostname()):
        return True
    try:
        return ip_address(host.decode() if isinstance(host, bytes) else host).is_loopback
    except ValueError:
        return False


@pytest.fixture
def plugins(monkeypatch):
    """Install entry points of another package, each as (name, value, group)."""

    def clear():
        registry._plugins.cache_clear()
        load._row_scorer.cache_clear()

    def install(*points):
        monkeypatch.delenv("REWARDKIT_PLUGINS", raising=False)
        known = [metadata.EntryPoint(*point) for point in points]
        monkeypatch.setattr(
            metadata, "entry_points", lambda group: [each for each in known if each.group == group]
        )
        clear()

    yield install
    clear()


@pytest.fixture(scope="session")
def cli():
    """Run `rewardkit ARGUMENTS`; see tests/command.py."""
    commands = Commands()
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def shared():
    """The folder of real data and answer cases; tests that need it are skipped without one."""
    folder = os.environ.get("REWARDKIT_SHARED")
    if not folder:
        pytest.skip("REWARDKIT_SHARED is unset: it names the folder of real data and cases")
    return Path(folder)


@pytest.fixture(scope="session")
def gsm8k_responses(request):
    """Pairs (response, gold) of real GSM8K responses; empty without REWARDKIT_SHARED."""
    if not os.environ.get("REWARDKIT_SHARED"):
        return []
    folder = request.getfixturevalue("shared") / "cases"
    lines = [
        line
        for file in sorted(folder.glob("*gsm8k*.jsonl"))
        for line in file.read_text(encoding="utf-8").split("\n")
        if line
    ]
    return [(case["solution_str"], case["ground_truth"]) for case in map(json.loads, lines)]
