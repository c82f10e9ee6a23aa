"""The connections of a reward server: how many there may be, and their timeouts.

uvicorn closes a connection that idles after an answer. It does not close one whose headers arrive a
byte at a time, or one that never sends anything. Clients that read slowly are a proxy's work.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

#: Timeout for the headers of a request, in seconds, from the connection or from their first byte.
HEADERS_TIMEOUT_SECONDS = 30.0

#: Longest headers of a request, in bytes, roughly: h11 has this limit itself, httptools has none.
MAX_HEADER_BYTES: Final = 64 << 10

_FULL: Final = b'{"error":"there are too many connections."}'
_LONG_HEADERS: Final = b'{"error":"the headers are too long."}'


class TimedConnection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's protocol, httptools or h11, with timeouts and a limit of connections."""

    max_connections = 1 << 30

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._header_timer: TimerHandle | None = None
        self._header_bytes = 0
        self._in_headers = False

    def connection_made(self, transport: Transport) -> None:
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(b"503 Service Unavailable", _FULL)
        else:
            self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        super().connection_lost(exc)
        self._stop_header_timer()

    def data_received(self, data: bytes) -> None:
        """Read from the client; the timeout runs unless a request is being answered."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_header_timer()
        elif self._header_timer is None:
            self._start_header_timer()
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
                self._refuse(b"431 Request Header Fields Too Large", _LONG_HEADERS)

    def on_message_begin(self) -> None:
        """Called by httptools at the start of the headers."""
        self._in_headers, self._header_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Called by httptools at the end of the headers."""
        self._in_headers = False
        super().on_headers_complete()

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(HEADERS_TIMEOUT_SECONDS, self.transport.abort)

    def _stop_header_timer(self) -> None:
        if self._header_timer:
            self._header_timer.cancel()
            self._header_timer = None

    def _refuse(self, status: bytes, body: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            b"Connection: close\r\nRetry-After: 1\r\n\r\n%b" % (status, len(body), body)
        )
        self._stop_header_timer()
        self._start_header_timer()  # for a client that does not read the refusal
        self.transport.close()


def connection_class(max_connections: int) -> type[TimedConnection]:
    """Return the protocol for uvicorn with this limit of connections."""
    return type("TimedConnection", (TimedConnection,), {"max_connections": max_connections})
