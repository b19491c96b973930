"""The file of the home and what lies in Redis: which of the two follows the other one, and what HTTP's tags mean."""

import pytest

from frontend_loop.home_file import Sight, Step, decide
from frontend_loop.inventory import revisions, told, unchanged
from shared.home import EMPTY, InventoryError, check
from shared.home_store import Stored

HERE, THERE = (check({"areas": [{"id": name}]}) for name in ("here", "there"))
FAULT = InventoryError([{"pointer": "/areas", "detail": "oh"}])
STAMP = (1, 1, 1, 1)
FILE, GONE, BAD = Sight(STAMP, HERE, None), Sight(None, None, None), Sight(STAMP, None, FAULT)
NOTHING = Stored(EMPTY.revision, None, None, None)
SAME = Stored(HERE.revision, HERE.packed(), 1, None)
OTHER = Stored(THERE.revision, THERE.packed(), 1, None)


@pytest.mark.parametrize(
    ("sight", "stored", "edited", "step"),
    [
        (FILE, NOTHING, False, "publish"),
        (FILE, NOTHING, True, "publish"),
        (FILE, SAME, False, "nothing"),
        (FILE, SAME, True, "nothing"),
        (FILE, OTHER, True, "publish"),
        (FILE, OTHER, False, "follow"),
        (GONE, OTHER, True, "nothing"),
        (GONE, NOTHING, False, "nothing"),
        (BAD, OTHER, True, "complain"),
        (BAD, OTHER, False, "complain"),
        (BAD, NOTHING, True, "complain"),
    ],
)
def test_whichever_changed_last_is_followed_and_a_bad_file_changes_nothing(
    sight: Sight, stored: Stored, edited: bool, step: Step
) -> None:
    assert decide(sight, stored, edited=edited) == step


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ('"a"', {"a"}),
        ('"a", "b"', {"a", "b"}),
        ('"a.1234"', {"a"}),
        ('W/"a"', set()),
        ("a", set()),
        ("", set()),
        ("*", None),
        ('"a", *', None),
    ],
)
def test_what_an_if_match_names(header: str, names: set[str] | None) -> None:
    assert revisions(header) == (None if names is None else frozenset(names))


def test_a_tag_is_of_all_that_is_told() -> None:
    trouble = {"file": "home.json", "where": "secret:/srv", "detail": "oh", "errors": [], "at": "2026-01-01T00:00:00Z"}
    well, troubled = told(OTHER), told(OTHER._replace(trouble=trouble))
    assert well.etag == f'"{OTHER.revision}"'
    assert well.etag != troubled.etag
    assert revisions(troubled.etag) == frozenset({OTHER.revision}), "to replace it needs to know the inventory only"
    assert b"secret" not in troubled.body
    assert unchanged(well.etag, well.etag)
    assert unchanged(f'"x", W/{well.etag}', well.etag)
    assert unchanged("*", well.etag)
    assert not unchanged(troubled.etag, well.etag)
    assert not unchanged(None, well.etag)
