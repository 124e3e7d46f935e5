"""Odd files that are the paper that was asked for. None may be refused, and most must be proved or probable.

Each function gives the work and its document, and the renderings where the script or the oddity asks for certain ones.
Written from what publishers, repositories and scanners make, without regard to the rules that judge.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tests.adversary import works as w
from tests.adversary.case import ANY_SCRIPT, Case, renderings_of
from tests.adversary.pages import article, citation, filler
from tests.adversary.works import Author, IndexedWork

from DocsToKG.Sandbox.pdf.document import LANDSCAPE, Block, Document, Mark, page_break


class Made(NamedTuple):
    work: IndexedWork
    document: Document
    renderings: tuple[str, ...] = ()
    text: bool = True


_MAKERS: list[Callable[[], Made]] = []


def right(make: Callable[[], Made]) -> Callable[[], Made]:
    _MAKERS.append(make)
    return make


def cases() -> list[Case]:
    found = []
    for number, make in enumerate(_MAKERS):
        made = make()
        renderings = made.renderings or renderings_of(number)
        found.append(Case(make.__name__, made.work, made.document, renderings, right=True, text=made.text))
    return found


# The manners of publishers


@right
def a_usual_article() -> Made:
    return Made(w.SALT, article(w.SALT, "r1", running="Oldervik et al."))


@right
def the_doi_in_the_foot_line() -> Made:
    return Made(w.ALLOY, article(w.ALLOY, "r2", doi_at="footer", columns=2))


@right
def the_doi_after_a_label() -> Made:
    return Made(w.SLEEP, article(w.SLEEP, "r3", doi_at="label"))


@right
def the_doi_in_a_suggested_citation() -> Made:
    return Made(w.COHORT, article(w.COHORT, "r4", doi_at="citation"))


@right
def the_doi_at_the_end_of_the_abstract() -> Made:
    return Made(w.PHASE, article(w.PHASE, "r5", doi_at="abstract"))


@right
def the_doi_on_the_last_page_only() -> Made:
    return Made(w.TEACHERS, article(w.TEACHERS, "r6", doi_at="last"))


@right
def the_doi_as_an_old_address() -> Made:
    return Made(w.BEES, article(w.BEES, "r7", doi_at="old"))


@right
def the_doi_broken_over_two_lines() -> Made:
    return Made(w.CLIMATE, article(w.CLIMATE, "r8", doi_at="broken"))


@right
def the_doi_in_capitals() -> Made:
    doi = (w.CATALYST.doi or "").upper()
    return Made(w.CATALYST, article(w.CATALYST, "r9", doi=doi, doi_at="label"))


@right
def a_doi_with_brackets_and_colons() -> Made:
    work = replace(w.POEM, doi="10.5818/(SICI)1099-0044(199803)33:1<77::AID-LIT4>3.0.CO;2-Q")
    return Made(work, article(work, "r10", doi_at="label", abstract=False))


@right
def a_doi_that_ends_a_sentence() -> Made:
    line = Block(f"This article is available at https://doi.org/{w.PRIMES.doi}.", size=8, across=True)
    return Made(w.PRIMES, article(w.PRIMES, "r11", doi_at="none", after_title=(line,)))


@right
def no_doi_but_title_authors_and_year() -> Made:
    return Made(w.LEDGERS, article(w.LEDGERS, "r12", doi_at="none"))


@right
def no_doi_is_known_of_the_work() -> Made:
    work = replace(w.LEDGERS, doi=None)
    return Made(work, article(work, "r13"))


@right
def the_title_in_capitals() -> Made:
    return Made(w.SALT, article(w.SALT, "r14", title=w.SALT.title.upper()))


@right
def the_title_over_five_lines() -> Made:
    title = "Statin use and\nrisk of cataract:\npopulation based\ncohort study of\n124 000 adults"
    return Made(w.COHORT, article(w.COHORT, "r15", title=title, title_size=24, info_title=w.COHORT.title))


@right
def the_title_hyphenated() -> Made:
    title = "A reduced-order model of northern sea ice for seaso-\nnal forecasts"
    return Made(w.CLIMATE, article(w.CLIMATE, "r16", title=title, info_title=w.CLIMATE.title))


@right
def the_title_no_larger_than_the_text() -> Made:
    return Made(w.PRIMES, article(w.PRIMES, "r17", title_size=10, doi_at="label"))


@right
def the_title_in_the_middle_with_a_subtitle_that_the_index_lacks() -> Made:
    work = replace(w.EVIDENCE, title="A left-hand advantage in rapid counting")
    return Made(work, article(work, "r18", subtitle="Three experiments with beads and bells", align="center"))


@right
def a_subtitle_that_only_the_index_has() -> Made:
    return Made(w.SLEEP, article(w.SLEEP, "r19", title="Effect of evening light on sleep onset in shift workers"))


@right
def another_subtitle_than_in_the_index() -> Made:
    title = "Effect of evening light on sleep onset in shift workers: the LUX trial"
    return Made(w.SLEEP, article(w.SLEEP, "r20", title=title, doi_at="label"))


@right
def ligatures_in_the_title() -> Made:
    work = replace(
        w.ALLOY, title="Efficient diffusion of fluorine in office filters: first findings", doi="10.5808/eff.77"
    )
    return Made(work, article(work, "r21"), ("latex", "columns", "word", "type3"))


@right
def ligatures_as_letters_of_their_own() -> Made:
    work = replace(
        w.ALLOY, title="Efficient diffusion of fluorine in office filters: first findings", doi="10.5808/eff.77"
    )
    title = work.title.replace("ffi", "ﬃ").replace("ffu", "ﬀu").replace("fl", "ﬂ").replace("fi", "ﬁ")
    return Made(work, article(work, "r22", title=title), ("word", "tagged", "ocr", "type1"))


@right
def names_without_their_accents() -> Made:
    names = tuple(unicodedata.normalize("NFD", name).encode("ascii", "ignore").decode() for name in w.MICE.names)
    names = tuple(name.replace("ukasz", "Lukasz") for name in names)
    return Made(w.MICE, article(w.MICE, "r23", names=names))


@right
def accents_as_characters_of_their_own() -> Made:
    names = tuple(unicodedata.normalize("NFD", name) for name in w.MICE.names)
    return Made(w.MICE, article(w.MICE, "r24", names=names), ("word", "tagged", "ocr", "rtl"))


@right
def greek_letters_that_the_index_writes_out() -> Made:
    work = replace(w.MICE, title="beta-Catenin signalling and alpha-synuclein clearance in ageing mice")
    return Made(work, article(work, "r25", title=w.MICE.title))


@right
def mathematics_in_the_title() -> Made:
    work = replace(w.PRIMES, title="On the $L^2$ norm of $\\theta$-functions over $\\mathbb{Z}_p$", doi="10.5811/amn.7")
    return Made(work, article(work, "r26", title="On the L2 norm of θ-functions over Zp"))


@right
def tags_in_the_title_of_the_index() -> Made:
    work = replace(
        w.CATALYST, title="CO<sub>2</sub> hydrogenation over Cu/ZnO/Al<sub>2</sub>O<sub>3</sub>: the role of water"
    )
    return Made(work, article(work, "r27", title=w.CATALYST.title))


@right
def entities_in_the_title_of_the_index() -> Made:
    work = replace(w.LEDGERS, title="Merchants, ledgers &amp; trust in the port of Vistrand, 1640&#8211;1710")
    return Made(work, article(work, "r28", title=w.LEDGERS.title.replace("and", "&", 1)))


@right
def other_quotes_and_dashes() -> Made:
    work = replace(w.POEM, title='"The door stood open": thresholds in late ballads')
    return Made(work, article(work, "r29", title=w.POEM.title, abstract=False, doi_at="footer"))


@right
def a_title_with_a_note_mark() -> Made:
    note = Block("* Supported by the Hollin Foundation.", size=7, across=True)
    return Made(w.TEACHERS, article(w.TEACHERS, "r30", title=w.TEACHERS.title + "*", after_title=(note,)))


@right
def a_translated_title_with_the_doi() -> Made:
    work = replace(w.URBAN, title="Urban inequality and public transport in medium-sized cities")
    return Made(work, article(work, "r31", title=w.URBAN.title))


@right
def a_title_in_two_languages() -> Made:
    work = replace(w.URBAN, title="Urban inequality and public transport in medium-sized cities")
    second = Block("Urban inequality and public transport in medium-sized cities", size=12, across=True)
    return Made(work, article(work, "r32", title=w.URBAN.title, after_title=(second,), doi_at="footer"))


# Authors


@right
def names_as_initials() -> Made:
    names = tuple(f"{author.given[0]}. {author.family}" for author in w.ALLOY.authors)
    return Made(w.ALLOY, article(w.ALLOY, "r33", names=names))


@right
def names_with_the_family_first() -> Made:
    names = tuple(f"{author.family.upper()} {author.given}" for author in w.PARSING.authors)
    return Made(w.PARSING, article(w.PARSING, "r34", names=names))


@right
def only_the_first_of_many_authors() -> Made:
    families = [base + end for base in ("Kor", "Mal", "Tes", "Vend") for end in ("ander", "ovic", "elius", "ström")]
    authors = tuple(Author(f"{chr(65 + at)}.", family) for at, family in enumerate(families))
    work = replace(w.COHORT, authors=authors)
    return Made(work, article(work, "r35", names=("A. Korander", "B. Korovic", "et al.")))


@right
def a_group_as_author() -> Made:
    work = replace(w.PHASE, authors=(Author("", "The VELO-2 Study Group"), *w.PHASE.authors))
    return Made(work, article(work, "r36", names=("The VELO-2 Study Group",), doi_at="label"))


@right
def two_hundred_authors_over_two_pages() -> Made:
    families = [base + end for base in ("Kor", "Mal", "Tes", "Ven", "Bru") for end in ("ander", "ovic", "elius")]
    authors = tuple(Author(f"{chr(65 + at)}.", family) for at in range(12) for family in families)
    names = tuple(author.name for author in authors)
    work = replace(
        w.SPIN, title="Search for heavy neutral partners at 13 TeV", authors=authors, doi="10.5803/PhysLettQ.99.1"
    )
    return Made(work, article(work, "r37", names=names, places=False))


# Versions and what is laid over or around them


@right
def the_cover_of_a_repository_before_it() -> Made:
    cover = (
        Block("Estoria Research Online", 20, True, before=60), Block(citation(w.TEACHERS), before=40),
        Block("Downloaded from http://ero.estoria.example/4412/"), page_break(),
    )  # fmt: skip
    return Made(w.TEACHERS, article(w.TEACHERS, "r38", leading_pages=cover, leading=1))


@right
def two_covers_before_it() -> Made:
    covers = (
        Block("HAL-like archive. Submitted on 4 May 2019", 14), Block(w.CATALYST.title, 16, True), page_break(),
        Block("Norrhavn Pure", 18, True), Block(f"Citation for published version: {citation(w.CATALYST)}"),
        Block("Document version: Publisher's PDF. Take down policy: contact us."), page_break(),
    )  # fmt: skip
    return Made(w.CATALYST, article(w.CATALYST, "r39", leading_pages=covers, leading=2, doi_at="footer"))


@right
def a_cover_of_a_digital_library_and_its_stamp() -> Made:
    cover = (
        Block(w.LEDGERS.title, 13, True), Block(f"Author(s): {w.LEDGERS.names[0]}"),
        Block("Source: Economic History Notes, Vol. 62, No. 4 (Nov., 2009), pp. 511-519"),
        Block("Stable URL: https://www.stacks.example/stable/4412009. Accessed: 12-03-2017 14:33 UTC"), page_break(),
    )  # fmt: skip
    stamp = Mark("This content downloaded from 192.0.2.7 on Sun, 12 Mar 2017 14:33:01 UTC", 120, 18, 7)
    document = article(w.LEDGERS, "r40", leading_pages=cover, leading=1, doi_at="none", marks=(stamp,), dates=False,
                       abstract=False, references="Works cited")  # fmt: skip
    return Made(w.LEDGERS, document)


@right
def an_accepted_manuscript_with_line_numbers() -> Made:
    return Made(w.SALT, article(w.SALT, "r41", line_numbers=True, journal_line="Accepted manuscript", first_page=1))


@right
def an_accepted_manuscript_without_doi() -> Made:
    document = article(w.TEACHERS, "r42", doi_at="none", journal_line="Author's accepted manuscript, December"
        " 2011", first_page=1,
                       dates=False)  # fmt: skip
    return Made(w.TEACHERS, document)


@right
def a_manuscript_of_a_public_archive() -> Made:
    head = Block(
        "Author manuscript; available in PMC-like archive 2021 March 01. Published in final edited form as:",
        8,
        across=True,
    )
    cited = Block(f"Neural Ageing. 2020 July; 9(7): 1301–1311. doi:{w.MICE.doi}.", 8, across=True)
    return Made(
        w.MICE, article(w.MICE, "r43", doi_at="none", journal_line="", before_title=(head, cited), first_page=1)
    )


@right
def a_proof_in_press() -> Made:
    document = article(
        w.ALLOY, "r44", journal_line="ARTICLE IN PRESS. Materials and Structure xxx (2014) xxx–xxx", first_page=1
    )
    return Made(w.ALLOY, document)


@right
def a_preprint_with_the_arxiv_stamp() -> Made:
    stamp = Mark("arXiv:1011.93345v2  [math.NT]  3 Jan 2011", 28, 240, 16, 90, "first")
    return Made(
        w.PRIMES, article(w.PRIMES, "r45", doi_at="none", journal_line="", dates=False, marks=(stamp,), first_page=1)
    )


@right
def a_preprint_that_bears_its_own_doi() -> Made:
    line = Block("medbioRxiv preprint doi: https://doi.org/10.1101/2019.11.02.828282; this version posted 4"
        " November 2019.", 7,
                 across=True)  # fmt: skip
    return Made(w.MICE, article(w.MICE, "r46", doi_at="none", journal_line="", before_title=(line,), first_page=1))


@right
def published_online_a_year_before() -> Made:
    line = "Psychological Letters, published online 2 December 2017. © 2017 The Authors"
    return Made(w.EVIDENCE, article(w.EVIDENCE, "r47", journal_line=line, first_page=1))


@right
def a_watermark_on_every_page() -> Made:
    marks = (Mark("FOR PERSONAL USE ONLY", 150, 300, 40, 45), Mark("UNCORRECTED PROOF", 100, 815, 12))
    return Made(w.PHASE, article(w.PHASE, "r48", marks=marks))


@right
def a_stamp_of_the_download() -> Made:
    stamp = Mark(f"Downloaded from https://journals.example/doi/{w.COHORT.doi} by University of Norrhavn on 3 May 2020",
                 578, 120, 6, 90)  # fmt: skip
    return Made(w.COHORT, article(w.COHORT, "r49", marks=(stamp,)))


@right
def a_running_head_with_another_title() -> Made:
    return Made(w.SLEEP, article(w.SLEEP, "r50", running="EVENING LIGHT AND SHIFT WORK", doi_at="footer"))


@right
def an_article_after_an_editorial_in_one_file() -> Made:
    editorial = (
        Block("Editorial: looking at classrooms", 16, True), Block("Henrike"
            " Solberg-Weiss"), *filler("r51", 5), page_break(),
    )  # fmt: skip
    return Made(w.TEACHERS, article(w.TEACHERS, "r51", leading_pages=editorial, leading=1))


@right
def an_article_in_the_middle_of_its_issue() -> Made:
    before = (
        Block("Zoological Keys 1002", 30, True), page_break(), Block("Contents", 16, True),
        *[Block(f"{work.title} {work.first_page}") for work in w.LATIN_WORKS[:6]], page_break(),
        Block("From the editor", 16, True), *filler("r52", 4), page_break(),
    )  # fmt: skip
    return Made(w.BEES, article(w.BEES, "r52", leading_pages=before, leading=3))


@right
def highlights_before_the_title_page() -> Made:
    before = (
        Block("Highlights", 16, True),
        Block("• Creep was slow.\n• Hafnium helped.\n• Models agree."),
        page_break(),
    )
    return Made(w.ALLOY, article(w.ALLOY, "r53", leading_pages=before, leading=1, doi_at="label"))


@right
def with_its_erratum_at_the_end() -> Made:
    erratum = (page_break(), Block("Erratum", 14, True), Block("On page 845, for “eleven” read “twelve”."))
    return Made(w.SLEEP, article(w.SLEEP, "r54", appended=erratum))


@right
def with_its_supplement_at_the_end() -> Made:
    supplement = (
        page_break(),
        Block("Supplementary material", 16, True),
        Block("Table S1. All stands."),
        *filler("r55", 12),
    )
    return Made(w.SALT, article(w.SALT, "r55", appended=supplement))


# Short, old and other kinds of works


@right
def a_letter_of_two_pages_without_abstract() -> Made:
    work = replace(w.PHASE, title="Velorutinib and hiccups", first_page=55, last_page=56, doi="10.5815/onc.2018.77.55")
    return Made(work, article(work, "r56", abstract=False, reference_count=5))


@right
def a_case_report_of_one_page() -> Made:
    work = replace(
        w.SLEEP, title="A night nurse who slept by day", first_page=901, last_page=901, doi="10.5802/S0099-19-901"
    )
    document = article(work, "r57", abstract=False, reference_count=4)
    return Made(work, replace(document, pages=None, body=tuple(filler("r57", 2))))


@right
def an_essay_with_notes_in_place_of_references() -> Made:
    return Made(w.POEM, article(w.POEM, "r58", abstract=False, dates=False, references="Notes", doi_at="footer"))


@right
def references_under_a_german_head() -> Made:
    return Made(w.LEDGERS, article(w.LEDGERS, "r59", references="Literaturverzeichnis", doi_at="label"))


@right
def the_work_is_an_erratum() -> Made:
    work = replace(w.ALLOY, title=f"Erratum:"
        f" {w.ALLOY.title}", doi="10.5808/j.matstr.2015.01.003", first_page=90, last_page=90,
                   year=2015)  # fmt: skip
    document = article(work, "r60", abstract=False, references="", doi_at="label")
    return Made(work, replace(document, pages=None, body=tuple(filler("r60", 1))))


@right
def the_work_is_a_comment() -> Made:
    work = replace(w.CATALYST, title=f"Comment on"
        f" “{w.CATALYST.title}”", authors=w.ALLOY.authors, doi="10.5816/c0cy00712a",
                   year=2020, first_page=205, last_page=207)  # fmt: skip
    return Made(work, article(work, "r61", abstract=False, reference_count=6))


@right
def the_work_is_a_second_part() -> Made:
    work = replace(
        w.SPIN, title="Spin relaxation in layered honeycomb magnets. Part II: Experiment", doi="10.5803/PhysLettQ.88.2"
    )
    return Made(work, article(work, "r62", doi_at="footer"))


@right
def an_article_number_in_place_of_pages() -> Made:
    work = replace(w.CLIMATE, first_page=1, last_page=8)
    return Made(work, article(work, "r63", journal_line="Geophysical Model Notes 14, e3021 (2021)"))


# Pages and files


@right
def pages_turned_by_a_quarter() -> Made:
    return Made(w.SALT, article(w.SALT, "r64", rotate=90))


@right
def pages_upside_down() -> Made:
    return Made(w.PHASE, article(w.PHASE, "r65", rotate=180, doi_at="footer"))


@right
def landscape_in_two_columns() -> Made:
    return Made(w.PARSING, article(w.PARSING, "r66", size=LANDSCAPE, columns=2))


@right
def three_columns() -> Made:
    return Made(w.COHORT, article(w.COHORT, "r67", columns=3, doi_at="footer"))


@right
def a_scan_without_text() -> Made:
    return Made(w.POEM, article(w.POEM, "r68"), ("scan",), text=False)


@right
def a_scan_with_text_behind_it() -> Made:
    return Made(w.LEDGERS, article(w.LEDGERS, "r69", doi_at="none", dates=False, abstract=False), ("ocr",))


@right
def a_title_of_the_file_that_is_a_template() -> Made:
    return Made(w.EVIDENCE, article(w.EVIDENCE, "r70", info_title="Microsoft Word - Template_v3_final.doc"))


@right
def a_doi_of_the_file_that_is_a_placeholder() -> Made:
    document = replace(article(w.PARSING, "r71", doi_at="label"), doi="10.1145/nnnnnnn.nnnnnnn")
    return Made(w.PARSING, document, ("plain", "indesign", "columns", "forms"))


# Other scripts


@right
def a_chinese_article() -> Made:
    return Made(
        w.SOIL, article(w.SOIL, "r72", names=("贾文芳", "柳建国"), language="zh"), ("cjk", "word", "tagged", "ocr")
    )


@right
def a_chinese_article_known_by_its_english_title() -> Made:
    work = replace(w.SOIL, title="Response of soil organic carbon to crop rotation",
                   authors=(Author("Wenfang", "Jia"), Author("Jianguo", "Liu")))  # fmt: skip
    english = (Block("Response of soil organic carbon to crop rotation", 12, True), Block("JIA Wenfang, LIU Jianguo"))
    document = article(work, "r73", title=w.SOIL.title, names=("贾文芳", "柳建国"), language="zh", after_title=english)
    return Made(work, document, ("cjk", "word", "tagged", "ocr"))


@right
def a_japanese_article() -> Made:
    document = article(w.QUAKE, "r74", names=("森高大地", "月守千尋"), language="ja")
    return Made(w.QUAKE, document, ("japanese", "word", "tagged", "ocr"))


@right
def a_hebrew_article() -> Made:
    return Made(w.HEBREW, article(w.HEBREW, "r75", language="he"), ANY_SCRIPT)


@right
def an_arabic_article() -> Made:
    return Made(w.ARABIC, article(w.ARABIC, "r76", language="ar"), ("arabic", *ANY_SCRIPT[:3]))


@right
def a_hebrew_article_known_by_its_english_title() -> Made:
    work = replace(w.HEBREW, title="Memory and oblivion in late wandering prose",
                   authors=(Author("Tamar", "Elkayam"), Author("Yonatan", "Bar-Sadeh")))  # fmt: skip
    return Made(work, article(work, "r77", title=w.HEBREW.title, names=w.HEBREW.names, language="he"), ANY_SCRIPT)


# Short works without references, and papers that speak of what impostors are


def _short(work: IndexedWork, text: str, *signed: str, kicker: str = "", before: tuple[Block, ...] = ()) -> Document:
    """One or two columns of text under a title, signed at its end, with the journal's line above it."""
    shown = f"{kicker}\n{work.title}" if kicker else work.title
    return Document(
        front=(*before, Block(shown, 14, True, before=14, role="H1"), *map(Block, text.split("\n"))),
        back=tuple(Block(name, align="right") for name in signed),
        marks=(
            Mark(f"{work.journal} {work.volume} ({work.year})", 62, 806, pages="first"),
            Mark("{page}", 290, 34, 9),
        ),
        pages=work.pages if work.pages > 1 else None,
        first_page=work.first_page,
    )


