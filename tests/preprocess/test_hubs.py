"""Downloads, by the hubs' own clients, from a server on this machine that speaks their API."""

import hashlib
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit.preprocess.source import SAMPLES
from rewardkit.row import read_rows

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILE = "main/train-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def parquet_bytes(tmp_path_factory):
    lines = (SAMPLES / "gsm8k/train.jsonl").read_text(encoding="utf-8").splitlines()
    path = tmp_path_factory.mktemp("hub") / "train.parquet"
    pq.write_table(pa.Table.from_pylist(list(map(json.loads, lines))), path)
    return path.read_bytes()


@pytest.fixture
def hub(parquet_bytes):
    """A hub with openai/gsm8k and its ModelScope mirror: (address, paths asked for)."""
    requests = []
    digest = hashlib.sha256(parquet_bytes).hexdigest()
    size = len(parquet_bytes)
    entry = {"Path": FILE, "Name": FILE, "Type": "blob", "Size": size, "Sha256": digest}
    entry |= {"Revision": COMMIT, "IsLFS": False, "CommittedDate": 0}
    info = {"id": "openai/gsm8k", "sha": COMMIT, "siblings": [{"rfilename": FILE}]}
    info |= {"private": False, "gated": False, "disabled": False, "tags": []}
    fine = {"Code": 200, "Success": True, "Message": ""}
    #: Answers by a part of the path; the first part that fits decides.
    answers = {
        "/repo/tree": fine | {"Data": {"Files": [entry], "TotalCount": 1}},
        "/tree/": [{"type": "file", "path": FILE, "size": size, "oid": digest[:40]}],
        "/api/datasets/openai/gsm8k": info | {"downloads": 0, "likes": 0},
        "/api/v1/datasets/AI-ModelScope/gsm8k": fine | {"Data": {"Id": 1, "Name": "gsm8k"}},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlparse(self.path)
            requests.append(unquote(url.path))
            if f"/resolve/{COMMIT}/" in url.path or "FilePath" in parse_qs(url.query):
                self.answer(parquet_bytes, "application/octet-stream")
            elif part := next((part for part in answers if part in url.path), ""):
                self.answer(json.dumps(answers[part]).encode())
            else:
                self.send_error(404)

        def do_HEAD(self):
            self.do_GET()

        def answer(self, body, kind="application/json"):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{digest}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    server.server_close()
    thread.join()


def prep(cli, tmp_path, *arguments, **environment):
    env = {k: v for k, v in os.environ.items() if k != "HF_HUB_OFFLINE"} | {
        "HF_HOME": str(tmp_path / "hf"),
        "MODELSCOPE_CACHE": str(tmp_path / "ms"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        **environment,
    }
    return cli("prep", "gsm8k", "--out", "o.parquet", "--json", *arguments, cwd=tmp_path, env=env)


@pytest.mark.full
def test_hf_endpoint_is_honoured_and_the_download_is_cached(cli, hub, tmp_path):
    address, requests = hub
    done = prep(cli, tmp_path, HF_ENDPOINT=address)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["splits"][0]["origin"] == "huggingface"
    assert len(list(read_rows(tmp_path / "o.parquet"))) == 64
    assert any(FILE in path for path in requests)
    again = prep(cli, tmp_path, "--overwrite", HF_ENDPOINT="http://127.0.0.1:9")
    assert json.loads(again.stdout)["splits"][0]["origin"] == "cache"


def test_hub_modelscope_downloads_from_modelscope(cli, hub, tmp_path):
    pytest.importorskip("modelscope", reason="modelscope is not installed: pip install modelscope")
    address, requests = hub
    done = prep(
        cli, tmp_path, "--hub", "modelscope", MODELSCOPE_ENDPOINT=address, MODELSCOPE_DOMAIN=address
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["splits"][0]["origin"] == "modelscope"
    assert len(list(read_rows(tmp_path / "o.parquet"))) == 64
    assert any("AI-ModelScope/gsm8k" in path for path in requests)


def test_a_hub_that_refuses_is_reported_with_the_ways_to_get_the_rows(cli, hub, tmp_path):
    address, _ = hub
    done = prep(cli, tmp_path, "--split", "test", HF_ENDPOINT=f"{address}/nothing-here")
    assert done.returncode == 3
    assert "Ways to get the rows:\n  --source PATH" in done.stderr
    assert "Traceback" not in done.stderr
