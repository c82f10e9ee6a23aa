"""Which language a text is in: by its script, and by frequent words where languages share a script."""

import re
from collections import Counter
from functools import lru_cache

#: Characters of a text that are looked at.
MAX_CHARACTERS = 20_000

#: The letters of a script, and the languages that are written with it alone.
_SCRIPTS = {
    "kn": "\u0c80-\u0cff", "te": "\u0c00-\u0c7f", "ta": "\u0b80-\u0bff", "gu": "\u0a80-\u0aff",
    "pa": "\u0a00-\u0a7f", "bn": "\u0980-\u09ff", "ml": "\u0d00-\u0d7f", "th": "\u0e00-\u0e7f",
    "he": "\u0590-\u05ff", "el": "\u0370-\u03ff", "ko": "\uac00-\ud7af\u1100-\u11ff",
    "hy": "\u0530-\u058f", "ka": "\u10a0-\u10ff", "si": "\u0d80-\u0dff",
    "deva": "\u0900-\u097f", "arab": "\u0600-\u06ff\u0750-\u077f", "cyrl": "\u0400-\u04ff",
    "kana": "\u3040-\u30ff", "hani": "\u3400-\u4dbf\u4e00-\u9fff", "latn": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
}  # fmt: skip
_LETTERS = {script: re.compile(f"[{span}]") for script, span in _SCRIPTS.items()}

#: Frequent words, and after `|` letters, that tell the languages of a script apart.
_FREQUENT = {
    "deva": {
        "hi": "है हैं में और का की के को से यह नहीं था थे थी पर एक लिए हो कर जो वह इस",
        "mr": "आहे आहेत आणि मध्ये नाही होते होता झाला झाली झाले त्या मला आपल्या हे ते तो ती साठी करून या एक मी च्या असे केले|ळ",
        "ne": "छ छन् र मा को लाई छैन हो भएको गर्न यो पनि हुन्छ गर्ने थियो तपाईं हामी का एक",
    },
    "arab": {
        "ar": "في من على إلى أن هذا هذه التي الذي كان لا ما مع عن هو هي|ةىأإ",
        "fa": "است در به از که این را با می برای آن و های شد خود یک|پچژگ",
        "ur": "ہے میں کے کی اور کا سے کو یہ نہیں ہیں ایک پر نے کہ تھا|ہےںٹڈڑھ",
    },
    "cyrl": {
        "ru": "и в не на я что с он как это по но они мы она его для был все из|ыэё",
        "uk": "і в не на що з як це та до він вона для були від його ми|іїєґ",
        "bg": "и в не на да се за от че е са с как това по ще си най ме|",
        "mk": "и во не на да се за од дека е со како ова тоа|ѓќѕј",
    },
    "latn": {
        "en": "the of and to in is that it for you was with on as are this be i have not at or by from "
        "we they he she his her my your our but what all can will there if when who do so an me "
        "their its no how out up about more one has had were been would could which them than just "
        "like a us where why into over only some other any these those then now may must let get",
        "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an "
        "werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über ich wir|ßäöü",
        "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont "
        "avec son elle je nous vous mais ou cette leur|œçêèàù",
        "es": "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha "
        "me si sin sobre este ya entre cuando|ñ¿¡",
        "it": "di e il la che in un a per è una con non sono da del si le dei al come più lo gli ma della nel "
        "ha i anche se alla mi questo|ìò",
        "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das "
        "à seu sua ou ser quando muito há você são|ãõ",
        "nl": "de van een het en in is dat op te zijn met voor niet die aan er om dan ook als bij maar uit "
        "naar ze ik hij wij worden deze heeft|",
        "vi": "và của là có trong được cho một các không với những này đã để người khi về tôi từ như|ạảấầẩẫậắằẵặẹẻẽếềểễệịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹđơư",
        "fi": "ja on ei se että oli ovat kun hän mutta myös joka tai kuin niin sen mitä jos ole voi olla "
        "hänen tämä minä sekä|äö",
        "sw": "na ya wa kwa ni katika la za kuwa cha kama hii yake au vya lakini sana hiyo watu mimi yako "
        "ili kwamba huo hili pia|",
        "sv": "och i att det som en på är av för med den till inte har de ett om var jag men från|åäö",
        "da": "og i at det er en til på som af for med den de ikke et har var jeg fra der|æø",
        "no": "og i det er en til på som av for med den de ikke et har var jeg fra å|æø",
        "pl": "w i na z się nie do to jest że jak o po przez ale dla od są tym|ąęłńśźż",
        "cs": "a v se na je že s z do to o k i jako za by ale pro jsou|ěřůčšž",
        "ro": "și de în la a cu pe că nu din o un este pentru care mai sunt|ăâîșț",
        "tr": "ve bir bu da de için ile çok olarak daha olan gibi kadar ama ne var|ğışç",
        "id": "yang dan di dengan untuk ini dari dalam tidak itu pada adalah akan ke oleh saya kami|",
        "tl": "ang ng sa na mga ay at ito ko hindi siya para may ka kung|",
        "hu": "a az és hogy nem is egy van ez de meg csak mint volt|őű",
        "hr": "i u je se na da za su s od ne kao ali ili biti|ćđ",
        "lt": "ir į yra kad tai su iš kaip bet ne už apie|ąčęėįšųū",
        "et": "ja on ei et see ta kui oli ka mis aga oma nii|õäöü",
        "ca": "de la i el que a en els les un per amb és una no del|ç",
    },
}  # fmt: skip
_SCRIPT_OF = {code: script for script, codes in _FREQUENT.items() for code in codes}
_WORDS = {
    script: {code: frozenset(text.partition("|")[0].split()) for code, text in codes.items()}
    for script, codes in _FREQUENT.items()
}
_MARKS = {
    script: {code: frozenset(text.partition("|")[2]) for code, text in codes.items()}
    for script, codes in _FREQUENT.items()
}
#: Other names that data sets write.
_SAME = {"zh": "hani", "zh-cn": "hani", "zh-tw": "hani", "ja": "kana", "nb": "no", "fil": "tl"}
#: What a word is separated by; combining signs of Indian scripts are part of words.
_SEPARATOR = re.compile(r"[\s\d!-/:-@\[-`{-~।،؛؟。，“”‘’«»…–—]+")

