import time
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.open_answers.squad import f1, normalize
from rewardkit.answers.open_answers.verdict import Outcome, judge
from tests.tables import every

WHO = "Who painted the ceiling of the old chapel?"
WHERE = "In which town was the composer born?"
WHEN = "When did the bridge open?"
WHAT = "What do the divers carry?"

#: Letters of which no number, month, title or function word is made.
LETTERS = "abdgkouvz"
NAMES = st.lists(
    st.text(LETTERS, min_size=3, max_size=9).map(str.capitalize), min_size=1, max_size=4
).map(" ".join)


def outcome(answer, gold, question=""):
    golds = [gold] if isinstance(gold, str) else gold
    return judge(answer, golds, question)


def right(answer, gold, question=""):
    return outcome(answer, gold, question) is Outcome.RIGHT


@every(
    ("answer", "gold", "question"),
    [
        ("Anna Berg", "Anna Maria Berg", WHO), ("Anna M. Berg", "Anna Maria Berg", WHO),
        ("Anna Maria Berg", "Anna Berg", WHO), ("Berg", "Anna Berg", WHO),
        ("Sir Tom Hale", "Tom Hale", WHO), ("Tom Hale", "Dr. Tom Hale Jr.", WHO),
        ("A. B. Hale", "Arthur Basil Hale", WHO), ("Arthur Basil Hale", "A.B. Hale", WHO),
        ("Rob Berg", "Robert Berg", WHO), ("Carl Lind", "Norwegian botanist Carl Lind", WHO),
        ("José Nuñez", "Jose Nunez", ""), ("the Beatles", "The Beatles", ""),
        ("O'Brien", "OBrien", ""), ("THE GREAT WALL", "great wall", ""),
        ("jelly fishes", "jelly fish", ""), ("bee keeper", "beekeeper", ""),
        ("Salt and pepper", "salt & pepper", ""), ("twenty-one", "21", ""),
        ("twenty one", "21", ""), ("3.5 million", "3,500,000", ""), ("two hundred", "200", ""),
        ("the fourth season", "season 4", ""), ("21st", "twenty-first", ""),
        ("World War 2", "World War II", ""), ("Louis the Fourteenth", "Louis XIV", ""),
        ("5 kilometres", "5 km", ""), ("5km", "5 kilometers", ""), ("6 feet 1 inch", "6ft 1in", ""),
        ("40 percent", "40%", ""), ("$50", "50 dollars", ""), ("18 yrs", "18 years", ""),
        ("the United States", "U.S.", ""), ("USA", "United States of America", ""),
        ("July 4, 1921", "4 July 1921", WHEN), ("4th of July 1921", "July 4th, 1921", WHEN),
        ("1921", "4 July 1921", WHEN), ("4 July 1921", "1921", WHEN), ("in 1921", "1921", WHEN),
        ("Sept 4", "4 September", WHEN), ("Millford, Ohio", "Millford", WHERE),
        ("five", "five players", "How many players are on the court?"),
        ("A+", "A+", "What is the most common grade?"),
        ("The Who", "The Who", "Which band played?"), ("It", "It", "Which novel has a clown?"),
        ("Berlin", ["Bonn", "Berlin"], ""), ("Mickey Dolan", "Mickey Dolan (The Gibbons)", WHO),
        ("orbit", "orbit or revolution", ""),
        ("one thousand and one nights", "1001 nights", ""),
        ("18 or older", "18", "At what age may one enter?"),
        ("a butterfly", "butterflies", "What do caterpillars become?"),
        ("Anna Berg", "Berg", "Which Swedish painter made it?"),
        ("Anna Berg, who later lived in Rome", "Anna Berg", WHO),
        # a letter and a number are one word
        ("A5", "A5", ""), ("The A5 goes there.", "A5", ""), ("the a-5", "A5", ""),
        ("F-16", "F16", ""), ("F 16", "F-16", ""), ("B12", "B 12", ""), ("vitamin B12", "B12", ""),
        ("Vitamin C 500 mg", "500 mg", ""),
        ("Paul Berg", "Anna Paul Berg", WHO), ("US President Berg", "Anna Berg", WHO),
        ("Berg", "Anna Berg", "Which musician sang it?"), ("Anna Berg", "Anna Berg in her Letters", WHO),
        ("Seabird", "Seabird, who won the Cup in 1973", WHO),
        ("5 per cent", "5%", ""), ("a hundred", "100", ""), ("twenty five million", "25,000,000", ""),
        ("in the 1920s", "the 1920s", WHEN), ("In 2008 the Summer Games", "the 2008 Summer Games", ""),
        ("1921年7月4日", "4 July 1921", WHEN), ("20 years", "20-year period", "How long did it last?"),
        # acronyms, and a third of a long gold
        ("IMU", "International Mathematical Union", "Which body gives it?"),
        ("the International Mathematical Union", "IMU", "Which body gives it?"),
        ("ATP", "adenosine triphosphate (ATP)", WHAT), ("dry river bed", "wide dry river bed", WHAT),
        # what follows the answer describes it
        ("Oslo, in the Kingdom of Norway", "Oslo", WHERE), ("Anna Berg of Norway", "Anna Berg", WHO),
        ("Mount Hale, at 8,849 m", "Mount Hale", "Which is the highest?"),
        ("Anna Berg, not Carl Lind", "Anna Berg", WHO), ("Real Lorn CF", "Real Lorn", "Which club won?"),
        ("不是伦敦,是巴黎", "巴黎", "首都是哪里?"), ("首都是巴黎。", "巴黎", "首都是哪里?"),
    ],
)  # fmt: skip
def test_short_answers_that_people_count_as_the_same(answer, gold, question):
    assert right(answer, gold, question)


