"""Text of invented papers: abstracts, sections and references, drawn from pools that are written once.

Promises: equal numbers give equal text, in English, Hebrew, Arabic, Chinese and Japanese.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

from DocsToKG.Sandbox import vocabulary as words
from DocsToKG.Sandbox.seeded_random import stream

PARAGRAPHS = 96
REFERENCES = 400

_OPENINGS = (
    "In each of the samples", "Across all seasons", "Under the conditions described above", "For the smaller groups",
    "At the second site", "When the procedure was repeated", "In contrast to earlier reports", "Taken together",
    "After the first measurement", "With a coarser resolution", "Among the remaining cases", "Over longer periods",
)  # fmt: skip
_THINGS = (
    "the difference", "the observed rate", "the estimated slope", "the share of variance",
    "the response", "the residual", "the fitted coefficient",
    "the mean duration", "the ratio of both terms", "the error of measurement",
    "the effect of distance", "the distribution of sizes",
)  # fmt: skip
_DEEDS = (
    "was smaller than expected", "remained within the limits given in Table 1", "agreed with the model",
    "did not depend on the order of trials", "increased with temperature", "could not be told from noise",
    "followed the same course in both years", "was confirmed by a second observer", "changed its sign",
    "reached a plateau after some hours", "was reported before for similar material", "varied by less than a tenth",
)  # fmt: skip
_ENDINGS = (
    "", "", "", " (Fig. 2)", ", as shown in the left panel", ", although fewer samples were left",
    " and we return to it below", ", which is discussed in the next section",
    " [3, 7]", " (p < 0.05)", " in 12 of 14 cases", ", with one exception",
)  # fmt: skip
SECTIONS = ("Introduction", "Materials and methods", "Results", "Discussion", "Conclusions")
_FOREIGN = {
    "he": (
        "המדידות נערכו בכל עונות השנה ובכל אתרי הדגימה.", "ההבדלים בין הקבוצות היו קטנים אך עקביים.",
        "המודל המוצע מתאר היטב את הנתונים שנאספו.", "בפרק זה נדונות השיטות שבהן השתמשנו.",
        "התוצאות מלמדות כי ההשפעה תלויה בגודל המדגם.", "מחקרים קודמים הצביעו על מגמה דומה.",
        "נדרש מחקר נוסף לאורך תקופות ארוכות יותר.", "הטעות הממוצעת לא עלתה על עשירית.",
    ),
    "ar": (
        "أجريت القياسات في جميع الفصول وفي كل المواقع.", "كانت الفروق بين المجموعات صغيرة ولكنها ثابتة.",
        "يصف النموذج المقترح البيانات وصفا جيدا.", "نناقش في هذا القسم الطرق المستخدمة.",
        "تدل النتائج على أن الأثر يعتمد على حجم العينة.", "أشارت دراسات سابقة إلى اتجاه مماثل.",
        "هناك حاجة إلى بحث إضافي على مدى فترات أطول.", "لم يتجاوز متوسط الخطأ العشر.",
    ),
    "zh": (
        "测量在每个季节和每个地点重复进行。",
        "各组之间的差异较小,但在每个样本中均成立。",
        "所提出的模型较好地描述了观测数据。",
        "本节讨论所使用的方法。",
        "结果表明,该效应取决于样本量。",
        "以往的研究也报告了类似的趋势。",
        "今后需要在更长的时间内开展研究。",
        "平均误差不超过十分之一。",
    ),
    "ja": (
        "測定はすべての季節と地点で繰り返し行った。",
        "群間の差は小さいが、いずれの試料でも認められた。",
        "提案したモデルは観測値をよく説明する。",
        "本節では用いた方法について述べる。",
        "この効果は標本の大きさに依存することが示された。",
        "先行研究でも同様の傾向が報告されている。",
        "今後はより長い期間の研究が必要である。",
        "平均誤差は十分の一を超えなかった。",
    ),
}  # fmt: skip
_FOREIGN_SECTIONS = {
    "he": ("מבוא", "שיטות", "תוצאות", "דיון", "מסקנות"),
    "ar": ("مقدمة", "الطرق", "النتائج", "المناقشة", "الخلاصة"),
    "zh": ("引言", "材料与方法", "结果", "讨论", "结论"),
    "ja": ("はじめに", "材料と方法", "結果", "考察", "結論"),
}
_FOREIGN_HEADS = {
    "he": ("תקציר", "מקורות"),
    "ar": ("الملخص", "المراجع"),
    "zh": ("摘要", "参考文献"),
    "ja": ("要旨", "参考文献"),
}


def section_heads(language: str) -> tuple[str, ...]:
    return _FOREIGN_SECTIONS.get(language, SECTIONS)


def abstract_head(language: str) -> str:
    return _FOREIGN_HEADS.get(language, ("Abstract", ""))[0]


def references_head(language: str) -> str:
    return _FOREIGN_HEADS.get(language, ("", "References"))[1]


@lru_cache(maxsize=1024)
def paragraph(number: int, language: str = "en", sentences: int = 6) -> str:
    """One of `PARAGRAPHS` paragraphs of a language."""
    chance = stream("paragraph", language, number % PARAGRAPHS, sentences)
    if language in _FOREIGN:
        joint = "" if language in ("zh", "ja") else " "
        return joint.join(chance.choice(_FOREIGN[language]) for _ in range(sentences))
    return " ".join(_sentence(chance) for _ in range(sentences))


def _sentence(chance: Random) -> str:
    return f"{chance.choice(_OPENINGS)}, {chance.choice(_THINGS)} {chance.choice(_DEEDS)}{chance.choice(_ENDINGS)}."


def references(chance: Random, count: int) -> list[str]:
    """Numbered entries of a list of references."""
    chosen = sorted(chance.sample(range(REFERENCES), count), key=reference)
    return [f"{number}. {reference(which)}" for number, which in enumerate(chosen, start=1)]


@lru_cache(maxsize=REFERENCES)
def reference(number: int) -> str:
    chance = stream("reference", number)
    authors = ", ".join(
        f"{chance.choice(words.FAMILY)} {chance.choice(words.GIVEN)[0]}" for _ in range(chance.randint(1, 4))
    )
    title = (
        f"{chance.choice(words.QUALITIES)} {chance.choice(words.SUBJECTS)} and {chance.choice(words.SUBJECTS)}"
        f" of {chance.choice(words.PLACES)}"
    )
    first = chance.randint(1, 1900)
    doi = f" doi:10.5590/ref.{number:04d}" if chance.random() < 0.6 else ""
    return (
        f"{authors}. {title}. {chance.choice(words.JOURNALS)}. {chance.randint(1970, 2020)};"
        f"{chance.randint(1, 60)}:{first}-{first + chance.randint(3, 20)}.{doi}"
    )
