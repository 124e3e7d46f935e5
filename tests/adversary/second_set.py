"""A second set: 40 kinds of impostor and 40 odd but right files, for the one who publishes how the judge does.

Written by somebody who has not seen the rules that judge it, nor their tests, decisions, thresholds or verdicts, but
only what publishers, repositories, libraries and authors put into PDF files. It is judged once, after the rules are
frozen, and its figures are published as they come out; whoever tunes rules on it has to have another one written.

    python -m bench.identity --set tests.adversary.second_set

No name, title or DOI is that of a real paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

from tests.adversary.case import Case, renderings_of
from tests.adversary.works import Author, IndexedWork

from DocsToKG.Sandbox.pdf import prose
from DocsToKG.Sandbox.pdf.document import A4, LANDSCAPE, Block, Document, Mark, page_break
from DocsToKG.Sandbox.seeded_random import stream

ANY = ("word", "tagged", "ocr", "rtl")
SECTIONS = ("Introduction", "Methods", "Results", "Discussion", "Conclusion")


class Made(NamedTuple):
    work: IndexedWork
    document: Document
    renderings: tuple[str, ...] = ()


_IMPOSTORS: list[Callable[[], Made]] = []
_RIGHT: list[Callable[[], Made]] = []


def impostor(make: Callable[[], Made]) -> Callable[[], Made]:
    _IMPOSTORS.append(make)
    return make


def right(make: Callable[[], Made]) -> Callable[[], Made]:
    _RIGHT.append(make)
    return make


def cases() -> list[Case]:
    found = []
    for makers, is_right in ((_IMPOSTORS, False), (_RIGHT, True)):
        for number, make in enumerate(makers):
            made = make()
            renderings = made.renderings or renderings_of(number + 5 * is_right)
            found.append(Case(make.__name__, made.work, made.document, renderings, right=is_right))
    return found


# Works, as an index describes them


def people(text: str) -> tuple[Author, ...]:
    """`Given Family, Given|van Family`: a bar parts given from family names of several words."""
    found = []
    for name in text.split(", ") if text else ():
        given, bar, family = name.partition("|")
        if not bar:
            given, _, family = name.rpartition(" ")
        found.append(Author(given, family))
    return tuple(found)


def known(
    doi: str | None, title: str, by: str, year: int, journal: str, where: str, pages: str, arxiv: str | None = None
) -> IndexedWork:
    """`where` is `volume(issue)`, `pages` is `first-last` or the number of an article."""
    volume, _, issue = where.rstrip(")").partition("(")
    first, _, last = pages.partition("-")
    return IndexedWork(
        doi, title, people(by), year, journal, volume, issue, int(first), int(last or first), arxiv_id=arxiv
    )


MARSH = known(
    "10.6101/ecss.2018.04.017", "Sediment trapping by pioneer vegetation on restored salt marshes of the Wendel"
        " estuary",
    "Katrijn Vanhoutte, Alasdair Muirhead, Soledad Quirós-Peña", 2018, "Estuarine and Shore Science", "207(B)",
    "118-127",
)  # fmt: skip
INSULIN = known(
    "10.6102/S2213-7781(20)30155-2",
    "Once-weekly basal insulin ardelin in adults with type 2 diabetes: a double-blind, randomised, phase 3 trial",
    "Thandeka Mokoena-Price, Jürgen Albersdorfer, Hye-jin Noh, Marco Tagliaferri, Leena Virkkunen", 2020,
    "Diabetes and Endocrine Trials", "8(6)", "491-501",
)  # fmt: skip
WAGES = known(
    "10.6103/jle.20170933", "Minimum wages and the hiring of apprentices", "Rasmus Kjellgren, Ottavia Bellincioni",
    2019, "Journal of Labour Evidence", "37(3)", "745-784",
)  # fmt: skip
GRAPHS = known(
    "10.6104/3470.3482101", "Streaming sketches for triangle counts in evolving graphs",
    "Pranav Eswaramoorthy, Linnea Dahlbeck, Guillaume Sautereau", 2021, "Transactions on Data Algorithms", "17(2)",
    "1-24", "2009.71322",
)  # fmt: skip
PEROVSKITE = known(
    "10.6105/s41999-019-0442-7", "Grain boundary passivation in tin halide perovskite films by vapour annealing",
    "Xiuying Meng, Bram Oosterling, Fatoumata Diabaté, Kenta Horiuchi", 2019, "Nature-like Energy Materials", "4(9)",
    "733-741",
)  # fmt: skip
READING = known(
    "10.6106/0022-0663.98.2.314", "Sources of difficulty in the reading of long fractions",
    "Perpetua Amadi-Clarke, Niels Højgaard", 2006, "Journal of School Psychology Research", "98(2)", "314-325",
)  # fmt: skip
HARBOUR = known(
    "10.6107/9780470555211", "The Making of the Northern Harbour: Work, Water and Empire, 1780-1914", "Ewan Strathearn",
    2011, "Firth University Press", "1(1)", "1-312",
)  # fmt: skip
OWLS = known(
    "10.6108/ibis.12688", "Moult strategy of <i>Strix velata</i> and its use in ageing wintering owls",
    "Cătălina Ionescu-Barbu, Harald Finnebråten", 2019, "Bird Notes International", "161(4)", "802-811",
)  # fmt: skip
STENTS = known(
    "10.6109/circulatoria.114.013998", "Late thrombosis after implantation of bioresorbable stents",
    "Declan Featherstonehaugh, Ji-woo Baek, Amaury Delacroix-Thiry, Nadezhda Polukhina", 2014, "Circulatoria",
    "130(19)", "1655-1663",
)  # fmt: skip
AQUIFER = known(
    "10.6110/j.hydrol.2016.11.042", "Nitrate attenuation in fractured chalk aquifers under changing recharge",
    "Imogen Tarrant, Wojciech Siedlecki, Bao-Tran Nguyen", 2017, "Hydrology of Rock and Soil", "544()", "265-278",
)  # fmt: skip
NEUTRON = known(
    "10.6111/PhysRevX.102.055801", "First measurement of the 18Ne(n,p) cross section at stellar energies",
    "J. P. Oyarzún, M. Ketterling, S. Varanasi", 2020, "Physical Records X", "102(5)", "055801",
)  # fmt: skip
VOICE = known(
    None, "Voice and silence in the letters of Maren Tveit", "Ragnhild Aasgaard", 1987, "Scandia Letters", "42(1)",
    "33-47",
)  # fmt: skip
HANDWASH = known(
    "10.6112/blt.12.109884", "Hand hygiene among community birth attendants: a cluster survey in six districts",
    "Adaeze Nwachukwu-Hill, Prasad Ghimire, Lourdes Cayabyab", 2013, "Bulletin of Public Health Practice", "91(4)",
    "254-262",
)  # fmt: skip
MICROBES = known(
    "10.6113/elife-like.48213", "A gut commensal shapes sleep through microglial signalling",
    "Oriane Castelnau, Yuto Shirakawa, Emeka Obiora", 2020, "Open Life", "9()", "48213",
)  # fmt: skip
TRUST = known(
    "10.6114/polbeh.2015.31", "Trust in local government after amalgamation", "Siiri Lehtovaara", 2015,
    "Political Behaviour Quarterly", "29(4)", "611-629",
)  # fmt: skip
VALVE = known(
    "10.6115/TPEL.2012.2188012", "A digital control scheme for resonant converters with wide input range",
    "Hoang Trung Dieu, Piotr Malczewski, Ricardo Avelar", 2012, "Trans. on Power Circuits", "27(10)", "4301-4309",
)  # fmt: skip
WHEAT = known(
    "10.6116/tag.2022.04005", "Genomic prediction of rust resistance in winter wheat across environments",
    "Elspeth Cargill-Row, Mehmet Özdoğru, Chiara Benvegnù, Tunde Falana", 2022, "Crop Genetics", "135(3)", "901-915",
)  # fmt: skip


# Building blocks


_TOPICAL = (
    "Earlier work on {a} gave mixed results, and few studies followed {b} for longer than a year.",
    "We therefore asked whether {a} depends on {b}.", "Our understanding of {a} has changed over the last decade.",
    "The data on {a} were collected as described by others and checked twice.", "As for {a}, both groups were alike.",
    "This agrees with the view that {a} and {b} have a common cause.", "Models without {a} fitted less well.",
    "Differences in {b} may explain why {a} was not seen before.", "The role of {a} remains to be settled.",
)  # fmt: skip
_SMALL = {
    "the",
    "and",
    "of",
    "in",
    "on",
    "for",
    "with",
    "by",
    "to",
    "a",
    "an",
    "its",
    "from",
    "under",
    "after",
    "across",
}


def terms_of(title: str) -> list[str]:
    words = [word.strip(".,:;?!“”()[]").lower() for word in title.replace("<i>", "").replace("</i>", "").split()]
    words = [word for word in words if word not in _SMALL and len(word) > 2]
    return [" ".join(pair) for pair in pairwise(words)] or words or ["the matter"]


def text(key: str, title: str, count: int, sentences: int = 5) -> list[Block]:
    """Paragraphs that speak of what the title names."""
    chance = stream("second", key)
    terms = terms_of(title)
    found = []
    for _ in range(count):
        said = prose.paragraph(chance.randrange(prose.PARAGRAPHS), "en", sentences)
        lines = [
            chance.choice(_TOPICAL).format(a=chance.choice(terms), b=chance.choice(terms))
            for _ in range(sentences // 2)
        ]
        found.append(Block(" ".join([lines[0][0].upper() + lines[0][1:], said, *lines[1:]]) if lines else said))
    return found


def lines(*shown: str, size: float = 10, before: float = 4, across: bool = True) -> tuple[Block, ...]:
    """One block for each line; one that ends with a bar is a head, `---` begins a page."""
    found = []
    for line in shown:
        if line == "---":
            found.append(page_break())
        elif line.endswith("|"):
            found.append(Block(line[:-1], size=size + 4, bold=True, before=12, role="H1", across=across))
        else:
            found.append(Block(line, size=size, before=before, across=across))
    return tuple(found)


def listed(work: IndexedWork, *, doi: bool = True) -> str:
    """The work as a list of references gives it."""
    names = ", ".join(f"{author.family} {author.given[:1]}" for author in work.authors)
    title = work.title.replace("<i>", "").replace("</i>", "")
    where = f"{work.journal} {work.year};{work.volume}:{work.first_page}-{work.last_page}"
    return f"{names}. {title}. {where}." + (f" https://doi.org/{work.doi}" if doi and work.doi else "")


def reference_blocks(key: str, count: int, cited: Sequence[str] = (), head: str = "References") -> tuple[Block, ...]:
    entries = [*(entry.partition(". ")[2] for entry in prose.references(stream("second refs", key), count)), *cited]
    shown = [Block(f"{at}. {entry}", size=8, before=2) for at, entry in enumerate(sorted(entries), start=1)]
    return (Block(head, size=11, bold=True, before=10, role="H2"), *shown)


def sections(key: str, title: str, heads: Sequence[str] = SECTIONS, each: int = 3) -> Iterator[Block]:
    for number, head in enumerate(heads, start=1):
        yield Block(f"{number}. {head}", size=11, bold=True, before=10, role="H2")
        yield from text(f"{key}{number}", title, each)


def endless(key: str, title: str, heads: Sequence[str]) -> Iterator[Block]:
    at = 0
    while True:
        yield from sections(f"{key}/{at}", title, heads)
        at += 1


def paper(
    key: str,
    title: str,
    names: Sequence[str],
    *,
    head: Sequence[str] = (),
    top: tuple[Block, ...] = (),
    after: tuple[Block, ...] = (),
    abstract: str = "Abstract",
    heads: Sequence[str] = SECTIONS,
    body: Sequence[Block] | None = None,
    refs: int = 18,
    ref_head: str = "References",
    cited: Sequence[str] = (),
    pages: int | None = None,
    first: int = 1,
    lead: tuple[Block, ...] = (),
    leads: int = 0,
    tail: tuple[Block, ...] = (),
    marks: tuple[Mark, ...] = (),
    columns: int = 1,
    numbered: bool = False,
    running: str = "",
    places: str = "",
    title_size: float = 16,
    info: str | None = None,
    xmp: str | None = None,
    language: str = "en",
    subject: str = "",
) -> Document:
    """An article: heads at the top of its first page, title page, sections, references; `lead` and `tail` around it."""
    about = subject or title
    front = [*lead, *top, Block(title, size=title_size, bold=True, before=14, role="H1", across=True)]
    if names:
        front.append(Block(", ".join(names), size=11, before=8, across=True))
    front += [Block(place, size=8, before=2, across=True) for place in places.split("; ") if place]
    front += after
    if abstract:
        front.append(Block(abstract, size=11, bold=True, before=10, role="H2", across=True))
        front += [block._replace(size=9, across=True) for block in text(key + "abstract", about, 1)]
    if body is None:
        body_blocks = list(islice(endless(key, about, heads), 16 * pages) if pages else sections(key, about, heads))
    else:
        body_blocks = list(body)
    shown = [Mark(line, 62, 806 - 11 * at, pages="first") for at, line in enumerate(head)]
    if running:
        shown.append(Mark(running, 62, 806, pages="others"))
    back = reference_blocks(key, refs, cited, ref_head) if refs or cited else ()
    return Document(
        front=tuple(front),
        body=body_blocks,
        back=(*back, *tail),
        marks=(*shown, Mark("{page}", 290, 34, 9), *marks),
        pages=pages + leads if pages else None,
        first_page=first,
        columns=columns,
        line_numbers=numbered,
        unmarked=leads,
        language=language,
        title=title if info is None else info,
        authors=tuple(names),
        doi=xmp,
    )


def published(work: IndexedWork, key: str, **changes: object) -> Document:
    """The work with the head line of its journal, its DOI and its own page numbers; `changes` as of `paper`."""
    pages = work.pages if work.pages > 1 else 8
    place = f"{work.first_page}–{work.last_page}" if work.pages > 1 else f"{work.first_page}"
    given: dict[str, object] = {
        "head": (f"{work.journal} {work.volume} ({work.year}) {place}", f"https://doi.org/{work.doi}"),
        "pages": pages,
        "first": work.first_page if work.pages > 1 else 1,
        "places": "Department of Applied Studies, University of Norrhavn; Institute for Field Research, Estoria",
        **changes,
    }
    title = str(given.pop("title", work.title.replace("<i>", "").replace("</i>", "")))
    names = given.pop("names", work.names)
    assert isinstance(names, tuple)
    return paper(key, title, names, **given)  # type: ignore[arg-type]


def sheets(*blocks: Block, marks: tuple[Mark, ...] = (), title: str = "", size: tuple[float, float] = A4) -> Document:
    return Document(front=blocks, marks=marks, title=title, size=size)


# Impostors


@impostor
def a_later_review_that_cites_it_first() -> Made:
    title = "How vegetation builds marshes: a review of two decades of restoration"
    document = paper(
        "i1", title, ("Soledad Quirós-Peña", "Torsten Ahlgrimm"), pages=11, first=1,
        head=("Annual Reviews of Shores 11 (2021) 1–11", "https://doi.org/10.6190/ars.2021.11.001"),
        cited=(listed(MARSH),), after=lines(f"This review begins with what {listed(MARSH)} found.", size=9),
    )  # fmt: skip
    return Made(MARSH, document)


@impostor
def a_comment_by_other_people() -> Made:
    title = f"Comment on “{INSULIN.title}”"
    document = paper(
        "i2", title, ("Filip Rosenqvist", "Anneke ter Braak"), abstract="", refs=4, cited=(listed(INSULIN),),
        head=("Diabetes and Endocrine Trials 8(9) (2020) 733", "https://doi.org/10.6102/S2213-7781(20)30261-2"),
        body=text("i2", INSULIN.title, 5), first=733,
    )  # fmt: skip
    return Made(INSULIN, document)


@impostor
def the_reply_of_the_same_authors() -> Made:
    document = paper(
        "i3", INSULIN.title, INSULIN.names, abstract="", refs=5, cited=(listed(INSULIN),), first=734,
        top=lines("Correspondence|", "Authors' reply"), body=[
            Block("We thank Filip Rosenqvist and Anneke ter Braak for their interest in our trial. They ask whether the"
                  " lower rate of hypoglycaemia could be due to the titration that the protocol prescribed."),
            *text("i3", INSULIN.title, 10), Block("JA has received lecture fees. The other authors declare none."),
        ], head=("Vol 8, September 2020, 734–735",),
    )  # fmt: skip
    return Made(INSULIN, document)


@impostor
def a_corrigendum() -> Made:
    return Made(AQUIFER, sheets(
        *lines("Hydrology of Rock and Soil 551 (2017) 812", size=8),
        *lines("Corrigendum|", f"Corrigendum to “{AQUIFER.title}” [Hydrol. Rock Soil 544 (2017) 265–278]|", size=11),
        *lines(", ".join(AQUIFER.names), "Department of Earth Sciences, University of Hollin",
               "The authors regret that the labels of the two axes of Fig. 6 were interchanged in the published paper,"
               " and that the unit of denitrification in Table 3 should read mg N per litre and year. A corrected"
                   " figure"
               " is shown below. The conclusions are not changed. The authors would like to apologise for any"
               " inconvenience caused.", f"DOI of original article: https://doi.org/{AQUIFER.doi}",
               "https://doi.org/10.6110/j.hydrol.2017.06.031", "0022-1600/© 2017 Published by Lumen B.V."),
        *text("i4", AQUIFER.title, 1, 3), title=f"Corrigendum to “{AQUIFER.title}”",
    ))  # fmt: skip


@impostor
def a_retraction_notice() -> Made:
    return Made(STENTS, sheets(
        *lines("Circulatoria", "Retraction|", f"Retraction to: {STENTS.title}|", size=12),
        *lines(", ".join(STENTS.names), f"Circulatoria. 2016;133:e401. Original article: https://doi.org/{STENTS.doi}",
               f"The editors, with the agreement of the first author, retract the article “{STENTS.title}” that"
                   f" appeared"
               " in the issue of November 4, 2014 (130:1655–1663). An inquiry by the Collège de Clairpont found that"
                   " the"
               " angiograms of eleven patients had been used twice and that consent could not be documented for a"
               " further nineteen.", "Drs Featherstonehaugh and Polukhina agree to this retraction. Dr Baek did not"
               " respond. Dr Delacroix-Thiry disagrees with it.", "The authors had no part in the handling of this"
               " notice. Articles that cite the retracted work should be read with care.", "References",
               "1. " + listed(STENTS)), title="Retraction",
    ))  # fmt: skip


@impostor
def an_article_withdrawn_with_its_title_page_kept() -> Made:
    return Made(PEROVSKITE, sheets(
        *lines("Nature-like Energy Materials", f"https://doi.org/{PEROVSKITE.doi}", size=8),
        *lines("WITHDRAWN: " + PEROVSKITE.title + "|", ", ".join(PEROVSKITE.names),
               "Received 12 January 2019; accepted 3 June 2019",
               "This article has been withdrawn at the request of the authors. The publisher apologises for any"
               " inconvenience this may cause. The full policy on article withdrawal can be found at"
               " https://www.lumen.example/about/policies/article-withdrawal.", "© 2019 Lumen Publishing Ltd."),
        title=PEROVSKITE.title,
    ))  # fmt: skip


@impostor
def the_abstracts_in_other_languages() -> Made:
    return Made(HANDWASH, sheets(
        *lines("Bulletin of Public Health Practice 2013;91:254–262    doi: " + str(HANDWASH.doi), size=8),
        *lines("Résumé|", "Hygiène des mains chez les accoucheuses communautaires: enquête par grappes dans six"
            " districts",
               "Objectif. Mesurer la fréquence du lavage des mains. Méthodes. Nous avons observé 812 accouchements"
                   " dans six"
               " districts. Résultats. Les mains ont été lavées au savon dans 41% des cas. Conclusion. La présence"
                   " d'eau"
               " explique la plus grande part des différences.",
               "Resumen|", "Higiene de las manos entre parteras comunitarias: encuesta por conglomerados en seis"
                   " distritos",
               "Objetivo. Medir la frecuencia del lavado de manos. Métodos. Se observaron 812 partos en seis distritos."
               " Resultados. Las manos se lavaron con jabón en el 41% de los casos. Conclusión. La presencia de agua"
                   " explica"
               " la mayor parte de las diferencias.",
               "Abstract|", HANDWASH.title, ", ".join(HANDWASH.names),
               "Objective. To measure how often hands are washed. Methods. We observed 812 births in six districts."
                   " Findings."
               " Hands were washed with soap in 41% of them. Conclusion. Water at hand explains most of the"
                   " differences."),
        title="Abstracts in translation",
    ))  # fmt: skip


@impostor
def the_peer_review_file() -> Made:
    rounds: list[Block] = []
    for at in (1, 2, 3):
        rounds += lines(f"Reviewer #{at} (Remarks to the Author):|", size=9)
        rounds += text(f"i8{at}", PEROVSKITE.title, 4)
        rounds += lines("Response: We thank the reviewer for these remarks and have rewritten the section on"
                        " annealing. Lines 112–131 of the revised manuscript now read as follows.")  # fmt: skip
        rounds += text(f"i8r{at}", PEROVSKITE.title, 2)
    return Made(PEROVSKITE, sheets(
        *lines("Peer Review File|", PEROVSKITE.title, size=14), *lines(
            "Open Access. This file is licensed under a Creative Commons Attribution 4.0 International License.",
            "Manuscript NEM-19-02281A", "Editorial Note: parts of this file have been redacted.", "---",
            "REVIEWERS' COMMENTS"), *rounds, title="Peer Review File",
    ))  # fmt: skip


@impostor
def blank_scans_with_a_stamp_and_a_target() -> Made:
    return Made(VOICE, sheets(
        *lines("Digitised by the University Library of Estoria", "Scandia Letters 42 (1987)",
            "Shelf mark Z 4411 / 42"), page_break(),
        *lines("UNIVERSITY LIBRARY ESTORIA * 12 MAR 1987 *"), page_break(), *lines(
            "This page is blank in the original"), page_break(),
        *lines("UNIVERSITY LIBRARY ESTORIA * 12 MAR 1987 *"), page_break(), *lines(
            "End of reel. Please rewind. 30 31 32 33"),
        title="Scandia Letters 42 (1987) 33-47",
    ), ("ocr", "type3", "type1", "plain"))  # fmt: skip


@impostor
def a_signed_referee_report_with_a_doi_of_its_own() -> Made:
    return Made(HANDWASH, sheets(
        *lines("Open Practice Research 2013, Referee Report 4 March 2013", "https://doi.org/10.6191/opr.109.r3312",
            size=8),
        *lines(f"Reviewer report for: {HANDWASH.title} [version 1]|", size=11), *lines("Marguerite Osei-Tutu",
               "School of Midwifery, Aldmoor", "Approved with reservations",
                   "Cite this report as: Osei-Tutu M. Reviewer"
               f" Report For: {HANDWASH.title} [version 1; peer review: 1 approved with reservations]."),
        *text("i10", HANDWASH.title, 5), *lines("Is the work clearly presented? Yes", "Is the study design appropriate?"
               " Partly", "Are the conclusions supported by the results? Partly", "Competing interests: none."),
    ))  # fmt: skip


@impostor
def supporting_information_with_methods_and_references() -> Made:
    document = paper(
        "i11", PEROVSKITE.title, PEROVSKITE.names, top=lines("Supporting Information for|", size=12), abstract="",
        heads=("Materials", "Preparation of films", "Characterisation", "Figures S1 to S14", "Tables S1 to S3"),
        ref_head="Supplementary references", refs=14, places="School of Materials, Norrhavn; Collegium Harwick",
        after=lines("*Corresponding author. E-mail: x.meng@norrhavn.example", "This PDF file includes: Supplementary"
                    " Methods, Figs. S1 to S14, Tables S1 to S3, References (1–14)", size=9),
    )  # fmt: skip
    return Made(PEROVSKITE, document)


@impostor
def a_reporting_summary() -> Made:
    ticks = [
        f"[{mark}] {asked}" for mark, asked in (
            ("x", "The exact sample size (n) for each experimental group, given as a discrete number and unit"),
            ("x", "A statement on whether measurements were taken from distinct samples"),
            ("x", "The statistical tests used and whether they are one- or two-sided"),
            (" ", "For Bayesian analysis, information on the choice of priors"),
            ("x", "Estimates of effect sizes, indicating how they were calculated"),
        )
    ]  # fmt: skip
    return Made(PEROVSKITE, sheets(
        *lines("Reporting Summary|", "Corresponding author(s): Xiuying Meng. Last updated by author(s): 2 June 2019",
               f"Article: {PEROVSKITE.title}. DOI {PEROVSKITE.doi}", "The journal wishes to improve the reproducibility"
               " of the work that it publishes. This form provides structure for consistency and transparency.",
               "Statistics|", *ticks, "Software and code|", "Data collection: LabScan 4.1. Data analysis: R 3.5.2.",
               "Field-specific reporting|", "[x] Life sciences [ ] Behavioural [ ] Ecological",
                   "Materials and systems|",
               "[n/a] Antibodies [n/a] Eukaryotic cell lines [n/a] Palaeontology [n/a] Clinical data"),
        title="nr-reporting-summary",
    ))  # fmt: skip


@impostor
def a_thesis_of_the_same_title() -> Made:
    chapters = ("The municipal reform of 2009", "Theories of trust", "Data", "Before and after", "What is lost")
    contents = [f"{at} {name} ........ {at * 23 - 14}" for at, name in enumerate(chapters, start=1)]
    front = lines(
        "UNIVERSITY OF OSTMARK", "Faculty of Social Sciences", "Trust in Local Government after Amalgamation|",
        "Siiri Lehtovaara", "A thesis submitted in fulfilment of the requirements for the degree of Doctor of"
            " Philosophy"
        " in Political Science", "Supervisors: Prof. Hannele Rautio, Dr Jens Bredahl", "May 2013", "---", "Abstract|",
    )  # fmt: skip
    acknowledged = lines("Acknowledgements|", "I thank my supervisors, and my family.", "---", "Contents|", *contents,
                         "---")  # fmt: skip
    body: list[Block] = []
    for at, name in enumerate(chapters, start=1):
        body += [*lines(f"Chapter {at}. {name}|"), *text(f"i13{at}", TRUST.title, 9), page_break()]
    return Made(TRUST, sheets(*front, *text("i13", TRUST.title, 2), page_break(), *acknowledged, *body,
                              *reference_blocks("i13", 60, head="Bibliography"), title="Thesis"))  # fmt: skip


@impostor
def an_extended_abstract_of_an_earlier_meeting() -> Made:
    document = paper(
        "i14", WHEAT.title, WHEAT.names[:3], abstract="", heads=("Background", "Outlook"), refs=4,
        head=("Proc. 19th Congress of Plant Breeders, Tallmark, 8–11 July 2019, pp. 203–204",
              "doi:10.6192/cpb.2019.203"), first=203, places="Hollin Crop Station; Institute of Genetics, Ostmark",
        after=lines("Keywords: genomic selection, rust, wheat", size=8),
    )  # fmt: skip
    return Made(WHEAT, document)


@impostor
def a_poster_of_the_same_title() -> Made:
    return Made(WHEAT, Document(
        front=(Block(WHEAT.title, 26, True, "center", across=True), Block(", ".join(WHEAT.names), 16, across=True),
               Block("Presented at PlantBio 2021, Poster P-0417", 12, across=True),
               *lines("Background|", across=False), *text("i15a", WHEAT.title, 1, 3), *lines("Aims|", across=False),
                   *text("i15b", WHEAT.title, 1,
                    2),
               *lines("Results|", across=False), *text("i15c", WHEAT.title, 2, 3), *lines("Conclusions|", across=False),
               *text("i15d", WHEAT.title, 1, 2), *lines("Acknowledgements: Hollin Foundation. Contact:"
               " e.cargill-row@hollin.example", "Scan the code for the paper", size=9, across=False)),
        columns=3, size=LANDSCAPE, title="Poster",
    ))  # fmt: skip


@impostor
def slides_of_the_same_title() -> Made:
    told = ("Why sketches?", "Related work", "The model", "One pass, small memory", "Main theorem", "Proof idea",
            "Experiments", "Beyond triangles", "Open questions")  # fmt: skip
    shown: list[Block] = [
        Block(GRAPHS.title, 30, True, "center", 120), Block(", ".join(GRAPHS.names), 18, align="center", before=30),
        Block("DataDays 2021, Session 4B", 14, align="center", before=20),
    ]  # fmt: skip
    for head in told:
        shown += [page_break(), Block(head, 28, True)]
        shown += [Block("• " + block.text.partition(".")[0], 18, before=14) for block in text(head, GRAPHS.title, 4, 2)]
    shown += [page_break(), Block("Thank you! Questions?", 30, True), Block(f"doi.org/{GRAPHS.doi}", 18)]
    return Made(GRAPHS, sheets(*shown, size=LANDSCAPE, title="PowerPoint Presentation"))


@impostor
def the_abstract_page_of_a_preprint_server_printed() -> Made:
    return Made(GRAPHS, sheets(
        *lines("24/03/2022, 11:02    [2009.71322] " + GRAPHS.title, size=7), *lines(
            "Computer Science > Data Structures and Algorithms", "[Submitted on 16 Sep 2020 (v1), last revised 2 Feb"
                " 2021"
            " (this version, v3)]", GRAPHS.title + "|", ", ".join(GRAPHS.names)), *text("i17", GRAPHS.title, 1, 6),
        *lines("Comments: 24 pages, 5 figures. To appear in Transactions on Data Algorithms",
            "Subjects: Data Structures"
               " and Algorithms (cs.DS); Databases (cs.DB)", "Cite as: arXiv:2009.71322 [cs.DS]", "(or"
               " arXiv:2009.71322v3 [cs.DS] for this version)", f"Related DOI: https://doi.org/{GRAPHS.doi}",
               "Submission history", "From: Pranav Eswaramoorthy [view email]",
                   "[v1] Wed, 16 Sep 2020 08:11:20 UTC (412"
               " KB)", "[v3] Tue, 2 Feb 2021 17:40:02 UTC (498 KB)", "Download: PDF | PostScript | Other formats",
               "References & Citations: NASA ADS, Scholar", "Bibliographic Tools | Code, Data, Media | Demos | Related"
               " Papers", "Which authors of this paper are endorsers? | Disable MathJax", "About Help Contact Subscribe"
               " Copyright Privacy Policy", "https://arxiv-like.example/abs/2009.71322    1/1"),
        title=f"[2009.71322] {GRAPHS.title}",
    ))  # fmt: skip


@impostor
def the_landing_page_of_a_publisher_printed() -> Made:
    return Made(AQUIFER, sheets(
        *lines("Skip to main content. ReadDirect. Journals & Books. Register. Sign in", size=8),
        *lines("Hydrology of Rock and Soil. Volume 544, January 2017, Pages 265-278", AQUIFER.title + "|",
               ", ".join(AQUIFER.names), f"https://doi.org/{AQUIFER.doi}    Get rights and content", "Highlights",
               "• Nitrate falls along flow paths.  • Recharge matters.  • Dual porosity delays recovery.", "Abstract"),
        *text("i18", AQUIFER.title, 1, 7), *lines("Introduction"), *text("i18b", AQUIFER.title, 1, 3), *lines(
            "Section snippets|", "Study area: The Upper Tarn catchment lies ...", "Sampling: Samples were taken ...",
            "Results and discussion: Concentrations ranged ...", "Access through your institution|", "Purchase PDF"
            " $39.95", "Recommended articles (6)|", "Denitrification in sandstone: an overview", "Cited by (41)|",
            "References (58)|"), *reference_blocks("i18", 12)[1:],
        *lines("View more references", "About ReadDirect. Remote access. Terms and conditions. We use cookies."),
        title=f"{AQUIFER.title} - ReadDirect",
    ))  # fmt: skip


@impostor
def the_first_page_as_a_preview() -> Made:
    document = published(WAGES, "i19", refs=0, pages=None, body=text("i19", WAGES.title, 2), tail=lines(
        "You are reading a preview of the first page. Log on or buy the article to read all 40 pages.",
            size=12))  # fmt: skip
    return Made(WAGES, document)


@impostor
def the_first_three_pages_cut_off_without_a_word() -> Made:
    running = "K. Vanhoutte et al. / Estuarine and Shore Science 207"
    body = [*sections("i20", MARSH.title, ("Introduction",), 7), *sections("i20b", MARSH.title, ("Methods",), 13)]
    document = published(MARSH, "i20", refs=0, pages=None, body=body, running=running)
    return Made(MARSH, document)


@impostor
def the_second_half_alone() -> Made:
    marks = (
        Mark("122    K. Vanhoutte et al. / Estuarine and Shore Science 207 (2018) 118–127", 62, 806, 8),
        Mark("Sediment trapping by pioneer vegetation on restored salt marshes", 62, 795, 8),
    )
    body = [*text("i21", MARSH.title, 9), *sections("i21b", MARSH.title, ("Discussion", "Conclusions"), 6)]
    return Made(MARSH, Document(front=tuple(body), back=reference_blocks("i21", 30), marks=marks, columns=2))


@impostor
def an_online_appendix_as_long_as_a_paper() -> Made:
    document = paper(
        "i22", WAGES.title, WAGES.names, top=lines("ONLINE APPENDIX|", "Not for publication"), abstract="",
        heads=("A. Proofs", "B. Data construction", "C. Additional tables", "D. Robustness", "E. Survey"), pages=16,
        after=lines("March 2019"), refs=10, first=1, marks=(Mark("A-", 278, 34, 9),),
    )  # fmt: skip
    return Made(WAGES, document)


@impostor
def the_contents_of_the_issue() -> Made:
    other = ("Plumage wear in captive shrikes", "Nest boxes and second broods in the redstart", "A census of gannets,"
             " 2011–2018", "Ageing wintering thrushes by the tail", "Short notes: an eagle owl at sea")  # fmt: skip
    entries = [
        f"{'; '.join(reversed(('H. Marsh', 'P. Vey')[: 1 + at % 2]))}. {title} .......... {760 + 17 * at}"
        for at, title in enumerate(other)
    ]
    mine = "Ionescu-Barbu, C. & Finnebråten, H. Moult strategy of Strix velata and its use in ageing wintering owls"
    return Made(OWLS, sheets(
        *lines("Bird Notes International|", "Volume 161 Number 4 October 2019", "CONTENTS|", "Papers", *entries[:3],
            mine + " ... 802",
               *entries[3:], "Book reviews .......... 861", "Ringing recoveries .......... 870",
                   "Front cover: a wintering"
               " owl (H. Finnebråten)", "Available online at birdnotes.example. ISSN 0019-9019"), title="TOC",
    ))  # fmt: skip


@impostor
def the_front_matter_of_the_issue_with_a_cover_story() -> Made:
    return Made(PEROVSKITE, sheets(
        Block("Nature-like Energy Materials", 34, True, before=40), *lines("September 2019 Vol. 4 No. 9",
            "Passivated grains|",
        "---", "On the cover|", f"Vapour annealing heals the grain boundaries of tin perovskites. The image shows a"
            f" film"
        f" under polarised light. {', '.join(PEROVSKITE.names)}, {PEROVSKITE.title}, p. 733. Cover design: A. Brandt.",
        "Editorial board|", "Editor-in-chief: Wibke Sandvoort. Editors: Luca Pirandei, Shreya Kulkarni, Tom Eastlake.",
        "Advisory board: forty members of nineteen countries.", "---", "Information for subscribers|", "The journal"
        " (ISSN 2058-9999) is published monthly. Annual rates: institutions 4,930, personal 99. Claims for missing"
        " numbers are honoured for six months. Periodicals postage paid. © 2019 Lumen Publishing Ltd. All rights"
        " reserved. Authorisation to photocopy items for internal use is granted to libraries."),
        title="Issue information",
    ))  # fmt: skip


@impostor
def a_book_of_abstracts() -> Made:
    titles = ("Ergot in rye after wet springs", "Seed banks of small states", WHEAT.title, "Barley and drought memory",
              "Root angle in durum", "Rapid cycling of oats", "Stem rust returns",
                  "Phenotyping from balloons")  # fmt: skip
    names = ("Olu Adair, Britt Sand", "Cem Aksoy", ", ".join(WHEAT.names), "Rita Coelho", "Ugo Merli, Ada Zini")
    shown: list[Block] = [
        *lines("20th Congress of Plant Breeders|", "Book of Abstracts|", "Ostmark, 4–7 July 2022", "---")
    ]
    for at, title in enumerate(titles):
        shown += lines(
            f"O-{at + 31:03d}", f"{title}|", names[at % len(names)] if title != WHEAT.title else names[2], size=9
        )
        shown += text(f"i25{at}", title, 2)
    return Made(WHEAT, sheets(*shown, title="Book of abstracts"))


@impostor
def a_data_paper_about_its_data() -> Made:
    title = "Data on rust scores and marker profiles of 1,120 winter wheat lines in nine environments"
    table = lines("Specifications table|", "Subject: Agronomy. Type of data: tables, text files. Accessibility: public"
                  " repository.", f"Related research article: {listed(WHEAT)}", size=9)  # fmt: skip
    document = paper(
        "i26", title, WHEAT.names, head=("Data Notes 41 (2022) 107911", "https://doi.org/10.6193/j.dn.2022.107911"),
        after=table, heads=("Value of the data", "Data description", "Experimental design", "Ethics"), cited=(listed(
            WHEAT),),
    )  # fmt: skip
    return Made(WHEAT, document)


@impostor
def the_read_me_of_a_replication_package() -> Made:
    return Made(WAGES, sheets(
        *lines(f"README for “{WAGES.title}”|", ", ".join(WAGES.names), "Journal of Labour Evidence", "Overview|", "The"
               " code in this replication package constructs the analysis files from the two data sources (IAB-like"
               " register, Chamber Survey) using Stata and R. Two master files run all of the code. The replicator"
                   " should"
               " expect the code to run for about 14 hours.", "Data availability and provenance statements|",
               "[x] I certify that the authors have legitimate access. Register data are confidential; researchers may"
               " apply at fdz.example.", "Dataset list|", "data/raw/chambers_1998_2014.dta (provided)",
               "data/raw/register_panel.dta (not provided)", "Computational requirements|", "Stata 15 (estout, reghdfe,"
               " coefplot), R 3.5 (data.table). Last run on a server with 16 cores.", "Description of programs|",
               "code/01_clean.do – code/09_tables.do produce Tables 1–7 and Figures 1–5", "References|", listed(WAGES)),
        title="README.pdf",
    ))  # fmt: skip


@impostor
def the_conference_version_of_the_same_title() -> Made:
    marks = (Mark("978-1-4244-9999-1/10/$26.00 ©2010 IEEX", 62, 48, 7, pages="first"),)
    document = paper(
        "i28", VALVE.title, ("Hoang Trung Dieu", "Piotr Malczewski"), pages=6, first=1877, columns=2, marks=marks,
            refs=14,
        head=("2010 Congress on Power Conversion, Clairpont, 12–16 September 2010", "DOI 10.6196/cpc.2010.5618123"),
        heads=("I. Introduction", "II. Small-signal model", "III. Simulation", "IV. Conclusion"),
    )  # fmt: skip
    return Made(VALVE, document)


@impostor
def a_licence_to_reuse_a_figure() -> Made:
    return Made(STENTS, sheets(
        *lines("LUMEN LICENSE", "TERMS AND CONDITIONS|", "Mar 02, 2021",
            "This Agreement between Dr. Vera Pohl (“You”) and"
               " Lumen Health (“Lumen”) consists of your license details and the terms and conditions provided by Lumen"
               " and the Clearance Desk.", "License Number 5019880412233", "License date Mar 02, 2021",
                   "Licensed Content"
               " Publisher Lumen Health", "Licensed Content Publication Circulatoria", f"Licensed Content Title"
               f" {STENTS.title}", f"Licensed Content Author {', '.join(STENTS.names)}", "Licensed Content Date Nov 4,"
               " 2014", "Licensed Content Volume 130", "Licensed Content Issue 19", "Licensed Content Pages 1655-1663",
               f"DOI {STENTS.doi}", "Type of Use Dissertation/Thesis", "Portion Figures/table", "Total 0.00 EUR",
               "Terms and Conditions|", *[f"{at}. " + clause for at, clause in enumerate((
                   "The materials you have requested permission to reproduce are protected by copyright.",
                   "You are hereby granted a personal, non-exclusive, non-transferable, worldwide, limited license.",
                   "Gratis licenses are free of charge; all other terms apply.", "No warranty is given.",
                   "This Agreement shall be governed by the laws of the State of Estoria."), start=1)]),
        title="License",
    ))  # fmt: skip


@impostor
def the_published_protocol_of_the_trial() -> Made:
    title = ("Once-weekly basal insulin ardelin in adults with type 2 diabetes: study protocol for a double-blind,"
             " randomised, phase 3 trial (WEEKLY-3)")  # fmt: skip
    document = paper(
        "i30", title, (*INSULIN.names[:3], "Graeme Lockerbie"), pages=10,
        head=("Protocols in Medicine (2018) 19:402", "https://doi.org/10.6194/s13063-018-2790-1", "STUDY PROTOCOL"),
        heads=("Background", "Methods/design", "Assignment of interventions", "Data management", "Trial status"),
        after=lines("Trial registration: EudraCT 2017-9988-12. Registered on 4 August 2017. Protocol version 3.2",
            size=8),
    )  # fmt: skip
    return Made(INSULIN, document)


@impostor
def a_plain_language_summary() -> Made:
    return Made(INSULIN, sheets(
        *lines("Plain Language Summary|", "A once-weekly insulin for people with type 2 diabetes|", f"Original article:"
               f" {INSULIN.title}", f"By {', '.join(INSULIN.names)}. First published 2020.", f"Read it at"
               f" https://doi.org/{INSULIN.doi}", "What is this summary about?|",
                   "Many people with type 2 diabetes inject"
               " insulin each day. This summary tells about a study of an insulin that is injected once a week.",
               "Who took part?|", "588 adults in nine countries took part. Half of them took the weekly insulin with a"
               " dummy daily injection.", "What did the study find?|",
                   "Blood sugar fell as much with the weekly insulin"
               " as with the daily one. Low blood sugar was a little rarer.", "What do the results mean?|", "A weekly"
               " insulin may be an option. Talk to your doctor before you change your treatment.", "Who paid for it?|",
               "The study was paid for by Ardelin Pharma."), title="Plain language summary",
    ))  # fmt: skip


@impostor
def a_press_release() -> Made:
    return Made(MARSH, sheets(
        *lines("University of Norrhavn. PRESS RELEASE", "Embargoed until 00:01 on Tuesday 17 April 2018", "Small plants"
               " build big marshes|", "The first plants that settle on restored salt marshes trap more mud than"
                   " anyone had"
               " thought, a study led by the University of Norrhavn shows.", "“We measured the mud for six years, and"
               " the seedlings surprised us,” says Katrijn Vanhoutte, who led the study with Alasdair Muirhead and"
               " Soledad Quirós-Peña.", "On the Wendel estuary, banks were opened in 2009. Since then the surface has"
               " risen by eleven centimetres. The team placed traps under the plants and beside them.", "“That matters"
               " for sea walls,” adds Muirhead, “because marshes take the force out of waves.”", "ENDS", "Notes to"
               " editors|", f"The paper, {listed(MARSH)}, is published in Estuarine and Shore Science.",
                   "Contact: press"
               " office, +00 55 1234, press@norrhavn.example. Pictures are available."), title="Press release",
    ))  # fmt: skip


@impostor
def a_news_and_views_piece_with_the_same_subject() -> Made:
    title = "Sleep: A gut commensal speaks to microglia"
    document = paper(
        "i33", title, ("Wilhelmina Ostrow",), abstract="", refs=6, cited=(listed(MICROBES),), first=12, columns=2,
        head=("Open Life 2020;9:e50012", "INSIGHT. https://doi.org/10.6113/elife-like.50012"),
        after=(*lines("How a bacterium may change the way in which mice sleep."), *lines(
            f"Related research article {', '.join(MICROBES.names)}. 2020. {MICROBES.title}. Open Life 9:e48213. DOI:"
            f" {MICROBES.doi}", size=8)), body=text("i33", MICROBES.title, 7),
    )  # fmt: skip
    return Made(MICROBES, document)


@impostor
def a_slip_of_document_delivery() -> Made:
    return Made(VOICE, sheets(
        *lines("ILLiad TN: 448812    Borrower: NRH    Odyssey", "Lending String: *EST,OST,HAR",
            "Patron: Bjerke, Solveig",
               "Journal Title: Scandia Letters", "Volume: 42 Issue: 1", "Month/Year: 1987", "Pages: 33-47", "Article"
               f" Author: {VOICE.names[0]}", f"Article Title: {VOICE.title}", "Imprint:", "ILL Number: 190022381",
                   "Call #:"
               " PT 7088 .S3", "Location: Annex. Request Date: 20120214", "Ship via: Odyssey. Max cost: 25.00 IFM",
               "NOTICE: WARNING CONCERNING COPYRIGHT RESTRICTIONS|", "The copyright law governs the making of"
                   " photocopies"
               " or other reproductions of copyrighted material. One of these specified conditions is that the"
                   " photocopy"
               " is not to be used for any purpose other than private study, scholarship, or research.", "Not on shelf."
               " Volume at bindery. Please re-request in four weeks."), title="ILL",
    ))  # fmt: skip


@impostor
def a_login_page_printed() -> Made:
    return Made(HANDWASH, sheets(
        *lines("Sign in to continue|", f"You are signing in to read: {HANDWASH.title}", f"{', '.join(HANDWASH.names)},"
               f" Bulletin of Public Health Practice 2013", "Find your institution", "[ Search by name or e-mail ]",
               "Recently used: University of Norrhavn", "Or sign in with a personal account", "Username", "Password",
               "[ ] Remember me on this device", "Forgotten your password? Register for a new account.", "By signing in"
               " you accept the terms of use and the privacy notice.", "Your institution is not listed? Ask your"
               " librarian to set up access. Federated access by OpenGate.", f"https://sso.lumen.example/login?return="
               f"%2Fdoi%2Fpdf%2F{HANDWASH.doi}", "Version 4.11.2    1/1"), title="Sign in",
    ))  # fmt: skip


@impostor
def a_challenge_page_printed() -> Made:
    return Made(WAGES, sheets(
        *lines("journals.labourevidence.example", "Checking if the site connection is secure|",
            "Verify you are human by"
               " completing the action below.", "[ ] I am not a robot",
                   "journals.labourevidence.example needs to review"
               " the security of your connection before proceeding.", "Enable JavaScript and cookies to continue.",
               f"Requested address: https://journals.labourevidence.example/doi/pdf/{WAGES.doi}", "Ray ID:"
               " 7a1f00c2be991103. Your IP: 192.0.2.44", "Performance and security by Shieldwall"),
                   title="Just a moment",
    ))  # fmt: skip


@impostor
def an_article_on_whose_last_page_it_begins() -> Made:
    title = "Weather and weariness in Nordic ballads of the sea"
    tail = lines("VOICE AND SILENCE IN THE LETTERS OF MAREN TVEIT|", "Ragnhild Aasgaard", size=9)
    begun = Block("Maren Tveit wrote to her sister every week for thirty years, and of the fifteen hundred letters"
        " about"
                  " four hundred are kept. They tell of weather, of prices and of illness, and seldom of"
                      " herself.")  # fmt: skip
    document = paper(
        "i37", title, ("Gudmund Tveter",), abstract="", ref_head="Notes", refs=12, pages=10, first=24, heads=("I",
            "II"),
        tail=(*tail, begun), head=("Scandia Letters 42:1 (1987)",),
    )  # fmt: skip
    return Made(VOICE, document)


@impostor
def another_paper_of_exactly_this_title() -> Made:
    work = known(
        "10.6117/lanc.2012.601", "Climate change and health", "Ottilie Brandvold, Kofi Ansah-Berko", 2012,
        "Medical Weekly", "380(9841)", "601-608",
    )  # fmt: skip
    document = paper(
        "i38", work.title, ("Ralph Dunmore", "Ines Carvalhal"), pages=7, first=3,
        head=("Review of Environmental Policy 5 (2016) 3–9", "https://doi.org/10.6195/rep.2016.5.3"),
    )  # fmt: skip
    return Made(work, document)


@impostor
def a_patent_of_the_same_title_by_the_same_people() -> Made:
    work = replace(VALVE, title="Digital control scheme for resonant converters with wide input range")
    claims = [Block(f"{at}. The converter of claim {max(1, at - 1)}, wherein the controller is arranged to vary the"
                    f" switching frequency in {at + 2} steps.") for at in range(1, 12)]  # fmt: skip
    return Made(work, sheets(
        *lines("(12) United Federation Patent", "(10) Patent No.: UF 8,811,340 B2",
            "(45) Date of Patent: Aug. 19, 2014",
               "(54) DIGITAL CONTROL SCHEME FOR RESONANT CONVERTERS WITH WIDE INPUT RANGE|",
                   "(75) Inventors: Hoang Trung"
               " Dieu, Ostmark; Piotr Malczewski, Estoria; Ricardo Avelar, Hollin", "(73) Assignee: Lumen Power AG",
               "(21) Appl. No.: 13/401,221    (22) Filed: Feb. 21, 2012", "(56) References Cited: 6,411,220 B1 6/2002;"
               f" OTHER PUBLICATIONS: {listed(VALVE)}", "(57) ABSTRACT"), *text("i39", VALVE.title, 1),
        *lines("11 Claims, 9 Drawing Sheets", "---", "BACKGROUND OF THE INVENTION|"), *text("i39b", VALVE.title, 5),
        *lines("DETAILED DESCRIPTION|"), *text("i39c", VALVE.title, 9), *lines("What is claimed is:|"), *claims,
        title="UF8811340B2",
    ))  # fmt: skip


@impostor
def a_review_of_the_book_that_was_asked_for() -> Made:
    document = paper(
        "i40", "The Making of the Northern Harbour: Work, Water and Empire, 1780–1914. By EWAN STRATHEARN. Firth"
        " University Press, 2011. xii + 312 pp. £65.00.", (), title_size=11, abstract="", refs=0, first=233,
        head=("Economic Reviews 65, 1 (2012), pp. 233–234", "Book Reviews"), body=[
            *text("i40", HARBOUR.title, 10),
            Block("University of Aldmoor                                   PHILIPPA RENSHAW", before=10)],
    )  # fmt: skip
    return Made(HARBOUR, document)


# Right files


@right
def behind_an_eprints_cover_with_a_word_of_the_title_changed() -> Made:
    cover = lines(
        "Norrhavn Research Online|", "This is a repository copy of Sediment capture by pioneer vegetation on"
            " restored salt"
        " marshes of the Wendel estuary.", "Research Online URL for this paper:"
            " http://eprints.norrhavn.example/129881/",
        "Version: Accepted Version", "Article:|", listed(MARSH), "© 2018 Lumen Ltd. Licensed under the Creative Commons"
        " Attribution-NonCommercial-NoDerivatives licence.", "Reuse|",
            "This licence only allows you to download this work"
        " and share it with others as long as you credit the authors.", "Takedown|", "If you consider content to be in"
        " breach of law, please notify us by e-mailing eprints@norrhavn.example.", "---",
    )  # fmt: skip
    title = "Sediment capture by pioneer vegetation on restored salt marshes of the Wendel estuary"
    document = paper("r1", title, MARSH.names, lead=cover, leads=1, pages=17, numbered=True)
    return Made(MARSH, document)


@right
def behind_a_pure_cover_in_another_language() -> Made:
    cover = lines(
        "Høgskolen i Estoria|", MARSH.title, "Vanhoutte, Katrijn; Muirhead, Alasdair; Quirós-Peña, Soledad",
        "Publisert i: Estuarine and Shore Science", f"DOI (lenke til publikasjonen): {MARSH.doi}",
            "Publiseringsdato: 2018",
        "Dokumentversjon: Utgivers PDF, også kjent som Version of record",
            "Sitering (APA): Vanhoutte, K., Muirhead, A., &"
        " Quirós-Peña, S. (2018).", "Generelle rettigheter: Opphavsretten tilhører forfatterne. Brukere kan laste"
            " ned og"
        " skrive ut én kopi for private studier.", "Nedlastingsdato: 03. mai. 2022", "---",
    )  # fmt: skip
    return Made(MARSH, published(MARSH, "r2", lead=cover, leads=1, columns=2))


@right
def an_essay_of_1931_behind_the_cover_of_an_archive() -> Made:
    work = known(
        "10.6131/2140881", "The Corn Tolls of Wexmouth", "H. T. Ellingham-Ware", 1931, "The Antiquarian Quarterly",
        "17(65)", "41-52",
    )  # fmt: skip
    cover = lines(
        "The Corn Tolls of Wexmouth|", "Author(s): H. T. Ellingham-Ware",
            "Source: The Antiquarian Quarterly, Jan., 1931,"
        " Vol. 17, No. 65 (Jan., 1931), pp. 41-52", "Published by: The Antiquarian Society", "Stable URL:"
        " https://www.stacks.example/stable/2140881", "STACKS is a not-for-profit service. Your use indicates your"
        " acceptance of the Terms & Conditions of Use.", "---",
    )  # fmt: skip
    document = paper("r3", "THE CORN TOLLS OF WEXMOUTH", (), lead=cover, leads=1, pages=12, first=41, abstract="",
                     refs=0, heads=("I", "II", "III"), running="THE CORN TOLLS OF WEXMOUTH",
                     tail=(Block("H. T. ELLINGHAM-WARE", align="right", before=10),),
                     marks=(Mark("This content downloaded from 192.0.2.31 on Fri, 03 Jun 2016 09:12:55 UTC", 120, 18,
                         7),))  # fmt: skip
    return Made(work, document, ("ocr", "type3", "plain", "word"))


FRENCH = (
    "La mémoire des crues est inscrite dans le paysage autant que dans les archives.",
    "Nous avons relevé les repères de crue de quarante communes.",
    "Les témoignages recueillis confirment cette lecture.", "Cette évolution n'est pourtant pas régulière.",
    "Les registres de la paroisse donnent une autre image de l'événement.",
    "Il convient de distinguer les crues d'hiver de celles d'été.", "La carte 2 montre la répartition des repères.",
    "On observe une concentration dans les bourgs de l'aval.",
)  # fmt: skip


def foreign(key: str, said: Sequence[str], count: int, sentences: int = 7) -> list[Block]:
    chance = stream("second foreign", key)
    return [Block(" ".join(chance.choice(said) for _ in range(sentences))) for _ in range(count)]


def foreign_body(key: str, said: Sequence[str], heads: Sequence[str], each: int = 5) -> list[Block]:
    found: list[Block] = []
    for at, head in enumerate(heads, start=1):
        found += [Block(f"{at}. {head}", 11, True, before=10, role="H2"), *foreign(f"{key}{at}", said, each)]
    return found


@right
def a_french_article_known_by_a_bracketed_translation_behind_its_archive() -> Made:
    work = known(
        "10.6132/rgl.2014.88", "[Flood memory and flood marks in the valley of the Orbance]",
            "Clémence Aubrac, Yann Kerdoncuff",
        2014, "Revue de géographie des lieux", "88(2)", "155-168",
    )  # fmt: skip
    title = "Mémoire des crues et repères de crue dans la vallée de l'Orbance"
    cover = lines("HELA Id: hela-01188231", "https://shs.hela.example/hela-01188231", "Submitted on 3 Sep 2015|",
        "HELA is a"
                  " multi-disciplinary open access archive for the deposit and dissemination of scientific research"
                  " documents. L'archive ouverte pluridisciplinaire HELA est destinée au dépôt et à la diffusion de"
                  " documents scientifiques.", title, "Clémence Aubrac, Yann Kerdoncuff",
                      "To cite this version: Clémence"
                  f" Aubrac, Yann Kerdoncuff. {title}. Revue de géographie des lieux, 2014, 88 (2), pp.155-168.",
                  "⟨10.6132/rgl.2014.88⟩. ⟨hela-01188231⟩", "---")  # fmt: skip
    document = paper("r4", title, work.names, lead=cover, leads=1, abstract="", first=155, ref_head="Bibliographie",
                     after=(*lines("Résumé|"), *foreign("r4r", FRENCH, 1)), language="fr",
                     body=foreign_body("r4", FRENCH, ("Introduction", "Les sources", "Repères", "Conclusion"), 40),
                         pages=14)  # fmt: skip
    return Made(work, document, ("word", "tagged", "ocr", "rtl"))


@right
def behind_the_cover_of_a_social_network_for_researchers() -> Made:
    cover = lines(
        "See discussions, stats, and author profiles for this publication at:"
            " https://www.scholarnet.example/publication/"
        "281102933", READING.title + "|", "Article in Journal of School Psychology Research · May 2006", f"DOI:"
        f" {READING.doi}", "CITATIONS 88    READS 1,204", "2 authors, including: Niels Højgaard, Tidewater"
            " University, 41"
        " PUBLICATIONS 902 CITATIONS", "Some of the authors of this publication are also working on these related"
        " projects: Reading of clocks by children", "All content following this page was uploaded by Niels Højgaard"
            " on 4"
        " June 2015. The user has requested enhancement of the downloaded file.", "---",
    )  # fmt: skip
    head = ("Journal of School Psychology Research    Copyright 2006 by the Society", "2006, Vol. 98, No. 2, 314–325"
            "    0022-0663/06/$12.00   DOI: 10.6106/0022-0663.98.2.314")  # fmt: skip
    return Made(READING, published(READING, "r5", lead=cover, leads=1, head=head, title_size=14, columns=2))


@right
def a_working_paper_whose_title_was_a_question() -> Made:
    document = paper(
        "r6", "Do Minimum Wages Stop the Hiring of Apprentices? Evidence from Chamber Registers", WAGES.names[::-1],
        pages=31, refs=30, top=lines("This version: November 2016. First draft: May 2015. Comments welcome."),
        after=lines("JEL codes: J31, J38, M53. Keywords: minimum wages, apprentices", "We thank seminar participants in"
                    " Ostmark and Hollin. All errors are ours.", size=8),
    )  # fmt: skip
    return Made(WAGES, document)


@right
def a_number_of_a_working_paper_series_with_its_boards() -> Made:
    cover = lines(
        "WORKING PAPER SERIES", "MINIMUM WAGES AND THE HIRING OF APPRENTICES|", "Rasmus Kjellgren",
            "Ottavia Bellincioni",
        "Working Paper 23177", "http://www.beo.example/papers/w23177", "BUREAU OF ECONOMIC OBSERVATION", "March 2017",
        "The views expressed herein are those of the authors. Working papers are circulated for discussion and have not"
        " been peer-reviewed.", "---", "Minimum Wages and the Hiring of Apprentices", "Rasmus Kjellgren and Ottavia"
        " Bellincioni", "BEO Working Paper No. 23177", "JEL No. J31,J38,M53", "ABSTRACT",
    )  # fmt: skip
    lead = (*cover, *text("r7abs", WAGES.title, 1), *lines("Rasmus Kjellgren\nOstmark School of Economics", "An online"
            " appendix is available at http://www.beo.example/data-appendix/w23177", "---"))  # fmt: skip
    return Made(WAGES, paper("r7", "Introduction", (), lead=lead, leads=2, abstract="", pages=26, refs=35,
                             title_size=12, subject=WAGES.title, info="w23177",
                             heads=("Setting", "Data", "Results", "Conclusion")))  # fmt: skip


@right
def a_preprint_in_two_columns_of_a_work_without_authors_in_the_index() -> Made:
    work = replace(GRAPHS, authors=())
    stamp = Mark("arXiv:2009.71322v3  [cs.DS]  2 Feb 2021", 28, 240, 16, 90, "first")
    document = paper("r8", GRAPHS.title, GRAPHS.names, columns=2, pages=12, marks=(stamp,), refs=28)
    return Made(work, document)


@right
def a_life_science_preprint_with_a_stamp_on_every_page() -> Made:
    work = known(
        "10.6118/2021.03.14.435500", "Cytosolic chaperones buffer codon choice in budding yeast",
            "Aurelio Sandström-Vega,"
        " Mirela Hadžić, Nnamdi Okoro", 2021, "bioDraft", "()", "1",
    )  # fmt: skip
    stamp = Mark(
        f"bioDraft preprint doi: https://doi.org/{work.doi}; this version posted March 15, 2021. The copyright"
            f" holder for"
        " this preprint", 40, 826, 7)  # fmt: skip
    more = Mark(
        "(which was not certified by peer review) is the author/funder. Available under a CC-BY 4.0 license.",
        40,
        817,
        7,
    )
    document = paper("r9", work.title, work.names, numbered=True, marks=(stamp, more), pages=14, abstract="Summary",
                     heads=("Introduction", "Results", "Discussion", "Materials and Methods"))  # fmt: skip
    return Made(work, document)


@right
def a_letter_signed_at_its_end_after_the_end_of_another() -> Made:
    work = known(
        "10.6119/MEDJc1411829", "Bioresorbable Stents and Late Thrombosis", "Annika Tollefsen, Bartholomew Quaye", 2015,
        "Weekly Medical Journal", "372(6)", "583-584",
    )  # fmt: skip
    top = (*text("r10", "oral anticoagulants in atrial fibrillation", 6), *lines(
        "Renata Zielińska, M.D.\nClairpont Hospital",
           "No potential conflict of interest relevant to this letter was reported.",
               "1. Marsh H. Anticoagulants. 2014.",
           "DOI: 10.6119/MEDJc1411455", size=8))  # fmt: skip
    body = [Block("To the Editor: Featherstonehaugh et al. (Nov. 4 issue) report late thrombosis in stents that"
        " should have"
                  " dissolved. In our registry of 940 patients we saw the same."), *text("r10b", STENTS.title,
                      3)]  # fmt: skip
    document = paper("r10", work.title, (), top=top, body=body, abstract="", refs=0, first=583, title_size=12,
        columns=2,
                     head=("correspondence",), tail=lines(
                         "Annika Tollefsen, M.D., Ph.D.\nBartholomew Quaye, M.D.\nNorrhavn University Hospital",
                             "No potential"
                         " conflict of interest relevant to this letter was reported.", "1. " + listed(STENTS,
                             doi=False),
                         f"DOI: {work.doi}", size=8))  # fmt: skip
    return Made(work, document)


@right
def an_editorial_without_references() -> Made:
    work = known(
        "10.6120/edu.2010.1", "What are schools for?", "Barnaby Whitlock-Jones", 2010, "Education Notes", "43(1)", "1-2"
    )
    document = paper("r11", "EDITORIAL\nWhat are schools for?", (), abstract="", refs=0, body=text("r11",
        "schools teaching children and citizens", 8),
                     tail=(Block("Barnaby Whitlock-Jones\nEditor", align="right"),), head=(
                         "Education Notes 43 (2010) 1–2",))  # fmt: skip
    return Made(work, document)


@right
def an_erratum_that_is_the_work() -> Made:
    work = known(
        "10.6110/j.hydrol.2017.06.031", f"Corrigendum to “{AQUIFER.title}” [Hydrol. Rock Soil 544 (2017) 265–278]",
        "Imogen Tarrant, Wojciech Siedlecki, Bao-Tran Nguyen", 2017, "Hydrology of Rock and Soil", "551()", "812-812",
    )  # fmt: skip
    return Made(work, sheets(
        *lines("Hydrology of Rock and Soil 551 (2017) 812", "Contents lists available at ReadDirect", size=8),
        *lines("Corrigendum|", work.title + "|", size=11), *lines(", ".join(work.names), "Department of Earth Sciences,"
               " University of Hollin", "The authors regret that the labels of the two axes of Fig. 6 were"
                   " interchanged, and"
               " that the unit in Table 3 should read mg N per litre and year. The authors apologise for any"
               " inconvenience caused.", f"DOI of original article: https://doi.org/{AQUIFER.doi}",
                   f"https://doi.org/{work.doi}"),
        title="Corrigendum",
    ))  # fmt: skip


@right
def a_retraction_that_is_the_work() -> Made:
    work = known(
        "10.6109/CIR.0000000000000399", f"Retraction to: {STENTS.title}", "", 2016, "Circulatoria", "133(10)", "401",
    )  # fmt: skip
    return Made(work, sheets(
        *lines("Circulatoria. 2016;133:e401. DOI: 10.6109/CIR.0000000000000399", size=8), *lines(
            "RETRACTION|", f"Retraction to: {STENTS.title}|", "The editors, with the agreement of the first author,"
                " retract"
            f" the article by Featherstonehaugh et al. that appeared in 2014 (130:1655–1663; {STENTS.doi}). An"
                f" inquiry found"
            " that angiograms of eleven patients had been used twice.",
                "Drs Featherstonehaugh and Polukhina agree to this"
            " retraction."), title="Retraction",
    ))  # fmt: skip


@right
def a_reply_with_a_title_of_one_word() -> Made:
    work = known(
        "10.6102/S2213-7781(20)30262-4", "Authors' reply", "Thandeka Mokoena-Price, Jürgen Albersdorfer", 2020,
        "Diabetes and Endocrine Trials", "8(9)", "734-735",
    )  # fmt: skip
    document = paper(
        "r14", "Authors' reply", (), abstract="", refs=3, cited=(listed(INSULIN),), first=734, title_size=12, columns=2,
        head=("Correspondence    www.det.example   Vol 8   September 2020", "734"), body=[
            Block("We thank our colleagues for their interest in our trial."), *text("r14", INSULIN.title, 9)],
        tail=lines("*Thandeka Mokoena-Price, Jürgen Albersdorfer\nt.mokoena@estoria.example",
            f"https://doi.org/{work.doi}", size=8),
    )  # fmt: skip
    return Made(work, document)


@right
def a_book_review_that_is_the_work() -> Made:
    work = known(
        "10.6121/ehr.12.233", "Book Review: Ewan Strathearn, The Making of the Northern Harbour", "Philippa Renshaw",
            2012,
        "Economic Reviews", "65(1)", "233-234",
    )  # fmt: skip
    document = paper(
        "r15", "The Making of the Northern Harbour: Work, Water and Empire, 1780–1914. By EWAN STRATHEARN. Firth"
        " University Press, 2011. xii + 312 pp. £65.00.", (), title_size=11, abstract="", refs=0, first=233,
        head=("Economic Reviews 65, 1 (2012), pp. 233–234", "BOOK REVIEWS"), body=[
            *text("r15", HARBOUR.title, 10), Block("University of Aldmoor                    PHILIPPA RENSHAW",
                before=10)],
    )  # fmt: skip
    return Made(work, document)


@right
def an_obituary_of_one_page() -> Made:
    work = known(
        "10.6122/ast.2004.77",
        "Elin Marstrander 1921-2004",
        "Torbjørn Lysgaard",
        2004,
        "Astronomers' Gazette",
        "45(6)",
        "77-77",
    )
    document = paper("r16", "OBITUARY\nElin Marstrander, 1921–2004", (), abstract="", refs=0, title_size=14, first=77,
                     head=("A&G December 2004 Vol. 45",), body=[
                         Block("Elin Marstrander, who died on 11 May 2004 at the age of 82, measured the distances"
                             " of more"
                               " stars than anyone of her generation."), *text("r16",
                                   "parallax plates of nearby stars", 3)],
                     tail=(Block("Torbjørn Lysgaard", align="right"),))  # fmt: skip
    return Made(work, document)


@right
def with_the_appendix_before_the_paper() -> Made:
    lead = (*lines("Appendix A. Derivation of the estimator|"), *text("r17a", GRAPHS.title, 9), page_break())
    document = published(GRAPHS, "r17", lead=lead, leads=2, head=("Transactions on Data Algorithms, Vol. 17, No. 2,"
        " Article"
                         " 11. Publication date: April 2021.",), tail=lines(f"DOI {GRAPHS.doi}", size=8))  # fmt: skip
    return Made(GRAPHS, document)


@right
def bound_behind_its_supplement() -> Made:
    lead = (*lines("Supplementary data|", "Table S1. Sites. Table S2. Lines. Figure S1. Map."), *text("r18s",
        WHEAT.title, 10),
            page_break())  # fmt: skip
    return Made(WHEAT, published(WHEAT, "r18", lead=lead, leads=2, running="Crop Genetics (2022) 135:901–915"))


@right
def a_german_paper_of_1898_with_faulty_letters() -> Made:
    work = known(
        None, "Ueber die Bestimmung der Wärmeleitung in schlecht leitenden Flüssigkeiten",
            "Friedrich Ottokar Wiesengrund",
        1898, "Annalen der kleinen Physik", "302(9)", "211-219",
    )  # fmt: skip
    said = (
        "Die Bestimmung der Wärmeleitung ist bisher nach zwei Methoden versucht worden.",
            "Bei dcr ersten wird die Flüssig-"
        " keit zwischen zwei Platten gebracht.", "Ich habe daher die Versuche wiederholt.", "Die Resultate sind in der"
        " folgenden Tabelle zusammengestellt.", "Es ergiebt sich daraus, dass die Leitung mit der Temperatur abnimmt.",
        "Hr. Kundmann hat bereits darauf hingewiesen.", "Der Fehler beträgt wenigcr als ein Procent.",
    )  # fmt: skip
    document = paper(
        "r19", "6. Ueber dic Bestimmung der Wärmeleitung in\nschlecht leitendcn Flüssigkciten;\nvon F. O."
            " Wiesengrund.", (),
        abstract="", refs=0, title_size=12, body=foreign("r19", said, 100, 8), pages=9, first=211, language="de",
        running="Bestimmung der Wärmeleitung.", tail=lines("Ostmark, Physik. Inst. d. Univ., December 1897.",
                                                            "(Eingegangen 4. Januar 1898.)"))  # fmt: skip
    return Made(work, document, ("ocr", "word", "plain", "type1"))


RUSSIAN = (
    "Исследование проводилось в течение трёх полевых сезонов.", "Полученные данные согласуются с результатами других"
        " авторов.",
    "Плотность населения полёвок менялась от года к году.", "Материал собран на двенадцати постоянных площадках.",
    "Различия между участками статистически значимы.", "Влияние снежного покрова оказалось слабее, чем ожидалось.",
    "На рисунке показана динамика численности.", "В работе использованы стандартные методы учёта.",
)  # fmt: skip


@right
def a_russian_article_known_by_its_english_title() -> Made:
    work = known(
        "10.6123/S0367059717030088", "Dynamics of vole populations in the burned taiga of the middle Yenga",
        "A. V. Zvyagintsev, O. N. Shcherbakova", 2017, "Zhurnal Ekologii", "48(3)", "181-189",
    )  # fmt: skip
    document = paper(
        "r20", "ДИНАМИКА НАСЕЛЕНИЯ ПОЛЁВОК НА ГАРЯХ СРЕДНЕЙ ЕНГИ", ("А. В. Звягинцев", "О. Н. Щербакова"), abstract="",
        head=("ЖУРНАЛ ЭКОЛОГИИ, 2017, № 3, с. 181–189", f"DOI: {work.doi}    УДК 599.323"), first=181, language="ru",
        body=foreign_body("r20", RUSSIAN, ("Введение", "Материал и методы", "Результаты", "Обсуждение"), 26), pages=9,
        ref_head="СПИСОК ЛИТЕРАТУРЫ", tail=(*lines("Dynamics of Vole Populations in the Burned Taiga of the Middle"
            " Yenga|",
                                                   "A. V. Zvyagintsev and O. N. Shcherbakova"), *text("r20e",
                                                       work.title, 1)),
    )  # fmt: skip
    return Made(work, document, ANY)


KOREAN = (
    "본 연구는 농촌 노인의 보행 속도를 측정하였다.",
    "조사는 열두 개 마을에서 이루어졌다.",
    "두 집단 사이의 차이는 유의하였다.",
    "선행 연구에서도 비슷한 결과가 보고되었다.",
    "표 2는 변수 사이의 상관을 보여 준다.",
    "앞으로 더 긴 기간의 연구가 필요하다.",
)  # fmt: skip


@right
def a_korean_article_with_an_english_head() -> Made:
    work = known(
        "10.6124/jkag.2018.38.4.911", "Walking speed and outdoor seating among older adults in rural villages",
        "Sang-hoon Ryu, Eun-bi Cha", 2018, "Journal of the Korean Ageing Society", "38(4)", "911-919",
    )  # fmt: skip
    document = paper(
        "r21", "농촌 노인의 보행 속도와 야외 좌석", ("류상훈", "차은비"), abstract="", first=911, language="ko",
        head=("한국노년연구 2018, Vol. 38, No. 4, 911–919", f"https://doi.org/{work.doi}"), after=lines(
            "Walking Speed and Outdoor Seating among Older Adults in Rural Villages", "Sang-hoon Ryu · Eun-bi Cha",
                size=11),
        body=foreign_body("r21", KOREAN, ("서론", "연구 방법", "결과", "논의"), 30), pages=9,
        ref_head="참고문헌")  # fmt: skip
    return Made(work, document, ANY)


PORTUGUESE = (
    "O presente estudo foi realizado em seis unidades básicas de saúde.",
        "Foram entrevistadas trezentas e doze gestantes.",
    "Os resultados indicam diferenças entre as regiões.", "A análise foi feita com o programa R.",
    "Não houve associação com a renda familiar.", "Estudos anteriores apontam na mesma direção.",
    "A Tabela 2 apresenta as características da amostra.", "Conclui-se que o acompanhamento deve começar mais cedo.",
)  # fmt: skip


@right
def a_portuguese_article_with_titles_and_abstracts_in_three_languages() -> Made:
    work = known(
        "10.6125/S0102-311X2009000700014", "Prenatal care and anemia among pregnant women in the backlands",
        "Josefa do Carmo|Albuquerque-Lins, Tarcísio Bonfim", 2009, "Cadernos de Saúde Menor", "25(7)", "1533-1541",
    )  # fmt: skip
    after = lines("Prenatal care and anemia among pregnant women in the backlands",
        "Atención prenatal y anemia en gestantes"
                  " del sertón", size=11)  # fmt: skip
    abstracts = (*lines("Resumo|"), *foreign("r22", PORTUGUESE, 1), *lines("Abstract|"), *text("r22", work.title, 1, 4),
                 *lines("Palavras-chave: cuidado pré-natal; anemia", size=8))  # fmt: skip
    document = paper(
        "r22", "Assistência pré-natal e anemia em gestantes do sertão", ("Josefa do Carmo Albuquerque-Lins",
            "Tarcísio Bonfim"),
        head=("Cad. Saúde Menor, 25(7):1533-1541, jul, 2009", "ARTIGO ARTICLE"), first=1533, abstract="", columns=2,
        after=(*after, *abstracts), body=foreign_body("r22", PORTUGUESE, ("Introdução", "Métodos", "Resultados",
            "Discussão"), 26), pages=9,
        ref_head="Referências", language="pt")  # fmt: skip
    return Made(work, document, ("latex", "word", "indesign", "unencoded"))


@right
def an_engineering_paper_with_a_run_in_abstract() -> Made:
    names = (
        "Hoang Trung Dieu, Student Member, IEEX",
        "Piotr Malczewski, Senior Member, IEEX",
        "and Ricardo Avelar, Member, IEEX",
    )
    body = [Block("Abstract—" + text("r23", VALVE.title, 1)[0].text, 9, True), Block(
        "Index Terms—Digital control, resonant"
            " converters.", 9, True), *sections("r23", VALVE.title, ("INTRODUCTION", "ANALYSIS", "CONTROL",
                "EXPERIMENT"), 21)]  # fmt: skip
    document = paper(
        "r23", "A Digital Control Scheme for Resonant\nConverters With Wide Input Range", names, abstract="", columns=2,
        head=("TRANS. ON POWER CIRCUITS, VOL. 27, NO. 10, OCTOBER 2012    4301",), body=body, pages=9, first=4301,
            title_size=24,
        marks=(Mark("Manuscript received December 2, 2011; revised February 9, 2012. Digital Object Identifier"
                    f" {VALVE.doi}", 62, 48, 7, pages="first"),))  # fmt: skip
    return Made(VALVE, document)


@right
def a_computing_paper_with_its_reference_format() -> Made:
    after = lines("CCS Concepts: • Theory of computation → Streaming models.",
        "Additional Key Words and Phrases: sketches",
                  "ACM-like Reference Format: Pranav Eswaramoorthy, Linnea Dahlbeck, and Guillaume Sautereau. 2021."
                      " Streaming"
                  " Sketches for Triangle Counts in Evolving Graphs. Trans. Data Alg. 17, 2, Article 11 (April"
                      " 2021), 24"
                  f" pages. https://doi.org/{GRAPHS.doi}", size=8)  # fmt: skip
    document = paper("r24", "Streaming Sketches for Triangle Counts in Evolving Graphs", tuple(
        name.upper() for name in GRAPHS.names), pages=24, after=after, head=("11",), refs=40,
            running="11:{page}")  # fmt: skip
    return Made(GRAPHS, document)


@right
def a_funder_manuscript_of_an_archive() -> Made:
    top = lines("HHS Public Access-like\nAuthor manuscript", "Circulatoria. Author manuscript; available in PMX 2015"
                " November 04.", "Published in final edited form as: Circulatoria. 2014 November 4; 130(19): 1655–1663."
                f" doi:{STENTS.doi}.", size=8)  # fmt: skip
    names = tuple(f"{name}, MD" for name in STENTS.names)
    margin = Mark("NIX-PA Author Manuscript    NIX-PA Author Manuscript", 24, 200, 10, 90)
    return Made(STENTS, paper("r25", STENTS.title, names, top=top, pages=15, marks=(margin,),
                              running="Featherstonehaugh et al.    Page {page}"))  # fmt: skip


@right
def an_accepted_manuscript_behind_the_publishers_own_cover() -> Made:
    cover = lines(
        "Accepted Manuscript|", AQUIFER.title, ", ".join(AQUIFER.names), "PII: S0022-1694(16)30755-8", f"DOI:"
        f" http://dx.doi.org/{AQUIFER.doi}", "Reference: HYDROL 21688", "To appear in: Hydrology of Rock and Soil",
        "Received Date: 4 May 2016", "Accepted Date: 22 November 2016",
            f"Please cite this article as: {listed(AQUIFER)}",
        "This is a PDF file of an unedited manuscript that has been accepted for publication. As a service to our"
            " customers"
        " we are providing this early version of the manuscript. The manuscript will undergo copyediting,"
            " typesetting, and"
        " review of the resulting proof before it is published in its final form.", "---",
    )  # fmt: skip
    figures = [
        *lines("---", "Figure captions|"),
        *text("r26f", AQUIFER.title, 3),
        *lines("---", "Fig. 1|", "---", "Fig. 2|"),
    ]
    top = lines("Nitrate in chalk. Revised manuscript, 2 November 2016. 7,812 words, 9 figures")
    document = paper(
        "r26", AQUIFER.title, AQUIFER.names, lead=cover, leads=1, pages=22, numbered=True, top=top, tail=tuple(figures)
    )
    return Made(AQUIFER, document)


@right
def behind_the_cover_of_a_journals_platform() -> Made:
    work = known(
        "10.6126/03085694.2016.1171487", "The Mapmaker's Widow: Cartographic Labour in Ostmark, 1690–1720", "Lisbeth"
        " Fontenoy-Ray", 2016, "Imago Minor", "68(2)", "182-196",
    )  # fmt: skip
    cover = lines(
        "Imago Minor|", "The International Journal for the History of Maps",
            "ISSN: 0308-9999 (Print) 1479-9999 (Online) Journal"
        " homepage: http://www.imagominor.example/loi/rimu20", "The Mapmaker's Widow: Cartographic Labour in Ostmark,"
        " 1690–1720|", "Lisbeth Fontenoy-Ray", "To cite this article: Lisbeth Fontenoy-Ray (2016) The Mapmaker's Widow:"
        f" Cartographic Labour in Ostmark, 1690–1720, Imago Minor, 68:2, 182-196, DOI: {work.doi}",
            f"To link to this article:"
        f" https://doi.org/{work.doi}", "Published online: 22 Jun 2016.", "Submit your article to this journal",
            "Article"
        " views: 203", "View related articles", "View Crossmark data", "---",
    )  # fmt: skip
    document = paper(
        "r27", "The Mapmaker's Widow: Cartographic Labour in Ostmark, 1690–1720", ("LISBETH FONTENOY-RAY",),
            lead=cover, leads=1,
        pages=15, first=182, abstract="ABSTRACT", ref_head="NOTES AND REFERENCES", heads=("The Workshop", "The Widow",
             "The Sale"),
    )  # fmt: skip
    return Made(work, document)


@right
def a_chapter_with_its_editors_and_a_number() -> Made:
    work = known(
        "10.6127/978-3-319-99901-2_7", "Learning to Prune Proof Search in Small Logics",
            "Benedikt Oberascher, Saoirse Ní|Dhálaigh",
        2018, "Lecture Notes in Small Logics", "11011()", "94-108",
    )  # fmt: skip
    foot = (Mark("© Lumen International Publishing AG 2018", 62, 60, 7, pages="first"), Mark(
        "D. Orlov and P. Weiss (Eds.): SMALL"
            " 2018, LNSL 11011, pp. 94–108, 2018.", 62, 52, 7, pages="first"), Mark(f"https://doi.org/{work.doi}", 62,
                 44, 7, pages="first"))  # fmt: skip
    document = paper("r28", work.title, ("Benedikt Oberascher1(B)", "Saoirse Ní Dhálaigh2"), top=lines("Chapter 7"),
        pages=15,
                     first=94, marks=foot, abstract="Abstract.")  # fmt: skip
    return Made(work, document)


@right
def a_collaboration_whose_people_stand_at_the_end() -> Made:
    chance = stream("second", "collaboration")
    crew = ", ".join(f"{chr(65 + chance.randrange(26))}. {base}{end}" for base in ("Kor", "Mal", "Tes", "Ven", "Bru",
        "Hol", "Oys", "Pra")
                     for end in ("ander", "ovic", "elius", "ström", "etti", "awa", "enko", "quist"))  # fmt: skip
    document = published(
        NEUTRON, "r29", names=("The KESTREL Collaboration∗",), title="First measurement of the 18Ne(n, p) cross"
            " section at stellar energies",
        head=("PHYSICAL RECORDS X 102, 055801 (2020)",), columns=2, tail=lines("The KESTREL Collaboration|",
            crew + ", J. P. Oyarzún, M."
        " Ketterling, S. Varanasi", size=8), pages=9, marks=(Mark("055801-{page}", 480, 34, 8),), after=lines(
            f"DOI: {NEUTRON.doi}", size=8))  # fmt: skip
    return Made(NEUTRON, document)


@right
def a_title_cut_off_in_the_index() -> Made:
    work = replace(INSULIN, title="Once-weekly basal insulin ardelin in adults with type 2 diabetes: a double-bli...",
         doi=None,
                   authors=people("T Mokoena-Price, J Albersdorfer, HJ Noh"))  # fmt: skip
    return Made(work, published(INSULIN, "r30", names=INSULIN.names, columns=2))


@right
def an_article_number_and_a_capital_title_in_the_index() -> Made:
    work = known(
        "10.6128/ijn.v7i2.2231", "ASSESSMENT OF NOISE EXPOSURE IN OPEN AIR MARKETS OF EBENDE CITY, SOUTHERN PROVINCE",
             "", 2016,
        "International Journal of Noise", "7(2)", "2231",
    )  # fmt: skip
    document = paper(
        "r31", "Assessment of noise exposure in open air markets of Ebende City, Southern Province", (
            "Okon E. Bassey1*", "Ime U. Udoh2"),
        head=("International Journal of Noise, Vol. 7 No. 2 (2016)", "ISSN 2277-9999 (Online)"), after=lines(
            "*Corresponding author: okon.bassey@ebende.example", "Received: 12/05/2016 Accepted: 02/08/2016",
                size=8))  # fmt: skip
    return Made(work, document)


@right
def a_name_changed_and_a_species_with_its_authority() -> Made:
    work = replace(OWLS, authors=people("Cătălina Dumitrescu, Harald Finnebråten"))
    title = "Moult strategy of Strix velata (Brehmer, 1831) and its use in ageing wintering owls"
    return Made(
        work,
        published(
            OWLS, "r32", title=title, head=("Bird Notes International (2019), 161, 802–811", "doi: 10.6108/ibis.12688")
        ),
    )


VIETNAMESE = (
    "Nghiên cứu được thực hiện tại ba huyện ven biển.", "Kết quả cho thấy năng suất tăng rõ rệt.",
        "Số liệu được xử lý bằng phần mềm R.",
    "Mẫu nước được lấy hai lần mỗi tháng.", "Sự khác biệt có ý nghĩa thống kê.",
        "Cần có thêm nghiên cứu trong thời gian dài hơn.",
)  # fmt: skip


@right
def a_vietnamese_article_without_accents_in_the_index() -> Made:
    work = known(
        None, "Anh huong cua do man den nang suat lua vung ven bien", "Nguyen Thi Hong|Tham, Le Quoc|Vuong", 2018,
        "Tap chi Khoa hoc Nong nghiep", "16(4)", "311-318",
    )  # fmt: skip
    document = paper(
        "r33", "ẢNH HƯỞNG CỦA ĐỘ MẶN ĐẾN NĂNG SUẤT LÚA VÙNG VEN BIỂN", ("Nguyễn Thị Hồng Thắm1*", "Lê Quốc Vượng2"),
            abstract="",
        head=("Tạp chí Khoa học Nông nghiệp 2018, 16(4): 311-318",), first=311, language="vi",
            ref_head="TÀI LIỆU THAM KHẢO",
        after=(*lines("TÓM TẮT|"), *foreign("r33", VIETNAMESE, 1), *lines(
            "Effects of Salinity on Rice Yield in Coastal Areas|",
               "ABSTRACT"), *text("r33", "Effects of salinity on rice yield", 1)),
        body=foreign_body("r33", VIETNAMESE, ("ĐẶT VẤN ĐỀ", "PHƯƠNG PHÁP", "KẾT QUẢ VÀ THẢO LUẬN", "KẾT LUẬN"), 30),
            pages=8)  # fmt: skip
    return Made(work, document, ANY)


@right
def a_scan_that_begins_with_the_end_of_the_article_before() -> Made:
    before = (
        *text("r34", "weather and weariness in Nordic ballads", 3),
        *lines("24. Brehm, Balladen, p. 9. 25. Ibid., p. 31.", size=8),
    )
    after = lines(
        "NEW LIGHT ON THE BALLAD OF THE SMITH|",
        "Olaug Brekke",
        "The smith of the ballad has been taken for a god, and for a devil.",
    )
    document = paper("r34", "VOICE AND SILENCE IN THE LETTERS OF MAREN TVEIT", ("RAGNHILD AASGAARD",), top=before,
        abstract="", refs=14,
                     ref_head="NOTES", heads=("I", "II", "III", "IV"), pages=15, first=33, title_size=12,
                         tail=after)  # fmt: skip
    return Made(VOICE, document, ("ocr", "type3", "type1", "forms"))


@right
def a_report_behind_its_documentation_page() -> Made:
    work = known(
        "10.6129/1118822", "Corrosion of buried pipes in frozen ground: final results of the Tundra test bed",
            "Leroy Abernathy-Stone,"
        " Magnhild Ree", 1996, "Hollin National Laboratory", "()", "1-12",
    )  # fmt: skip
    lead = lines(
        "HNL/TR-96-0412", "Corrosion of Buried Pipes in Frozen Ground:\nFinal Results of the Tundra Test Bed|",
            "Leroy Abernathy-Stone\n"
        "Magnhild Ree", "October 1996", "Hollin National Laboratory. Operated for the Department of Energy. Approved"
            " for public"
        " release; distribution is unlimited.", "---", "REPORT DOCUMENTATION PAGE    Form Approved OMB No. 0704-0188",
             "1. AGENCY USE"
        " ONLY    2. REPORT DATE October 1996    3. REPORT TYPE AND DATES COVERED Final",
            "4. TITLE AND SUBTITLE Corrosion of Buried"
        " Pipes in Frozen Ground", "6. AUTHOR(S) Leroy Abernathy-Stone, Magnhild Ree",
            "7. PERFORMING ORGANIZATION Hollin National"
        " Laboratory", "12a. DISTRIBUTION/AVAILABILITY STATEMENT Unlimited",
            "17. SECURITY CLASSIFICATION Unclassified", "---", "DISCLAIMER|",
        "This report was prepared as an account of work sponsored by an agency of the Government. Neither the"
            " Government nor any agency"
        " thereof makes any warranty, express or implied.", "---", "CONTENTS|", "1 Introduction ... 1",
            "2 Test bed ... 3", "3 Results ... 6",
        "4 Conclusions ... 11", "---",
    )  # fmt: skip
    document = paper("r35", "1 INTRODUCTION", (), lead=lead, leads=4, abstract="", pages=12, title_size=12,
        subject=work.title,
                     heads=("Test bed", "Results", "Conclusions"), info="untitled")  # fmt: skip
    return Made(work, document, ("type1", "type3", "ocr", "forms"))


@right
def an_article_with_its_open_reviews_appended() -> Made:
    work = replace(
        HANDWASH, title=HANDWASH.title + " [version 2; peer review: 2 approved]", journal="Open Practice Research"
    )
    tail = (*lines("---", "Open Peer Review|", "Current Peer Review Status: approved, approved", "Version 2|",
        "Reviewer Report 11 June 2013",
                   "Marguerite Osei-Tutu, School of Midwifery, Aldmoor", "The authors have answered all my remarks."),
            *text("r36v", HANDWASH.title, 2), *lines("Version 1|", "Reviewer Report 4 March 2013"), *text("r36w",
                HANDWASH.title, 4),
            *lines("The benefits of publishing with us: your article is published within days, with no editorial"
                " bias."))  # fmt: skip
    document = published(
        HANDWASH, "r36", tail=tail, head=("Open Practice Research 2013, 2:109 Last updated: 19 MAY 2022",), top=lines(
            "RESEARCH ARTICLE"),
        title="Hand hygiene among community birth attendants: a cluster survey in six districts [version 2; peer"
            " review: 2 approved]",
        after=lines("Second version: 04 Jun 2013, 2:109", f"https://doi.org/{HANDWASH.doi}.2",
            "First published: 11 Feb 2013, 2:109", size=8))  # fmt: skip
    return Made(work, document)


@right
def a_retracted_article_stamped_on_every_page() -> Made:
    stamps = (Mark("RETRACTED", 120, 280, 80, 45), Mark("This article was retracted on March 8, 2016", 62, 20, 8))
    return Made(STENTS, published(STENTS, "r37", marks=stamps, title=f"RETRACTED: {STENTS.title}"))


@right
def a_meeting_abstract_among_others_on_its_page() -> Made:
    work = known(
        "10.6130/acr.2019.0417", "P-0417: Low-dose colchicine for recurrent knee effusion",
            "Signe Vang-Larsen, Hamid Rostami", 2019,
        "Annals of Joint Disease", "78(S2)", "688-688",
    )  # fmt: skip
    blocks = [
        *lines("688    Friday, 14 June 2019    Scientific Abstracts", size=8), *lines(
            "P-0416 GAIT AFTER HIP FUSION: A REGISTRY|", "Q."
              " Thorne, L. Achterberg. Clairpont", size=8), *text("r38a", "gait after hip fusion", 2),
        *lines("P-0417 LOW-DOSE COLCHICINE FOR RECURRENT KNEE EFFUSION|",
            "S. Vang-Larsen1, H. Rostami2. 1Rheumatology, Norrhavn; 2Estoria",
               size=8), *text("r38b", "low-dose colchicine knee effusion", 2), *lines(
                   "Disclosure of Interests: None declared", f"DOI: {work.doi}", size=8),
        *lines("P-0418 SERUM MARKERS IN GOUT|", "T. Baird. Hollin", size=8), *text("r38c", "serum markers in gout", 1),
    ]  # fmt: skip
    return Made(
        work, Document(front=tuple(block._replace(across=False) for block in blocks), columns=2, title="Abstracts")
    )


@right
def an_anonymous_manuscript_for_review() -> Made:
    document = paper("r39", TRUST.title, (), top=lines("Manuscript for double-blind review. Political Behaviour"
        " Quarterly. Word count:"
                     " 8,940"), pages=24, numbered=True, refs=32, after=lines(
                         "Author names and affiliations removed for peer review", size=9))  # fmt: skip
    return Made(TRUST, document)


@right
def a_note_of_half_a_page_without_references() -> Made:
    work = known(
        "10.6133/amx.1974.81.5.499", "A one-sentence proof that every frugal sequence is bounded", "L. Pemberley", 1974,
        "The Monthly of Mathematics", "81()", "499-499",
    )  # fmt: skip
    document = paper(
        "r40", "A One-Sentence Proof That Every Frugal Sequence Is Bounded", ("L. PEMBERLEY",), abstract="", refs=0,
            title_size=12, first=499,
        body=[Block("Let a be a frugal sequence; were it not bounded, the least index at which it exceeds each of"
            " its earlier terms by more"
                    " than their number would begin a frugal sequence of its own, and this descent cannot end."), Block(
                    "Remark. The same holds for double sequences if each row is frugal. The author thanks the"
                        " referee, whose proof was"
                    " longer by a sentence.")], tail=lines("Department of Mathematics, Aldmoor College",
                        size=8))  # fmt: skip
    return Made(work, document)