_LIFE = (
    "He was born in Harwick and came to the sea late, by way of the railways and a chair in a school of mines. What he"
    " found there he wrote down in nine notebooks which are still being read.\nThose who worked with him remember the"
    " patience with which he taught others to count, and how he laughed at instruments that were too new. He leaves two"
    " daughters, a garden, and a method that is named after somebody else."
)
SHORT = replace(
    w.SALT, doi="10.5801/jce.2019.09.301", title="Anders Holmgaard (1931–2018), counter of reeds", first_page=301,
    last_page=301, authors=w.SALT.authors[:1], year=2019,
)  # fmt: skip


@right
def an_obituary_signed_at_its_end() -> Made:
    return Made(SHORT, _short(SHORT, _LIFE, SHORT.names[0], kicker="In memoriam"))


@right
def an_editorial_of_two_pages_without_references() -> Made:
    work = replace(SHORT, title="Who counts the reeds now?", last_page=302)
    return Made(work, _short(work, _LIFE, work.names[0], "Editor-in-chief", kicker="EDITORIAL"))


@right
def a_letter_that_begins_dear_sir() -> Made:
    work = replace(SHORT, title="Reeds and railways in the Harwick papers")
    return Made(work, _short(work, "Dear Sir,\n" + _LIFE, "Yours faithfully,", work.names[0], kicker="Correspondence"))


