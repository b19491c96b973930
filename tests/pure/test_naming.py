"""A name that is not there: the refusal names what was probably meant, and hides none without saying so."""

from frontend_loop.naming import MOST, instead

KINDS = [f"device.kind_{letter}" for letter in "abcdefghijklmnopqrst"]
NAMES = tuple(sorted(["agent.run", "shop.hold", "shop.parcel", *KINDS]))


def test_what_was_probably_meant_comes_first_and_what_is_left_out_is_counted() -> None:
    said = instead("shop.parcell", NAMES)
    assert said.startswith("shop.parcel, agent.run, device.kind_a, ")
    assert said.endswith(", and 3 more")
    assert len(said.split(", ")) == MOST + 1


def test_where_all_are_named_none_is_left() -> None:
    assert instead("nothing.like.it", ("b.two", "a.one")) == "b.two, a.one"
    assert instead("nothing.like.it", NAMES[:MOST]) == ", ".join(NAMES[:MOST])
