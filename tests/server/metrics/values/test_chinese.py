"""Chinese numerals, dates, times and eras."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.values.chinese import chinese_number, without_chinese_numerals

_DIGITS = "零一二三四五六七八九"


@pytest.mark.parametrize(
    ("numeral", "value"),
    [
        ("十", 10),
        ("二十五", 25),
        ("一百零五", 105),
        ("两千", 2_000),
        ("二〇〇八", 2008),
        ("二千三百万", 23_000_000),
        ("一亿二千万", 120_000_000),
        ("三万亿", 3_000_000_000_000),
        ("万", None),
        ("猫", None),
    ],
)
def test_numerals(numeral: str, value: int | None) -> None:
    assert chinese_number(numeral) == value


def _written(value: int) -> str:
    """Write a number below 10 000, independently of the parser."""
    said, zero = "", False
    for scale, sign in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = value // scale % 10
        if digit:
            said += ("零" if zero and said else "") + _DIGITS[digit] + sign
            zero = False
        else:
            zero = True
    return said or "零"


@given(st.integers(1, 9_999))
def test_each_number_has_its_value(value: int) -> None:
    assert chinese_number(_written(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("三十八个", "38个"),
        ("2300万人", "23000000人"),
        ("1.2亿", "120000000"),
        ("百分之五十", "50%"),
        ("三分之一", "1/3"),
        ("第三名", "第 3名"),
        ("1949年10月1日", "1949-10-01"),
        ("公元前221年", "221 BC"),
        ("公元221年", "AD 221"),
        ("下午三点半", "15:30"),
        ("凌晨三点", "3:00 am"),
        ("8点45分", "8:45"),
        # Words that contain numerals, and no numbers
        ("这是一般的问题", "这是一般的问题"),
        ("万一下雨", "万一下雨"),
        ("一只猫", "一只猫"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert without_chinese_numerals(text) == expected


@given(st.text("零一二三四五六七八九十百千万亿点半分第年月日个 3", max_size=60))
def test_no_text_raises_an_error(text: str) -> None:
    assert isinstance(without_chinese_numerals(text), str)
