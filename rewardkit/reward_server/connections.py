"""A reward server's connections: how many there are, and how long each may go without a request.

uvicorn closes a connection that idles after an answer. It does not close one whose headers come a
byte at a time, one that never sent anything, or one whose client does not read.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

#: Seconds for the headers of a request to arrive, from the connection or from their first byte.
HEADERS = 30.0

#: Seconds that a client may take to make room for more of an answer.
SENDING = 30.0

#: Bytes of a request's headers, more or less: h11 has this limit of its own, httptools has none.
HEADER_BYTES: Final = 64 << 10

#: Said before anything was read: a client tries again.
_FULL: Final = b'{"error":"there are too many connections."}'
_TOO_LONG: Final = b'{"error":"the headers are too long."}'


class Connection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's protocol, httptools or h11, with deadlines; `most` connections are taken."""

    most = 1 << 30

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._deadline: TimerHandle | None = None
        self._sending: TimerHandle | None = None
        self._header_bytes = 0
        self._in_headers = False

    def connection_made(self, transport: Transport) -> None:
        """Take the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(b"503 Service Unavailable", _FULL)
        else:
            self._deadline = self.loop.call_later(HEADERS, self._close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        super().connection_lost(exc)
        self._stop_deadline()
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends; without a request being answered, it has a deadline."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS, self._close)
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES and not self.transport.is_closing():
                self._refuse(b"431 Request Header Fields Too Large", _TOO_LONG)

    def on_message_begin(self) -> None:
        """Called by httptools: headers begin."""
        self._in_headers, self._header_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Called by httptools: headers are whole."""
        self._in_headers = False
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Called by the transport: the client does not read as fast as it is answered."""
        super().pause_writing()
        self._sending = self.loop.call_later(SENDING, self.transport.abort)

    def resume_writing(self) -> None:
        """Called by the transport: the client has read."""
        if self._sending:
            self._sending.cancel()
            self._sending = None
        super().resume_writing()

    def _stop_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        """End the connection, also if what was written is never read."""
        self.transport.close()
        self._deadline = self.loop.call_later(SENDING, self.transport.abort)

    def _refuse(self, status: bytes, body: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            b"Connection: close\r\nRetry-After: 1\r\n\r\n%b" % (status, len(body), body)
        )
        self._stop_deadline()
        self._close()


def connection_class(most: int) -> type[Connection]:
    """The protocol for uvicorn, that takes so many connections at a time."""
    return type("Connection", (Connection,), {"most": most})