LANGUAGES = frozenset(_SCRIPTS.keys() - _FREQUENT.keys() - {"kana", "hani"}) | _SCRIPT_OF.keys()
LANGUAGES |= _SAME.keys()


def is_language(text: str, code: str) -> bool:
    """Return whether a text is in a language by its ISO 639-1 code, one of `LANGUAGES`.

    The text has to be mostly in the script of the language, and no other language of that script may
    have more of its frequent words. A text without any of them counts as English if it is in Latin
    letters; one without letters is in no language.
    """
    script, evidence = _evidence(text[:MAX_CHARACTERS].lower())
    code = _SAME.get(code, code)
    if script != _SCRIPT_OF.get(code, code):
        return False
    own = evidence.get(code, 0.0)
    return own == max(evidence.values(), default=0.0) and (own > 0 or code in ("en", script))


@lru_cache(maxsize=16)
def _evidence(text: str) -> tuple[str, dict[str, float]]:
    """Return the script of a text, and the number of frequent words of each language of the script."""
    characters = Counter(text)
    distinct = "".join(characters)
    counts = {
        script: sum(map(characters.__getitem__, letters.findall(distinct)))
        for script, letters in _LETTERS.items()
    }
    if counts["kana"] * 10 > counts["hani"]:
        counts["kana"] += counts.pop("hani")
    script = max(counts, key=lambda name: counts[name])
    if not counts[script]:
        return "", {}
    words = Counter(_SEPARATOR.split(text)) if script in _WORDS else Counter()
    return script, {
        code: sum(map(words.__getitem__, own))
        + sum(map(characters.__getitem__, _MARKS[script][code])) / 4
        for code, own in _WORDS.get(script, {}).items()
    }
