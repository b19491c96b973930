"""Two lists of what families say, with what they mean, written before it was known how they do.

The first is older than the grammar: at its first run 159 of 165 were right in English, 164 of 174 in Chinese. The
second is younger: 89 of 99, 83 of 93.
"""

import pytest

from tests.pure.meant import meant, rows, sorted_line

MISSED = {
    "打开观影模式": "no scene of this home is called 观影",
    "麻烦把书房的台灯关一下": "the list has no desk lamp in mind; the only lamp of the study is as good a guess",
    "it's too dark in here, turn on the hall light": "why it is wanted has since been learnt to be passed over",
    "it's dark, lights on": "likewise",
    "关灯锁门": "it is understood, and asks which light: more than the list expects",
}
"""What the lists have otherwise, and why."""


@pytest.mark.parametrize("name", ["held_out.en", "held_out.zh", "second.en", "second.zh"])
def test_what_families_say_is_understood(name: str) -> None:
    language = name.rpartition(".")[2]
    wrong = {
        text: got
        for area, text, want in rows(f"{name}.tsv")
        if (got := meant(text, language, area)) != sorted_line(want) and text not in MISSED
    }
    assert wrong == {}
