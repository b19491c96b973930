"""Numbers as they are said, and text as it is compared."""

import pytest

from backend_loop.language.numbers import digits, number
from backend_loop.language.text import fold, plain


@pytest.mark.parametrize(
    ("said", "language", "written"),
    [
        ("set it to twenty six degrees", "en", "set it to 26 degrees"),
        ("twenty-four and a half degrees", "en", "24.5 degrees"),
        ("twenty one point five", "en", "21.5"),
        ("a hundred percent", "en", "100%"),
        ("one hundred percent", "en", "100%"),
        ("fifty percent", "en", "50%"),
        ("30 percent", "en-GB", "30%"),
        ("nineteen", "en", "19"),
        ("the one in the hall", "en", "the one in the hall"),
        ("someone", "en", "someone"),
        ("调到二十六度", "zh", "调到26度"),
        ("百分之五十", "zh-CN", "50%"),
        ("百分之一百", "zh", "100%"),
        ("二十四度半", "zh", "24.5度"),
        ("二十四点五度", "zh", "24.5度"),
        ("调到四十", "zh", "调到40"),
        ("声音调到十", "zh", "声音调到10"),
        ("两度", "zh", "2度"),
        ("一百一十", "zh", "110"),
        ("四成亮度", "zh", "40%亮度"),
        ("打开一下", "zh", "打开一下"),
        ("调到一半", "zh", "调到一半"),
        ("调亮一点", "zh", "调亮一点"),
        ("百叶窗", "zh", "百叶窗"),
        ("zwanzig", "de", "zwanzig"),
    ],
)
def test_numbers_become_digits(said: str, language: str, written: str) -> None:
    assert digits(said, language) == written


def test_every_number_that_a_home_takes_is_read_as_it_is_said() -> None:
    signs = "零一二三四五六七八九"
    for value in range(1, 101):
        tens, ones = divmod(value, 10)
        chinese = "一百" if value == 100 else (signs[tens] if tens > 1 else "") + ("十" if tens else "")
        chinese += signs[ones] if ones and value < 100 else ""
        assert digits(f"调到{chinese}度", "zh") == f"调到{value}度"


def test_a_whole_number_has_no_point() -> None:
    assert repr(number("26.0")) == "26"
    assert repr(number("24.5")) == "24.5"


def test_text_is_folded_to_what_is_said() -> None:
    assert fold("Turn ON the A/C [now] 💡") == "turn on the ac now"
    assert fold("客厅 空调 ２６ 度") == "客厅空调 26 度"
    assert fold("air-conditioner, please…") == "air conditioner, please..."
    assert plain("I'm home!") == plain("im home")
