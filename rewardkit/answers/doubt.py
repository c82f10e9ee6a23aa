"""The words that deny, doubt, bound, change or take back an answer, for every part that reads answers.

Each extractor composes from these groups what it looks for. English and Chinese are complete groups;
other languages have the few words that stand beside an answer.
"""

from rewardkit.answers.parsing.vocabulary import split_words

# --- patterns for texts

OR = r"\bor\b|或者?|还是"
NOT = r"(?:\b(?:not|never|cannot|pas|nicht|niet|no es|non è|não é|не)\b|n['’]t\b)"
CJK_NOT = (
    "不(?:是|为|等于|能|会|可能|对|成立|存在|知道|确定)|并非|无法|没有|未必|ない|ません|아니|아닙"
)
MAYBE = "maybe|perhaps|possibly"
HEDGE = f"{MAYBE}|probably|likely|guess|suspect"
CJK_HEDGE = "可能|也许|或许|大概|恐怕|猜测?|好像|似乎"
IF = "if|whether|unless|suppose|supposing|assume|assuming|imagine|pretend|in case|provided that|wenn|falls"
CJK_IF = "如果|假设|假如|若|要是|倘若|是否|もし|만약"
WRONG = "wrong|incorrect|false"
CJK_WRONG = "不对|不正确|不成立|错误?的|错误|有误"
HENCE = "thus|hence|therefore|consequently"
CJK_HENCE = "所以|因此|因而|综上所述|综上|故|从而|于是"
#: Words with which a writer takes back what stands before them.
HESITATION = (
    r"(?:no(?=\s?[,.:!…–—-])|wait|actually|correction|edit|update|sorry|typo|oops|oh no|hold on|hm+"
    r"|on second thoughts?|just kidding|i changed my mind)\b|不(?=\s?[,，.。:!！…–—-])|等等|等一下|抱歉|其实"
)

# --- words

#: Words that deny a value, and words that leave it open.
DENIALS = split_words(
    "not no nor neither never nothing none nobody cannot can't couldn't isn't aren't except unless besides instead"
) | {*WRONG.split("|")}  # fmt: skip
HEDGES = {*HEDGE.split("|"), "could", "might", "may"}
BOUNDS = split_words("least most than under over above below")
#: Words after a number that retract it, at any distance.
RETRACTIONS = split_words(
    "excluded rejected removed missing impossible extraneous invalid discarded fails ruled"
    " contradicts root debt below loss upwards wrong incorrect"
)
#: Words after a number that make it a different number, and operations on the number beside them.
SCALING_WORDS = split_words(
    "mil bn mn tn lakh lakhs crore crores score gross dozens grand tens hundreds thousands millions"
    " billions trillions tenths hundredths thousandths halves thirds fourths fifths sixths sevenths"
    " eighths ninths doubled halved tripled squared cubed"
)
OPERATIONS = split_words("plus minus times divided multiplied mod factorial choose half negative")
MONTHS = split_words(
    "january february march april may june july august september october november december"
)
#: Words beside a number that change, bound or retract it. No unit contains one of them.
NUMBER_MODIFIERS = DENIALS | HEDGES | BOUNDS | RETRACTIONS | SCALING_WORDS | OPERATIONS | MONTHS
NUMBER_MODIFIERS |= split_words(
    "reciprocal inverse untrue conjectured unlikely assuming estimated exclusive excluding point base upper"
    " lower bound short shy complement supplement one two three four five six seven eight nine ten by is"
    " are was be or and but if more less fewer between to until through up twice double triple thrice modulo"
    " positive either else rather other others another any different equal equals greater smaller larger at"
    " out versus vs about almost nearly approximately question unknown undefined true also too remainder am"
    " pm choices given where when for because since so then however non without only likely minimum maximum"
    " tops etc ish est approx roughly circa etwa environ th st nd rd"
)
#: Words of a label that leave open whether its value is the answer.
LABEL_DOUBTS = DENIALS | HEDGES | split_words(
    "let suppose assume find compute determine calculate evaluate negative minus supposed used seems"
)  # fmt: skip
#: Operations that a label applies to its value: the reciprocal of 5 is not 5.
LABEL_OPERATIONS = split_words(
    "square cube root reciprocal opposite inverse half double twice triple third quarter bound"
    " negation complement"
)
#: Chinese after a number, and in a label, that denies, bounds or changes the number.
CHINESE_NUMBER_MODIFIERS = tuple(
    "的 几 进制 为负 舍 增根 不 错 误 非 未 或 和 与 及 至 到 超过"
    " 以上 以下 以内 以外 少于 多 大于 小于 除 倍 折 成 半 分之 次方 的平方 左右 上下 を超"
    " かも でしょう では じゃ 아니 아닙 また もしくは 未満 くらい ぐらい 以内 より 또는 혹은 이상 이하 미만 정도 보다".split()
)
CHINESE_LABEL_MODIFIERS = tuple(
    "不 否 错 误 非 未 舍 增根 平方 立方 倒数 相反数 一半 倍 余数 最多 最少 至少 至多 可能 大约是 超过 大于 小于".split()
)
#: Words before a number that keep a sentence from stating the number.
STATEMENT_BLOCKERS = (LABEL_DOUBTS | LABEL_OPERATIONS | NUMBER_MODIFIERS) - split_words(
    "is are was be to and for from since because so then when at out until through without also too by"
    " given over other others another about almost nearly however"
)
