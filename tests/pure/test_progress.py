"""How far a mission says it is, in figures; whatever stands in a record, what cannot be told is left out."""

import pytest

from frontend_loop import progress
from frontend_loop.progress import Progress


@pytest.mark.parametrize(
    ("told", "figures"),
    [
        (Progress(0), "0"),
        (Progress(0, None, "in which room?"), ""),
        (Progress(0, 3, "row 0"), "0 of 3 (0 %)"),
        (Progress(2, None, "row 2"), "2"),
        (Progress(12_345), "12,345"),
        (Progress(2.5), "2.5"),
        (Progress(1234.56), "1,235"),
        (Progress(3, 4), "3 of 4 (75 %)"),
        (Progress(99_999, 100_000), "99,999 of 100,000 (99 %)"),
        (Progress(4, 4), "4 of 4 (100 %)"),
        (Progress(5, 4), "5 of 4 (125 %)"),
        (Progress(0, 0), "0 of 0"),
        (Progress(0.5, 1), "0.5 of 1 (50 %)"),
    ],
)
def test_figures(told: Progress, figures: str) -> None:
    assert told.figures() == figures


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ('{"done":3,"total":4,"message":"m"}', Progress(3, 4, "m")),
        ('{"done":3.5,"total":null,"message":null}', Progress(3.5)),
        ('{"done":3,"more":"of a later release"}', Progress(3)),
        (None, None),
        ("", None),
        ("{", None),
        ('"x"', None),
        ('{"done":NaN}', None),
        ('{"done":Infinity}', None),
        ('{"done":-1}', None),
        ('{"done":true}', None),
        ('{"done":1e300}', None),
        ('{"done":1,"total":"x"}', None),
        ('{"done":1,"message":7}', None),
    ],
)
def test_what_a_record_has_is_read_or_left_out(raw: str | None, told: Progress | None) -> None:
    assert progress.read(raw) == told
    assert progress.document(raw) == (None if told is None else told.document())


def test_a_line_out_of_a_record_is_the_line_of_a_hint() -> None:
    raw = b'{"done":3,"total":4,"message":",\\"progress\\":{"}'
    heard = b'{"status":"RUNNING","state":"S","at":"2026-11-29T18:04:05.123Z","progress":%b}' % raw
    assert progress.line("RUNNING", "S", "2026-11-29T18:04:05.123Z", raw) == heard
    assert progress.taken_apart(heard) == (b"2026-11-29T18:04:05.123Z", raw + b"}")
    assert progress.taken_apart(progress.line('"', "S", None, raw)) == (b"", raw + b"}")
