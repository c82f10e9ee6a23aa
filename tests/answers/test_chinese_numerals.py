import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.chinese_numerals import chinese_to_digits
from rewardkit.answers.equal import equal
from tests.tables import every


@every(
    ("wording", "number"),
    [
        ("十二", "12"), ("二十", "20"), ("一百零五", "105"), ("三千", "3000"), ("三万二千", "32000"),
        ("两亿", "200000000"), ("二〇二四", "2024"), ("三点一四", "3.14"), ("负五", "-5"),
        ("四分之三", r"\frac{3}{4}"), ("百分之五十", r"50\%"), ("零", "0"), ("二十五元", "25"), ("二十五元", "25元"),
        ("三小时", "3"), ("两个", "2"), ("一点五米", "1.5米"), ("十二平方厘米", "12平方厘米"), ("一万元", "1万元"),
        ("四分之三米", r"\frac{3}{4}"),
    ],
)  # fmt: skip
def test_a_number_in_chinese_words_equals_the_number_in_digits(wording, number):
    assert equal(wording, number)
    assert equal(number, wording)


@pytest.mark.parametrize(
    "text",
    [
        "三角形", "三角", "十分", "一定", "一半", "二次函数", "五千克", "千米", "十个苹果", "不是五", "第一", "1十", "",
    ],
)  # fmt: skip
def test_any_other_text_is_unchanged(text):
    assert chinese_to_digits(text) == text


@given(st.text(alphabet="零〇一二两三四五六七八九十百千万亿点分之负", max_size=30))
def test_any_run_of_numerals_is_read_without_raising(text):
    assert isinstance(chinese_to_digits(text), str)
    equal(text, "5")
