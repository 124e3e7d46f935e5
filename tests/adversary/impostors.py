"""Files that come in the place of a paper and are not it. None may be proved, nor be probable.

Each function gives the work that was asked for and the document that came. Written from what servers send, without
regard to the rules that judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.adversary import works as w
from tests.adversary.case import Case, renderings_of
from tests.adversary.pages import article, citation, filler, sheet
from tests.adversary.works import IndexedWork

from DocsToKG.Sandbox.pdf import prose
from DocsToKG.Sandbox.pdf.document import LANDSCAPE, Block, Document, Mark, page_break
from DocsToKG.Sandbox.seeded_random import stream

Made = tuple[IndexedWork, Document]
_MAKERS: list[Callable[[], Made]] = []


def impostor(make: Callable[[], Made]) -> Callable[[], Made]:
    _MAKERS.append(make)
    return make


def cases() -> list[Case]:
    found = []
    for number, make in enumerate(_MAKERS):
        work, document = make()
        found.append(Case(make.__name__, work, document, renderings_of(number), right=False))
    return found


def _other(work: IndexedWork, **changes: object) -> IndexedWork:
    """Another work that differs in what is named; it has as many pages unless its last one is named."""
    changed: IndexedWork = replace(work, **changes)  # type: ignore[arg-type]
    if "first_page" in changes and "last_page" not in changes:
        return replace(changed, last_page=changed.first_page + work.pages - 1)
    return changed


def _lead(work: IndexedWork) -> str:
    """Author, title, journal and DOI in running text."""
    return f"{work.authors[0].family} et al., “{work.title}”, {work.journal} {work.volume}, {work.year}"


# Other articles


@impostor
def another_article_of_the_same_authors() -> Made:
    other = _other(w.SALT, title="Seed dispersal by brackish currents", doi="10.5801/jce.2018.02.020", first_page=88)
    return w.SALT, article(other, "i1")


@impostor
def another_article_of_the_same_issue() -> Made:
    other = _other(
        w.ALLOY, title="Grain boundaries of nickel–hafnium alloys after long"
            " annealing", doi="10.5808/j.matstr.2014.09.034",
        authors=w.BEES.authors, first_page=1213, last_page=1220,
    )  # fmt: skip
    return w.ALLOY, article(other, "i2", doi_at="footer")


@impostor
def another_article_that_cites_the_work_in_its_list() -> Made:
    own = _other(w.PRIMES, title="Sums over thin sets", doi="10.5811/amn.2015.180.1.2", year=2015, first_page=40)
    return w.PRIMES, article(own, "i3", appended=(Block("24. " + citation(w.PRIMES), size=8),))


@impostor
def the_same_title_in_another_year() -> Made:
    other = _other(
        w.SURVEY, title="Annual survey of drinking water in mountain districts, 2016", doi="10.5806/mmr.2017.0029",
        year=2017, volume="23",
    )  # fmt: skip
    return w.SURVEY, article(other, "i4", doi_at="label")


@impostor
def the_same_title_in_another_year_without_a_doi() -> Made:
    other = _other(
        w.SURVEY, title="Annual survey of drinking water in mountain districts, 2014", year=2015, volume="21"
    )
    return w.SURVEY, article(other, "i5", doi_at="none")


@impostor
def part_two() -> Made:
    other = _other(
        w.SPIN, title="Spin relaxation in layered honeycomb magnets. Part II:"
            " Experiment", doi="10.5803/PhysLettQ.88.024402",
        first_page=10, last_page=19,
    )  # fmt: skip
    return w.SPIN, article(other, "i6", doi_at="footer")


@impostor
def part_two_as_a_preprint() -> Made:
    title = "Spin relaxation in layered honeycomb magnets. Part II: Experiment"
    stamp = Mark("arXiv:1305.90117v1  [cond-mat.str-el]  30 May 2013", 28, 240, 16, 90, "first")
    other = _other(w.SPIN, title=title)
    return w.SPIN, article(other, "i7", doi_at="none", journal_line="", dates=False, marks=(stamp,), first_page=1)


@impostor
def southern_turned_into_northern() -> Made:
    other = _other(
        w.SALT, title="Salt tolerance of northern reed stands under repeated tidal"
            " flooding", doi="10.5801/jce.2019.01.007",
        year=2019,
    )  # fmt: skip
    return w.SALT, article(other, "i8")


@impostor
def southern_turned_into_northern_without_a_doi() -> Made:
    other = _other(w.SALT, title="Salt tolerance of northern reed stands under repeated tidal flooding")
    return w.SALT, article(other, "i9", doi_at="none")


@impostor
def a_number_of_the_title_changed() -> Made:
    other = _other(
        w.PHASE, title="Velorutinib in advanced thymoma: results of a phase 3 trial", doi="10.5815/onc.2020.79.2201",
        year=2020,
    )  # fmt: skip
    return w.PHASE, article(other, "i10", doi_at="citation")


@impostor
def a_number_of_the_title_changed_without_a_doi() -> Made:
    other = _other(w.PHASE, title="Velorutinib in advanced thymoma: results of a phase 1 trial", year=2016)
    return w.PHASE, article(other, "i11", doi_at="none")


@impostor
def the_title_denied() -> Made:
    other = _other(
        w.EVIDENCE, title="No evidence for a left-hand advantage in rapid"
            " counting", doi="10.5807/psyl.000702", year=2020,
        authors=w.TEACHERS.authors,
    )  # fmt: skip
    return w.EVIDENCE, article(other, "i12")


@impostor
def the_work_revisited() -> Made:
    other = _other(
        w.PRIMES, title="On the distribution of primes in thin sequences, revisited", doi="10.5811/amn.2019.190.2.5",
        year=2019, first_page=611,
    )  # fmt: skip
    return w.PRIMES, article(other, "i13", doi_at="footer")


@impostor
def a_later_edition() -> Made:
    other = _other(
        w.CLIMATE, title="A reduced-order model of northern sea ice for seasonal forecasts: version 2",
        doi="10.5813/gmd-17-1011-2024", year=2024, volume="17",
    )  # fmt: skip
    return w.CLIMATE, article(other, "i14", doi_at="citation")


@impostor
def the_conference_twin() -> Made:
    other = _other(
        w.PARSING, doi="10.5899/ICDM2020.44", year=2020, journal="Abstracts of the Dialogue Conference", first_page=12,
        last_page=15,
    )  # fmt: skip
    return w.PARSING, article(other, "i15", doi_at="label")


@impostor
def the_protocol_of_the_trial() -> Made:
    title = "Effect of evening light on sleep onset in shift workers: protocol for a randomised trial"
    other = _other(w.SLEEP, title=title, doi="10.5802/S0099-4412(16)11020-1", year=2016)
    return w.SLEEP, article(other, "i16")


@impostor
def the_registration_of_the_trial() -> Made:
    return w.SLEEP, sheet(
        "Trial registration record|", "Registration number: TRN-2016-004411. Status: recruiting.",
        f"Public title: {w.SLEEP.title}", f"Principal investigators: {', '.join(w.SLEEP.names)}",
        "Primary outcome: sleep onset latency. Target sample: 240. Planned start: 1 March 2016.",
        *filler("i17", 3),
    )  # fmt: skip


@impostor
def the_description_of_its_data() -> Made:
    other = _other(
        w.SALT, title="Data on salt tolerance of southern reed stands under repeated tidal flooding",
        doi="10.5888/datan.2017.0912", journal="Data Notes",
    )  # fmt: skip
    note = Block(f"Related article: {citation(w.SALT)}", size=8, across=True)
    return w.SALT, article(other, "i18", after_title=(note,))


@impostor
def the_page_of_its_data_set() -> Made:
    return w.ALLOY, sheet(
        f"Data from: {w.ALLOY.title}|", ", ".join(w.ALLOY.names), "Published 2014 on Datahaven. Version 1.",
        "https://doi.org/10.5877/dh.84412", f"This data set supports the article https://doi.org/{w.ALLOY.doi}",
        "Files: creep_curves.csv (1.2 MB), readme.txt (3 KB). Licence: CC0.", *filler("i19", 1),
    )  # fmt: skip


@impostor
def another_paper_under_the_arxiv_stamp() -> Made:
    stamp = Mark("arXiv:1011.93354v1  [math.NT]  22 Nov 2010", 28, 240, 16, 90, "first")
    other = _other(w.PRIMES, title="Gaps between primes in short intervals")
    return w.PRIMES, article(other, "i20", doi_at="none", journal_line="", marks=(stamp,), first_page=1)


# Notices about the paper


@impostor
def a_corrigendum() -> Made:
    title = f"Corrigendum to “{w.ALLOY.title}” [Mater. Struct. 115 (2014) 1204–1212]"
    text = Block(
        "The authors regret that Table 2 of the original article has wrong units. The corrected table is below."
    )
    other = _other(w.ALLOY, title=title, doi="10.5808/j.matstr.2015.01.003", year=2015, first_page=90, last_page=90)
    document = article(other, "i21", abstract=False, references="", body_pages=1, dates=False, after_title=(text,))
    return w.ALLOY, replace(document, body=tuple(filler("i21", 1)), pages=1)


@impostor
def an_erratum_under_the_title_and_doi_of_the_paper() -> Made:
    return w.MICE, sheet(
        "ERRATUM|", f"{w.MICE.title}|", ", ".join(w.MICE.names), f"{w.MICE.journal} 2021, 10, 55",
        f"Original article: https://doi.org/{w.MICE.doi}",
        "In the version of this article first published, the labels of Figure 3 were interchanged. This does not"
            " change the"
        " conclusions. The publisher apologises for the error, which has been corrected online.",
    )  # fmt: skip


@impostor
def a_retraction_notice() -> Made:
    return w.COHORT, sheet(
        f"Retraction: {w.COHORT.title}|", ", ".join(w.COHORT.names), f"https://doi.org/{w.COHORT.doi}",
        "This article has been retracted at the request of the editors, because the data could not be verified.",
        *filler("i23", 1),
    )  # fmt: skip


@impostor
def an_expression_of_concern() -> Made:
    return w.MICE, sheet(
        "Editorial Expression of Concern|", f"On: {w.MICE.title}, by {_lead(w.MICE)}. https://doi.org/{w.MICE.doi}",
        "Readers are alerted that concerns have been raised about the images of Figure 2. An inquiry is under way.",
        *filler("i24", 1),
    )  # fmt: skip


@impostor
def a_list_of_errata_of_an_issue() -> Made:
    entries = [Block(f"{citation(work)} On page {work.first_page + 2}, line 14, read “less” for “more”.")
               for work in (w.SLEEP, w.COHORT, w.PHASE, w.MICE)]  # fmt: skip
    return w.SLEEP, sheet("Errata in volumes 6 and 7|", *entries)


@impostor
def a_reply_of_the_authors() -> Made:
    title = f"Reply to the comment on “{w.CATALYST.title}”"
    other = _other(w.CATALYST, title=title, doi="10.5816/c0cy00888f", year=2020, first_page=210, last_page=212)
    return w.CATALYST, article(other, "i26", doi_at="label", abstract=False)


@impostor
def a_comment_on_the_paper() -> Made:
    other = _other(
        w.CATALYST, title=f"Comment on “{w.CATALYST.title}” by F. Puigdomenech et al.", doi="10.5816/c0cy00712a",
        authors=w.ALLOY.authors, year=2020, first_page=205, last_page=209,
    )  # fmt: skip
    return w.CATALYST, article(other, "i27", abstract=False)


@impostor
def a_letter_to_the_editor_under_the_same_title() -> Made:
    other = _other(
        w.EVIDENCE, authors=w.COHORT.authors[:1], doi="10.5807/psyl.000655", year=2018, issue="9", first_page=201,
        last_page=202,
    )  # fmt: skip
    opening = Block(
        f"To the editor: we read with interest the article by Solberg-Weiss and Wolanin ({w.EVIDENCE.doi})."
    )
    return w.EVIDENCE, article(other, "i28", doi_at="footer", abstract=False, after_title=(opening,), reference_count=3)


@impostor
def a_commentary_that_cites_the_doi_first() -> Made:
    other = _other(
        w.COHORT, title="Lenses, lipids and large numbers", authors=w.PHASE.authors[:1], doi="10.5814/bmjx-2015-010333",
        first_page=399, last_page=400,
    )  # fmt: skip
    opening = Block(
        f"In this issue Kilbracken and colleagues (doi:{w.COHORT.doi}) report that {w.COHORT.title.lower()}."
    )
    return w.COHORT, article(other, "i29", doi_at="none", abstract=False, after_title=(opening,))


@impostor
def a_review_that_quotes_title_and_doi() -> Made:
    return w.LEDGERS, sheet(
        "Reviews of articles|", Block(f"Agnes Thorvaldsdatter, “{w.LEDGERS.title}”, Economic History Notes 62"
            f" (2009)", 11, True),
        f"https://doi.org/{w.LEDGERS.doi}",
        "The author has read the ledgers of eleven merchant houses, and tells of them with humour. One could"
            " have wished for"
        " a map. The argument, that trust followed kin and not creed, will be disputed.",
        *filler("i30", 4), "Reviewed by Ciro Pannella, Estoria",
    )  # fmt: skip


@impostor
def news_about_the_paper() -> Made:
    other = _other(
        w.MICE, title="Clearing the ageing brain", authors=w.TEACHERS.authors[:1], doi="10.5809/neu.2020.119001",
        first_page=1201, last_page=1202,
    )  # fmt: skip
    box = Block(f"Related article: {w.MICE.title}. https://doi.org/{w.MICE.doi}", size=8, across=True)
    return w.MICE, article(other, "i31", abstract=False, after_title=(box,), reference_count=4)


@impostor
def a_recommendation_by_a_reader() -> Made:
    return w.BEES, sheet(
        "Recommended reading|", Block(w.BEES.title, 14, True), ", ".join(w.BEES.names), f"DOI: {w.BEES.doi}",
        "Recommendation: Very good. Reviewed on 4 May 2021 by Marit Oldervik.",
        "This paper describes a genus that I had long expected. The key is excellent, and so are the plates.",
    )  # fmt: skip


@impostor
def a_peer_review_report() -> Made:
    return w.SALT, sheet(
        "Peer review file|", f"Manuscript: {w.SALT.title}", f"Authors: {', '.join(w.SALT.names)}",
        f"DOI: {w.SALT.doi}", "Reviewer 1. Comments to the author: The manuscript is well written, but the"
            " controls are thin.",
        *filler("i33", 6), "Reviewer 2. Comments to the author: I have three major points.", *filler("i33b", 6),
        "Response of the authors: We thank both reviewers.", *filler("i33c", 6),
    )  # fmt: skip


@impostor
def a_press_release() -> Made:
    return w.PHASE, sheet(
        "University of Norrhavn — Press release|", "Embargoed until 12 September 2018, 18:00",
        Block("New drug slows rare tumour of the thymus", 18, True),
        "Patients with advanced thymoma lived longer without growth of the tumour when they were given velorutinib.",
        *filler("i34", 5), f"Reference: {citation(w.PHASE)}", "Contact: press@norrhavn.example",
    )  # fmt: skip


@impostor
def a_summary_for_everybody() -> Made:
    return w.SLEEP, sheet(
        "Plain language summary|", f"{w.SLEEP.title}|", ", ".join(w.SLEEP.names), f"https://doi.org/{w.SLEEP.doi}",
        "What was this study about? Many people work at night. We asked whether bright light in the evening"
            " delays sleep.",
        "What did we find? Light delayed sleep by eleven minutes. What happens now? The findings will be used in"
            " guidelines.",
    )  # fmt: skip


# Parts of the paper


@impostor
def the_first_page_as_a_preview() -> Made:
    whole = article(w.ALLOY, "i36", body_pages=2, references="", first_page=1204,
                    journal_line="Materials and Structure 115 (C), 1204–1212 (2014)")  # fmt: skip
    return w.ALLOY, replace(whole, pages=1, body=tuple(filler("i36", 3)), back=())


@impostor
def the_first_two_pages_with_an_offer() -> Made:
    offer = Block("You are reading a preview. Buy the whole article (9 pages) for 39.95.", 14, True, before=30)
    whole = article(w.LEDGERS, "i37", body_pages=2, references="",
                    journal_line="Economic History Notes 62 (4), 511–519 (2009)")  # fmt: skip
    return w.LEDGERS, replace(whole, back=(offer,))


@impostor
def the_abstract_alone() -> Made:
    return w.COHORT, sheet(
        f"{w.COHORT.title}|", ", ".join(w.COHORT.names), f"{w.COHORT.journal} 2015;351:412. doi:{w.COHORT.doi}",
        Block("Abstract", 12, True), *filler("i38", 2), "© 2015. All rights reserved.",
    )  # fmt: skip


@impostor
def an_abstract_in_another_language() -> Made:
    return w.SLEEP, sheet(
        "Deutsche Zusammenfassung|", f"{w.SLEEP.title}", ", ".join(w.SLEEP.names), f"doi:{w.SLEEP.doi}",
        "Hintergrund: Licht am Abend verzögert den Schlaf. Methode: 240 Schichtarbeitende wurden zufällig zugeteilt."
        " Ergebnis: Der Schlaf kam elf Minuten später. Schlussfolgerung: Helles Licht am Abend sollte vermieden"
            " werden.",
    )  # fmt: skip


@impostor
def a_stub_for_subscribers() -> Made:
    return w.CATALYST, sheet(
        f"{w.CATALYST.title}|", ", ".join(w.CATALYST.names), f"https://doi.org/{w.CATALYST.doi}",
        "The full text of this article is available to subscribers. To purchase access, visit the web site of"
            " the journal.",
    )  # fmt: skip


@impostor
def the_supplement() -> Made:
    return w.CATALYST, sheet(
        "Supporting Information|", f"{w.CATALYST.title}|", ", ".join(w.CATALYST.names), f"DOI: {w.CATALYST.doi}",
        "Contents: S1 Preparation of catalysts. S2 Further spectra. S3 Kinetic model.", *filler("i41", 8),
        Block("Figure S1. Spectra of the fresh catalyst."), *filler("i41b", 6), Block("References", 11, True),
        Block("1. " + citation(w.ALLOY), 8),
    )  # fmt: skip


@impostor
def an_appendix_without_the_word_supplement() -> Made:
    return w.TEACHERS, sheet(
        "Appendix A. Interview guide|", w.TEACHERS.title, "1. What did you notice in this scene?",
        "2. Which pupil would you look at next?", "3. What would you do?", *filler("i42", 3),
    )  # fmt: skip


@impostor
def the_figures_alone() -> Made:
    pages: list[Block | str] = []
    for number in range(1, 5):
        pages += [f"Figure {number}. Salt tolerance of stands, by site and year. Bars are standard errors.", "---"]
    return w.SALT, sheet(*pages, "Oldervik et al., Figure 5")


@impostor
def the_picture_for_the_contents_page() -> Made:
    return w.CATALYST, sheet(
        "Graphical abstract|", w.CATALYST.title, ", ".join(w.CATALYST.names),
        "Water decides which way carbon dioxide goes.", "Highlights: Water blocks sites. Zinc moves. Rates double.",
    )  # fmt: skip


@impostor
def the_cover_of_the_repository_alone() -> Made:
    return w.TEACHERS, sheet(
        "Estoria Research Online|", "The University of Estoria's repository of research publications",
        f"{', '.join(w.TEACHERS.names)} ({w.TEACHERS.year}) {w.TEACHERS.title}. {w.TEACHERS.journal}, 45 (1)."
            f" pp. 3-12.",
        f"https://doi.org/{w.TEACHERS.doi}", "Downloaded from http://ero.estoria.example/4412/",
        "Usage guidelines: please refer to the usage guidelines, or contact the library.",
    )  # fmt: skip


@impostor
def the_sheet_of_an_interlibrary_loan() -> Made:
    return w.POEM, sheet(
        "INTERLIBRARY LOAN — ARTICLE DELIVERY|", "ILL number: 204418832. Borrower: NRH. Lender: EST. Odyssey.",
        f"Journal title: {w.POEM.journal}. Volume: {w.POEM.volume}. Issue: {w.POEM.issue}. Year: {w.POEM.year}."
        f" Pages: {w.POEM.first_page}-{w.POEM.last_page}.",
        f"Article author: {w.POEM.names[0]}", f"Article title: {w.POEM.title}",
        "NOTICE: This material may be protected by copyright law.",
    )  # fmt: skip


# What stands around papers


@impostor
def the_table_of_contents() -> Made:
    lines = [f"{work.title} . . . . . {work.first_page}" for work in w.LATIN_WORKS[:12]]
    return w.LEDGERS, sheet("Economic History Notes|", "Volume 62, Number 4, November 2009", "Contents|", *lines)


@impostor
def the_cover_of_the_issue() -> Made:
    return w.BEES, sheet(
        Block("ZOOLOGICAL KEYS", 36, True, "center", 120), Block("1002 · 2021", 20, False, "center"),
        Block("In this issue: a new genus of cleptoparasitic bees from the Andean foothills", 12, False, "center", 300),
    )  # fmt: skip


@impostor
def the_front_matter_of_the_journal() -> Made:
    return w.ALLOY, sheet(
        "Materials and Structure|", "Editor-in-chief: Noor Al-Khatib", "Editorial board|",
        *[f"{name}, Norrhavn" for work in w.LATIN_WORKS for name in work.names],
        "Aims and scope: the journal publishes original work on materials.", "ISSN 0000-1204",
    )  # fmt: skip


@impostor
def an_index_of_authors() -> Made:
    lines = [f"{author.family}, {author.given}, {work.title}, {work.first_page}"
             for work in w.LATIN_WORKS for author in work.authors]  # fmt: skip
    return w.MICE, sheet("Author index to volume 9|", *sorted(lines))


@impostor
def a_book_of_abstracts() -> Made:
    entries: list[Block | str] = ["Book of abstracts|", "17th Meeting on Sleep and Light, Clairpont, 3–6 June 2018"]
    for number, work in enumerate((w.COHORT, w.SLEEP, w.PHASE, w.MICE), start=1):
        entries += [
            Block(f"O{number}. {work.title}", 12, True, before=12),
            ", ".join(work.names),
            *filler(work.title, 1),
        ]
    return w.SLEEP, sheet(*entries)


@impostor
def the_programme_of_a_conference() -> Made:
    lines = [f"{9 + at // 3}:{at % 3 * 20:02d}  {work.names[0]}: {work.title}" for at, work in enumerate(w.LATIN_WORKS)]
    return w.PARSING, sheet("Programme|", "Workshop on Dialogue Machines, Oststadt, Thursday 8 July 2021", *lines)


@impostor
def the_guidelines_for_authors() -> Made:
    return w.SALT, sheet(
        "Journal of Coastal Ecology — Guide for authors|", "Manuscripts are submitted online. The title should"
            " be short.",
        *filler("i53", 8), f"Example of a reference: {citation(w.SALT)}",
    )  # fmt: skip


@impostor
def an_editorial_that_introduces_the_issue() -> Made:
    other = _other(
        w.TEACHERS, title="Editorial: looking at classrooms", authors=w.EVIDENCE.authors[:1], doi="10.5812/edq.45.1.0",
        first_page=1, last_page=2,
    )  # fmt: skip
    text = Block(
        f"The issue opens with “{w.TEACHERS.title}” by Fennimore and others (https://doi.org/{w.TEACHERS.doi})."
    )
    return w.TEACHERS, article(other, "i54", abstract=False, references="", dates=False, after_title=(text,))


@impostor
def two_papers_in_one_file_the_wanted_one_second() -> Made:
    other = _other(w.EVIDENCE, title="Counting with the feet", doi="10.5807/psyl.000610", first_page=70, last_page=73)
    second = article(w.EVIDENCE, "i55b")
    first = article(other, "i55", body_pages=4)
    appended = (Block("", role="break"), *second.front, *filler("i55", 20), *second.back)
    return w.EVIDENCE, replace(first, back=(*first.back, *appended), pages=None, body=tuple(filler("i55c", 18)))


@impostor
def a_thesis_that_contains_the_paper() -> Made:
    cover: list[Block | str] = [
        Block("Light, sleep and work", 26, True, "center", 140), Block("Pia Lauterwald", 16, False, "center", 40),
        Block("Dissertation submitted for the degree of Doctor of Philosophy\nEstoria State"
            " University\n2020", 12, False, "center", 60),
        "---", "Contents|", "1 Introduction 1", f"2 {w.SLEEP.title} 31", "3 Light at home 58", "4 Discussion 90", "---",
        "Chapter 1. Introduction|", *filler("i56", 30), "---", f"Chapter 2. {w.SLEEP.title}|",
        f"This chapter was published as: {citation(w.SLEEP)}", *filler("i56b", 40), "---", "References|",
        *[Block(f"{number}. {citation(work)}", 8) for number, work in enumerate(w.LATIN_WORKS, start=1)],
    ]  # fmt: skip
    return w.SLEEP, sheet(*cover)


@impostor
def slides_of_a_talk() -> Made:
    slides: list[Block | str] = [
        Block(w.PARSING.title, 30, True, "center", 120), Block(", ".join(w.PARSING.names), 18, False, "center", 30),
        Block("Workshop on Dialogue Machines 2021", 14, False, "center", 20),
    ]  # fmt: skip
    for head in ("Why incremental?", "Bounded memory", "Results", "Thank you! Questions?"):
        slides += ["---", Block(head, 28, True), Block("• short\n• shorter\n• shortest", 20, before=30)]
    return w.PARSING, replace(sheet(*slides), size=LANDSCAPE)


@impostor
def a_poster() -> Made:
    document = sheet(
        Block(w.PHASE.title, 40, True), Block(", ".join(w.PHASE.names), 22), Block("Background", 22, True),
        *[Block(block.text, 14) for block in filler("i58", 5)], Block("Poster P-112, Oncology Days 2017", 14),
        Block("References", 18, True), Block("1. " + citation(w.COHORT), 12),
    )  # fmt: skip
    return w.PHASE, replace(document, size=(1684.0, 2384.0))


@impostor
def a_grant_report() -> Made:
    return w.CLIMATE, sheet(
        "Final report of project NRF-2018/4410|", "Principal investigator: Eskil Rasmussøn", *filler("i59", 12),
        "Publications of the project", *[f"{number}."
            f" {citation(work)}" for number, work in enumerate((w.CLIMATE, w.SALT), 1)],
        *filler("i59b", 4),
    )  # fmt: skip


@impostor
def the_list_of_publications_of_an_author() -> Made:
    return w.POEM, sheet(
        "Winifred Aldous-Kerr|", "Curriculum vitae. Professor of minor verse, Oststadt College. Born in Hollin.",
        "Publications", *[citation(replace(work, authors=w.POEM.authors)) for work in (w.POEM, w.LEDGERS, w.TEACHERS)],
    )  # fmt: skip


# What servers, libraries and offices print


@impostor
def the_terms_of_use() -> Made:
    return w.LEDGERS, sheet(
        "Terms and conditions of use|", "By using this site you accept these terms. Articles may be used for"
            " private study.",
        *filler("i61", 8), "Last updated 1 January 2020",
    )  # fmt: skip


@impostor
def the_notice_about_cookies() -> Made:
    return w.ALLOY, sheet(
        Block("Materials and Structure", 9), Block(w.ALLOY.title, 14, True),
        "We use cookies to improve your experience. By continuing you agree to our use of cookies. Accept all."
            " Manage settings.",
        "Please enable JavaScript and cookies to continue.",
    )  # fmt: skip


@impostor
def a_login_page() -> Made:
    return w.COHORT, sheet(
        "Sign in|", "You do not have access to this content. Sign in with your institution, or buy this article.",
        Block(w.COHORT.title, 12, True), f"https://doi.org/{w.COHORT.doi}", "Username", "Password", "Forgotten"
            " your password?",
    )  # fmt: skip


@impostor
def an_error_page() -> Made:
    return w.SURVEY, sheet("404|", "The page that you are looking for cannot be found. It may have been moved.", "Home")


@impostor
def a_landing_page_printed_into_a_file() -> Made:
    return w.BEES, sheet(
        Block("Home   Articles   About   Submit   Log in", 8), f"{w.BEES.title}|", ", ".join(w.BEES.names),
        f"Zoological Keys 1002: 87-97. https://doi.org/{w.BEES.doi}", Block("Abstract", 12, True), *filler("i65", 1),
        "Download PDF   Export citation   Share   Metrics: 1,204 views, 3 citations", "Similar articles",
        *[work.title for work in w.LATIN_WORKS[:5]],
    )  # fmt: skip


@impostor
def a_read_me() -> Made:
    return w.CLIMATE, sheet(
        "README|", f"This archive holds code and data of “{w.CLIMATE.title}” ({w.CLIMATE.doi}).",
        "1. Unpack. 2. Run make. 3. Compare the output with expected/.", "Authors: " + ", ".join(w.CLIMATE.names),
        "Licence: MIT", *filler("i66", 1),
    )  # fmt: skip


@impostor
def a_page_of_a_reference_manager() -> Made:
    return w.SPIN, sheet(
        "My library — 1 item selected|", f"Title: {w.SPIN.title}", f"Authors: {'; '.join(w.SPIN.names)}",
        f"Journal: {w.SPIN.journal}. Volume: 88. Issue: 2. Pages: 1-9. Year: 2013.", f"DOI: {w.SPIN.doi}",
        "Abstract", *filler("i67", 1), "Tags: magnets; to read. Date added: 12.4.2014",
    )  # fmt: skip


@impostor
def a_bibliography_to_read() -> Made:
    return w.TEACHERS, sheet(
        "EDU 510 Classroom observation — reading list|", "Week 1. Looking",
        *[f"{citation(work)} (required)" for work in w.LATIN_WORKS[:9]], f"Week 2. {citation(w.TEACHERS)}",
    )  # fmt: skip


@impostor
def an_invoice() -> Made:
    return w.SLEEP, sheet(
        "INVOICE 2019-55120|", f"Article processing charge for: {w.SLEEP.title}", f"DOI: {w.SLEEP.doi}",
        f"Corresponding author: {w.SLEEP.names[0]}", "Amount: EUR 2,450.00. VAT 19 %. Payable within 30 days.",
    )  # fmt: skip


@impostor
def a_licence_to_reuse() -> Made:
    return w.MICE, sheet(
        "Licence agreement|", "This agreement is between you and the publisher. Licence number 4891230011223.",
        f"Licensed content title: {w.MICE.title}", f"Licensed content authors: {', '.join(w.MICE.names)}",
        f"Licensed content DOI: {w.MICE.doi}", "Type of use: thesis. Portion: figure 2.", *filler("i70", 4),
    )  # fmt: skip


@impostor
def a_form_that_authors_sign() -> Made:
    return w.POEM, sheet(
        "Transfer of copyright|", f"Title of the contribution: {w.POEM.title}", f"Author: {w.POEM.names[0]}",
        "The undersigned hereby assigns to the publisher all rights in the contribution. Signature. Date.",
    )  # fmt: skip


@impostor
def a_letter_of_the_editor() -> Made:
    return w.BEES, sheet(
        "Zoological Keys, editorial office|", f"Dear Dr {w.BEES.authors[0].family},",
        f"I am pleased to tell you that your manuscript “{w.BEES.title}” has been accepted. Its DOI will be"
            f" {w.BEES.doi}.",
        "Yours sincerely, the editor",
    )  # fmt: skip


@impostor
def a_report_on_attention() -> Made:
    return w.COHORT, sheet(
        "Attention report|", Block(w.COHORT.title, 13, True), ", ".join(w.COHORT.names), f"DOI {w.COHORT.doi}",
        "Score 412. Mentioned by 33 news outlets, 2 policy documents, 410 posters. In the top 5 % of all outputs.",
    )  # fmt: skip


@impostor
def a_report_on_similarity() -> Made:
    return w.PARSING, sheet(
        "Originality report|", f"Document: {w.PARSING.title}", f"Submitted by {w.PARSING.names[0]}, 3,912 words",
        "Similarity index 11 %. Primary sources: 1. student papers 4 %. 2. internet 3 %.", *filler("i74", 2),
    )  # fmt: skip


@impostor
def a_blank_page() -> Made:
    return w.URBAN, sheet(Block(" "))


@impostor
def a_patent_of_the_same_authors() -> Made:
    return w.ALLOY, sheet(
        "United States Patent|", "Patent No. US 99,881,220 B2. Date of patent: 3 March 2015",
        Block("NICKEL–HAFNIUM ALLOYS AND METHOD OF MAKING SAME", 14, True), f"Inventors: {', '.join(w.ALLOY.names)}",
        *filler("i76", 12), "What is claimed is: 1. An alloy.", "References"
            " cited", *[citation(work) for work in (w.SALT, w.ALLOY)],
    )  # fmt: skip


@impostor
def an_encyclopedia_entry_of_the_same_name() -> Made:
    other = _other(
        w.PRIMES, title="Primes in thin sequences", journal="Encyclopedia of Small"
            " Numbers", doi="10.5870/esn.0412", year=2016,
        first_page=412, last_page=415,
    )  # fmt: skip
    return w.PRIMES, article(other, "i77", dates=False)


# Pages about a work that have its DOI, title and authors, and a list of references


def _headed(work: IndexedWork) -> tuple[str, ...]:
    return f"{work.title}|", ", ".join(work.names), f"https://doi.org/{work.doi}"


def _listed(key: str, count: int, head: str = "References") -> list[Block | str]:
    return [f"{head}|", *(Block(entry, 8) for entry in prose.references(stream("listed", key), count))]


@impostor
def a_landing_page_with_the_references_printed_into_a_file() -> Made:
    return w.ALLOY, sheet(
        Block("Materials and Structure   Research article   Get access", 8), *_headed(w.ALLOY), "Abstract|",
        *filler("i80", 2), "1. Introduction|", *filler("i81", 1), "Access through your institution",
        *_listed("i82", 30), *_listed("i83", 8, "Cited by (12)"),
    )  # fmt: skip


@impostor
def a_record_of_an_index_with_the_cited_references() -> Made:
    return w.MICE, sheet(
        Block("Full record   Add to marked list   Export", 8), *_headed(w.MICE), "Abstract|", *filler("i84", 1),
        *_listed("i85", 45, "Cited references"),
    )  # fmt: skip


@impostor
def an_extended_abstract_with_references() -> Made:
    return w.PARSING, sheet(*_headed(w.PARSING), *filler("i86", 4), *_listed("i87", 6))


@impostor
def the_notes_of_a_reader_with_references() -> Made:
    return w.TEACHERS, sheet(Block("Reading notes", 9), *_headed(w.TEACHERS), *filler("i88", 6), *_listed("i89", 10))


@impostor
def an_appendix_under_title_and_doi_with_references() -> Made:
    return w.PRIMES, sheet(
        *_headed(w.PRIMES), "Appendix A: Derivations|", *filler("i90", 14), *_listed("i91", 9)
    )  # fmt: skip


@impostor
def a_summary_in_another_language_with_references() -> Made:
    return w.CLIMATE, sheet(
        *_headed(w.CLIMATE), "Resumen extendido|", *filler("i92", 6, "es"), *_listed("i93", 15, "Referencias")
    )  # fmt: skip


# In the place of short works, and behind what papers have


_NOTE = replace(
    w.SALT, doi="10.5801/jce.2019.09.311", title="A last count of the Harwick reeds", first_page=311, last_page=311,
    year=2019,
)  # fmt: skip


@impostor
def a_landing_page_of_a_note_of_one_page() -> Made:
    return _NOTE, sheet(
        Block("Skip to main content   Sign in   Get access   Cited by 3", 8), *_headed(_NOTE),
        f"{_NOTE.journal} {_NOTE.volume} (2019) 311", *filler("i94", 1),
        "We use cookies. Download PDF. Export citation. Recommended articles.",
        marks=[Mark("311", 290, 34, 9)],
    )  # fmt: skip


@impostor
def the_first_page_of_a_letter_of_two() -> Made:
    work = replace(_NOTE, last_page=312)
    return work, sheet(*_headed(work), *filler("i95", 5), marks=[Mark("311", 290, 34, 9)])


@impostor
def a_correction_of_a_note_of_one_page() -> Made:
    return _NOTE, sheet(
        f"Correction to: {_NOTE.title}|", ", ".join(_NOTE.names), f"{_NOTE.journal} 42 (2020) 311",
        "On the page named above, for “nine” read “ninety”. The online version has been corrected.",
        f"https://doi.org/{_NOTE.doi}", marks=[Mark("311", 290, 34, 9)],
    )  # fmt: skip


@impostor
def a_news_piece_on_whose_last_page_the_note_stands() -> Made:
    return _NOTE, sheet(
        "Floods of the year|", "H. Marsh", *filler("i96", 14), "---", *filler("i97", 2), *_headed(_NOTE),
        *filler("i98", 1),
    )  # fmt: skip


@impostor
def a_commentary_with_the_doi_alone_below_a_label() -> Made:
    other = _other(
        w.MICE, title="Ageing brains and how they clean themselves", authors=w.BEES.authors, doi=None, first_page=1290
    )
    box = (
        Block("Original article", 8, across=True),
        Block(f"https://doi.org/{w.MICE.doi}", 8, before=1, across=True),
        Block(", ".join(w.MICE.names), 8, across=True),
    )
    return w.MICE, article(other, "i99", after_title=box, doi_at="none", journal_line="Neural Ageing Views")


@impostor
def another_paper_behind_the_cover_of_this_one() -> Made:
    cover = (
        Block("Norrhavn Research Online", 12), Block(w.ALLOY.title, 16, True), Block(", ".join(w.ALLOY.names)),
        Block(f"Citation for published version: {citation(w.ALLOY)}"), Block("Accepted version. Terms of use apply."),
        page_break(),
    )  # fmt: skip
    other = _other(w.CATALYST, doi=None)
    return w.ALLOY, article(other, "i100", leading_pages=cover, leading=1, doi_at="none", journal_line="")


@impostor
def a_review_with_other_words_in_its_title_and_the_doi_in_its_first_lines() -> Made:
    other = _other(
        w.CLIMATE, title="What seasonal forecasts owe to the ice of the north", authors=w.CLIMATE.authors[:3]
    )
    start = Block(f"The starting point is {citation(w.CLIMATE)} and what came of it.", 9, across=True)
    return w.CLIMATE, article(other, "i101", doi="", doi_at="none", after_title=(start,), journal_line="")


@impostor
def an_editorial_about_the_paper_signed_by_one_of_its_authors() -> Made:
    return w.PHASE, sheet(
        "Oncology Records 77 (2018) 1190", "EDITORIAL", "Hope in the mediastinum|", w.PHASE.names[0],
        *filler("i102", 3),
        f"In this issue: {w.PHASE.title}. https://doi.org/{w.PHASE.doi}", marks=[Mark("1190", 290, 34, 9)],
    )  # fmt: skip


@impostor
def the_abstract_of_a_paper_with_an_article_number() -> Made:
    work = replace(
        _NOTE, title="Response of reeds to saline floods in the Harwick delta", first_page=109, last_page=109
    )
    return work, sheet(
        f"{work.journal} 2019, 42:109", *_headed(work), "Abstract|", *filler("i103", 2), "Keywords: reeds, salt, floods"
    )  # fmt: skip


@impostor
def the_abstract_of_a_paper_whose_title_begins_as_a_letter_does() -> Made:
    work = replace(_NOTE, title="Letter writing and reed cutting in the Harwick papers", first_page=88, last_page=97)
    return work, sheet(*_headed(work), "Abstract|", *filler("i104", 2))


@impostor
def a_thesis_known_by_one_word_on_its_first_page() -> Made:
    front = (
        Block("University of Norrhavn", 14, align="center"), Block("Dissertation", 12, align="center"),
        Block(w.LEDGERS.title, 18, True, "center"), Block(w.LEDGERS.names[0], align="center"),
        Block(str(w.LEDGERS.year), align="center"), Block("Faculty of Humanities", align="center"),
        Block("Supervised by Prof. H. Rautio and Dr J. Bredahl. Opponent: Prof. S. Lind of Ostmark.", align="center"),
        Block("The work was done at the Department of History and at the archive of the port.", align="center"),
        page_break(),
    )  # fmt: skip
    other = _other(w.LEDGERS, title="1. The port before the ledgers", authors=(), first_page=3, last_page=40, doi=None)
    return w.LEDGERS, article(
        other, "i105", leading_pages=front, leading=1, journal_line="", abstract=False, dates=False
    )
