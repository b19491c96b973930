"""What is said around a wish: courtesies, what joins clauses, yes, no and cancel. One tongue a language, as data."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from backend_loop.language.meaning import Control


@dataclass(frozen=True)
class Tongue:
    """How one language wraps what it wants.

    Attributes:
        opening, closing, anywhere: courtesies and fillers, at the beginning, at the end, wherever they stand.
        request: a wish in the form of a question or a condition, and the wish.
        joint: what stands between two clauses; the group ``then`` is there if the second waits for the first.
        aside: a clause that only says why.
        begin: where a clause may begin without a word between.
        first: a word that says that what follows has an order.
        but: an exception; the group ``rest`` is what it is an exception from, ``but`` what is left out, ``wish`` the
            end of ``rest``.
        contrary: a ``but`` that begins another command.
        too: that somebody is told what others were told before; `again`: that it goes on with what was spoken of.
        wonders: it asks for more than it tells by that: "and the bedroom?".
        told_of: what is told of somebody, and not to him: of "it" it is no command.
        corrected: between what is taken back in the same breath, and what is said instead; `set_to`: what makes a
            sentence of a number that is said instead.
        asked: what makes a question of a few words that are said as one: "the oven on?".
        relative: words for more or less of something.
        amount: an answer to how much; the group ``n`` is the number, ``by`` is there if it is by how much.
        later: words by which something is put off, or bound to something else.
        denied: words by which something is not wanted.
        there: where something unknown is said to be.
        all: the answer that means all of what was asked about.
        article: what stands before a name and is none of it.
        control: words for yes, no and cancel, as they are alone.
        unknown: how something is asked for by whatever name; the group ``what`` is the name.
        counted: how many of something unknown are meant, which is none of its name.
        said: what is the same in a phrase for a scene, however it is put.
    """

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    anywhere: re.Pattern[str]
    request: tuple[tuple[re.Pattern[str], str], ...]
    joint: re.Pattern[str]
    aside: re.Pattern[str]
    begin: re.Pattern[str]
    first: re.Pattern[str]
    but: tuple[re.Pattern[str], ...]
    contrary: re.Pattern[str]
    too: re.Pattern[str]
    again: re.Pattern[str]
    wonders: re.Pattern[str]
    told_of: re.Pattern[str]
    corrected: re.Pattern[str]
    set_to: str
    asked: str
    relative: re.Pattern[str]
    amount: re.Pattern[str]
    later: re.Pattern[str]
    denied: re.Pattern[str]
    there: re.Pattern[str]
    all: re.Pattern[str]
    article: re.Pattern[str]
    control: Mapping[Control, re.Pattern[str]]
    unknown: tuple[re.Pattern[str], ...]
    counted: re.Pattern[str]
    said: tuple[tuple[re.Pattern[str], str], ...]


def _words(text: str) -> re.Pattern[str]:
    return re.compile(text, re.VERBOSE)


_ENGLISH: Final = Tongue(
    opening=_words(
        r"""^(?:(?:please|kindly|
        (?:hey|hi|hello)\ there|hey|hi|hello|oi|yo|
        no(?=,\ ?(?:turn|switch|open|close|shut|set|make|put|dim|lock|play|pause)\b)|
        ok|okay|alright|well|so|oh|um+|uh+|now|right|and|also|just|quick(?:ly)?|
        computer|assistant|house|could\ (?:you|somebody|someone|anybody|anyone)|
        can\ (?:you|somebody|someone)|would\ (?:you|somebody|someone|anybody|anyone)|will\ you|do\ you\ mind|
        would\ you\ mind|you\ can|
        you\ could|may\ you|i'd\ like\ you\ to|i\ would\ like\ you\ to|i\ want\ you\ to|i\ need\ you\ to|i'd\ like\ to|
        i\ would\ like\ to|i\ want\ to|let's|lets|go\ ahead\ and|be\ so\ kind\ (?:and|as\ to)|be\ kind\ enough\ to|
        be\ a\ (?:dear|darling|love|star)\ and|
        help\ me|could\ we|can\ we|(?:can|could|may)\ i(?=\ (?:have|get))|make\ sure\ to|to(?=\ (?:turn|switch|open|
        close|set|play|put))|
        (?:would\ you\ be|are\ you|be)\ able\ to|(?:is\ there\ )?any\ chance\ you\ (?:could|can|would)|
        do\ (?:me|us)\ a\ favou?r\ and|(?:it's\ )?time\ to(?=\ (?:turn|switch|open|close|shut|lock))|be\ sure\ to|
        (?:could|can|may)\ i\ (?:trouble|ask|get)\ you\ to|be\ an?\ (?:angel|gem|sweetheart)\ and|
        how\ about(?=\ \w+ing\ )|i\ (?:was\ wondering|wonder)\ if\ you\ (?:could|can)|remember\ to|
        do(?=\ (?:turn|switch|open|close|shut|lock|
        set|play|pause|dim))|
        (?:is|would)\ it\ (?:be\ )?possible\ to|try\ to|i\ think)\b[\s,]*)+"""
    ),
    closing=_words(
        r"""(?:[\s,]*\b(?:please|thanks|(?:and\ )?thank\ you|thank\ you\ very\ much|for\ me|for\ us|now|right\ now|
        right\ away|immediately|
        would\ you|will\ you|could\ you|can\ you|everyone|everybody|dear|darling|then|already|okay|ok|again|
        at\ once|for\ now|too|as\ well|quickly|if\ you\ can|if\ you\ don't\ mind|at\ the\ moment|currently|
        for\ a\ bit|in\ there|over\ there|there|
        by\ any\ chance|when\ you\ can|that\ would\ be\ (?:great|nice|lovely)|pls|plz|thx|cheers|mate|
        love|honey|thank\ you\ so\ much|(?:real|very|really)\ (?:quick|quickly|fast)|
        if\ you\ (?:would|could|please)|as\ soon\ as\ possible|asap|straight\ away|will\ ya|
        would\ ya))+[\s.!?]*$"""
    ),
    anywhere=_words(
        r"""\b(?:please|for\ me|kindly|just|also|possibly|properly|really|actually|quickly|slowly|gently|simply|
        um+|uh+|er+m?|hmm+|pls|plz)\b"""
    ),
    request=(
        (_words(r"^(?:would|do)\ you\ mind\ "), ""),
        (
            _words(
                r"""^(?:i|we)(?:'d|\ would)\ (?:(?:really|so|much)\ )*(?:appreciate\ it|be\ (?:glad|happy|grateful)|
                love\ it|like\ it)\ if\ you\ (?:could\ |would\ )?
                (turn|switch|open|lock|dim|close?|shut|set|put|start)
                (?:ed|med|d)?\ (.+)$"""
            ),
            r"\1 \2",
        ),
        (
            _words(
                r"""^if\ you\ (?:don't\ mind|wouldn't\ mind|would|could|can|please|like)[,\s]+(?:please\ )?(.+?)
                (?:[,\s]+(?:that|it)(?:\ would|'d)\ be\ \w+|[,\s]+i'd\ (?:really\ )?appreciate\ (?:it|that))?$"""
            ),
            r"\1",
        ),
        (_words(r"^(?:please\ )?see\ to\ it\ that\ "), "make sure that "),
        (_words(r"^double\ check\ "), "check "),
        (_words(r"(?<=\w)'s\ (?=(?:locked|unlocked|open|closed|shut|on|off|playing|running)\b)"), " is "),
    ),
    joint=_words(
        r"""\s*(?:[,;.!?]\s*)?(?:\band\s+)?\b(?P<then>then|after\ that|afterwards|next)\b,?\s*
        |\s*[,;!?]\s*(?:(?:and|plus|or)\s+)?(?:also\s+)?|\s*\.(?!\d)\s*|\s+(?:and\s+also|and|plus|as\ well\ as|
        along\ with|together\ with|&|\+)\s+
        |\s+but\s+(?=(?:please\ )?(?:turn|switch|open|close|shut|lock|set|dim|play|pause|stop)\b)"""
    ),
    aside=_words(
        r"""^(?:way\ |far\ |much\ |a\ bit\ )?too\ (?:cold|hot|warm|cool|dark|bright|loud|stuffy|humid)(?:\ in\ here)?$
        |^(?:ok|okay|well|so|right|thanks|thank\ you|time\ for\ bed|bed\ time|that's\ it|that's\ all)$|^(?:it's|
        it\ is|that's|that\ is|i'm|i\ am|we're|we\ are)
        \ (?:(?:really|so|too|way|far|much|very|quite|pretty|rather|a\ bit|getting|a\ little)\ )*
        (?:going\ to\ sleep|off\ to\ bed|cold|hot|warm|cool|chilly|freezing|boiling|roasting|dark|
        bright|loud|stuffy|humid|tired|late)
        (?:\ in\ here|\ here|\ outside)?$"""
    ),
    begin=_words(
        r"\b(?:turn|switch|set|open|close|shut|lock|unlock|play|pause|dim|make\ it|set\ it|what's|what\ is)\b"
    ),
    first=_words(r"^first(?:\ of\ all)?\b[\s,]*"),
    but=(
        _words(
            r"""^(?P<rest>.+?)\s*,?\s+(?:but|and|and\ just|and\ only)\s+(?:leave|keep)\s+(?:only\ )?(?P<but>.+?)
            (?:\ (?:on|off|open|closed|shut|alone|running|as\ (?:it\ is|they\ are|is)))?$"""
        ),
        _words(
            r"""^(?:leave|keep)\ (?:only\ )?(?P<but>.+?)
            \ (?:on|off|open|closed|shut|alone|running|as\ (?:it\ is|they\ are|is))
            \s*,?\s*(?:and|but)\s+(?P<rest>.+)$"""
        ),
        _words(
            r"""^(?P<rest>.+?)\s*,?\s+(?:except|but\ not|but|apart\ from|other\ than|besides|excluding)(?:\ for)?\s+
            (?P<but>.+?)(?:\ (?P<wish>on|off|open|closed|shut))?$"""
        ),
    ),
    contrary=_words(r"\bbut\s+(?:please\ )?(?:turn|switch|open|close|shut|lock|set|dim|play|pause|stop)\b"),
    too=_words(
        r"""^(?:(?:and|plus)\s+)?(?:also|likewise|(?:do\ )?(?:the\ )?same(?:\ thing)?)\b[\s,]*
        |^(?P<weak>and|plus)\b[\s,]*
        |[\s,]*\b(?:too|as\ well|also|likewise)(?=[\s,.!?]*(?:\b(?:please|thanks|thank\ you)\b)?[\s.!?]*$)"""
    ),
    again=re.compile(r"\b(?:again|back|still|more)\b"),
    wonders=re.compile(r"(?<!please)\?\s*$"),
    told_of=re.compile(r"(?!)"),
    corrected=_words(
        r"""(?:\s*[,.;!]\s*(?:(?:oh|uh|um|ah|oops)\b[\s,]*)?(?:no|nope|wait|sorry|i\ mean|i\ meant|scratch\ that|
        make\ that(?=\ (?:the|my)\b))|(?<=\d),\ make\ that
        |\s+(?:no\ wait|oh\ no|no\ sorry|i\ mean|i\ meant|scratch\ that|sorry\ i\ mean))
        (?:[\s,]+(?:no|wait|sorry|i\ mean|i\ meant|scratch\ that|make\ that|not\ that))*
        (?:(?<!\bno)[\s,]+|\s*,\s*|\ (?=(?:the|my|turn|switch|open|close|set|lock)\b|\d))"""
    ),
    set_to="set it to {}",
    asked="is {}",
    relative=_words(
        r"""\b(?:brighter|darker|dimmer|warmer|hotter|cooler|colder|louder|quieter|softer|higher|lower|more|less|
        a\ (?:bit|little|touch)|slightly|(?:turn|crank)\ (?:up|down))\b|\bby\ \d+"""
    ),
    amount=_words(
        r"""^(?:(?:(?:make|set|turn|put)\ (?:it|that|them)\ )?(?:up\ |down\ )?(?:to|at|(?P<by>by))\ |make\ it\ |
        about\ )?
        (?:(?P<n>\d+(?:\.\d+)?)\ ?(?:degrees?(?:\ celsius)?|celsius|deg|°c?|℃|c)?|a\ (?:little\ )?bit|a\ little)
        (?:\ (?:more|less|higher|lower|warmer|cooler|up|down))?$"""
    ),
    later=_words(
        r"""\b(?:later|tomorrow|tonight|every\ (?:day|morning|evening|night|hour|week|weekday|weekend)|remind|
        timer|alarm|schedule|if|when|whenever|once|unless|as\ soon\ as|(?:on|next)\ \w+day|
        (?:this|in\ the)\ (?:evening|morning|afternoon)|
        (?:in|for|after|within)\ (?:an?|half\ an|\d+|some|a\ few|a\ couple\ of)
        \ (?:seconds?|minutes?|mins?|hours?|days?|while)|
        (?:at|by|from|until|till|before|after|around)\ (?:noon|midnight|sunset|sunrise|dawn|dusk|dinner|bedtime|
        (?:1[0-2]|\d|\d+:\d\d|\d+\ ?(?:am|pm|o'clock))(?!\S|\ (?:percent|degrees))))\b"""
    ),
    denied=re.compile(r"\b(?:not|never|no|nobody|none|without|\w+ing)\b|n't\b"),
    there=re.compile(r" (?:in|of|from|at) (?:the )?[\w ]+$"),
    all=_words(
        r"""^(?:in\ )?(?:all|both|everywhere|everything|each|every\ one|every\ room|all\ of\ (?:them|it|these|those)|
        all\ (?:the\ )?(?:rooms|lights|ones)|the\ whole\ house|both\ of\ them)$"""
    ),
    article=re.compile(r"^(?:the|my|our|a) "),
    control={
        "cancel": _words(
            r"""^(?:(?:actually|no|oh|wait|sorry|hold\ on)[\s,]+)*(?:never\ ?mind|cancel|abort)$
            |^(?:cancel|stop|abort|undo|forget|scrap|drop)(?:\ (?:that|it|this|the\ last\ (?:one|command)|everything|
            the\ command|my\ (?:last\ )?command|about\ it|what\ i\ said))?$
            |^never\ ?mind$|^nevermind$|^leave\ it$|^don't\ do\ (?:that|it)$|^(?:no\ )?forget\ (?:it|that)$|^cancel$"""
        ),
        "yes": _words(
            r"""^(?:yes|yeah|yep|yup|sure|ok|okay|correct|right|exactly|affirmative|absolutely|definitely|of\ course|
            do\ it|do\ that|go\ ahead|confirm|confirmed|please\ do|i\ do|that's\ right|alright|fine|i'm\ sure|
            i\ am\ sure)(?:[\s,]+(?:yes|please|sure|do\ it|do\ that|go\ ahead|that's\ right|i'm\ sure|i\ am\ sure|i\ do|
            thanks|of\ course|thank\ you|correct|okay|ok))*$"""
        ),
        "no": _words(
            r"""^(?:no|nope|nah|negative|don't|do\ not|not\ now|no\ way|leave\ it|better\ not|rather\ not|wrong)
            (?:[\s,]+(?:no|thanks|thank\ you|please|don't|do\ not|not\ now|don't\ do\ (?:it|that)|leave\ it|way|wrong|
            i\ don't))*$"""
        ),
    },
    unknown=(
        _words(r"^(?:turn|switch|put|power)\ (?:on|off)\ (?:the\ |my\ |our\ )?(?P<what>.+)$"),
        _words(r"^(?:turn|switch|put)\ (?:the\ |my\ |our\ )?(?P<what>.+?)\ (?:on|off)$"),
        _words(
            r"""^(?:open|close|shut|lock|unlock|start|stop|activate|dim|brighten|play|pause|mute|raise|lower)
            \ (?:the\ |my\ |our\ )?(?P<what>.+)$"""
        ),
        _words(r"^(?:set|change|turn|dim|put|adjust)\ (?:the\ |my\ |our\ )?(?P<what>.+?)\ (?:to|at)\ -?\d.*$"),
        _words(r"^(?:is|are)\ (?:the\ |my\ |our\ )?(?P<what>.+?)\ (?:on|off|open|closed|locked|unlocked)$"),
        _words(r"^(?:what's|what\ is)\ the\ (?:temperature|humidity)\ (?:in|of)\ (?:the\ |my\ |our\ )?(?P<what>.+)$"),
    ),
    counted=re.compile(r"^(?:(?:any|all|every|each|some)\b ?(?:of )?(?:the |my |our )?)+"),
    said=(
        (re.compile(r"\b(?:i'm|we're|we are|i've|we've)(?=\s)"), "i am"),
        (
            re.compile(
                r"^(?:(?:honey|darling|dear|hey|hi|hello|ok|okay|well|alright|right|everyone|everybody) )+(?=\w)"
            ),
            "",
        ),
        (re.compile(r"\bi am off to "), "i am going to "),
        (re.compile(r"\bi am (?:heading|going|off) out\b|\bi am off$"), "i am leaving"),
        (re.compile(r"\bi am back home\b"), "i am home"),
        (re.compile(r"^(?:good)?bye(?: bye)?$"), "goodbye"),
        (re.compile(r"\bi am (?:now|just|all|finally) "), "i am "),
        (re.compile(r" (?:now|everyone|everybody|all|again|then|house|guys|folks|kids|dear|darling)$"), ""),
    ),
)

_CHINESE: Final = Tongue(
    opening=_words(
        r"""^(?:请问|你[去来]|你(?=先?把.*[^了过的吗么?？]$)|请你|请|麻烦你|麻烦|劳驾|拜托|帮我|帮忙|帮|给我|替我|能不能|能否|可不可以|可以|能|你能|你可以|我想要|我想|
        我要|我需要|烦请|劳烦|有劳|辛苦|您|可否|给我们|帮我们|替我们|快点|快|现在就|立刻|马上|那就|那(?![个盏台边些里])|那个(?=.{0,4}[灯空窗音门烤])|就|喂|嘿|你好|小助手|顺便|也|还有|再|嗯|呃|啊|哦|哎|诶|欸|(?:不对|不是|不)(?=[,，](?:把|打开|关|调|锁))|[\s,，、])+"""
    ),
    closing=_words(
        r"""(?:吧|呗|啊|呀|哦|喔|啦|嘛|哈|哟|嘞|谢谢你|谢谢|多谢|好吗|(?<!运)行吗|可以吗|好不好|行不行|拜托|麻烦了|好不|行不|成不|就行了?|就好了?|就够了?|就可以了?|即可|[冷热闷黑吵困冻]死(?:我)?了|[\s,，。！!？?.~])+$"""
    ),
    anywhere=_words(
        r"请你|请|一下子?|帮我|帮忙|麻烦你|麻烦|顺便|给我|(?<=[^,，。\s])先(?=[停关开])|也(?=把?[开关锁打拉调设])|(?<=[开关])个|(?<=[开关调])下(?![来面])"
    ),
    request=(
        (_words(r"^((?:请问)?你?(?:可以|能不能|能否|能|可不可以|是否可以|知道).+?)[吗么]?[?？]?$"), r"\1"),
        (_words(r"([开关锁拉调])[1一]\1"), r"\1"),
        (_words(r"^([^,，。不没]{1,8}?)(?:能不能|可不可以|能否)(?=[调把开关打弄拉锁再稍])"), r"\1"),
    ),
    joint=_words(
        r"""\s*[,，。；;!！?？]?\s*(?P<then>然后再|然后|接着再|接着|完了再|(?<!不)再(?!见|[^,，。；]{0,4}(?:[1一]?点|[1一]?些|[高低]?\d+度?$))|并且|并(?!排)|随后)\s*
        |[,，\s]*(?:但是?|不过)(?=把|将|打开|关|开|锁|拉|请)
        |\s*[,，。；;!！?？、]+\s*(?:还有|以及|和|同时|也|并且|另外)?\s*|还有|以及|同时|另外|和|跟|与|及"""
    ),
    aside=_words(
        r"""^(?:好了|好吧|嗯|谢谢|那么|家里没有?人了?)$|^(?:我|这里|这儿|屋里|屋子里|房间里?|家里|外面|今天|现在|光线|太阳)?(?:感觉|觉得)?(?:有点儿?|太|好|很|非常|越来越)?
        (?:冷|热|冻|暗|亮|黑|吵|闷|潮|困|晚|刺眼)(?:死我?)?了?$"""
    ),
    begin=_words(
        r"""把|将|打开|开启|关闭|关掉|关上|开|关|锁|拉上|拉开|播放|暂停|
        (?:温度|亮度|音量)?(?:调[到成至低高暗亮大小]|设[为成到定置])|升起|放下"""
    ),
    first=_words(r"^(?:先|首先)[,，\s]*"),
    but=(
        _words(r"^(?:把|将)?(?P<but>[^,，。]+?)(?:以外|之外)的(?P<rest>.+)$"),
        _words(
            r"""^(?:把|将)?除(?:了|开|去)?(?P<but>[^,，。]+?)(?:以外|之外|外)?的?
            (?P<rest>(?:电灯|灯|空调|冷气|窗帘|百叶窗|音箱|音响|风扇|插座|门锁)[都全].+)$"""
        ),
        _words(
            r"""^(?P<wish>打开|开启|关掉|关闭|关上|开|关|拉上|拉开)除(?:了|开|去)?(?P<but>[^,，。]+?)
            (?:(?:以外|之外|外)的?|的)(?:其他|其它|其余|别)?的?(?P<rest>[^,，。]+)$"""
        ),
        _words(
            r"""^(?P<wish>打开|开启|关掉|关闭|关上|开|关|拉上|拉开)(?P<but>[^,，。]+?)
            (?:以外|之外)的?(?:其他|其它|其余|别)?的?(?P<rest>[^,，。]+)$"""
        ),
        _words(
            r"""^(?:把|将)?(?P<rest>[^,，。]+?)[,，\s]+(?:但|但是|只|就|只有)?(?:把|将)?(?P<but>[^,，。]+?)
            的?(?:[1一]个)?(?:留着|留下|别关|不用关|不关|开着|先别关|先留着)$"""
        ),
        _words(
            r"^(?:把|将)?+(?P<rest>[^,，。]+?)[,，]?除了(?P<but>[^,，。]+?)(?:以外|之外)?[,，]?(?P<wish>[都全]..+)$"
        ),
        _words(
            r"""^(?:把|将)?除(?:了|开|去)?(?P<but>.+?)(?:以外|之外|外面|外)?(?:[,，\s]|的|把)*
            (?:其他|其它|其余|别的|剩下|剩余|另外)(?:的|所有|全部)*(?P<rest>.+)$"""
        ),
        _words(r"^(?:把|将)?除(?:了|开|去)?(?P<but>.+?)(?:以外|之外|外)(?:[,，\s]|的|把)*(?P<rest>.+)$"),
        _words(r"^(?:把|将)?除(?:了|开|去)?(?P<but>.+?)[,，\s]+(?:请|把|的)*(?P<rest>.+)$"),
        _words(r"^(?:把|将)?除(?:了|开|去)?(?P<but>.+?)(?P<rest>(?:所有|全部|全家|全屋|家里).+)$"),
        _words(
            r"^(?:(?:其他|其它|其余|别的)的?)?(?P<rest>.+?)[,，\s]*(?:除了|除开|除去|但不包括|不包括)(?P<but>.+?)(?:以外|之外|外)?$"
        ),
    ),
    contrary=_words(r"(?:但是?|不过)(?:把|将|打开|关|开|锁|拉|请)"),
    too=_words(
        r"""(?P<weak>^(?:还有|另外|以及)|呢(?=[\s,，。！!?？]*$))|^同样
        |也(?:是|一样|同样|要|这样)(?:的|吧|了|[\s,，。！!])*$|(?:一样|同样)(?=[\s,，。！!]*$)|也(?=[开关打拉锁调])"""
    ),
    again=re.compile(r"再|还要|还是"),
    wonders=re.compile(r"(?:呢|(?<![吗好行])[?？])[\s,，。！!?？]*$"),
    told_of=re.compile(r"^让?[他她]|^它.*了$"),
    corrected=_words(
        r"""[,，。;；!！\s]+(?:哦|噢|啊|哎|呃|嗯)*(?:不对|不是|不不|不|错了|说错了|我说错了|我是说|我说的是|我的意思是|等等|等一下)
        (?:[,，。\s]+(?:不对|不是|说错了|我是说|应该是)?)+(?:是|应该是|我是说)?(?=.)"""
    ),
    set_to="调到{}",
    asked="{}吗",
    relative=_words(
        r"""[亮暗高低大小热冷暖快慢声响](?:上|下)?(?:[一1]?点|一?些|\d+度)|再.{0,4}[亮暗高低大小热冷]|(?:调|升|降)[高低亮暗大小]?(?:了)?(?:一?点|一?些)|
        (?:调|升|降)(?:高|低|大|小|亮|暗)$"""
    ),
    amount=_words(
        r"""^(?:把?它?(?:调|开|设|升|降)?(?:到|至|成|为)|设为|(?P<by>(?:再?(?:调|升|降)?(?:高|低)|升|降|加|减)))?
        (?:(?P<n>\d+(?:\.\d+)?)个?(?:度|摄氏度|°c?|℃)?|[一1]?点儿?|[一1]点点)$"""
    ),
    later=_words(
        r"""明天|后天|今晚|晚上|早上|中午|下午|半夜|待会|等会|一会儿|稍后|等一下|每天|每晚|每周|定时|提醒|闹钟|预约|
        如果|要是|假如|的时候|(?:分钟|小时|秒钟?|天)(?:之?后|以后)|[点时](?:钟|半|整)?(?:的时候)?(?:打开|开|关|把)|
        等.+再|(?<![亮暗高低大小热冷暖快慢声响])(?:\d|[一二两三四五六七八九十])点(?!儿)|之后|以前|之前|日落|日出|天黑"""
    ),
    denied=re.compile(r"[不别没勿吗谁哪]|还是|怎么|什么|多久|是否"),
    there=re.compile(r"(?!)"),
    all=_words(r"^(?:都|全|全部|全都|所有|每个|两个|一起)(?:的|房间|地方|要|是|打开|开|关|关掉|关了|都要|都开|都关)*$"),
    article=re.compile(r"^(?:那个|这个|那盏|这盏|就)"),
    control={
        "cancel": _words(
            r"""^(?:取消|撤销|撤消|算了|不用了|停止执行|作罢|别管了|当我没说|不要了|不做了|停下来?|别弄了|撤回)
            (?:吧|了|它|这个|那个|命令|(?:刚才|刚刚|上一个|上一条|上个)?(?:的)?(?:那个|那条)?(?:命令|操作|指令|请求)?)?$
            |^(?:把)?(?:刚才|刚刚|上一个|上一条)(?:的)?(?:那个|那条)?(?:命令|操作|指令)?(?:取消|撤销)(?:掉|了)?$
            |^(?:算了|取消|不用了|不要了|别弄了|没事了)(?:[吧,，\s]*(?:算了|取消|不用了|不要了|别弄了|没事了|
            不弄了))+吧?$"""
        ),
        "yes": _words(
            r"""^(?:是|是的|对|对的|好|好的|好呀|确定|确认|可以|行|嗯|嗯嗯|没错|当然|当然了|同意|可以的|要|要的|没问题|正确|执行|
            就这样|是啊|对啊|好啊|行啊|我确定|我确认|确定的)(?:[,，\s]*(?:是的|对|好的|确定|可以|执行|没错|要|打开吧|
            做吧))*$"""
        ),
        "no": _words(
            r"""^(?:不|不是|不要|不对|不行|不用|不可以|否|不了|别|不必|没有|先不要|不确定|不好|错了|不需要|别做|不是的|不要做)
            (?:[,，\s]*(?:不要|谢谢|不用|不是|了))*$"""
        ),
    },
    unknown=(
        _words(r"^(?:打开|开启|开|关掉|关闭|关上|关|启动|停止|锁上|解锁|播放|拉上|拉开|调节)(?P<what>.+)$"),
        _words(
            r"^(?:把|将)?(?P<what>.+?)(?:的?(?:温度|亮度|音量))?(?:调|设|设置|设定|开|升|降)?(?:到|至|成|为)-?\d.*$"
        ),
        _words(r"^(?:把|将)(?P<what>.+?)(?:打开|关掉|关闭|关上|关了|关|开|锁上|解锁|启动|停止|拉上|拉开)$"),
        _words(r"^(?P<what>.+?)(?:打开|关掉|关闭|开着吗|关了吗|开了吗|锁了吗)$"),
        _words(r"^(?P<what>.+?)的?(?:现在)?的?(?:温度|湿度)?是?(?:多少|几)度?$"),
    ),
    counted=re.compile(r"^(?:还?有|所有的?|全部的?|都|全)+|[都全还]+$"),
    said=(
        (re.compile(r"(?:啊|吧|哦|大家|各位|拜拜|再见)+$"), ""),
        (re.compile(r"^(?:大家|各位)"), ""),
        (re.compile(r"(?:啦|咯|喽)$"), "了"),
        (re.compile(r"^(?:好了|好的|好吧|好|那)+(?=[我咱])"), ""),
        (re.compile(r"出去了$"), "出门了"),
        (
            re.compile(
                r"^(?:我们|咱们|我|咱)?(?:一起|一块儿?|现在|马上|刚刚|刚|已经|下班|放学)*(?:(?:准备|正|要|想|去|得|就|先)+(?=.*了$))?"
            ),
            "",
        ),
    ),
)

TONGUES: Final[Mapping[str, Tongue]] = {"en": _ENGLISH, "zh": _CHINESE}
