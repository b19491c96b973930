"""How Chinese sounds: syllables without their tones, and which of them are mistaken for each other."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from backend_loop.speech.tongue import words

Syllable = frozenset[tuple[str, str]]
"""All readings of one sign, each as initial and final."""

_INITIAL: Final = re.compile(r"(zh|ch|sh|[bpmfdtnlgkhjqxrzcsyw]?)(.*)")
_NEAR: Final = 0.25
"""Of a syllable: speakers and engines both mix these up."""

_ALIKE: Final = frozenset(
    frozenset(pair.split())
    for pair in ("z zh", "c ch", "s sh", "n l", "f h", "an ang", "en eng", "in ing", "ian iang", "uan uang", "o uo")
)


_COMMANDS: Final = """
打开 关闭 关掉 关上 开启 调到 调成 调高 调低 调亮 调暗 设为 设置 设成 亮度 温度 湿度 多少度
几度 百分之 播放 暂停 继续 停止 音乐 音量 锁上 解锁 开锁 拉开 拉上 升起 降下 取消 所有 全部
空调 窗帘 制冷 制热 除湿 送风 自动 模式"""

_OTHERS: Final = """
帮我 请 把 将 的 了 一下 吧 吗 我 我要 我想 现在 是 是多少 多少 什么 怎么样 有没有 和 跟
还有 再 然后 先 到 度 开 关 开着 关着 里 里面 一半 最大 最小 最亮 给我 麻烦 可以 不要 不用
好 好的 是的 对 不 算了 家 家里 都 全 零 一 二 两 三 四 五 六 七 八 九 十 百 点 半
四度 十度 百分 摄氏度 设定 灯光 开灯 关灯 光 灯 回 大家 晚上 早上 房间 屋里 这里 上 下 来
去 太 有点 冷 热 亮 暗"""


class Chinese:
    """Sign by sign."""

    language: Final = "zh"
    commands: Final = words(_COMMANDS)
    others: Final = words(_OTHERS)

    def pieces(self, text: str) -> list[str]:
        """Signs, and runs of what is none."""
        return re.findall(r"[\u3400-\u9fff]|[^\u3400-\u9fff\s]+|\s+", text)

    def joined(self, pieces: Sequence[str]) -> str:
        """A sentence of them."""
        return "".join(pieces)

    def is_word(self, piece: str) -> bool:
        """Whether it has a sound."""
        return "\u3400" <= piece[0] <= "\u9fff"

    def doubt(self, piece: str) -> float:
        """What it costs to take a known word for just that: a sign alone may be half of a name that was misheard."""
        return 0.12 if len(piece) == 1 and self.is_word(piece) else 0.0

    def variants(self, _known: Sequence[str]) -> Iterable[tuple[str, ...]]:
        """Other forms of a known word: there are none."""
        return ()

    def sound(self, pieces: Sequence[str]) -> tuple[Syllable, ...]:
        """Syllable by syllable."""
        from pypinyin import Style, pinyin  # noqa: PLC0415  a table of all signs: only who mishears waits for it

        read = pinyin(list(pieces), style=Style.NORMAL, heteronym=True, errors="ignore", strict=False)
        return tuple(frozenset(_INITIAL.fullmatch(one).groups() for one in readings) for readings in read)  # type: ignore[union-attr,misc]  # it matches anything

    def distance(self, one: Sequence[Syllable], other: Sequence[Syllable]) -> float:
        """From 0, the same, to 1; words of another length are other words."""
        if len(one) != len(other) or not one:
            return 1.0
        return sum(map(_apart, one, other)) / len(one)

    def enough(self, meant: Sequence[str], far: float) -> bool:
        """Whether so many signs are enough to say that it is this: one alone sounds like a dozen others."""
        return len(meant) > 2 or (len(meant) == 2 and far <= _NEAR / 2)


def _apart(one: Syllable, other: Syllable) -> float:
    return min((_part(a, x) + _part(b, y) for a, b in one for x, y in other), default=1.0)


def _part(one: str, other: str) -> float:
    if one == other:
        return 0.0
    return _NEAR if frozenset((one, other)) in _ALIKE else 0.5
