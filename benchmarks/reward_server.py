"""Measure `rewardkit reward-server` under load from the same machine. Prints tables.

    python benchmarks/reward_server.py

Requests are due at fixed times, whether the server keeps up or not. Latency is measured from the time
that a request was due, including the wait for a connection, and from the time it was sent; requests
that have no connection at the end are not sent. Every answer is compared with the expected one; a 429
counts as an answer, and its request is not repeated. CPU is that of the server and its children, and
that of this process, in cores. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Seconds that the slow scorer sleeps, so that two of them give at most 400 answers a second.
SLOW_SECONDS = 0.005
SCORER = f"""
import time
from rewardkit.scorers.base import Score, Status

def score(response, ground_truth, extra_info=None):
    time.sleep({SLOW_SECONDS})
    right = response == ground_truth
    return Score(float(right), right, response, Status.CORRECT if right else Status.WRONG)
"""


def requests(kind: str) -> list[tuple[bytes, bytes]]:
    """Return a thousand different requests, each with the expected body of its answer."""
    pairs = []
    for n in range(1000):
        gold, answer = str(n), str(n if n % 3 else n + 1)
        text = f"Let us see, {n}. " * 20 + f"#### {answer}" if kind == "gsm8k" else answer
        right = gold == answer
        status = "correct" if right else "wrong"
        fields = {"score": float(right), "correct": right, "pred": answer, "status": status}
        body = json.dumps({"response": text, "ground_truth": gold}).encode()
        head = f"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        expected = json.dumps({**fields, "error": ""}, separators=(",", ":")).encode()
        pairs.append((head.encode() + body, expected))
    return pairs


class Connection(asyncio.Protocol):
    """A connection with one request at a time; it passes each answer to the client."""

    def __init__(self, client: Client) -> None:
        self.client, self.buffer, self.number = client, b"", 0
        self.due = self.sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def send(self, number: int, due: float) -> None:
        self.number, self.due, self.sent = number, due, time.perf_counter()
        self.transport.write(self.client.requests[number % 1000][0])

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        if len(body) >= length:
            self.buffer = b""
            self.client.record_answer(self, int(head[9:12]), body, b"retry-after:" in head)

    def connection_lost(self, _: Exception | None) -> None:
        self.client.record_loss()


class Client:
    """An open loop: requests wait here until a connection is free."""

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self.requests = pairs
        self.free: deque[Connection] = deque()
        self.waiting: deque[tuple[int, float]] = deque()
        self.statuses: Counter[int] = Counter()
        self.latencies: list[tuple[float, float]] = []
        self.due_count = self.sent = self.wrong = self.broken = 0
        self.open = True
        self.done: asyncio.Future[None] | None = None

    def send(self, due: float) -> None:
        self.due_count += 1
        if self.free:
            self.assign(self.free.popleft(), self.due_count, due)
        else:
            self.waiting.append((self.due_count, due))

    def assign(self, connection: Connection, number: int, due: float) -> None:
        self.sent += 1
        connection.send(number, due)

    def record_answer(
        self, connection: Connection, status: int, body: bytes, has_retry_after: bool
    ) -> None:
        self.statuses[status] += 1
        if status == 200:
            now = time.perf_counter()
            self.latencies.append((now - connection.due, now - connection.sent))
            self.wrong += body != self.requests[connection.number % 1000][1]
        elif status != 429 or not has_retry_after:
            self.wrong += 1
        self.check()
        if self.waiting:
            self.assign(connection, *self.waiting.popleft())
        else:
            self.free.append(connection)

    def all_answered(self) -> asyncio.Future[None]:
        """Stop sending, and wait for the answers to sent requests."""
        self.waiting.clear()
        self.done = asyncio.get_running_loop().create_future()
        self.check()
        return self.done

    def check(self) -> None:
        if self.done and not self.done.done() and self.statuses.total() >= self.sent:
            self.done.set_result(None)

    def record_loss(self) -> None:
        self.broken += self.open


async def load(port: int, kind: str, rate: float, seconds: float, connections: int) -> Client:
    """Send `rate` requests per second for `seconds`, and wait for the answers."""
    client, loop = Client(requests(kind)), asyncio.get_running_loop()
    for _ in range(connections):
        _, connection = await loop.create_connection(lambda: Connection(client), "127.0.0.1", port)
        client.free.append(connection)
    started, total = time.perf_counter(), int(rate * seconds)
    while client.due_count < total:
        due = min(total, int((time.perf_counter() - started) * rate) + 1)
        while client.due_count < due:
            client.send(started + client.due_count / rate)
        await asyncio.sleep(0.001)
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(client.all_answered(), 60)
    client.open = False
    for connection in client.free:
        connection.transport.close()
    return client


@contextmanager
def server(*options: str) -> Iterator[tuple[int, int]]:
    """Run a server; yields its process id and port."""
    command = [sys.executable, "-m", "rewardkit", "reward-server", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.pid, int(re.search(r":(\d+) ", process.stdout.readline())[1])
        finally:
            process.terminate()
            if process.wait(60) != 143:
                sys.exit(f"the server ended with {process.returncode}, not 143")


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process and of its living children."""
    tick, total = os.sysconf("SC_CLK_TCK"), 0.0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(entry.parent.name) == pid or int(fields[1]) == pid:
            total += (int(fields[11]) + int(fields[12])) / tick
    return total