@every(
    ("answer", "gold", "question"),
    [
        ("Adam Johns", "John Adams", WHO), ("Samuel Adams", "John Adams", WHO),
        ("John", "John Adams", WHO), ("Henry VII", "Henry VIII", WHO), ("1967", "1976", WHEN),
        ("June 1921", "4 July 1921", WHEN),
        ("1921", "4 July 1921", "On which day of 1921 did the bridge open?"),
        ("4 July", "4 July 1921", WHEN), ("Georgia Tech", "Georgia", "Which team won?"),
        ("New Mexico", "Mexico", "Which state is it?"), ("South Korea", "Korea", ""),
        ("New York", "York", WHERE), ("10 million", "10", ""), ("35", "3.5", ""), ("-5", "5", ""),
        ("5 months", "5 years", ""), ("C", "C++", ""), ("A-", "A+", ""), ("Zambia", "Gambia", ""),
        ("Austria", "Australia", ""), ("Iran", "Iraq", ""), ("the", "The Who", ""),
        ("", "Paris", ""), ("?!", "Paris", ""),
        ("half of 206", "206", "How many bones has an adult?"),
        ("206%", "206", "How many bones has an adult?"),
        ("366 hours", "366", "How many days has a leap year?"), ("€15 million", "$15 million", ""),
        ("1905 to 1912", "1912", WHEN), ("hyperthermia", "hypothermia", ""),
        ("2008 Winter Olympic Games", "2008 Summer Olympic Games", "Which event was it?"),
        ("Hale, Lance", "Tom Hale", WHO), ("Lance 'Tour' Hale", "Tom Hale", WHO),
        ("a contemporary of Anna Berg", "Anna Berg", WHO),
        ("the 1920s", "1920", WHEN), ("They march on", "March", WHEN), ("red", "red and blue", ""),
        ("She knows it", "It", "Which novel has a clown?"), ("Peter Berg", "Anna Paul Berg", WHO),
        # a letter and a number are one word
        ("5", "A5", ""), ("A5", "5", ""), ("5a", "A5", ""), ("A4", "A5", ""), ("12", "B12", ""),
        # a point of reference, an owner, a part of a longer name
        ("Oslo, larger than Bergen", "Bergen", WHERE), ("Oslo, next to Bergen", "Bergen", WHERE),
        ("near Bergen", "Bergen", WHERE), ("west of Bergen", "Bergen", WHERE),
        ("everything but rope", "rope", WHAT), ("Carl Lind's pupil", "Carl Lind", WHO),
        ("Tom Hale, who taught Anna Berg", "Anna Berg", WHO), ("a tributary of the Lorn", "Lorn", "Which river is it?"),
        ("rope ladder", "rope", WHAT), ("Anna Berg College", "Anna Berg", WHO),
        ("copper sulfate", "copper", "Which metal is it?"),
        ("at least 206", "206", "How many bones has an adult?"),
        ("206 km", "206", "How many bones has an adult?"), ("6 March 1921", "5 March 1921", WHEN),
        ("World Union", "World Mathematical Union", "Which body gives it?"),
        ("IMF", "International Mathematical Union", "Which body gives it?"),
        ("Norway", "Oslo, Norway", WHERE), ("river", "wide dry river bed", WHAT),
        ("不是巴黎", "巴黎", "首都是哪里?"), ("巴黎或伦敦", "巴黎", "首都是哪里?"), ("可能是巴黎,也可能是伦敦", "巴黎", "首都是哪里?"),
    ],
)  # fmt: skip
def test_near_misses_are_wrong(answer, gold, question):
    assert not right(answer, gold, question)


