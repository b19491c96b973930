"""How things are put in each language, as data. A language without words of its own is answered in English."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Saying:
    """One action in words; ``{x}`` is the device, ``{v}`` the value.

    Attributes:
        doing: under way.
        do: asked for.
        is_so: what is so once it was done.
    """

    doing: str
    do: str
    is_so: str


@dataclass(frozen=True)
class Wording:
    """One language."""

    actions: Mapping[str, Saying]
    changes: Mapping[str, tuple[Saying, Saying]]
    """More and less of something: ``{v}`` is by how much."""
    outcomes: Mapping[str, str]
    """By outcome; ``{x}``: the devices with a capital, ``{them}``: without; ``{so}``: what was to be so."""
    looks: Mapping[str, str]
    states: Mapping[str, str]
    modes: Mapping[str, str]
    phrases: Mapping[str, str]
    values: Mapping[str, str]
    """What an action sets, by the action."""
    kinds: Mapping[str, str]
    article: str
    listed: tuple[str, str]
    """Between names, and before the last one."""
    either: str
    gap: str
    """Between sentences."""
    all: str = ""
    """Before what is so of several."""


ENGLISH: Final = Wording(
    actions={
        "turn_on": Saying("turning on {x}", "turn on {x}", "on"),
        "turn_off": Saying("turning off {x}", "turn off {x}", "off"),
        "set_brightness": Saying("setting {x} to {v} percent", "set {x} to {v} percent", "at {v} percent"),
        "set_temperature": Saying("setting {x} to {v} degrees", "set {x} to {v} degrees", "set to {v} degrees"),
        "set_mode": Saying("setting {x} to {v}", "set {x} to {v}", "set to {v}"),
        "open": Saying("opening {x}", "open {x}", "open"),
        "close": Saying("closing {x}", "close {x}", "closed"),
        "set_position": Saying("moving {x} to {v} percent", "move {x} to {v} percent", "at {v} percent"),
        "lock": Saying("locking {x}", "lock {x}", "locked"),
        "unlock": Saying("unlocking {x}", "unlock {x}", "unlocked"),
        "set_volume": Saying("setting {x} to volume {v}", "set {x} to volume {v}", "at volume {v}"),
        "play": Saying("starting {x}", "play {x}", "playing"),
        "pause": Saying("pausing {x}", "pause {x}", "paused"),
    },
    changes={
        "change_brightness": (
            Saying("making {x} brighter by {v} percent", "make {x} brighter by {v} percent", "brighter"),
            Saying("dimming {x} by {v} percent", "dim {x} by {v} percent", "dimmer"),
        ),
        "change_temperature": (
            Saying("setting {x} {v} degrees higher", "set {x} {v} degrees higher", "set higher"),
            Saying("setting {x} {v} degrees lower", "set {x} {v} degrees lower", "set lower"),
        ),
        "change_position": (
            Saying("opening {x} by {v} percent", "open {x} by {v} percent", "open further"),
            Saying("closing {x} by {v} percent", "close {x} by {v} percent", "closed further"),
        ),
        "change_volume": (
            Saying("turning {x} up by {v}", "turn {x} up by {v}", "louder"),
            Saying("turning {x} down by {v}", "turn {x} down by {v}", "quieter"),
        ),
    },
    outcomes={
        "confirmed": "{x} {is} {so}.",
        "already_done": "{x} {was} {so} already.",
        "contradicted": "{x} {is} not {so}: somebody has changed {it} by hand since.",
        "unconfirmed": "I have told {them}, but cannot confirm that {it} {is} {so}.",
        "device_unreachable": "I cannot reach {them}.",
        "device_refused": "{x} refused.",
        "overridden": "I left {them} alone: somebody has just set {it} by hand.",
        "requested": "Cancelled: I did not {do}.",
        "superseded": "A newer command has taken the place of this one for {them}.",
        "expired": "There was no time left to {do}.",
        "deadline": "There was no time left to {do}.",
        "not_begun": "I did not {do}, because of what failed before.",
        "else": "Something went wrong when I tried to {do}.",
    },
    looks={
        "temperature": "It is {v} degrees in {place}.",
        "humidity": "The humidity in {place} is {v} percent.",
        "set_temperature": "{x} {is} set to {v} degrees.",
        "value": "{x} {is} {so}.",
        "yes": "Yes, {them} {is} {so}.",
        "no": "No, {them} {is} {so}.",
        "all": "Yes, {them} are {so}.",
        "none": "No, {them} are {so}.",
        "none_is": "None of the {n} is {so}.",
        "some": "Only {them} {is} {so}.",
        "several": "{x} of {of} are {so}: {first} and {rest} more.",
        "unreachable": "I cannot reach {them}.",
        "last": "{ago} ago it was {so}.",
        "unknown": "{x} {does} not tell.",
        "refused": "{x} refused to answer.",
    },
    states={
        "power=on": "on",
        "power=off": "off",
        "lock=locked": "locked",
        "lock=unlocked": "unlocked",
        "contact=open": "open",
        "contact=closed": "closed",
        "playback=playing": "playing",
        "playback=paused": "paused",
        "position=open": "open",
        "position=closed": "closed",
        "position": "open by {v} percent",
        "brightness": "at {v} percent",
        "temperature": "set to {v} degrees",
        "humidity": "at {v} percent humidity",
        "volume": "at volume {v}",
        "mode": "in {v} mode",
        "air": "at {v} degrees",
        "else": "at {v}",
    },
    modes={"cool": "cooling", "heat": "heating", "dry": "drying", "fan": "fan only", "auto": "automatic"},
    phrases={
        "ok": "OK, {what}.",
        "then": ", then ",
        "look": "Let me look.",
        "scene": "OK, running “{name}”.",
        "scene_done": "The scene “{name}” is done.",
        "scene_partly": "The scene “{name}” is done in part.",
        "scene_failed": "The scene “{name}” did not work.",
        "which_area": "In which room: {them}?",
        "which_area_open": "In which room?",
        "ambiguous": "Which one do you mean: {them}?",
        "ambiguous_open": "Which one do you mean?",
        "no_such_device": "I know nothing here by the name of {name}.",
        "no_such_device_else": "I know no such device here.",
        "perhaps": "Did you mean {them}?",
        "not_understood": "Sorry, I did not understand that.",
        "out_of_range": "I can only set {what} from {low} to {high}.",
        "relative": "I do not know how much more or less you mean: please say to how much.",
        "later": "I cannot do things later or under a condition yet, only now.",
        "confirm": "Do you really want me to {what}?",
        "confirm_scene": "Do you really want {name}? It will {what}.",
        "cancel": "OK, I will stop that.",
        "yes": "OK.",
        "no": "OK, I will not.",
        "age": " That was {ago} ago.",
        "second": "{n} seconds",
        "minute": "{n} minutes",
        "minute_one": "a minute",
        "hour": "{n} hours",
        "hour_one": "an hour",
        "place": "the {name}",
        "many": "{n} {kind}",
        "all_many": "all {n} {kind}",
        "nothing": "Nothing was done.",
    },
    values={
        "set_brightness": "the brightness in percent",
        "set_temperature": "the temperature in degrees",
        "set_position": "the position in percent",
        "set_volume": "the volume in percent",
    },
    kinds={"light": "lights", "climate": "air conditioners", "cover": "blinds", "lock": "locks", "else": "devices"},
    article="the ",
    listed=(", ", " and "),
    either=" or ",
    gap=" ",
)

CHINESE: Final = Wording(
    actions={
        "turn_on": Saying("打开{x}", "打开{x}", "开着"),
        "turn_off": Saying("关闭{x}", "关闭{x}", "关着"),
        "set_brightness": Saying("把{x}调到{v}%", "把{x}调到{v}%", "亮度{v}%"),
        "set_temperature": Saying("把{x}调到{v}度", "把{x}调到{v}度", "设在{v}度"),
        "set_mode": Saying("把{x}设为{v}", "把{x}设为{v}", "{v}模式"),
        "open": Saying("打开{x}", "打开{x}", "开着"),
        "close": Saying("关上{x}", "关上{x}", "关着"),
        "set_position": Saying("把{x}开到{v}%", "把{x}开到{v}%", "开到{v}%"),
        "lock": Saying("锁上{x}", "锁上{x}", "锁着"),
        "unlock": Saying("给{x}开锁", "给{x}开锁", "没锁"),
        "set_volume": Saying("把{x}音量调到{v}%", "把{x}音量调到{v}%", "音量{v}%"),
        "play": Saying("让{x}播放", "让{x}播放", "在播放"),
        "pause": Saying("暂停{x}", "暂停{x}", "暂停着"),
    },
    changes={
        "change_brightness": (
            Saying("把{x}调亮{v}%", "把{x}调亮{v}%", "更亮"),
            Saying("把{x}调暗{v}%", "把{x}调暗{v}%", "更暗"),
        ),
        "change_temperature": (
            Saying("把{x}调高{v}度", "把{x}调高{v}度", "调高了"),
            Saying("把{x}调低{v}度", "把{x}调低{v}度", "调低了"),
        ),
        "change_position": (
            Saying("把{x}再开{v}%", "把{x}再开{v}%", "开大了"),
            Saying("把{x}再关{v}%", "把{x}再关{v}%", "关小了"),
        ),
        "change_volume": (
            Saying("把{x}音量调大{v}%", "把{x}音量调大{v}%", "音量大了"),
            Saying("把{x}音量调小{v}%", "把{x}音量调小{v}%", "音量小了"),
        ),
    },
    outcomes={
        "confirmed": "{x}现在{all}{so}。",
        "already_done": "{x}本来就{all}{so}。",
        "contradicted": "没能{do}：之后有人手动改过。",
        "unconfirmed": "已经告诉{them}了，但没法确认现在是否{so}。",
        "device_unreachable": "联系不上{them}。",
        "device_refused": "{x}拒绝了。",
        "overridden": "刚有人手动调过{them}，我就没动。",
        "requested": "已取消：没有{do}。",
        "superseded": "{x}已经有更新的命令了。",
        "expired": "时间不够，没来得及{do}。",
        "deadline": "时间不够，没来得及{do}。",
        "not_begun": "因为前面没成功，没有{do}。",
        "else": "{do}时出了问题。",
    },
    looks={
        "temperature": "{place}现在{v}度。",
        "humidity": "{place}的湿度是{v}%。",
        "set_temperature": "{x}设在{v}度。",
        "value": "{x}现在{so}。",
        "yes": "是的，{them}{so}。",
        "no": "没有，{them}{so}。",
        "all": "是的，{them}都{so}。",
        "none": "没有，{them}都{so}。",
        "none_is": "没有一个{so}。",
        "some": "只有{them}{so}。",
        "several": "{of}个里有{them}{so}：{first}，还有{rest}个。",
        "unreachable": "联系不上{them}。",
        "last": "{ago}前{so}。",
        "unknown": "{x}没有说。",
        "refused": "{x}拒绝回答。",
    },
    states={
        "power=on": "开着",
        "power=off": "关着",
        "lock=locked": "锁着",
        "lock=unlocked": "没锁",
        "contact=open": "开着",
        "contact=closed": "关着",
        "playback=playing": "在播放",
        "playback=paused": "暂停着",
        "position=open": "开着",
        "position=closed": "关着",
        "position": "开到{v}%",
        "brightness": "亮度{v}%",
        "temperature": "设在{v}度",
        "humidity": "湿度{v}%",
        "volume": "音量{v}%",
        "mode": "{v}模式",
        "air": "{v}度",
        "else": "{v}",
    },
    modes={"cool": "制冷", "heat": "制热", "dry": "除湿", "fan": "送风", "auto": "自动"},
    phrases={
        "ok": "好的，正在{what}。",
        "then": "，然后",
        "look": "我看一下。",
        "scene": "好的，正在执行“{name}”。",
        "scene_done": "“{name}”都做好了。",
        "scene_partly": "“{name}”做好了一部分。",
        "scene_failed": "“{name}”没有成功。",
        "which_area": "哪个房间？{them}？",
        "which_area_open": "哪个房间？",
        "ambiguous": "您说的是哪一个？{them}？",
        "ambiguous_open": "您说的是哪一个？",
        "no_such_device": "这里没有叫“{name}”的设备。",
        "no_such_device_else": "这里没有这样的设备。",
        "perhaps": "您是说{them}吗？",
        "not_understood": "对不起，我没有听懂。",
        "out_of_range": "{what}只能设在{low}到{high}之间。",
        "relative": "我不确定您想调多少，请告诉我具体调到多少。",
        "later": "定时或者有条件的事我还不会做，只能现在就做。",
        "confirm": "确定要{what}吗？",
        "confirm_scene": "确定要执行“{name}”吗？会{what}。",
        "cancel": "好的，取消。",
        "yes": "好的。",
        "no": "好的，那就不做了。",
        "age": "这是{ago}前的读数。",
        "second": "{n}秒",
        "minute": "{n}分钟",
        "minute_one": "1分钟",
        "hour": "{n}小时",
        "hour_one": "1小时",
        "place": "{name}",
        "many": "{n}个{kind}",
        "all_many": "{n}个{kind}",
        "nothing": "什么也没做。",
    },
    values={
        "set_brightness": "亮度（%）",
        "set_temperature": "温度（度）",
        "set_position": "开度（%）",
        "set_volume": "音量（%）",
    },
    kinds={"light": "灯", "climate": "空调", "cover": "窗帘", "lock": "锁", "else": "设备"},
    article="",
    listed=("、", "和"),
    either="还是",
    gap="",
    all="都",
)

WORDINGS: Final[Mapping[str, Wording]] = {"en": ENGLISH, "zh": CHINESE}


def wording(language: str) -> Wording:
    """That of a language by its tag."""
    return WORDINGS.get(language.split("-", maxsplit=1)[0], ENGLISH)
