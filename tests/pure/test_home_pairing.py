"""Which announced act a set belongs to: one effect a key, in however many messages it comes."""

from dualloop.home.wire.pairing import AGAIN_MS, YOUNG_MS, Announced, Due, Pairing

ACT = Announced("k1", 7, {"power": "on", "temperature": 26})
OFF = {"power": "off", "temperature": 20}


def announced(act: Announced = ACT) -> Pairing:
    pairing = Pairing()
    assert pairing.announce(act, 0) is None
    return pairing


def test_what_nobody_announced_is_somebody_elses() -> None:
    assert Pairing().take({"power": "on"}, OFF, 0) == Due(None, {"power": "on"})


def test_an_act_waits_until_all_of_it_is_there() -> None:
    pairing = announced()
    assert pairing.take({"power": "on"}, OFF, 1) is None
    assert pairing.take({"temperature": 26}, OFF, 2) == Due(ACT, ACT.values)


def test_what_the_device_shows_already_need_not_be_told() -> None:
    assert announced().take({"temperature": 26}, {"power": "on", "temperature": 20}, 1) == Due(ACT, {"temperature": 26})


def test_a_message_may_say_more_than_was_announced() -> None:
    act = Announced("k", 1, {"brightness": 40})
    assert announced(act).take({"power": "on", "brightness": 40}, {}, 1) == Due(act, {"power": "on", "brightness": 40})


def test_a_hand_within_an_act_is_no_part_of_it() -> None:
    pairing = announced()
    assert pairing.take({"power": "off"}, OFF, 1) == Due(None, {"power": "off"})
    assert pairing.take({"mode": "heat"}, OFF, 1) == Due(None, {"mode": "heat"})
    assert pairing.take({"power": "on", "temperature": 26}, OFF, 2) == Due(ACT, ACT.values)


def test_what_comes_twice_is_the_same_act_again() -> None:
    pairing = announced()
    done = pairing.take(ACT.values, OFF, 1)
    assert pairing.take({"temperature": 26}, ACT.values, 2) == done
    assert pairing.take({"power": "off"}, ACT.values, 2) == Due(None, {"power": "off"})
    assert pairing.take({"power": "on"}, OFF, AGAIN_MS + 1) == Due(None, {"power": "on"}), "by then it is a wish"


def test_an_act_that_is_never_whole_is_done_as_far_as_it_was_told() -> None:
    pairing = announced()
    assert pairing.give_up(ACT, 1) is None, "nothing of it has come"
    pairing.take({"power": "on"}, OFF, 1)
    assert pairing.give_up(Announced("other", 1, {}), 2) is None
    assert pairing.give_up(ACT, 300) == Due(ACT, {"power": "on"})
    assert pairing.give_up(ACT, 301) is None


def test_the_next_act_ends_the_one_before() -> None:
    pairing, later = announced(), Announced("k2", 8, {"power": "off"})
    pairing.take({"power": "on"}, OFF, 1)
    assert pairing.announce(later, 2) == Due(ACT, {"power": "on"})
    assert pairing.take({"power": "off"}, OFF, 3) == Due(later, {"power": "off"})


def test_an_announcement_that_nothing_followed_is_forgotten() -> None:
    assert announced().take(ACT.values, OFF, YOUNG_MS) == Due(None, ACT.values)
