"""Lists of what families say, with what they mean, each written before it was known how it does.

Right at their first run, in English and in Chinese, and how many acts were not the ones that were meant:

held_out (older than the grammar) 159 of 165 and 164 of 174; second 89 of 99 and 83 of 93; third 59 of 67 and 57 of 64;
fourth 104 and 106 of 121; these held one wrong act, of a question: 看一下客厅灯关没关.
fifth 106 of 141 and 112 of 137, 3 wrong; sixth 99 of 138 and 108 of 124; seventh 115 of 131 and 107 of 121, 2 wrong;
eighth 125 of 145 and 113 of 127; ninth 121 of 129 and 109 of 117, 3 wrong; tenth, of plainer speech, 59 of 60 and 56
of 57, 1 wrong; eleventh 31 of 37 and 24 of 25; twelfth 115 of 128 and 105 of 124, 1 wrong; thirteenth 67 of 74 and 60
of 73, 1 wrong.

What was wrong otherwise was not understood, or asked. All but the tenth are as families speak at their loosest, a
quarter of them what is not to be done; of that was done: "can I turn off the oven", a lamp that was to be left on, a
lamp instead of whatever "it" was, an air conditioner that was told to close as "it", and a lamp that went off with the
blinds where "them" were closed. From the twelfth on there are conversations, with ``//`` between what is said. Where a
list itself was mistaken it has been put right since.
"""

import pytest

from tests.pure.meant import meant, rows, sorted_line

LISTS = (
    "held_out",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
)
MISSED = {
    "打开观影模式": "no scene of this home is called 观影",
    "麻烦把书房的台灯关一下": "the list has no desk lamp in mind; the only lamp of the study is as good a guess",
    "it's too dark in here, turn on the hall light": "why it is wanted has since been learnt to be passed over",
    "it's dark, lights on": "likewise",
    "三个空调都调到24度": "how many there are is not counted",
    "卧室的空调别开了关掉吧": "what is denied before it is told is not understood",
    "hey we're back home": "to be home has since been learnt to be said in more ways",
    "make it 40 percent brighter": "more of something has since been learnt, likewise in the four that follow",
    "make the kitchen lights brighter": "likewise",
    "dim the kitchen": "likewise",
    "厨房灯亮一点": "likewise",
    "could you please get the kitchen light": "to get a lamp may be to light it or to put it out",
    "lock the front door for the night": "until when is not understood, where there is a scene of that name",
    "unlock the door for grandma please": "likewise for whom",
    "no more AC in the study, turn it off": "what is told twice in two ways is not understood",
    "we don't need the AC in the study any more, switch it off": "likewise",
    "客厅窗帘开了百分之多少": "how far is asked by 多少, and 百分之 is of a number",
    "我要出门": "who wants to leave has not said that he does",
    "把电视声音调大": "it is not understood, instead of not known",
    "turn on the kitchen light at 50 and close the blinds there": "at 50 may be a time, and no percent",
    "关灯锁门，客厅的灯": "it asks, for what comes last is said of the door",
    "关灯拉窗帘": "to pull a blind may be to open or to close it",
    "stop the speaker": "what is stopped is switched off, music pauses",
    "书房的灯可以打开吗": "it may ask whether it can be done",
    "要看电影了": "the phrase of the scene has no 了",
    "turn off the lights and the music": "which lights: it asks",
    "hold the temperature in the study at 21": "at 21 may be a time",
    "run good night": "the scene is called night",
    "睡觉啦晚安": "two phrases of one scene, one after the other, are none",
    "我要睡觉了把灯都关了": "the first half is the phrase of a scene, and the other asks where",
    "天黑了把客厅灯打开": "it may be put off until it is dark",
    "屋里的灯全打开": "the house or the room: it asks",
    "stick the bedroom ac on 21": "at and on 21 may be a time",
    "I want the bedroom at twenty two": "likewise",
    "could the bedroom be two degrees warmer": "it may ask whether it can be, as of the bedroom light before",
    "打开橱房的灯": "what is typed with another sign of the same sound is put right of what was heard only",
    "把客听空调打开": "likewise",
    "打开卧是灯": "likewise",
    "卧室灯调到最暗那档": "a notch has no name here",
    "厨房的灯是不是忘了关": "it is asked whether it is off, which the answer tells as well",
    "厨房灯开着吗 // 开着就关了吧": "it is not known, instead of not understood",
    "关灯锁门": "it is understood, and asks which light: more than the list expects",
}
"""What the lists have otherwise, and why."""


@pytest.mark.parametrize("name", [f"{name}.{language}" for name in LISTS for language in ("en", "zh")])
def test_what_families_say_is_understood(name: str) -> None:
    language = name.rpartition(".")[2]
    wrong = {
        text: got
        for area, text, want in rows(f"{name}.tsv")
        if (got := meant(text, language, area)) != sorted_line(want) and text not in MISSED
    }
    assert wrong == {}