@every(
    ("answer", "gold", "question"),
    [
        ("The ceiling was painted by Anna Berg.", "Anna Berg", WHO),
        ("It was not Carl Lind but Anna Berg.", "Anna Berg", WHO),
        ("Not only Anna Berg's pupils say so: she painted it.", "Anna Berg", WHO),
        ("Some say it was Carl Lind, but it was Anna Berg.", "Anna Berg", WHO),
        ("The bridge opened on July 4, 1921.", "1921", WHEN),
        ("As an AI I have no eyes. However, the bridge opened in 1921.", "1921", WHEN),
        ("You must be 18 or older to enter.", "18", "At what age may one enter?"),
        ("They carry 'Can't Buy Me Time' by Anna Berg.", "Anna Berg", "Whose song do they carry?"),
        ("Its members are Anna Berg, Tom Hale and Carl Lind.", "Tom Hale", "Who are its members?"),
        ("1. France\n2. Germany\n3. Belgium", "France, Germany and Belgium", ""),
        ("The composer was born in Millford, Ohio.", "Millford", WHERE),
        ("The town's library opened on July 4, 19211.", "4 July 1921", WHEN),
        ("The ceiling was painted by Anna Berg1.", "Anna Berg", WHO),
        ("The ceiling is from 1911. It was painted in oil by Anna Berg.", "Anna Berg", WHO),
        ("It was none other than Anna Berg.", "Anna Berg", WHO),
        ("Without a doubt, Anna Berg painted it.", "Anna Berg", WHO),
        ("The song is by The Who.", "The Who", "Which band wrote it?"),
        ("He won many prizes in Millford but left.", "Millford", WHERE),
        ("The Lord of Oak Bay was filmed in Oak Bay.", "Oak Bay", "Where was The Lord of Oak Bay filmed?"),
        ("Painter of the old chapel: Anna Berg.", "Anna Berg", WHO),
        ('The commonest word is "of".', "of", "What is the commonest word?"),
    ],
)  # fmt: skip
def test_a_sentence_states_its_answer(answer, gold, question):
    assert right(answer, gold, question)


