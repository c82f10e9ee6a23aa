"""A small OpenAI-compatible judge on loopback, whose replies a test chooses."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def yes(_body):
    return {"reason": "It is equal.", "verdict": "yes"}


class JudgeStub(ThreadingHTTPServer):
    """A server that answers each request with `verdict(body)`: an object, a text, or a status."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, verdict=yes, *, takes_schema=True, models=("tiny",), seconds=0.0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.verdict, self.takes_schema, self.models = verdict, takes_schema, models
        self.seconds, self.bodies, self.lock = seconds, [], threading.Lock()
        self.active = self.most = 0

    def handle_error(self, *_):
        """Ignore errors, because some tests close the client's connection on purpose."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.connection.setsockopt(6, 1, 1)  # TCP_NODELAY

    def do_GET(self):
        self.say(200, {"data": [{"id": name} for name in self.server.models]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.bodies.append(body)
            server.active += 1
            server.most = max(server.most, server.active)
        time.sleep(server.seconds)
        with server.lock:
            server.active -= 1
        refusal = server.takes_schema
        if refusal is not True and "response_format" in body:
            self.say(refusal or 400, {"error": {"message": "response_format is not supported"}})
            return
        reply = server.verdict(body)
        if isinstance(reply, int):
            self.say(reply, {"error": {"message": "no"}})
            return
        text = reply if isinstance(reply, str) else json.dumps(reply)
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        self.say(200, {"choices": [choice], "usage": usage})

    def say(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@contextmanager
def serving(*arguments, **options):
    with JudgeStub(*arguments, **options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
