"""The child process of `command`: run a command in its process group, so that its guard ends both."""

from __future__ import annotations

import subprocess
from tempfile import TemporaryFile

from rewardkit.isolate.child import Channel


def serve(channel: Channel) -> None:
    """Run one command, and send its exit code and what it wrote.

    Its streams are files: a process that the command leaves behind cannot hold them open.
    """
    words, text, environment = channel.receive()
    with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
        stdin.write(text.encode())
        stdin.seek(0)
        try:
            process = subprocess.run(  # noqa: S603 - our own file in the user's interpreter
                words, stdin=stdin, stdout=stdout, stderr=stderr, env=environment, check=False
            )
        except OSError as error:
            channel.send([1, "", f"{words[0]}: {error.strerror}"])
            return
        outputs = []
        for stream in (stdout, stderr):
            stream.seek(0)
            outputs.append(stream.read().decode("utf-8", "replace"))
    channel.send([process.returncode, *outputs])