@every(
    ("answer", "gold", "question", "reason"),
    [
        ("It was not Anna Berg.", "Anna Berg", WHO, Outcome.DENIED),
        ("It is not Anna Berg but Carl Lind.", "Anna Berg", WHO, Outcome.DENIED),
        ("Carl Lind rather than Anna Berg painted it.", "Anna Berg", WHO, Outcome.WRONG),
        ("Anna Berg is wrong.", "Anna Berg", WHO, Outcome.DENIED),
        ("no Anna Berg", "Anna Berg", WHO, Outcome.DENIED),
        ("It is made without iron.", "iron", "What is it made of?", Outcome.DENIED),
        ("It is a non-metal.", "metal", "What is it?", Outcome.DENIED),
        ("I doubt it was Anna Berg.", "Anna Berg", WHO, Outcome.DENIED),
        ("Anna Berg is not the painter.", "Anna Berg", WHO, Outcome.DENIED),
        ("Some say it was Anna Berg, but it was Carl Lind.", "Anna Berg", WHO, Outcome.DENIED),
        ("Is it Anna Berg?", "Anna Berg", WHO, Outcome.DENIED),
        ("It is Anna Berg. No, wait, it is Carl Lind.", "Anna Berg", WHO, Outcome.DENIED),
        ("There are painters such as Tom Hale, Carl Lind and Anna Berg.", "Anna Berg", WHO, Outcome.GUESSES),
        ("Anna Berg or Carl Lind", "Anna Berg", WHO, Outcome.GUESSES),
        ("Either Carl Lind or Anna Berg painted it.", "Anna Berg", WHO, Outcome.GUESSES),
        ("either 1920 or 1921 or 1922", "1921", WHEN, Outcome.GUESSES),
        ("Paris, London, Rome, Berlin", "Paris", WHERE, Outcome.GUESSES),
        ("London/Paris", "Paris", WHERE, Outcome.GUESSES),
        ("a rope or a lamp", "lamp", WHAT, Outcome.GUESSES),
        ("The answer is Paris, Leonardo da Vinci.", "Leonardo da Vinci", WHO, Outcome.GUESSES),
        ("Paris. London. Rome.", "London", WHERE, Outcome.GUESSES),
        ("Paris\nLondon\nRome", "London", WHERE, Outcome.GUESSES),
        ("Paris · London · Rome", "Paris", WHERE, Outcome.GUESSES),
        ("Paris oder London", "Paris", WHERE, Outcome.GUESSES),
        ("This is called a rope or a lamp.", "rope", WHAT, Outcome.GUESSES),
        ("- Paris\n- London\n- Rome", "Paris", WHERE, Outcome.GUESSES),
        ("(a) Paris (b) London", "Paris", WHERE, Outcome.GUESSES),
        ("[1919][1920][1921][1922]", "1921", WHEN, Outcome.GUESSES),
        ("Paris、London、Rome", "Paris", WHERE, Outcome.GUESSES),
        ("He is from Paris. He is from Rome.", "Paris", WHERE, Outcome.GUESSES),
        ("It is Paris. Just kidding, Rome.", "Paris", WHERE, Outcome.DENIED),
        ("It is a myth that Anna Berg painted it.", "Anna Berg", WHO, Outcome.DENIED),
        ("The bridge opened in 1920. It was 1921.", "1921", WHEN, Outcome.SECOND),
        ("Anna Berg was asked, but Carl Lind painted it.", "Anna Berg", WHO, Outcome.DENIED),
        ("Maybe Anna Berg, maybe Carl Lind.", "Anna Berg", WHO, Outcome.GUESSES),
        ("Carl Lind. Anna Berg only copied it.", "Anna Berg", WHO, Outcome.SECOND),
        ("Anna Berg. " + "And so on and on. " * 60, "Anna Berg", WHO, Outcome.TOO_LONG),
    ],
)  # fmt: skip
def test_what_is_denied_guessed_or_added_is_not_stated(answer, gold, question, reason):
    assert outcome(answer, gold, question) is reason


def test_a_copy_of_the_question_is_no_answer():
    question = "Does sound travel faster in water or in air?"
    assert not right(question, "water", question)
    assert not right(question.rstrip("?"), "water", question)
    assert right("In water.", "water", question)


@given(NAMES)
def test_a_gold_answers_itself_in_any_dress(name):
    for answer in (name, name.upper(), name.lower(), f"The {name}", f"  {name}. ", f"**{name}**"):
        assert right(answer, name), answer


@given(NAMES)
def test_the_answer_is_keeps_the_verdict(name):
    assert right(f"The answer is {name}.", name)
    assert not right(f"The answer is not {name}.", name)


