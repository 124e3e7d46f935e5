"""The second set's files that are not the paper."""

from __future__ import annotations

from dataclasses import replace

from tests.adversary.samples import (
    Made,
    SampleSet,
    known,
    lines,
    listed,
    paper,
    published,
    reference_blocks,
    sections,
    sheets,
    text,
)
from tests.adversary.second_set.works import (
    AQUIFER,
    GRAPHS,
    HANDWASH,
    HARBOUR,
    INSULIN,
    MARSH,
    MICROBES,
    OWLS,
    PEROVSKITE,
    STENTS,
    TRUST,
    VALVE,
    VOICE,
    WAGES,
    WHEAT,
)

from DocsToKG.Sandbox.pdf.document import LANDSCAPE, Block, Document, Mark, page_break

SET = SampleSet()
impostor = SET.impostor


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
