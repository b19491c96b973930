"""``dualloop`` as a word of a shell, whose processes the forge starts."""

import contextlib
import json
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.forge.client import forked

_BYTES = 1_000_000
_ASK = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as desk:
    desk.connect(sys.argv[1])
    said = json.dumps({"argv": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd()})
    socket.send_fds(desk, [said.encode()], [0, 1, 2])
    sys.exit(int(desk.recv(10) or b"1"))
"""
"""Needs nothing but the standard library: it is there in a hundredth of the time that the product takes."""


@contextlib.contextmanager
def dualloop_in_shells() -> Iterator[str]:
    """A line of bash after which ``dualloop …`` is a process from the forge, for as long as the block lasts."""
    folder = Path(tempfile.mkdtemp(prefix="dl-"))  # short: a socket's path has ~100 characters at most
    (folder / "ask.py").write_text(_ASK)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as desk:
        desk.bind(str(folder / "desk"))
        desk.listen()
        threading.Thread(target=_serve, args=(desk,), daemon=True).start()
        try:
            yield f"""dualloop() {{ '{sys.executable}' -IS '{folder}/ask.py' '{folder}/desk' "$@"; }}"""
        finally:
            desk.shutdown(socket.SHUT_RDWR)
            shutil.rmtree(folder)


def _serve(desk: socket.socket) -> None:
    """Take who comes, until the desk is closed."""
    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=_run, args=(desk.accept()[0],), daemon=True).start()


def _run(asker: socket.socket) -> None:
    """One command, from beginning to end; whoever does not wait for it any more has no use for it."""
    with asker:
        asked, descriptors, _, _ = socket.recv_fds(asker, _BYTES, 3)
        request = json.loads(asked)
        stdin, stdout, stderr = descriptors
        process = forked(
            ("-m", "dualloop", *request["argv"]),
            env=request["env"],
            cwd=Path(request["cwd"]),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            death=signal.SIGKILL,
        )
        for descriptor in descriptors:
            socket.close(descriptor)
        code = process.wait()
        with contextlib.suppress(OSError):
            asker.send(b"%d" % (code if code >= 0 else 128 - code))
