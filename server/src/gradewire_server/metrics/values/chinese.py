"""Write Chinese numerals, times, dates and eras in the notation that the tokens have."""

import re
from typing import Final

from gradewire_server.metrics.values.tokens import VOCABULARY

_CHINESE_DIGITS: Final = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"\u3007": 0, "两": 2}
_CHINESE_SCALES: Final = {"十": 10, "百": 100, "千": 1_000}
_CHINESE_GROUPS: Final = {"万": 10_000, "亿": 100_000_000}
_CHINESE_RUN: Final = re.compile(r"[零〇一二两三四五六七八九十百千万亿]{1,24}")
_MEASURE_WORDS: Final = frozenset(VOCABULARY["notations"]["measure_words"] + "点")
_SCALED: Final = re.compile(r"(\d+(?:\.\d+)?)\s?([万亿]{1,2})")
_CHINESE_FRACTION: Final = re.compile(r"([零一二两三四五六七八九十百]{1,8})分之([零一二两三四五六七八九十百]{1,8})")
_CHINESE_PERCENT: Final = re.compile(r"百分之\s?(\d+(?:\.\d+)?|[零一二两三四五六七八九十百]{1,8})")
_CHINESE_ERA: Final = re.compile(r"(公元前|公元)\s?(\d{1,4})\s?年")
_CHINESE_TIME: Final = re.compile(
    r"(上午|早上|凌晨|下午|晚上|傍晚|中午)?\s?(\d{1,2})[点點时](?:(半)|(\d{1,2})分?)?(?![\d间])"
)
_CHINESE_AFTERNOON: Final = frozenset({"下午", "晚上", "傍晚"})
_CHINESE_MORNING: Final = frozenset({"上午", "早上", "凌晨"})
_AROUND: Final = " \u3002.\uff0c"
_PLACE: Final = re.compile(r"第(\d)")
_CHINESE_DATE: Final = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})[日号]")


def without_chinese_numerals(text: str) -> str:
    """Return a text with its Chinese numerals in digits, and with dates, times and eras as in "1949-10-01"."""
    text = _CHINESE_DATE.sub(lambda date: f"{date[1]}-{int(date[2]):02}-{int(date[3]):02}", text)
    text = _CHINESE_PERCENT.sub(_percent, text)
    text = _CHINESE_FRACTION.sub(_fraction, text)
    text = _SCALED.sub(_scaled, text)
    text = _PLACE.sub(r"第 \1", _CHINESE_RUN.sub(_in_digits, text))
    text = _CHINESE_ERA.sub(lambda era: f"{era[2]} BC" if era[1] == "公元前" else f"AD {era[2]}", text)
    return _CHINESE_TIME.sub(_chinese_time, text)


def _chinese_time(time: re.Match[str]) -> str:
    hour, minute = int(time[2]), 30 if time[3] else int(time[4] or 0)
    if time[1] in _CHINESE_AFTERNOON and hour < 12:
        hour += 12
    half = " am" if time[1] in _CHINESE_MORNING and hour < 12 else ""
    if hour > 24 or minute > 59 or not (time[1] or time[3] or time[4] or "点" in time[0]):
        return time[0]
    return f"{hour}:{minute:02}{half}"


def _percent(share: re.Match[str]) -> str:
    value = share[1] if share[1][0].isdecimal() else chinese_number(share[1])
    return share[0] if value is None else f"{value}%"


def _fraction(share: re.Match[str]) -> str:
    below, above = chinese_number(share[1]), chinese_number(share[2])
    return f"{above}/{below}" if above is not None and below else share[0]


def _scaled(number: re.Match[str]) -> str:
    value = float(number[1])
    for sign in number[2]:
        value *= _CHINESE_GROUPS[sign]
    return f"{value:.0f}" if value % 1 == 0 else number[0]


def _in_digits(run: re.Match[str]) -> str:
    """Return a numeral in digits if it counts something, has several digits, or is the whole text."""
    behind = run.string[run.end() : run.end() + 1]
    before = run.string[max(0, run.start() - 1) : run.start()]
    if run[0] == "一" and before != "第" and run.string.strip(_AROUND) != "一":
        return run[0]  # an article
    several = len(run[0]) > 1 and not set(run[0]) <= {"万", "千", "百"}
    if not several and behind not in _MEASURE_WORDS and before != "第" and run[0] != run.string.strip(_AROUND):
        return run[0]
    value = chinese_number(run[0])
    if value is None:
        return run[0]
    gap = " " if before.isascii() and before.isalnum() else ""
    return f"{gap}{value}"


def chinese_number(numeral: str) -> int | None:
    """Return the value of a Chinese numeral: 25 for "二十五", 2008 for "二〇〇八"; None for other texts."""
    if len(numeral) > 1 and all(sign in _CHINESE_DIGITS for sign in numeral):
        return int("".join(str(_CHINESE_DIGITS[sign]) for sign in numeral))
    total = group = 0
    digit: int | None = None
    for sign in numeral:
        if sign in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[sign]
        elif sign in _CHINESE_SCALES:
            group += (1 if digit is None else digit) * _CHINESE_SCALES[sign]
            digit = None
        elif sign in _CHINESE_GROUPS:
            amount = group + (digit or 0)
            if not amount and not total:
                return None
            total = (total + amount) * _CHINESE_GROUPS[sign] if amount == 0 else total + amount * _CHINESE_GROUPS[sign]
            group, digit = 0, None
        else:
            return None
    return total + group + (digit or 0)
