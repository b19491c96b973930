"""What a mission tells its watchers, for the tests of their cursors."""

from frontend_loop.session import News, Watch


def event(seq: int, what: str = "") -> bytes:
    return b'{"seq":%d,"at":"t","data":"%s"}' % (seq, what.encode())


def result(seq: int) -> bytes:
    return b'{"seq":%d,"status":"SUCCEEDED"}' % seq


def hint(*seqs: int, end: bool = False) -> list[bytes]:
    lines = [b"E" + event(seq) for seq in seqs]
    return [*lines, b"R" + result(seqs[-1])] if end else lines


def events(*seqs: int) -> list[News]:
    return [News(seq, event(seq)) for seq in seqs]


def final(seq: int) -> News:
    return News(seq, result(seq), final=True)


def progress(n: int, at: int | None = None) -> bytes:
    """The line that tells of it; told at `n`, unless it is another time."""
    return b'{"status":"RUNNING","state":"S","at":"%06d","progress":{"done":%d}}' % (n if at is None else at, n)


def passing(n: int, seq: int) -> News:
    return News(seq, progress(n), passing=True)


def acked() -> Watch:
    watch = Watch(None)
    assert watch.ack() == []
    return watch