@right
def an_old_essay_without_a_single_reference() -> Made:
    work = replace(w.POEM, doi=None, year=1934, first_page=211, last_page=219)
    document = article(
        work, "r80", abstract=False, dates=False, places=False, references="", doi_at="none", journal_line=""
    )
    return Made(work, document)


@right
def a_conference_abstract_between_two_others() -> Made:
    work = replace(SHORT, title="Night counts of reed warblers by sound alone", authors=w.SALT.authors)
    other = [Block("P-30 A LADDER FOR LICHENS", 11, True), Block("H. Marsh, P. Vey"), *filler("r81", 1)]
    mine = [Block(work.title, 11, True), Block(", ".join(work.names)), *filler("r81b", 2), Block(f"doi: {work.doi}", 8)]
    last = [Block("P-32 BARNACLES AND BRASS", 11, True), Block("O. Adair"), *filler("r81c", 1)]
    head = Mark("301    Abstracts of the annual meeting", 62, 806)
    return Made(work, Document(front=(*other, *mine, *last), marks=(head,)))


@right
def a_retraction_with_a_doi_of_many_zeros() -> Made:
    work = replace(
        w.COHORT, title=f"Retraction to: {w.COHORT.title}", doi="10.5814/BMX.0000000000000412", authors=(),
        first_page=77, last_page=77, year=2019,
    )  # fmt: skip
    text = (
        "The editors retract the article that appeared in 2015. An inquiry found that consent had not been given by 19"
        " of the patients and that two of the tables had been made from the same data."
    )
    document = _short(work, text, f"https://doi.org/{work.doi}", kicker="Retraction")
    return Made(work, document)


