"""Measure the time that the client of `rewardkit eval` adds, and its memory. Prints tables.

    .venv/bin/python benchmarks/eval_client.py            # about ten minutes; --quick: two

The server is a separate process with 256 slots: it works on up to 256 requests at once, and the others
wait. The time of a request is sampled from a log-normal distribution by the request's seed; the answer
is a text of 2,000 characters. The server's own time is the shortest in which 256 slots that are never
idle can do these requests in the order of their arrival. It is compared with the time from the first
request to the last answer by the server's clock, which excludes the start, judging and figures. A bare
loop of 256 sockets, which understands only the HTTP of this server, is measured in the same way.
Memory is that of the whole command: generating, judging and summing up.

A client needs its CPU time at once, so a busy machine spoils the figures. The load is printed. Linux
only.
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
RESPONSE_CHARS = 2_000

#: Standard deviation of the logarithm of a request's seconds: short and long tails.
SHAPES = {"all alike": 0.0, "as usual": 0.5, "a long tail": 1.0}

MAX_TIME_RATIO = 1.05
MAX_MEMORY_RATIO = 1.1


class Slots:
    """A server of 256 slots that records the seconds of requests, the first request and last answer."""

    def __init__(self, mean: float, spread: float) -> None:
        self.mean, self.spread = mean, spread
        self.text = json.dumps("so it is, " * (RESPONSE_CHARS // 10) + "#### 7")
        self.slots = asyncio.Semaphore(SLOTS)
        self.clear()

    def clear(self) -> None:
        self.seconds: list[float] = []
        self.first = self.last = 0.0
        self.active = self.most = 0

    def seconds_of(self, seed: int) -> float:
        """Sample the seconds of a request; the seed is uniform over 31 bits."""
        at = NormalDist().inv_cdf((seed + 0.5) / 2**31)
        return self.mean * exp(self.spread * at - self.spread**2 / 2)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0] or 0)
                body = await reader.readexactly(size)
                answer = self.statistics() if head.startswith(b"GET") else await self.answer(body)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(answer), answer)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def answer(self, body: bytes) -> bytes:
        request = json.loads(body)
        seconds, n = self.seconds_of(request["seed"]), request.get("n", 1)
        self.first = self.first or time.monotonic()
        self.seconds.append(seconds)
        self.active += 1
        self.most = max(self.most, self.active)
        async with self.slots:
            await asyncio.sleep(seconds)
        self.active -= 1
        self.last = time.monotonic()
        message = f'{{"role":"assistant","content":{self.text}}}'
        choice = f'{{"message":{message},"finish_reason":"stop"}}'
        answer = '{"choices":[%s],"usage":{"completion_tokens":%d}}'
        return (answer % (",".join([choice] * n), 500 * n)).encode()

    def statistics(self) -> bytes:
        statistics = {
            "requests": len(self.seconds),
            "took": self.last - self.first,
            "own": schedule(self.seconds),
            "most": self.most,
        }
        self.clear()
        return json.dumps(statistics).encode()


def schedule(seconds: list[float]) -> float:
    """Return when the last request ends if each starts as soon as a slot is free."""
    free, end = [0.0] * SLOTS, 0.0
    for each in seconds:
        end = max(end, last := heapq.heappop(free) + each)
        heapq.heappush(free, last)
    return end


async def serve(mean: float, spread: float) -> None:
    server = await asyncio.start_server(Slots(mean, spread).serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


@contextmanager
def running_server(mean: float, spread: float) -> Iterator[int]:
    command = [sys.executable, __file__, "--serve", str(mean), str(spread)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def server_statistics(port: int) -> dict[str, float]:
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    return json.loads(connection.getresponse().read())


def write_questions(path: Path, count: int) -> None:
    from rewardkit.row import build_row, write_rows

    rows = (
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
        for i in range(count)
    )
    write_rows(rows, path, {}, overwrite=True)


def command(port: int, questions: Path, n: int) -> list[str]:
    server = ["--base-url", f"http://127.0.0.1:{port}/v1", "--model", "M", "-n", str(n)]
    out = ["--seed", "1", "--out", str(questions.with_suffix(".jsonl")), "--overwrite", "--json"]
    return [sys.executable, "-m", "rewardkit", "eval", "run", str(questions), *server, *out]


def bare(port: int, requests: int) -> None:
    """Run the smallest possible client: 256 sockets that each send the next request when free."""
    asyncio.run(_bare(port, requests))


async def _bare(port: int, requests: int) -> None:
    numbers = iter(range(requests))

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            body = b'{"seed": %d}' % (number * 2654435761 % 2**31)
            writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.rpartition(b":")[2]))
        writer.close()

    await asyncio.gather(*(worker() for _ in range(SLOTS)))


def print_added_time(folder: Path, requests: int, mean: float, times: int) -> list[bool]:
    """Print the time that the client adds for each shape, the median of `times` runs."""
    questions = folder / "questions.parquet"
    write_questions(questions, requests // 4)
    print(f"{requests:,} requests of {mean:g} s on average, {SLOTS} at once, median of {times}:\n")
    print("| lengths | server's own s | eval | most at once | bare sockets | client CPU s | met |")
    print("|---|---|---|---|---|---|---|")
    met = []
    for name, spread in SHAPES.items():
        ours, theirs = [], []
        with running_server(mean, spread) as port:
            for _ in range(times):
                cost = run(command(port, questions, 4))
                ours.append({**server_statistics(port), "cpu": cost.cpu})
                bare(port, requests)
                theirs.append(server_statistics(port))
        ratio, sockets = (median(s["took"] / s["own"] for s in side) for side in (ours, theirs))
        whole = all(s["requests"] == requests for s in ours)
        met.append(ratio < MAX_TIME_RATIO and whole)
        own, cpu = (median(s[key] for s in ours) for key in ("own", "cpu"))
        most = max(s["most"] for s in ours)
        print(
            f"| {name} | {own:.1f} | +{ratio - 1:.1%} | {most} | +{sockets - 1:.1%} | {cpu:.1f} "
            f"| {'yes' if met[-1] else 'NO'} |",
            flush=True,
        )
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    return met


def print_memory(folder: Path, sizes: tuple[int, ...]) -> bool:
    """Print the peak memory of the command's largest process, and return whether it is flat.

    Each question gets 4 responses.
    """
    print("| responses | wall s | client CPU s | peak MB |\n|---|---|---|---|")
    peaks = []
    with running_server(0.01, 0.5) as port:
        for size in sizes:
            questions = folder / f"q{size}.parquet"
            write_questions(questions, size // 4)
            cost = run(command(port, questions, 4))
            peaks.append(cost.rss)
            print(f"| {size:,} | {cost.wall:.0f} | {cost.cpu:.0f} | {cost.rss:.0f} |", flush=True)
    return peaks[-1] < MAX_MEMORY_RATIO * peaks[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--serve", nargs=2, type=float, help=argparse.SUPPRESS)
    parser.add_argument("--times", type=int, default=3, help="runs of each shape")
    parser.add_argument(
        "--quick", action="store_true", help="one run of each shape, and at most 20,000 responses"
    )
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(*options.serve))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, met = Path(name), []
        met += print_added_time(folder, 2_000, 1.0, 1 if options.quick else options.times)
        if not options.quick:
            met += print_added_time(folder, 4_000, 4.0, 1)
        flat = print_memory(folder, (10_000, 20_000 if options.quick else 100_000))
    print("\n| target | met |\n|---|---|")
    print(f"| less than 5 % added at {SLOTS} requests at once | {'yes' if all(met) else 'NO'} |")
    print(f"| memory flat, within 10 % | {'yes' if flat else 'NO'} |")


if __name__ == "__main__":
    main()
