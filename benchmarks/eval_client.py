"""What the client of `rewardkit eval` adds to a server's own time, and its memory. Prints tables.

    .venv/bin/python benchmarks/eval_client.py            # about ten minutes; --quick: two

The server is a process of its own. It answers as one with 256 slots would: up to 256 requests at
once, the others wait their turn, each takes its own time, drawn from a log-normal distribution by
the request's seed, and is answered with a text of 2,000 characters. Its own time is the shortest in
which 256 slots that never stand idle do these requests in the order in which they came. What is
compared with it is the time from the first request that comes to the last answer that goes, by the
server's clock: start, judging and figures are not in it. Beside it is what a bare loop of 256
sockets takes, which knows no HTTP beyond what this server says. Memory is that of the whole command:
responses generated, judged and summed up.

A client needs its CPU at once: on a machine that others keep busy the figures are of the machine.
The load is printed. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from math import exp
from pathlib import Path
from statistics import NormalDist, median

from measure import run

SLOTS = 256
LENGTH = 2_000

#: Mean seconds of a request, and the spread of its logarithm: short and long tails.
SHAPES = {"all alike": 0.0, "as usual": 0.5, "a long tail": 1.0}

MOST = 1.05
MEMORY = 1.1


class Slots:
    """A server of 256 slots, and what it saw: seconds asked of it, first request, last answer."""

    def __init__(self, mean: float, spread: float) -> None:
        self.mean, self.spread = mean, spread
        self.text = json.dumps("so it is, " * (LENGTH // 10) + "#### 7")
        self.room = asyncio.Semaphore(SLOTS)
        self.clear()

    def clear(self) -> None:
        self.seconds: list[float] = []
        self.first = self.last = 0.0
        self.active = self.most = 0

    def takes(self, seed: int) -> float:
        """Log-normal with this mean; the seed is 31 even bits."""
        at = NormalDist().inv_cdf((seed + 0.5) / 2**31)
        return self.mean * exp(self.spread * at - self.spread**2 / 2)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0] or 0)
                body = await reader.readexactly(size)
                said = self.told() if head.startswith(b"GET") else await self.answer(body)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(said), said)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def answer(self, body: bytes) -> bytes:
        asked = json.loads(body)
        seconds, n = self.takes(asked["seed"]), asked.get("n", 1)
        self.first = self.first or time.monotonic()
        self.seconds.append(seconds)
        self.active += 1
        self.most = max(self.most, self.active)
        async with self.room:
            await asyncio.sleep(seconds)
        self.active -= 1
        self.last = time.monotonic()
        message = f'{{"role":"assistant","content":{self.text}}}'
        choice = f'{{"message":{message},"finish_reason":"stop"}}'
        said = '{"choices":[%s],"usage":{"completion_tokens":%d}}'
        return (said % (",".join([choice] * n), 500 * n)).encode()

    def told(self) -> bytes:
        took = {
            "requests": len(self.seconds),
            "took": self.last - self.first,
            "own": schedule(self.seconds),
            "most": self.most,
        }
        self.clear()
        return json.dumps(took).encode()


def schedule(seconds: list[float]) -> float:
    """When the last of these ends, each begun as soon as one of the slots is free."""
    free, end = [0.0] * SLOTS, 0.0
    for each in seconds:
        end = max(end, ends := heapq.heappop(free) + each)
        heapq.heappush(free, ends)
    return end


async def serve(mean: float, spread: float) -> None:
    server = await asyncio.start_server(Slots(mean, spread).serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


@contextmanager
def serving(mean: float, spread: float) -> Iterator[int]:
    command = [sys.executable, __file__, "--serve", str(mean), str(spread)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def saw(port: int) -> dict[str, float]:
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    return json.loads(connection.getresponse().read())


def write_questions(path: Path, rows: int) -> None:
    from rewardkit.row import build_row, write_rows

    made = (
        build_row(
            data_source="openai/gsm8k",
            prompt=[{"role": "user", "content": f"Question {i}: how much is it? " + "word " * 60}],
            ability="math",
            ground_truth="7",
            index=i,
            split="test",
            source_id=f"q{i}",
            question=f"Question {i}: how much is it?",
            answer="",
            scorer="gsm8k",
        )
        for i in range(rows)
    )
    write_rows(made, path, {}, overwrite=True)


def command(port: int, questions: Path, n: int) -> list[str]:
    asked = ["--base-url", f"http://127.0.0.1:{port}/v1", "--model", "M", "-n", str(n)]
    out = ["--seed", "1", "--out", str(questions.with_suffix(".jsonl")), "--overwrite", "--json"]
    return [sys.executable, "-m", "rewardkit", "eval", str(questions), *asked, *out]


def bare(port: int, requests: int) -> None:
    """The least a client can do: 256 sockets, each with the next request as soon as it is free."""
    asyncio.run(_bare(port, requests))


async def _bare(port: int, requests: int) -> None:
    left = iter(range(requests))

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in left:
            body = b'{"seed": %d}' % (number * 2654435761 % 2**31)
            writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.rpartition(b":")[2]))
        writer.close()

    await asyncio.gather(*(worker() for _ in range(SLOTS)))


def added(folder: Path, requests: int, mean: float, times: int) -> list[bool]:
    """What the client adds, for each shape; the median of so many runs."""
    questions = folder / "questions.parquet"
    write_questions(questions, requests // 4)
    print(f"{requests:,} requests of {mean:g} s on average, {SLOTS} at once, median of {times}:\n")
    print("| lengths | server's own s | eval | most at once | bare sockets | client CPU s | met |")
    print("|---|---|---|---|---|---|---|")
    met = []
    for name, spread in SHAPES.items():
        ours, theirs = [], []
        with serving(mean, spread) as port:
            for _ in range(times):
                cost = run(command(port, questions, 4))
                ours.append({**saw(port), "cpu": cost.cpu})
                bare(port, requests)
                theirs.append(saw(port))
        ratio, sockets = (median(s["took"] / s["own"] for s in side) for side in (ours, theirs))
        whole = all(s["requests"] == requests for s in ours)
        met.append(ratio < MOST and whole)
        own, cpu = (median(s[key] for s in ours) for key in ("own", "cpu"))
        most = max(s["most"] for s in ours)
        print(
            f"| {name} | {own:.1f} | +{ratio - 1:.1%} | {most} | +{sockets - 1:.1%} | {cpu:.1f} "
            f"| {'yes' if met[-1] else 'NO'} |",
            flush=True,
        )
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    return met


def memory(folder: Path, sizes: tuple[int, ...]) -> bool:
    """Peak memory of the largest process of the whole command; 4 responses to each question."""
    print("| responses | wall s | client CPU s | peak MB |\n|---|---|---|---|")
    peaks = []
    with serving(0.01, 0.5) as port:
        for size in sizes:
            questions = folder / f"q{size}.parquet"
            write_questions(questions, size // 4)
            cost = run([*command(port, questions, 4), "--per-request", "4"])
            peaks.append(cost.rss)
            print(f"| {size:,} | {cost.wall:.0f} | {cost.cpu:.0f} | {cost.rss:.0f} |", flush=True)
    return peaks[-1] < MEMORY * peaks[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--serve", nargs=2, type=float, help=argparse.SUPPRESS)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one short run, 20,000 responses")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(*options.serve))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, met = Path(name), []
        met += added(folder, 2_000, 1.0, 1 if options.quick else options.times)
        if not options.quick:
            met += added(folder, 4_000, 4.0, 1)
        flat = memory(folder, (10_000, 20_000 if options.quick else 100_000))
    print("\n| target | met |\n|---|---|")
    print(f"| less than 5 % added at {SLOTS} requests at once | {'yes' if all(met) else 'NO'} |")
    print(f"| memory flat, within 10 % | {'yes' if flat else 'NO'} |")


if __name__ == "__main__":
    main()
