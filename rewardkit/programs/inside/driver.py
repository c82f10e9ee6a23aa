"""One job on a server that runs a text of Python, such as SandboxFusion: this file, and a call of `main`.

It brings the modules of this folder along, so that a program is confined there as it is here, and has the
same limits; it gets no expected output. What it writes is only data for the grader: a program that is
not confined could forge it, but not know the outputs.
"""

import json
import os
import resource
import sys
import tempfile
import zlib
from base64 import b64decode, b64encode
from pathlib import Path
from types import ModuleType
from typing import Any

#: The file in the folder of the driver that has the results, for servers that return files.
RESULTS = "rewardkit-results"
#: Bytes of results that are printed too. SandboxFusion takes 130,000, and waits for a time limit if it
#: is more, because it does not read while the program runs.
MAX_PRINT = 100_000

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
_STACK_BYTES = 1 << 26


def main(payload: str) -> None:
    """Run the tests of a payload, and write the report and the output of each."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Start again, without the environment of the server.
        limit = resource.getrlimit(resource.RLIMIT_STACK)[1]
        stack = _STACK_BYTES if limit == resource.RLIM_INFINITY else min(_STACK_BYTES, limit)
        resource.setrlimit(resource.RLIMIT_STACK, (stack, limit))
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        command = [sys.executable, "-s", "-X", "utf8", *sys.argv]
        os.execve(sys.executable, command, {**_ENVIRONMENT, **threads})
    data = json.loads(zlib.decompress(b64decode(payload)))
    for name, source in data["modules"].items():
        module = sys.modules[name] = ModuleType(name)
        exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    with Path(RESULTS).open("wb") as file:  # a job may not open it later
        file.write(content := zlib.compress(_results(data)))
    if len(text := b64encode(content)) <= MAX_PRINT:
        sys.stdout.write(text.decode() + "\n")
    sys.stdout.flush()
    os._exit(0)


def _results(data: dict[str, Any]) -> bytes:
    """Return a line of JSON with the level of the confinement and the reports, and then the outputs."""
    jail: Any = sys.modules["jail"]
    server: Any = sys.modules["server"]
    packages = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    readable = [sys.base_prefix, sys.prefix, *packages]
    root = tempfile.mkdtemp(dir=Path.cwd())  # which the server removes
    settings = {"folder": root, "landlock": True, "readable": readable}
    server.prepare()
    host = server.Server(settings)
    if not host.landlock:
        jail.leave_user()
    if host.failure():  # a kernel or an emulator that cannot confine: the server has to
        jail._column, host.landlock = -1, 0
    level = ["seccomp"] * jail.has_seccomp() + ["landlock"] * bool(host.landlock)
    jail.adopt_orphans()
    quiet = os.pipe()
    folder = Path(host.root, "job")
    folder.mkdir()
    jail.confine_job()
    job = server.Job(host, quiet[0], str(folder), data["program"], data["source"])
    reports, outputs, left, room = [], [], data["total_seconds"], data["total_bytes"]
    for test in data["tests"]:
        seconds = min(test["cpu_seconds"], max(left, 0.1))
        request = {**test, "cpu_seconds": seconds, "idle_seconds": seconds + data["idle_seconds"]}
        report, output = job.run(request, test["body"].encode("utf-8", "surrogatepass"))
        left, room = left - report["cpu_seconds"], room - len(output)
        if room < 0:
            report["status"], output = "output", b""
        reports.append({**report, "size": len(output)})
        outputs.append(output)
        is_last = report["status"] in ("cpu", "idle", "sandbox") or left <= 0 or room < 0
        if is_last or (data["stop"] and report["status"] != "ok"):
            break
    return b"\n".join([json.dumps(["+".join(level), reports]).encode(), b"".join(outputs)])