@right
def a_short_first_page_that_speaks_of_bridges_under_construction() -> Made:
    text = Block("Sensors were fixed to nine bridges under construction. Access is restricted to members.", 9)
    return Made(w.ALLOY, article(w.ALLOY, "r83", abstract=False, after_title=(text, page_break())))


@right
def a_paper_that_thanks_a_doctoral_thesis() -> Made:
    note = Block("This paper is based on the first author's doctoral thesis, University of Norrhavn.", 8)
    return Made(w.TEACHERS, article(w.TEACHERS, "r84", after_title=(note,)))


@right
def another_title_that_begins_a_line_with_in_response_to() -> Made:
    title = "How reed stands gain height\nin response to the tide"
    return Made(w.SALT, article(w.SALT, "r85", title=title))


@right
def a_title_that_the_index_cut_off() -> Made:
    work = replace(w.COHORT, title="Statin use and risk of cataract: population based cohort study of 124 ...")
    return Made(work, article(w.COHORT, "r86", doi_at="label"))


@right
def a_collaboration_that_names_its_people_on_the_last_page() -> Made:
    people = page_break(), Block("Members of the collaboration", 11, True), Block("; ".join(w.SPIN.names))
    return Made(w.SPIN, article(w.SPIN, "r87", names=("The HONEYCOMB Collaboration",), appended=people))


