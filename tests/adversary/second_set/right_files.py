"""The second set's odd files that are the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.adversary.samples import (
    ANY,
    Made,
    SampleSet,
    known,
    lines,
    listed,
    paper,
    people,
    published,
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
    NEUTRON,
    OWLS,
    READING,
    STENTS,
    TRUST,
    VALVE,
    VOICE,
    WAGES,
    WHEAT,
)

from DocsToKG.Sandbox.pdf.document import Block, Document, Mark, page_break
from DocsToKG.Sandbox.seeded_random import stream

SET = SampleSet()
right = SET.right


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
