"""P17: ids say shard and time, are genuine or not, and cannot be guessed or changed."""

from hypothesis import given
from hypothesis import strategies as st

from shared.ids import LENGTH, Ids, shard_of

IDS = Ids(b"k" * 32)
OTHER = Ids(b"o" * 32)


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**48 - 1))
def test_an_id_comes_back_with_its_shard_and_time(shard: int, ms: int) -> None:
    text = IDS.new(shard, ms)
    found = IDS.read(text)
    assert found is not None
    assert (found.text, found.shard, found.ms) == (text, shard, ms)
    assert len(text) == LENGTH
    assert text.isalnum()
    assert not set("ILOU") & set(text)


def test_people_may_write_it_by_hand() -> None:
    text = IDS.new(3, 1_790_000_000_000)
    sloppy = text.lower().replace("0", "o").replace("1", "l")
    found = IDS.read(sloppy)
    assert found is not None
    assert found.text == text


@given(st.integers(0, LENGTH - 1), st.sampled_from("0123456789ABCDEFGHJKMNPQRSTVWXYZ"))
def test_one_changed_character_is_no_id(at: int, new: str) -> None:
    text = IDS.new(0, 1_790_000_000_000)
    if text[at] != new:
        assert IDS.read(text[:at] + new + text[at + 1 :]) is None


def test_an_id_of_another_fleet_is_no_id_here() -> None:
    assert OTHER.read(IDS.new(0, 1_790_000_000_000)) is None


@given(st.text(max_size=60))
def test_whatever_is_sent_is_read_without_an_error(text: str) -> None:
    assert IDS.read(text) is None


def test_ids_do_not_repeat() -> None:
    assert len({IDS.new(0, 1) for _ in range(10_000)}) == 10_000


def test_a_derived_id_is_the_same_each_time_and_another_for_another_name() -> None:
    one = IDS.derived(2, 5, "parent:1:STATE:1:0")
    assert one == IDS.derived(2, 5, "parent:1:STATE:1:0")
    assert one != IDS.derived(2, 5, "parent:1:STATE:1:1")
    assert IDS.read(one) is not None


def test_a_target_has_one_shard_for_ever() -> None:
    assert [shard_of(name, 8) for name in ("default:light.kitchen", "default:lock.door", "a")] == [1, 2, 5]
    assert {shard_of(str(n), 8) for n in range(1000)} == set(range(8))
    assert shard_of("anything", 1) == 0