@given(NAMES, NAMES)
def test_a_second_guess_never_turns_wrong_into_right(gold, wrong):
    question = "Which is the name of the ship that sank?"
    alone = (wrong, f"The name of the ship that sank is {wrong}.")
    has_part = set(wrong.lower().split()) & set(gold.lower().split())  # `Anna` and `Anna Berg`
    if has_part or any(right(answer, gold, question) for answer in alone):
        return
    for answer in (
        f"{wrong} or {gold}",
        f"{wrong}, {gold}",
        f"{wrong}; {gold}",
        f"{wrong}. {gold}.",
        f"{wrong}\n{gold}",
        f"The name of the ship that sank is {wrong}. It is {gold}.",
        f"The name of the ship that sank is {wrong} or {gold}.",
    ):
        assert not right(answer, gold, question), answer


@given(NAMES, NAMES)
def test_what_another_answer_is_compared_with_is_not_the_answer(gold, wrong):
    question = "Which is the name of the ship that sank?"
    if set(wrong.lower().split()) & set(gold.lower().split()) or right(wrong, gold, question):
        return
    for relation in ("near", "larger than", "next to", "unlike", "a friend of", "not", "west of"):
        assert not right(f"{wrong}, {relation} {gold}", gold, question), relation


def test_a_gold_of_the_question_counts_if_it_is_said_once_more():
    question = "Who was the temple of Lorn built for?"
    assert right("The temple of Lorn was built for Lorn.", "Lorn", question)
    assert not right("The temple of Lorn was built.", "Lorn", question)
    assert not right(f"{question[:-1]} {question[:-1]}", "Lorn", question)


def test_a_fuller_date_may_not_contradict_the_fullest_gold():
    golds = ["1921", "July 1921"]
    assert right("1921", golds, WHEN)
    assert right("4 July 1921", golds, WHEN)
    assert not right("4 March 1921", golds, WHEN)


@given(st.text(max_size=300), st.text(max_size=60), st.text(max_size=100))
def test_any_text_has_a_verdict(answer, gold, question):
    assert isinstance(judge(answer, [gold], question), Outcome)


@every(
    "text",
    [
        *(char * 1500 for char in "a1A.,;-'\"( \n?é’①²"),
        *("a. " * 500, "A.B." * 370, "1,000," * 250, "x-" * 700, "not " * 370, "or " * 500),
        *("a, b " * 300, "I I " * 370, "inA" * 500, "twenty " * 200, "0." * 700, "[1]" * 500),
    ],
)
def test_hostile_text_takes_little_time(text):
    started = time.process_time()
    for gold in ("Anna Berg", text[:400], "4 July 1921"):
        judge(text, [gold] * 3, text)
    assert time.process_time() - started < 1


def test_f1_counts_common_words():
    assert normalize("The U.S. Army!") == "us army"
    assert f1("the red house", "red house") == 1
    assert f1("red house", "red barn") == 0.5
    assert f1("", "") == 0


def test_a_call_with_400_golds_takes_little_time():
    """Every word of an answer was compared with every word of 3,600 wordings, for 380 ms."""
    lists = (
        [" or ".join(f"Name{i}x{k} Wordlonger{k}" for k in range(12)) for i in range(400)],
        [f"Anna Maria Bergstrom{i}" for i in range(400)],
        [f"the old bridge of the river {i}, or Tom Berg (a house)" for i in range(400)],
    )
    answers = (
        "bridge river " * 75,
        "Anna Maria Berg, " * 50,
        "Anna. Berg. " * 60,
        "old house " * 2000,
    )
    started = time.process_time()
    for golds, answer in product(lists, answers):
        assert judge(answer, golds, "Who was it?") is not Outcome.RIGHT
    assert time.process_time() - started < 12 * 0.05  # of 0.02 each, on a slow machine
    assert judge("It was Alias 399.", [f"Alias {n}" for n in range(400)]) is Outcome.RIGHT
