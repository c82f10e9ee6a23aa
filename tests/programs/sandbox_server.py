"""A stand-in for SandboxFusion on loopback: it runs code as the source of its `run_command_bare` does.

with serving() as server:
    server.always = run_code
    server.faults = {0: "500"}        # see tests/judging/faulty_server.py
"""

from __future__ import annotations

import base64
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: By language: the name of the file, the compiler and the command.
COMMANDS = {
    "python": ("main.py", None, [sys.executable, "main.py"]),
    "cpp": ("main.cpp", ["g++", "-o", "test", "main.cpp"], ["./test"]),
    "nodejs": ("main.js", None, ["node", "main.js"]),
}


def run_code(handler, body):
    """Answer a request as SandboxFusion does; a fault for `JudgeServer`."""
    with tempfile.TemporaryDirectory() as folder:
        name, compiler, command = COMMANDS[body["language"]]
        Path(folder, name).write_text(body["code"], "utf-8")
        compilation = compiler and _run(compiler, folder, body.get("compile_timeout", 10), "")
        result = None
        if not compilation or compilation["return_code"] == 0:
            result = _run(command, folder, body.get("run_timeout", 10), body.get("stdin") or "")
        codes = [each["return_code"] for each in (compilation, result) if each]
        files = {
            path: base64.b64encode(Path(folder, path).read_bytes()).decode()
            for path in body.get("fetch_files", [])
            if Path(folder, path).is_file()
        }
    status = "Failed" if any(codes) or None in codes else "Success"
    reply = {"status": status, "message": "", "executor_pod_name": None, "files": files}
    handler.say(200, {**reply, "compile_result": compilation, "run_result": result})


def _run(command, folder, seconds, text):
    start = time.monotonic()
    with tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        process = subprocess.Popen(
            command, cwd=folder, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    fcntl.fcntl(process.stdout, 1031, 1 << 17)  # F_SETPIPE_SZ: it reads nothing while it waits
    status = "Finished"
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        status = "TimeLimitExceeded"
        process.kill()
        process.wait()
    os.set_blocking(process.stdout.fileno(), False)
    os.set_blocking(process.stderr.fileno(), False)
    with process.stdout, process.stderr:
        texts = [(each.read() or b"").decode() for each in (process.stdout, process.stderr)]
    return {
        "status": status,
        "execution_time": time.monotonic() - start,
        "return_code": process.returncode if status == "Finished" else None,
        "stdout": texts[0],
        "stderr": texts[1],
    }
