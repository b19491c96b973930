"""Which columns of a table give way in a narrow terminal, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualloop.cli.fitting import GAP, Column, fitted

LIST = (
    Column("MISSION", least=20, first=True),
    Column("STATUS"),
    Column("STATE", least=12, goes=4),
    Column("TYPE", least=10, goes=1),
    Column("TARGET", least=10, goes=3),
    Column("AGE", goes=2),
)
WIDEST = (40, 12, 17, 16, 30, 6)
COLUMNS = st.builds(
    Column,
    st.text("ABC", max_size=8),
    least=st.none() | st.integers(1, 40),
    goes=st.integers(0, 9),
    folds=st.booleans(),
    first=st.booleans(),
)


def shown(room: int, empty: tuple[int, ...] = ()) -> dict[str, int]:
    widths = fitted(LIST, WIDEST, [n in empty for n in range(len(LIST))], room)
    return {LIST[n].name: width for n, width in widths.items()}


@pytest.mark.parametrize(
    ("room", "gone"),
    [
        (200, set()),
        (131, set()),
        (80, set()),
        (79, {"STATE"}),
        (66, {"STATE"}),
        (65, {"STATE", "TARGET"}),
        (53, {"STATE", "TARGET", "AGE"}),
        (45, {"STATE", "TARGET", "AGE", "TYPE"}),
        (20, {"STATE", "TARGET", "AGE", "TYPE"}),
    ],
)
def test_they_go_in_the_order_that_they_say(room: int, gone: set[str]) -> None:
    assert {column.name for column in LIST} - shown(room).keys() == gone


def test_an_id_is_cut_before_any_other_is() -> None:
    assert shown(131) == dict(zip((column.name for column in LIST), WIDEST, strict=True))
    assert shown(121) == shown(131) | {"MISSION": 30}
    assert shown(111) == shown(131) | {"MISSION": 20}
    assert shown(105) == shown(111) | {"TARGET": 24}, "then the widest"
    assert shown(111, empty=(4,))["MISSION"] == 20, "what is empty is not kept for the sake of a whole id"


def test_what_is_empty_goes_before_what_tells_something() -> None:
    assert shown(79, empty=(4,)).keys() == {"MISSION", "STATUS", "STATE", "TYPE", "AGE"}
    assert "TARGET" in shown(131, empty=(4,)), "while there is room it stands, as in a pipe"
    assert shown(110, empty=(2,)).items() >= {"TYPE": 16, "TARGET": 30}.items(), "and while nothing is cut for it"


@given(st.data())
def test_it_always_fits(data: st.DataObject) -> None:
    columns = data.draw(st.lists(COLUMNS, min_size=1, max_size=8))
    widest = [max(data.draw(st.integers(1, 300)), len(column.name)) for column in columns]
    empty = [data.draw(st.booleans()) for _ in columns]
    room = data.draw(st.integers(1, 200))
    widths = fitted(columns, widest, empty, room)
    taken = sum(widths.values()) + GAP * (len(widths) - 1)
    assert taken <= room or set(widths.values()) == {1}, "a terminal of a few columns holds nothing"
    assert all(1 <= width <= widest[n] for n, width in widths.items())
    assert list(widths) == sorted(widths)
    stay = {n for n, column in enumerate(columns) if not column.goes and not empty[n]}
    assert stay <= widths.keys()
    if sum(widest) + GAP * (len(columns) - 1) <= room:
        assert widths == dict(enumerate(widest))
