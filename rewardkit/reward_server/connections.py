"""The connections of a reward server: how many there may be, and how long their headers.

uvicorn closes a connection that idles after an answer. Slow clients are a proxy's work.
"""

from __future__ import annotations

from asyncio import Transport
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

#: Longest headers of a request, in bytes, roughly: h11 has this limit itself, httptools has none.
MAX_HEADER_BYTES: Final = 64 << 10

_FULL: Final = b'{"error":"there are too many connections."}'
_LONG_HEADERS: Final = b'{"error":"the headers are too long."}'


class LimitedConnection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's protocol, httptools or h11, with limits."""

    max_connections = 1 << 30

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._header_bytes, self._in_headers = 0, False

    def connection_made(self, transport: Transport) -> None:
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(b"503 Service Unavailable", _FULL)

    def data_received(self, data: bytes) -> None:
        """Read from the client."""
        super().data_received(data)
        self._header_bytes += len(data) * self._in_headers
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

    def _refuse(self, status: bytes, body: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            b"Connection: close\r\nRetry-After: 1\r\n\r\n%b" % (status, len(body), body)
        )
        self.transport.close()


def connection_class(max_connections: int) -> type[LimitedConnection]:
    """Return the protocol for uvicorn with this limit of connections."""
    return type("LimitedConnection", (LimitedConnection,), {"max_connections": max_connections})
