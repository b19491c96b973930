"""The ordering core of a socket: what a client is told of a mission, in order, once, whatever is lost on the way.

The log in Redis is the truth, hints spare reading it (P19, P20). A hint may be lost, doubled or late, and a reading may
be overtaken by hints; so everything goes past one cursor, which only moves to the next ``seq``. What does not fit the
cursor is a double, which is dropped, or shows a gap, which is read. The result is told after the event of its ``seq``.

Progress has no seq: only the newest one is of interest, it follows the events that are known, and nothing waits for it.

Pure: no I/O and no clock. The shell hands in what it heard and read, and sends what it gets back, in that order.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from frontend_loop.progress import taken_apart

AHEAD: Final = 100
"""Hints kept while what lies before them is fetched; of those beyond only the number is remembered."""

EVENT: Final = b"E"
RESULT: Final = b"R"
PROGRESS: Final = b"P"
_HEAD: Final = b'{"seq":'
_NOT_YET: Final = -1


class News(NamedTuple):
    """One thing to tell: an event, (final) the result or (passing) progress; `body` is the JSON object as Redis has it.

    What is passing has the seq of the event before it, and may be left out if something newer is to be told.
    """

    seq: int
    body: bytes
    final: bool = False
    passing: bool = False


def seq_of(body: bytes) -> int:
    """The number that every event and result document begins with.

    Raises:
        ValueError: it does not.
    """
    if not body.startswith(_HEAD):
        raise ValueError(f"an event begins with {_HEAD!r}, this one with {body[:40]!r}")
    return int(body[len(_HEAD) : body.index(b",")])


class Watch:
    """One mission as one client sees it.

    Args:
        after_seq: the client has all events up to this one; None: its ack has not been sent yet (see `ack`).

    Attributes:
        cursor: number of the last event told; 0 is the ack.
        done: the result was told, nothing follows.
    """

    __slots__ = (
        *("_ahead", "_asked", "_doubtful", "_known", "_open", "_result", "cursor", "done"),
        *("_newest", "_newest_at", "_shown"),
    )

    def __init__(self, after_seq: int | None) -> None:
        """With `after_seq`, nothing is told before the first reading: ask for it."""
        self.cursor = _NOT_YET if after_seq is None else after_seq
        self.done = False
        self._open = False
        self._doubtful = after_seq is not None
        self._asked = False
        self._known = 0
        self._ahead: dict[int, bytes] = {}
        self._result: News | None = None
        self._newest: bytes | None = None
        self._newest_at = b""
        self._shown = b""

    def ack(self) -> list[News]:
        """The ack has been sent: what was heard meanwhile follows it."""
        self.cursor, self._open = 0, True
        return self._told() + self._passing()

    def hear(self, lines: Iterable[bytes]) -> list[News]:
        """Take the lines of a hint; one that cannot be read counts as lost."""
        for line in lines:
            body = line[1:]
            try:
                if line.startswith(PROGRESS):
                    self._heed(body)
                    continue
                seq = seq_of(body)
            except ValueError:
                self._doubtful = True
                continue
            self._known = max(self._known, seq)
            if line.startswith(RESULT):
                self._result = News(seq, body, final=True)
            elif line.startswith(EVENT):
                self._keep(seq, body)
        return self._told() + self._passing()

    @property
    def behind(self) -> bool:
        """Whether the log has to be read, and is not being read."""
        if self.done or self._asked or self.cursor == _NOT_YET:
            return False
        return self._doubtful or self._known > self.cursor

    def doubt(self) -> None:
        """Hints may have been lost: the log has to be read again."""
        self._doubtful = True

    def ask(self) -> int | None:
        """The seq after which the log is to be read now, or None.

        Answered once: the next one comes after `read` or `unread`. All that was heard so far is in the log and the
        record that are read from here on, so it is forgotten: if Redis lost the end of them, its memory does not live
        on here.
        """
        if not self.behind:
            return None
        self._asked, self._doubtful, self._known = True, False, 0
        self._ahead.clear()
        self._result = self._newest = None
        self._newest_at = b""
        return self.cursor

    def read(
        self, events: Iterable[bytes], result: bytes | None, *, whole: bool, progress: bytes | None = None
    ) -> list[News]:
        """Take a reading, made in one step after `ask`.

        Args:
            events: the log after the seq that was asked for.
            result: the result document, if there is one.
            whole: the log had no more than these.
            progress: the line that tells what the record has of it, if it has.
        """
        self._asked, self._open = False, True
        if progress is not None:
            self._heed(progress)
        told: list[News] = []
        for body in events:
            self._keep(seq_of(body), body)
            told += self._told()
        if not whole:
            self._doubtful = True
        elif result is not None and not self.done:
            # the log has no more: nothing that is still to come may hold the result back
            told.append(self._end(News(seq_of(result), result, final=True)))
        return told + self._passing()

    def unread(self) -> None:
        """What was asked for could not be read: ask again."""
        self._asked, self._doubtful = False, True

    def _keep(self, seq: int, body: bytes) -> None:
        following = self.cursor + 1
        if seq == following or (seq > following and len(self._ahead) < AHEAD):
            self._ahead[seq] = body

    def _heed(self, body: bytes) -> None:
        """Take progress, unless a newer one is known."""
        at, value = taken_apart(body)
        if at >= self._newest_at:
            self._newest_at = at
            self._newest = body if value != self._shown else None

    def _passing(self) -> list[News]:
        """Progress that has not been told, once all is told that is known to lie before it."""
        if self._newest is None or not self._open or self.done or self._asked or self.behind:
            return []
        body, self._newest = self._newest, None
        self._shown = taken_apart(body)[1]
        return [News(self.cursor, body, passing=True)]

    def _told(self) -> list[News]:
        if not self._open or self.done:
            return []
        told = []
        while (body := self._ahead.pop(self.cursor + 1, None)) is not None:
            self.cursor += 1
            told.append(News(self.cursor, body))
        if self._result is not None and self._result.seq <= self.cursor:
            told.append(self._end(self._result))
        return told

    def _end(self, result: News) -> News:
        self.done = True
        self._ahead.clear()
        return result
