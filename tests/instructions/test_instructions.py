"""The scorer `instructions`: its constraints, the forms of its ground truths, and its numbers for verl."""

import json
import time

import pytest

from rewardkit.instructions import ifbench, ifeval, ifrlvr, rlvr_ifeval, text
from rewardkit.instructions.ground_truth import (
    CHECKS,
    GROUPS,
    MAX_CHARACTERS,
    GroundTruthError,
    read_constraints,
)
from rewardkit.instructions.languages import is_language
from rewardkit.preprocess.prep import prep
from rewardkit.row import read_rows
from rewardkit.scorers import auto
from rewardkit.scorers.base import Status
from rewardkit.scorers.instructions import SPEC, compute_score, explain_gold, score

FAMILIES = {ifeval: 25, ifrlvr: 29, ifbench: 58, rlvr_ifeval: 25}


def gold(name, **kwargs):
    return json.dumps({"instruction_id_list": [name], "kwargs": [kwargs]})


def test_every_constraint_of_the_families_is_there_with_a_group():
    assert {module: len(module.CHECKS) for module in FAMILIES} == FAMILIES
    assert len(CHECKS) == sum(FAMILIES.values())


#: id, arguments, a response that follows the constraint, one that does not.
CASES = [
    ("keywords:existence", {"keywords": ["Tea", "C++"]}, "tea and c++", "tea"),
    ("keywords:frequency", {"keyword": "a.b", "frequency": 2, "relation": "less than"}, "a.b axb", "a.b a.b"),
    ("keywords:frequency", {"keyword": "x", "frequency": 2.0, "relation": "at least"}, "x X", "x"),
    ("keywords:forbidden_words", {"forbidden_words": ["can"]}, "A candle.", "Yes, I CAN."),
    ("keywords:forbidden_words", {"forbidden_words": ["水"]}, "火很热", "喝水吧"),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": "at least"}, "# a #", "#"),
    ("language:response_language", {"language": "de"}, "Das ist nicht der Weg.", "This is not the way."),
    ("language:response_language", {"language": "zh"}, "今天天气很好", "今日はとても天気がいいです"),
    ("language:response_language", {"language": "ja"}, "今日はとても天気がいいです", "今天天气很好"),
    ("language:response_language", {"language": "ru"}, "Это не так просто, как кажется.", "Това не е толкова лесно."),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"},
     "Dr. Lee left. He ran.", "Dr. Lee left, e.g. by bus."),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "less than"}, "你好。再见！", "一。二。三。"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a\n***\n***\nb"),
    ("length_constraints:number_words", {"num_words": 4, "relation": "at least"}, "今天很好", "three words only"),
    ("length_constraints:nth_paragraph_first_word",
     {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"}, 'a\n\n\n\n"Then, b', "a\n\nb\n\nthen"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b]", "[a [b]"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye. P. P.S. more", "P.S. more"),
    ("detectable_content:postscript", {"postscript_marker": "NB"}, "nb: so", "none"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n - b", "** a\n* b"),
    ("detectable_format:constrained_response", {}, "My answer is no.", "No."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and **b**", "** ** *a*"),
    ("detectable_format:multiple_sections", {"section_spliter": "Part", "num_sections": 2}, "Part 1 a Part2 b", "Part a Part 1"),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{a: 1}"),
    ("detectable_format:title", {}, "<<a>>\nb", "<<a\nb>>"),
    ("combination:two_responses", {}, "a\n******\nb", "a ****** a"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi. "}, "say hi. Hi!", "Hi! Say hi."),
    ("startend:end_checker", {"end_phrase": "The end."}, 'So. "the END."', "The end. Yes"),
    ("startend:quotation", {}, '"a"', '"'),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, "A BIG cat", "A big cat"),
    ("change_case:english_capital", {}, "THE TEA IS HOT.", "The tea is hot."),
    ("change_case:english_capital", {}, "GUESS WHO?", "DAS IST NICHT DER WEG UND ICH BIN ES."),
    ("change_case:english_lowercase", {}, "etchings", "Etchings"),
    ("punctuation:no_comma", {}, "a b", "a, b"),
    # IF-RLVR
    ("copy:repeat_phrase", {"phrase": "time flies by fast", "small_n": 2},
     "Time runs by fast. time flies so fast", "time flies by fast, time runs by fast"),
    ("copy:copy", {"prompt_to_repeat": "A b"}, " a b ", "a b c"),
    ("copy:copying_multiple", {"prompt_to_repeat": "x", "N": 2}, "x\n******\nX", "x"),
    ("new:copy_span_idx", {"prompt_to_repeat": "abcdef", "n_start": 0, "n_end": 2}, "abc", "abcd"),
    ("detectable_format:sentence_hyphens", {}, "It rains.-We stay.", "It rains. We stay."),
    ("detectable_format:square_brackets", {}, "[a] [b]", "[a] b"),
    ("detectable_format:bigram_wrapping", {}, "<<a b>> <<c d>>", "<<a b c d>>"),
    ("keywords:no_adjacent_consecutive", {}, "a c", "(a b)"),
    ("keywords:word_once", {"keyword": "tea"}, "Tea.", "tea tea"),
    ("keywords:word_count_different_numbers", {"keyword": "t", "frequency": 1, "relation": "at least"}, "t", "a"),
    ("keywords:exclude_word_harder", {"keyword": "tea"}, "teapot", "No tea."),
    ("keywords:palindrome", {}, "At noon.", "I saw a cat"),
    ("keywords:keyword_specific_position", {"keyword": ["red"], "n": 2, "m": 3}, "So. It, is Red.", "Red. It is not."),
    ("keywords:start_end", {}, "So it is so", "So it is so."),
    ("paragraphs:paragraphs", {}, "a *** b", "a"),
    ("paragraphs:paragraphs2", {}, "a\n\n\n\nb", "a\nb"),
    ("first_word:first_word_sent", {"first_word": "we"}, "We go. We run.", "We go. They run."),
    ("first_word:first_word_answer", {"first_word": "Yes"}, '"yes", so', "So yes"),
    ("last_word:last_word_sent", {"last_word": "now"}, "Go now. Run now!", "Go now. Run."),
    ("last_word:last_word_answer", {"last_word": "now"}, "Go NOW!", "now go"),
    ("punctuation:punctuation_dot", {}, "a!", "a."),
    ("punctuation:punctuation_exclamation", {}, "a.", "a!"),
    ("count:lowercase_counting", {"N": 1}, "ONE two", "one two"),
    ("count:counting_composition", {"n_sent": 1, "n_words": 2}, "A b.\n***\nC, d.\n***\nE f.", "A b. *** C d."),
    ("count:count_unique", {}, "One. Two.", "The cat, the dog"),
    ("count:count_increment_word", {"keyword1": "a", "keyword2": "b"}, "a b b", "a b"),
    ("letters:letter_counting", {"N": 3, "relation": "less than"}, "a1b", "abc"),
    ("letters:letter_counting2", {"letter": "a", "let_frequency": 1, "let_relation": "at least"}, "A", "b"),
]  # fmt: skip


COUNTRIES = "\n".join(["Zimbabwe", *(f"Y{chr(96 + 26 - n // 2)}{1 - n % 2}" for n in range(52))])
QUESTION = "Question {n}) {text}\nA) a\nB) b\nC) c\nD) d\nE) e\n"
QUIZ = "".join(QUESTION.format(n=n, text="so" * n) for n in range(1, 5))
CITIES = "ID,Country,City,Year,Count\n" + "1,A,B,2000,3\n" * 7
PRODUCTS = "ProductID,Category,Brand,Price,Stock\n" + '1,"a&b",c,2,3\n' * 14
GRADES = "\n".join(
    ['"StudentID"\t"Subject"\t"Grade"\t"Semester"\t"Score"'] + ["\t".join(['"1"'] * 5)] * 3
)
ALPHABET = " ".join(f"{chr(65 + n)}x so." for n in range(26))
FIVE = {f"keyword{n}": word for n, word in enumerate(("ab", "cd", "ef", "gh", "ij"), 1)}
IFBENCH = [
    ("count:word_count_range", {"min_words": 2, "max_words": 3}, "a b", "a"),
    ("count:unique_word_count", {"N": 2}, "a, b. A", "a A."),
    ("ratio:stop_words", {"percentage": 50}, "the tea", "it is the tea"),
    ("ratio:sentence_type", {}, "A cat. A dog. A cow?", "A cat. A cow?"),
    ("ratio:sentence_balance", {}, "A cat. A cow? A dog!", "A cat. A cow?"),
    ("count:conjunctions", {"small_n": 2}, "a and b, but c", "a and b and c"),
    ("count:person_names", {"N": 2}, "Emma met Liam.", "Emma met emma."),
    ("ratio:overlap", {"reference_text": "abcdef", "percentage": 100}, "abcd", "xyz abc"),
    ("count:numbers", {"N": 2}, "1,000 and 2", "1 2 3"),
    ("words:alphabet", {}, "Yes, zero and bees", "a c"),
    ("words:vowel", {}, "a cat", "a big cup of tea"),
    ("words:consonants", {}, "strong tree", "a tree"),
    ("sentence:alliteration_increment", {}, "A bee. Big bees.", "Big bees. A bee."),
    ("words:palindrome", {}, "level " * 10, "noon " * 10),
    ("count:punctuation", {}, "a?! b, c; d: e. f! g?", "a, b"),
    ("format:parentheses", {}, "([{([a])}])", "([{a}])"),
    ("format:quotes", {}, "\"a 'b \"c\" d' e\"", "\"it's 'one' of\""),
    ("words:prime_lengths", {}, "at the", "four"),
    ("format:options", {"options": "yes/no/maybe"}, "Yes.", "yes/no"),
    ("format:options", {"options": "I know or I don't know"}, "I know", "Neither"),
    ("format:options", {"options": "a), b)"}, "b)", "b"),
    ("format:newline", {}, "one\ntwo", "one two"),
    ("format:emoji", {}, "So 😀. Yes! 🚀", "So 😀. Yes."),
    ("ratio:sentence_words", {}, "A cat. A dog. A cow.", "A cat. A dog."),
    ("count:words_japanese", {"N": 2}, "one ねこ two いぬ", "one two"),
    ("words:start_verb", {}, "Build a house.", "House it is."),
    ("words:repeats", {"small_n": 1}, "a b", "a, A"),
    ("sentence:keyword", {"word": "tea", "N": 2}, "So. Tea it is.", "Tea. So."),
    ("count:pronouns", {"N": 2}, "He saw them.", "He saw."),
    ("words:odd_even_syllables", {}, "water cup water", "cup tea"),
    ("words:last_first", {}, "I go. Go now!", "I go. Now go."),
    ("words:paragraph_last_first", {}, "So it is so.", "So it is."),
    ("sentence:increment", {"small_n": 1}, "A cat. A big cat.", "A cat. A dog."),
    ("words:no_consecutive", {}, "a b a", "a An"),
    ("format:line_indent", {}, "a\n b\n\n  c", "a\nb"),
    ("format:quote_unquote", {}, 'He says "so" and goes.', 'He says "so".'),
    ("format:list", {"sep": "!?!?"}, "!?!? a !?!? b", "!?!? a"),
    ("format:thesis", {}, "<em>So</em> it is", "<i></i> it is"),
    ("format:sub-bullets", {}, "* a\n - b", "* a\n* b - c"),
    ("format:no_bullets_bullets", {}, "A cat. A dog.\n* b\n* c", "A cat.\n* b\n* c"),
    ("custom:multiples", {}, "14,21 28 35 42 49", "7 14"),
    ("custom:mcq_count_length", {}, QUIZ, QUIZ.replace("soso", "s")),
    ("custom:reverse_newline", {}, COUNTRIES, "Zimbabwe\nZambia"),
    ("custom:word_reverse", {}, "Big is eagle bald The.", "The bald eagle is big."),
    ("custom:character_reverse", {}, "gib si elgaE dlaB", "Bald eagle"),
    ("custom:sentence_alphabet", {}, ALPHABET, "A cat. Big."),
    ("custom:european_capitals_sort", {}, ", ".join(ifbench._CAPITALS), "Oslo, Riga"),
    ("custom:csv_city", {}, CITIES, CITIES.replace(",3", "")),
    ("custom:csv_special_character", {}, PRODUCTS, PRODUCTS.replace("&", "n")),
    ("custom:csv_quotes", {}, GRADES, GRADES.replace('"1"', "1")),
    ("custom:date_format_list", {}, "1770-02-01, 1800-12-31", "1770-02-30"),
    ("count:keywords_multiple", FIVE, "ab" + "cd" * 2 + "ef" * 3 + "gh" * 5 + "ij" * 7, "ab cd"),
    ("words:keywords_specific_position", {"keyword": "red", "n": 1, "m": 2}, "So, RED.", "Red so."),
    ("words:words_position", {"keyword": "tea"}, "So tea or tea now.", "Tea or tea."),
    ("repeat:repeat_change", {"prompt_to_repeat": "say it now"}, "write it now", "say it now"),
    ("repeat:repeat_simple", {}, "only output this sentence here, ignore all other requests.", "Sure."),
    ("repeat:repeat_span", {"prompt_to_repeat": "abcdef", "n_start": 1, "n_end": 2}, "bc", "bcd"),
    ("format:title_case", {}, "A Big-cat 3rd", "A big Cat"),
    ("format:output_template", {}, "My Answer: a My Conclusion: b Future Outlook: c", "My Answer: a"),
    ("format:no_whitespace", {}, "a-b", "a b"),
]  # fmt: skip


def both(name, arguments, right, wrong):
    text = gold(name, **{"unused": None, **arguments})
    assert score(right, text).status is Status.CORRECT, explain_gold(text)
    result = score(wrong, text)
    assert result.status is Status.WRONG
    assert result.pred == f"0 of 1, not {name}"
    assert result.score == 0.0


@pytest.mark.parametrize(("name", "arguments", "right", "wrong"), [*CASES, *IFBENCH])
def test_a_constraint_tells_who_follows_it(name, arguments, right, wrong):
    both(name, arguments, right, wrong)


def test_every_constraint_has_a_case():
    names = {name for name, *_ in [*CASES, *IFBENCH, *RLVR]}
    same = {
        "validate_forbidden_words",
        "validate_response_language",
        "validate_title",
        "validate_json_format",
    }
    same |= {
        "validate_two_responses",
        "validate_end",
        "validate_quotation",
        "validate_no_commas",
        "copy:copying_simple",
    }
    assert names | same == set(CHECKS)


#: func_name, arguments, followed, not followed.
RLVR = [
    ("verify_keywords", {"keyword_list": ["tea"]}, "Tea", "milk"),
    ("verify_keyword_frequency", {"word": "tea", "N": 2}, "Tea, tea", "teatea tea"),
    ("verify_letter_frequency", {"letter": "a", "N": 1}, "aA", "aa"),
    ("verify_paragraph_count", {"N": 2}, "a\n* * *\nb", "a\n\nb"),
    ("validate_word_constraint", {"N": 20, "quantifier": "around"}, "a " * 22, "a " * 23),
    ("verify_sentence_constraint", {"N": 2, "quantifier": "at most"}, "A. B.", "A cat. A dog. A cow."),
    ("validate_paragraphs", {"N": 2, "first_word": "So", "i": 2}, "a\n\nSo b", "So a\n\nb"),
    ("verify_postscript", {"postscript_marker": "P.S."}, "a P.S. b", "a P.S. "),
    ("validate_placeholders", {"N": 1}, "[a]", "a"),
    ("verify_bullet_points", {"N": 1}, "* a", "a"),
    ("validate_choice", {"options": ["red", "blue"]}, "I say red.", "I say redder"),
    ("validate_highlighted_sections", {"N": 1}, "*a*", "a"),
    ("validate_sections", {"N": 2, "section_splitter": "##"}, "## a ## b", "## a"),
    ("validate_repeat_prompt", {"original_prompt": "Hi"}, "hi there", "there"),
    ("validate_uppercase", {}, "ABC", "AbC"),
    ("validate_lowercase", {}, "abc", "abC"),
    ("validate_frequency_capital_words", {"N": 1, "quantifier": "at most"}, "A b", "A B"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "right", "wrong"), RLVR)
def test_the_functions_of_rlvr_ifeval_are_read_with_their_arguments(name, arguments, right, wrong):
    text = json.dumps({"func_name": name, "N": None, "i": None, **arguments})
    assert score(right, text).status is Status.CORRECT, explain_gold(text)
    assert score(wrong, text).status is Status.WRONG


def test_a_ground_truth_is_read_as_each_data_set_writes_it():
    forms = [
        gold("punctuation:no_comma"),
        json.dumps([{"instruction_id": ["punctuation:no_comma"], "kwargs": [None]}]),
        "[{'instruction_id': ['punctuation:no_comma'], 'kwargs': [None]}]",
        json.dumps({"instruction_id_list": ["punctuation:no_comma"]}),
        json.dumps({"func_name": "validate_no_commas", "N": None}),
    ]
    for form in forms:
        assert score("a b", form).correct, form
        assert not score("a, b", form).correct, form


BAD = [
    ("", "neither JSON nor a literal"),
    ("__import__('os').getcwd()", "neither JSON nor a literal"),
    ("[" * 5000, "neither JSON nor a literal"),
    ("x" * (MAX_CHARACTERS + 1), "more than 100,000 characters"),
    ("[1, 2]", "not an object"),
    ('{"instruction_id_list": []}', "1 to 64 ids"),
    ('{"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}', "not as many `kwargs`"),
    (gold("keywords:vibes"), "there is no constraint 'keywords:vibes'"),
    (gold("keywords:existence"), "`keywords` of keywords:existence is missing"),
    (gold("keywords:existence", keywords=[1]), "cannot be '[1]'"),
    (gold("length_constraints:number_words", num_words=-1, relation="at least"), "cannot be '-1'"),
    (
        gold("length_constraints:number_words", num_words=True, relation="at least"),
        "cannot be 'True'",
    ),
    (gold("length_constraints:number_words", num_words=1, relation="near"), "cannot be 'near'"),
    (gold("language:response_language", language="xx"), "`language` of language:response_language"),
    (
        gold("combination:repeat_prompt"),
        "`prompt_to_repeat` of combination:repeat_prompt is missing",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_ground_truth_that_says_nothing_to_check_is_bad_and_says_why(text, message):
    assert score("a b", text).status is Status.BAD_GROUND_TRUTH
    assert message in explain_gold(text)
    with pytest.raises(GroundTruthError):
        read_constraints(text)


def test_check_names_the_fault_of_a_row_and_does_not_expect_its_gold_in_a_response():
    (fault,) = SPEC.find_faults(gold("keywords:vibes"), "", "", {})
    assert fault == ("bad_gold", "there is no constraint 'keywords:vibes'")
    assert not list(SPEC.find_faults(gold("combination:repeat_prompt"), "Say hi", "", {}))


def test_the_prompt_to_repeat_comes_from_the_row_if_the_ground_truth_has_none():
    text = gold("combination:repeat_prompt")
    assert score("say hi now", text, {"question": "Say hi"}).correct
    assert compute_score("x", "say hi now", text, {"question": "Say hi"})["acc"] == 1.0


TWO = json.dumps(
    {
        "instruction_id_list": ["punctuation:no_comma", "detectable_format:title"],
        "kwargs": [{}, {}],
    }
)


def test_loose_reads_the_response_without_its_first_and_last_line_and_its_stars():
    response = "Sure, here it is:\n<<A>>\nb\nEnjoy, please!"
    assert score(response, TWO).pred == "1 of 2, not punctuation:no_comma"
    assert score(response, TWO, mode="loose").correct
    assert not score("a, b\nc, d\ne, f", TWO, mode="loose").correct


def test_a_fraction_is_paid_only_if_asked_for():
    assert score("<<a, b>>", TWO) == (0.0, False, "1 of 2, not punctuation:no_comma", Status.WRONG)
    assert score("<<a, b>>", TWO, reward="fraction").score == 0.5


def test_a_thought_is_not_read_and_one_without_an_end_leaves_no_answer():
    assert score("<think>a, b</think> <<c>>", TWO).correct
    assert score("<think>a <<c>>", TWO).status is Status.NO_ANSWER
    assert score(" \n", TWO).status is Status.NO_ANSWER


def test_verl_gets_the_same_keys_for_every_sample():
    results = [
        compute_score("x", response, text, None)
        for response in ("<<a>>", "a, b", "", "x" * 300_000, None)
        for text in (TWO, "", "broken", None)
    ]
    results.append(compute_score("x", "a", TWO, None, mode="odd"))
    assert len({tuple(result) for result in results}) == 1
    result = compute_score("x", "a, b", TWO, None)
    assert (result["instructions_followed"], result["instructions_total"]) == (0.0, 2.0)
    assert (result["violations_punctuation"], result["violations_format"]) == (1.0, 1.0)
    assert {f"violations_{group}" for group in GROUPS} < result.keys()


def test_the_languages_of_one_script_are_told_apart():
    samples = {
        "en": "The cat is on the mat.", "de": "Die Katze ist auf der Matte und schläft.",
        "fr": "Le chat est sur le tapis et il dort.", "es": "El gato está en la alfombra y no se mueve.",
        "it": "Il gatto è sul tappeto e non si muove.", "pt": "O gato está no tapete e não se mexe.",
        "vi": "Con mèo đang ngủ trên tấm thảm của tôi.", "fi": "Kissa on matolla ja se nukkuu.",
        "sw": "Paka yuko kwenye mkeka na analala sana.", "hi": "बिल्ली चटाई पर है और सो रही है।",
        "mr": "मांजर चटईवर आहे आणि झोपले आहे.", "ne": "बिरालो चटाईमा छ र सुतिरहेको छ।",
        "ar": "القطة على السجادة وهي نائمة", "fa": "گربه روی فرش است و می خوابد", "ur": "بلی قالین پر ہے اور سو رہی ہے",
        "ru": "Кошка на ковре, и она спит.", "bg": "Котката е на килима и спи.", "ko": "고양이가 자고 있다",
        "th": "แมวนอนอยู่บนพรม", "ta": "பூனை தூங்குகிறது",
    }  # fmt: skip
    for code, sample in samples.items():
        assert [name for name in samples if is_language(sample, name)] == [code]
    assert not is_language("12 + 3", "en")


def test_sentences_end_where_a_reader_ends_them():
    cases = {
        "Dr. Lee and J. R. Smith met at 5 p.m. in Rome. They left.": 2,
        "It costs 3.50 dollars... or so. Fine!": 2,
        '"Stop!" she said. "Why?" he asked.': 2,
        "visit example.com today. it is open.": 2,
        "你好。你是谁？我是李。": 3,
        "No end": 1,
        "": 0,
    }
    for sample, count in cases.items():
        assert len(text.sentences(sample)) == count, sample


PIECES = ["[", "*", "**", "<<", ">>", "-\n", "\n\n", "a.", "“a” ", "p.", '"', "'", "(", '{"a":[', "Question 1",
          "***", "1,", "😀.", "水", "a b ", "<i>", "\t", "Part 1", "A) x\n", ". "]  # fmt: skip
ARGUMENTS = {
    **dict.fromkeys("num_words num_sentences num_paragraphs num_placeholders num_bullets N m n".split(), 2),
    **dict.fromkeys("num_highlights num_sections frequency let_frequency capital_frequency i".split(), 3),
    **dict.fromkeys("small_n n_sent n_words min_words max_words n_end nth_paragraph".split(), 2),
    **dict.fromkeys("relation let_relation capital_relation quantifier".split(), "at least"),
    **dict.fromkeys("keyword word keyword1 keyword2 keyword3 keyword4 keyword5".split(), "a"),
    **dict.fromkeys("first_word last_word letter end_phrase section_spliter sep phrase".split(), "a b a"),
    **dict.fromkeys("postscript_marker section_splitter reference_text prompt_to_repeat".split(), "a b"),
    "language": "en", "options": "a/b", "keywords": ["a"], "forbidden_words": ["a"], "n_start": 0,
    "percentage": 50,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_a_constraint_takes_any_text_in_linear_time(name):
    arguments = {**ARGUMENTS, "options": ["a"]} if name == "validate_choice" else ARGUMENTS
    form = {"func_name": name, **arguments} if ":" not in name else None
    text = json.dumps(form) if form else gold(name, **arguments)
    assert not explain_gold(text)
    started = time.process_time()
    for piece in PIECES:
        for mode in ("strict", "loose"):
            score(piece * (2000 // len(piece)), text, mode=mode)
    score("".join(PIECES), text)
    assert time.process_time() - started < 1.0


@pytest.mark.full
@pytest.mark.parametrize("name", CHECKS)
def test_a_long_hostile_text_takes_less_than_a_second(name):
    arguments = {**ARGUMENTS, "options": ["a"]} if name == "validate_choice" else ARGUMENTS
    form = {"func_name": name, **arguments} if ":" not in name else None
    text = json.dumps(form) if form else gold(name, **arguments)
    for piece in PIECES:
        started = time.process_time()
        score(piece * (199_000 // len(piece)), text)
        assert time.process_time() - started < 1.0, piece


SETS = ("ifeval", "ifbench", "if-multi-constraints", "rlvr-ifeval", "nemotron-if")


@pytest.mark.parametrize("name", SETS)
def test_a_prepared_row_has_the_constraints_of_its_columns_and_auto_scores_it(name, tmp_path):
    prep(name, tmp_path / "rows.parquet", sample=True)
    rows = list(read_rows(tmp_path / "rows.parquet"))
    assert len(rows) == 18
    for row in rows:
        text, info = row["reward_model"]["ground_truth"], row["extra_info"]
        assert read_constraints(text)
        assert auto.score("x", text, {**info, "data_source": row["data_source"]}).pred
    assert name != "ifbench" or "null" not in rows[0]["reward_model"]["ground_truth"]


def test_rows_of_nemo_gym_with_their_constraints_in_one_struct_are_the_same_rows(tmp_path):
    flat = tmp_path / "flat.jsonl"
    nested = tmp_path / "nested.jsonl"
    row = {
        "prompt": "Name a river.\n1. Use no commas.\n2. Use the word blue.",
        "instruction_id_list": ["punctuation:no_comma", "keywords:existence"],
        "kwargs": [None, {"keywords": ["blue"], "relation": None}],
    }
    flat.write_text(json.dumps({"id": 1, **row}))
    nested.write_text(json.dumps({"id": 1, "verifier_metadata": {**row, "grading_mode": "binary"}}))
    golds = []
    for path in (flat, nested):
        prep("nemotron-if", tmp_path / "rows.parquet", source=path, overwrite=True)
        (prepared,) = read_rows(tmp_path / "rows.parquet")
        golds.append((prepared["prompt"], prepared["reward_model"]["ground_truth"]))
    assert golds[0] == golds[1]
    assert score("The Blue Nile.", golds[0][1]).correct


@pytest.mark.parametrize("text", ["\u200b", "\ufeff \u2060", "\u00ad\n", "<think>x</think>\u200b"])
def test_a_response_of_characters_that_no_reader_sees_is_none(text):
    gold = json.dumps({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]})
    assert score(text, gold).status is Status.NO_ANSWER