def own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run(name: str, options: list[str], kind: str, rate: float, seconds: float, n: int) -> float:
    """Print a row of the table, and return the answers with status 200 per second."""
    import uvloop

    with server(*options) as (pid, port):
        before, own, started = cpu_of(pid), own_cpu(), time.perf_counter()
        client = uvloop.run(load(port, kind, rate, seconds, n))
        wall = time.perf_counter() - started
        theirs, ours = cpu_of(pid) - before, own_cpu() - own
    ok, full, total = client.statuses[200], client.statuses[429], client.statuses.total()
    due, sent = (quantiles([pair[i] for pair in client.latencies]) for i in (0, 1))
    print(
        f"| {name} | {n:,} | {total / wall:,.0f} | {ok / wall:,.0f} | {full:,} "
        f"| {client.sent - total} | {client.wrong} | {due} | {sent} "
        f"| {theirs / wall:.0%} / {ours / wall:.0%} | {1e6 * theirs / total:.0f} "
        f"| {os.getloadavg()[0]:.1f} |",
        flush=True,
    )
    if client.sent != total or client.wrong or client.broken:
        print(f"NO: {client.statuses}, {client.broken} connections broken", file=sys.stderr)
    return ok / wall


def quantiles(seconds: list[float]) -> str:
    """The median and the 99th percentile, in milliseconds."""
    ordered = sorted(seconds) or [0.0]
    return " / ".join(f"{1000 * ordered[int(len(ordered) * q)]:,.1f}" for q in (0.5, 0.99))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of each run")
    seconds = parser.parse_args().seconds
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    print(
        "| what | connections | answered/s | scored/s | 429 | lost | wrong "
        "| p50 / p99 ms since due | since sent | CPU server / generator | us an answer | load |\n"
        f"|{'---|' * 12}"
    )
    run("gsm8k, 1,000/s", ["gsm8k"], "gsm8k", 1000, seconds, 64)
    most = run("gsm8k, as many as it can", ["gsm8k"], "gsm8k", 10_000, seconds, 64)
    overload = run("gsm8k, 10,000/s, 1,024 may wait", ["gsm8k"], "gsm8k", 10_000, seconds, 2000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "slow.py"
        file.write_text(SCORER)
        slow = [f"{file}:score", "--jobs", "2"]
        base = run("a scorer of 5 ms, 2 jobs, 350/s", slow, "slow", 350, seconds, 64)
        slow_overload = run("the same, 3,500/s, 1,024 may wait", slow, "slow", 3500, seconds, 2000)
    print(
        f"\nkept under overload: gsm8k {overload / most:.0%} of its most, slow {slow_overload / base:.0%}"
    )


if __name__ == "__main__":
    main()