@right
def a_working_paper_three_years_before_the_article() -> Made:
    line = "Working Paper 23177, Bureau of Observation, March 2006"
    return Made(w.LEDGERS, article(w.LEDGERS, "r88", journal_line=line, doi_at="none", dates=False, first_page=1))


@right
def behind_a_cover_under_a_title_that_was_changed() -> Made:
    title = "Salt tolerance of southern reeds under tidal flooding"
    cover = (
        Block("Norrhavn Research Online", 16, True),
        Block(f"This is a repository copy of {title}. Version: Accepted Version"),
        Block(f"{', '.join(w.SALT.names)} ({w.SALT.year}) {title}. {w.SALT.journal}. https://doi.org/{w.SALT.doi}"),
        Block("Terms of use: this copy may be read and kept for private study."),
        page_break(),
    )
    document = article(w.SALT, "r89", title=title, leading_pages=cover, leading=1, doi_at="none", journal_line="")
    return Made(w.SALT, document)


@right
def a_portuguese_paper_known_by_the_title_in_its_third_line() -> Made:
    work = replace(w.URBAN, title="Urban inequality and public transport in cities of the middle rank")
    titles = (
        Block(work.title, 11, across=True),
        Block("Desigualdade urbana e transporte em cidades médias", 11, across=True),
    )
    shown = article(w.URBAN, "r90", after_title=titles, doi_at="none", language="es")
    return Made(work, shown, ("latex", "word", "indesign", "tagged"))
