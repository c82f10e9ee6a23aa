"""A real `transformers serve` on the CPU, offline, with a tiny random model."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from urllib.request import urlopen

import pytest

NEEDED = ("fastapi", "openai", "transformers.cli.serve", "uvicorn")


def missing_modules():
    """Return the modules that `transformers serve` needs and that are not installed."""

    def is_installed(name):
        try:
            return find_spec(name) is not None
        except ModuleNotFoundError:  # its package is missing
            return False

    return [name for name in NEEDED if not is_installed(name)]


MISSING_MODULES = missing_modules()
needs_transformers_serve = pytest.mark.skipif(
    bool(MISSING_MODULES), reason=f"transformers serve needs {MISSING_MODULES}"
)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(folder, positions):
    """Yield the base URL, the model's name, and a function that counts the answered requests."""
    model, log, port = folder / "model", folder / "log", free_port()
    from rewardkit.launch.rehearsal.hooks.tiny_model import write_model  # imports torch

    write_model(model, positions=positions)
    file = model / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "do_sample": True}))
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model)]
    options = ["--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    with log.open("w") as file:
        process = subprocess.Popen([*command, *options], env=env, stdout=file, stderr=file)
    try:
        wait_for(lambda: healthy(port, process, log), 120)

        def answered_requests():
            return log.read_text().count('POST /v1/chat/completions HTTP/1.1" 200')

        yield f"http://127.0.0.1:{port}/v1", str(model), answered_requests
    finally:
        end(process)


def end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def healthy(port, process, log):
    assert process.poll() is None, log.read_text()[-2000:]
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
