"""Odd files that are the paper that was asked for. See the README beside this file."""

from __future__ import annotations

from tests.adversary.samples import ANY, Made, SampleSet, lines, listed
from tests.adversary.third_set.writing import (
    BIO,
    CLINIC,
    COMPUTING,
    FRENCH,
    GERMAN,
    GUIDANCE,
    HUMANITIES,
    JAPANESE,
    MATERIAL,
    MATHS,
    OLDER,
    PHYSICS,
    PORTUGUESE,
    PROTOCOL,
    RUSSIAN,
    SOCIAL,
    SPANISH,
    article,
    essay,
    of_journal,
    paragraphs,
    subject_of,
    summary,
    wanted,
)

from DocsToKG.Sandbox.pdf.document import Block, Document, Mark

SET = SampleSet()
right = SET.right


# Versions before and beside that of the journal


@right
def a_preprint_with_its_stamp_and_an_older_title() -> Made:
    work = wanted(
        "10.6262/jlt.2022.19",
        "Sharp thresholds for bootstrap percolation on random trees",
        "Ewa Brzoza, Tariq Aziz|Khan",
        2022,
        "Journal of Lattice Theory",
        "19(2)",
        "233-258",
        arxiv="2103.04162",
        tongue=MATHS,
        topics="bootstrap percolation; the random tree; the threshold; the critical density",
        abstract="We study bootstrap percolation with threshold r on Galton-Watson trees and show that infection "
        "of the whole "
        "tree has a sharp threshold if and only if the offspring law has a finite moment of order r. The critical "
        "density is "
        "given by a fixed point equation, which we solve for binary trees.",
    )
    document = article(
        "preprint",
        "Bootstrap percolation on Galton-Watson trees has a sharp threshold",
        ("Ewa Brzoza", "Tariq Aziz Khan"),
        21,
        subject=subject_of(work),
        marks=(Mark("arXiv:2103.04162v2  [math.PR]  19 Nov 2021", 26, 240, 18, 90, pages="first"),),
        places=("Institute of Mathematics, University of Nadwarta", "School of Sciences, Lahore Gate College"),
        after=lines("November 19, 2021", size=10),
        info="",
    )
    return Made(work, document)


@right
def an_accepted_manuscript_with_the_cover_of_the_publisher() -> Made:
    work = wanted(
        "10.6263/j.soilwat.2018.07.011",
        "Infiltration into crusted loess under simulated rain",
        "Zheng Haoran, Uri Ben-Ami, Lotte Frings",
        2018,
        "Soil and Water Letters",
        "184(1)",
        "96-107",
        tongue=MATERIAL,
        topics="infiltration; the surface crust; simulated rain; loess with little clay",
        abstract="Crusts that form under rain reduce infiltration into loess. With a rain simulator on 36 plots, "
        "we show that "
        "a crust of two millimetres halves the final rate, and that the rate recovers when the crust dries and cracks.",
    )
    cover = lines(
        "Accepted Manuscript|",
        work.title,
        "Zheng Haoran, Uri Ben-Ami, Lotte Frings",
        "PII: S0341-6299(18)30211-4",
        f"DOI: https://doi.org/{work.doi}",
        "Reference: SOILWAT 3411",
        "To appear in: Soil and Water Letters",
        "Received Date: 4 January 2018    Revised Date: 22 June 2018    Accepted Date: 9 July 2018",
        f"Please cite this article as: Zheng H., Ben-Ami U., Frings L., {work.title}, Soil and Water Letters "
        f"(2018), doi: {work.doi}",
        "This is a PDF file of an unedited manuscript that has been accepted for publication. As a service to our "
        "readers we are "
        "providing this early version of the manuscript. It will undergo copyediting, typesetting, and review of "
        "the proof.",
        "---",
    )
    document = article(
        "accepted",
        work.title,
        work.names,
        19,
        subject=subject_of(work),
        lead=cover,
        leads=1,
        numbered=True,
        marks=(Mark("ACCEPTED MANUSCRIPT", 240, 820, 9),),
        doi=work.doi,
        info=work.title,
    )
    return Made(work, document)


@right
def an_article_in_press_without_volume_or_pages() -> Made:
    work = wanted(
        "10.6263/j.jfoodp.2019.02.004",
        "Acrylamide in flat breads baked in clay ovens",
        "Dilnoza Yusupova, Marco Ferri",
        2019,
        "Journal of Food Processes",
        "77(3)",
        "140-147",
        tongue=MATERIAL,
        topics="acrylamide; the clay oven; asparagine in the flour; the colour of the crust",
        abstract="Flat breads from twelve villages were baked in clay ovens at 280 to 420 degrees. Acrylamide "
        "rose with the "
        "temperature of the wall and with asparagine in the flour, but a long rise of the dough reduced it by half.",
    )
    document = of_journal(
        work,
        "in press",
        head=("ARTICLE IN PRESS", "Journal of Food Processes xxx (xxxx) xxx–xxx", "JFOODP 2211, 9 pp. Model 5G"),
        pages=9,
        first=1,
        columns=2,
        doi=work.doi,
        ending=lines(
            f"Please cite this article in press as: Yusupova, D., Ferri, M., {work.title}. J. Food Process. (2019), "
            f"https://doi.org/{work.doi}",
            size=8,
        ),
    )
    return Made(work, document)


@right
def a_manuscript_behind_the_cover_of_a_repository() -> Made:
    work = wanted(
        "10.6264/14680.2015.118",
        "Whose street? Night buses and the right to the suburb",
        "Imogen Sallow, Femi Adeyinka",
        2015,
        "Mobility and Society",
        "10(4)",
        "618-637",
        tongue=SOCIAL,
        topics="night buses; the right to the suburb; shift work; waiting at the stop",
        abstract="Night buses carry those who clean, guard and nurse the city. Riding with them for a winter, we "
        "ask who has "
        "a right to the suburb after midnight, and how timetables draw a line that no map shows.",
    )
    lead = lines(
        "This is a repository copy of " + work.title + ".|",
        "Orchard Research Online URL for this paper:",
        "https://eprints.orchard.example/id/eprint/94162/",
        "Version: Accepted Version",
        "Article:|",
        "Sallow, I. and Adeyinka, F. (2015) Whose street? Night buses and the right to the suburb. Mobility and "
        "Society, 10 (4). "
        "pp. 618-637. ISSN 1745-6299",
        f"https://doi.org/{work.doi}",
        "Reuse|",
        "Items deposited in Orchard Research Online are protected by copyright, with all rights reserved unless "
        "indicated "
        "otherwise. They may be downloaded and printed for private study.",
        "Takedown|",
        "If you consider content to be in breach of UK law, please notify us by e-mail including the URL of the "
        "record.",
        "---",
    )
    document = article(
        "orchard",
        work.title,
        work.names,
        24,
        subject=subject_of(work),
        lead=lead,
        leads=1,
        section_numbers=False,
        info="Microsoft Word - nightbus_rev3_clean.docx",
        refs=30,
    )
    return Made(work, document)


@right
def an_author_manuscript_of_a_funder() -> Made:
    work = wanted(
        "10.6265/neurodev.2013.2204",
        "Sleep spindles predict word learning in late preterm infants",
        "Kerry-Ann O’Dowd, Manuel Restrepo, Xiuying Tan",
        2013,
        "Neurodevelopment",
        "17(5)",
        "655-664",
        tongue=CLINIC,
        topics="sleep spindles; word learning; gestational age; density in the left hemisphere",
        abstract="Sleep spindles are thought to support memory. In 64 infants born at 34 to 36 weeks, spindle "
        "density at term "
        "age predicted the number of words understood at fourteen months, also after control for maternal education.",
    )
    document = article(
        "author manuscript",
        "Sleep Spindles Predict Word Learning in Late Preterm Infants",
        work.names,
        15,
        subject=subject_of(work),
        head=(
            "Neurodevelopment. Author manuscript; available in PMC 2014 May 01.",
            "Published in final edited form as: Neurodevelopment. 2013 May; 17(5): 655–664. "
            "doi:10.6265/neurodev.2013.2204.",
        ),
        marks=(Mark("NHH Public Access Author Manuscript", 24, 300, 12, 90),),
        running="O’Dowd et al.                                                            Page {page}",
        folio="",
    )
    return Made(work, document)


@right
def a_line_numbered_submission_with_figures_at_the_end() -> Made:
    work = wanted(
        "10.6266/ornith.2020.41",
        "Do ravens count? Caching under the eyes of several rivals",
        "Silje Aune, Bogdan Petrescu",
        2020,
        "The Ornithologist",
        "137(2)",
        "1-14",
        tongue=BIO,
        topics="caching; the number of rivals; pilfering; young ravens in their first winter",
        abstract="Ravens hide food less readily when they are watched. We gave nine hand-raised ravens one, two "
        "or four "
        "rivals behind a screen with holes, and found that caching falls with the number of rivals and not with "
        "their noise.",
    )
    plates = lines(
        "Figure 1. The aviary from above. A, ravens that cache; B, rivals; dashed line, screen with holes.",
        "---",
        "Figure 2. Caches per hour against the number of rivals. Each line is a bird.",
        "---",
        "Figure 3. Recovery of caches after one day, by distance from the screen.",
    )
    document = article(
        "ravens",
        work.title,
        work.names,
        22,
        subject=subject_of(work),
        numbered=True,
        tail=plates,
        folio="Page {page}",
        top=lines("LRH: Aune and Petrescu", "RRH: Caching under several rivals", "Research Article", size=9),
        after=lines("Corresponding author: silje.aune@example.org", "Word count: 6,204", size=9),
        section_numbers=False,
        info="",
    )
    return Made(work, document)


@right
def a_preprint_server_with_a_banner_on_every_page() -> Made:
    work = wanted(
        "10.6267/ecell.2023.0911",
        "A toxin of soil bacteria that opens the nuclear envelope of amoebae",
        "Adaeze Nwankwo, Frédéric Lhomme, Kimberly Voss, Daisuke Arai",
        2023,
        "eCell",
        "12(1)",
        "911",
        tongue=BIO,
        topics="the toxin; the nuclear envelope; amoebae in culture; the secretion system",
        abstract="Bacteria that live in amoebae need to keep their host from dividing. We describe a toxin of a soil "
        "bacterium which enters the host cell and opens its nuclear envelope for about an hour. Loss of the toxin "
        "halves the "
        "number of bacteria after three days.",
    )
    banner = (
        Mark(
            "bioPrint preprint doi: https://doi.org/10.6268/2022.11.04.515162; this version posted November 6, 2022.",
            80,
            826,
            7,
        ),
        Mark(
            "The copyright holder for this preprint (which was not certified by peer review) is the author/funder.",
            80,
            817,
            7,
        ),
    )
    document = article(
        "bioprint",
        work.title,
        ("Adaeze Nwankwo^1^", "Frédéric Lhomme^1,2^", "Kimberly Voss^3^", "Daisuke Arai^1*^"),
        16,
        subject=subject_of(work),
        marks=banner,
        refs=34,
        section_numbers=False,
    )
    return Made(work, document)


@right
def a_working_paper_of_a_bureau() -> Made:
    work = wanted(
        "10.6269/w24416",
        "Do Parents Trade Places? School Choice and Moving House",
        "Alisha Grover, Stefan Kolb",
        2018,
        "Bureau of Applied Economics Working Papers",
        "24416",
        "1-21",
        tongue=SOCIAL,
        topics="school choice; moving house; the catchment area; house prices near good schools",
        abstract="When a city let parents choose any school, did they stop buying houses near good ones? Using "
        "410,000 sales "
        "we find that the premium fell by a third within two years, and that families with infants moved less.",
    )
    lead = lines(
        "BAE WORKING PAPER SERIES|",
        "DO PARENTS TRADE PLACES? SCHOOL CHOICE AND MOVING HOUSE|",
        "Alisha Grover",
        "Stefan Kolb",
        "Working Paper 24416",
        "http://www.bae.example/papers/w24416",
        "BUREAU OF APPLIED ECONOMICS",
        "April 2018",
        "We thank seminar audiences in Estoria and Lund. The views expressed herein are those of the authors and "
        "do not "
        "necessarily reflect the views of the Bureau.",
        "© 2018 by Alisha Grover and Stefan Kolb. All rights reserved. Short sections of text, not to exceed two "
        "paragraphs, may "
        "be quoted without explicit permission.",
        "---",
    )
    document = article(
        "bureau",
        "Do Parents Trade Places? School Choice and Moving House",
        work.names,
        20,
        subject=subject_of(work),
        lead=lead,
        leads=1,
        after=lines("BAE Working Paper No. 24416", "JEL No. I21, R21, R31", size=9),
        refs=26,
    )
    return Made(work, document)


@right
def a_copy_from_a_network_of_researchers() -> Made:
    work = wanted(
        "10.6270/ijr.2012.61",
        "Bearing wear in small wind turbines with plastic cages",
        "O. Haukeland, M. Iqbal",
        2012,
        "International Journal of Rotors",
        "28(6)",
        "611-619",
        tongue=MATERIAL,
        topics="bearing wear; the plastic cage; vibration of the shaft; grease after two winters",
        abstract="Small turbines fail at the bearing. We ran 24 bearings with cages of three plastics for two "
        "winters and "
        "measured vibration and wear. Glass-filled nylon lasted longest; all failures began at the cage.",
    )
    lead = lines(
        "See discussions, stats, and author profiles for this publication at: https://www.scholarnet.example/publication/2416629",
        size=8,
    ) + lines(
        work.title + "|",
        f"Article in International Journal of Rotors · December 2012      DOI: {work.doi}",
        "CITATIONS 14          READS 1,204",
        "2 authors, including:",
        "Mudassar Iqbal, Coastal University, 31 publications, 402 citations",
        "Some of the authors of this publication are also working on these related projects: Plastic gears for "
        "tidal mills",
        "All content following this page was uploaded by Mudassar Iqbal on 11 March 2015.",
        "The user has requested enhancement of the downloaded file.",
        "---",
    )
    document = of_journal(work, "network", lead=lead, leads=1, columns=2, pages=9)
    return Made(work, document)


@right
def a_scan_from_an_archive_of_journals() -> Made:
    work = wanted(
        "10.6271/2709416",
        "The Bell-Founders of Harlow and Their Marks",
        "Cyril W. Addington",
        1956,
        "Transactions of the Society of Campanology",
        "14(3)",
        "201-212",
        tongue=HUMANITIES,
        topics="the founders’ marks; the tenor bell; the casting pit; the churchwardens’ accounts",
        abstract="",
    )
    lead = lines(
        work.title + "|",
        "Author(s): Cyril W. Addington",
        "Source: Transactions of the Society of Campanology, Vol. 14, No. 3 (Jul., 1956), pp. 201-212",
        "Published by: Society of Campanology",
        "Stable URL: https://www.jarchive.example/stable/2709416",
        "Accessed: 04-11-2016 16:29 UTC",
        "JARCHIVE is a not-for-profit service that helps scholars, researchers, and students "
        "discover, use, and build upon a wide range of content. Your use of the archive indicates your acceptance "
        "of the terms.",
        "---",
    )
    document = article(
        "bells",
        "THE BELL-FOUNDERS OF HARLOW AND THEIR MARKS",
        ("By CYRIL W. ADDINGTON",),
        12,
        subject=subject_of(work),
        lead=lead,
        leads=1,
        first=201,
        heads=("", "", ""),
        section_numbers=False,
        refs=0,
        info="",
        running="TRANSACTIONS OF THE SOCIETY",
        marks=(Mark("This content downloaded from 10.41.62.99 on Fri, 04 Nov 2016 16:29:41 UTC", 130, 18, 7),),
    )
    return Made(work, document)


@right
def a_download_stamped_on_every_page_by_a_library() -> Made:
    work = wanted(
        "10.6272/bjgp.2010.5529",
        "Cough that will not go: a cohort of 900 adults in general practice",
        "Ruth Padgett, Anil Deshmukh",
        2010,
        "Practice and Primary Care",
        "60(4)",
        "155-163",
        tongue=CLINIC,
        topics="chronic cough; antibiotics; the second visit; referral for a radiograph",
        abstract="Most coughs end within three weeks. Of 912 adults who saw their doctor for a cough, one in five "
        "still coughed "
        "after eight weeks. Smoking and wheeze predicted it; the colour of sputum did not.",
    )
    document = of_journal(
        work,
        "stamped",
        columns=2,
        head=("Research", "Padgett R, Deshmukh A. Pract Prim Care 2010; 60: e155–e163"),
        folio="e{page}",
        marks=(
            Mark(
                "Downloaded from http://ppc.journals.example/ by guest on July 14, 2016. Published by the College.",
                582,
                200,
                7,
                90,
            ),
        ),
    )
    return Made(work, document)


# Titles and names that differ


@right
def the_index_has_the_title_in_translation() -> Made:
    work = wanted(
        "10.6273/fdg.2001.88",
        "[Drinking water from karst springs in the Swabian uplands: turbidity after thunderstorms]",
        "R. Hägele, U. Trautwein",
        2001,
        "Fachblatt der Grundwasserkunde",
        "6(2)",
        "88-97",
        tongue=GERMAN,
        topics="die Trübung des Quellwassers; der Abfluss nach Gewittern; die Keimzahl; das Einzugsgebiet der Quelle",
        abstract="An vier Karstquellen der Alb wurde die Trübung nach 31 Gewittern aufgezeichnet. Sie erreicht "
        "ihr Maximum sechs bis "
        "vierzehn Stunden nach dem Regen und geht der Keimzahl um etwa zwei Stunden voraus.",
    )
    document = of_journal(
        work,
        "karst",
        title="Trinkwasser aus Karstquellen der Schwäbischen Alb: Trübung nach Gewittern",
        names=("R. Hägele", "U. Trautwein"),
        head=("Fachblatt der Grundwasserkunde 6 (2001), Heft 2, S. 88–97",),
        columns=2,
        after=summary(
            "Abstract",
            "Drinking water from karst springs in the Swabian uplands: turbidity after thunderstorms. Turbidity "
            "was recorded at four springs after 31 storms. It peaks six to fourteen hours after the rain and "
            "precedes the "
            "count of germs by two hours.",
        ),
    )
    return Made(work, document)


@right
def a_russian_paper_that_the_index_has_in_english() -> Made:
    work = wanted(
        None,
        "Adsorption of phenol on carbonized cornelian cherry stones",
        "S. M. Chernyshov, A. K. Dzhalilova",
        2005,
        "Zhurnal sorbtsionnoi khimii",
        "8(4)",
        "301-307",
        tongue=RUSSIAN,
        topics="адсорбция фенола; удельная поверхность угля; температура карбонизации; кислотность раствора",
        abstract="Исследована адсорбция фенола из водных растворов на углях, полученных карбонизацией косточек "
        "абрикоса. "
        "Наибольшую ёмкость имеет уголь, полученный при 750 °C.",
    )
    document = article(
        "phenol",
        "АДСОРБЦИЯ ФЕНОЛА НА КАРБОНИЗОВАННЫХ КОСТОЧКАХ КИЗИЛА",
        ("С. М. Чернышов", "А. К. Джалилова"),
        7,
        subject=subject_of(work),
        first=301,
        top=lines("УДК 541.183", size=8),
        head=(
            "ЖУРНАЛ СОРБЦИОННОЙ ХИМИИ, 2005, том 8, № 4, с. 301–307",
            "Zhurnal sorbtsionnoi khimii, 2005, Vol. 8, No. 4, pp. 301–307",
        ),
        ending=(
            *lines(
                "Adsorption of phenol on carbonized cornelian cherry stones|",
                "S. M. Chernyshov and A. K. Dzhalilova",
                size=10,
            ),
            Block(
                "Adsorption of phenol from water on carbons made of cornelian cherry stones was studied. Carbon "
                "made at "
                "750 °C takes up most.",
                9,
            ),
        ),
    )
    return Made(work, document, ANY)


@right
def a_japanese_paper_with_an_english_title_page() -> Made:
    work = wanted(
        "10.6274/suisan.79.62",
        "Seasonal Hypoxia and the Catch of Short-necked Clam in Mutsukari Bay",
        "Kenji HAYASHIDA, Yumi OGATA",
        2013,
        "Fisheries Science of the Inland Sea",
        "79(1)",
        "62-70",
        tongue=JAPANESE,
        topics="アサリ; 貧酸素水塊",
        abstract="陸狩湾において夏季の貧酸素水塊とアサリ漁獲量との関係を調べた。漁獲量は貧酸素の継続日数とともに減少した。",
    )
    document = article(
        "clams",
        "陸狩湾における季節的貧酸素化とアサリ漁獲量",
        ("林田 健二", "緒方 由美"),
        9,
        subject=subject_of(work),
        first=62,
        head=("内海水産学会誌 79(1), 62–70 (2013)", "Fisheries Science of the Inland Sea 79(1), 62–70 (2013)"),
        after=(
            *lines(
                work.title + "|", "Kenji HAYASHIDA and Yumi OGATA", "Mutsukari Prefectural Fisheries Institute", size=10
            ),
            Block(
                "The relation of summer hypoxia to the catch of the short-necked clam was studied in Mutsukari "
                "Bay. The catch "
                "falls with the number of days for which hypoxia lasts.",
                9,
            ),
        ),
    )
    return Made(work, document, ANY)


@right
def a_translation_of_a_journal_from_cover_to_cover() -> Made:
    work = wanted(
        "10.6275/s10740-0416-3",
        "Heat transfer in a rotating annulus with a ribbed inner wall",
        "V. G. Zaitsev, E. N. Lapshina",
        1999,
        "High Temperature Physics",
        "37(3)",
        "416-422",
        tongue=MATERIAL,
        topics="heat transfer; the ribbed wall; the rotating annulus; the Taylor number",
        abstract="Heat transfer was measured in an annulus whose inner wall rotates and bears ribs. Ribs raise "
        "the Nusselt number "
        "by up to 70 per cent at moderate Taylor numbers and have no effect above.",
    )
    document = of_journal(
        work,
        "cover to cover",
        names=("V. G. Zaitsev", "E. N. Lapshina"),
        pages=7,
        columns=2,
        refs=9,
        head=(
            "High Temperature Physics, Vol. 37, No. 3, 1999, pp. 416–422. Translated from Teplovaya Fizika, Vol. "
            "37, No. 3, 1999, "
            "pp. 440–446.",
            "Original Russian Text Copyright © 1999 by Zaitsev, Lapshina.",
        ),
        places=("Institute of Heat, Academy of Sciences, Novoozersk, 630416 Russia",),
        after=lines("Received June 29, 1998", size=8),
    )
    return Made(work, document)


@right
def a_canadian_paper_with_two_abstracts() -> Made:
    work = wanted(
        "10.6276/cjfp-2007-041",
        "Budburst of sugar maple along a gradient of road salt",
        "Hélène Thibodeau-Roy, Grant McAllister",
        2007,
        "Northern Journal of Forest Practice",
        "37(9)",
        "1641-1650",
        tongue=BIO,
        topics="budburst; road salt; sugar maple; sodium in the sap",
        abstract="Road salt reaches trees by spray and by soil. Budburst of 120 sugar maples was followed for "
        "three springs along "
        "roads with and without salt. It was late by four days within ten metres of salted roads.",
    )
    resume = (
        "Le sel de voirie atteint les arbres par les embruns et par le sol. Le débourrement de 120 érables à "
        "sucre a été suivi pendant "
        "trois printemps. Il est retardé de quatre jours à moins de dix mètres des routes salées. [Traduit par la "
        "Rédaction]"
    )
    document = of_journal(
        work,
        "two abstracts",
        columns=2,
        title_size=18,
        head=("1641",),
        after=summary("Résumé", resume),
        running="North. J. For. Pract. Vol. 37, 2007",
    )
    return Made(work, document)


@right
def a_swiss_paper_in_french_with_titles_in_three_tongues() -> Made:
    work = wanted(
        "10.6277/rsa.2011.3.205",
        "La fête et le vote : sociabilité des fanfares de village en Valais",
        "Maëlle Favre-Crettaz",
        2011,
        "Revue suisse d’anthropologie locale",
        "19(3)",
        "205-222",
        tongue=FRENCH,
        topics="la sociabilité villageoise; la fanfare; le vote communal; la fête patronale",
        abstract="Chaque village du Valais a deux fanfares, et chacune son parti. À partir de douze mois "
        "d’enquête, l’article montre "
        "comment la fête règle le conflit que le vote met au jour.",
    )
    document = of_journal(
        work,
        "three tongues",
        title="La fête et le vote: sociabilité des fanfares de village en Valais",
        after=(
            *lines(
                "Fest und Stimme: Geselligkeit der Dorfkapellen im Wallis",
                "Feast and ballot: village bands and their sociability in the canton of Valais",
                size=10,
            ),
            *summary(
                "Zusammenfassung",
                "Jedes Walliser Dorf hat zwei Kapellen, und jede ihre Partei. Der Beitrag zeigt, wie das Fest den "
                "Streit regelt, den die Abstimmung offenlegt.",
            ),
        ),
    )
    return Made(work, document)


@right
def letters_without_their_accents_in_the_index() -> Made:
    work = wanted(
        "10.6278/rmpe.2004.27",
        "Parasitosis intestinales en escolares de la selva: prevalencia y factores",
        "Begona Nunez|Ibanez, Jesus Farina",
        2004,
        "Revista de Medicina de los Pueblos",
        "11(1)",
        "27-33",
        tongue=SPANISH,
        topics="las parasitosis intestinales; el agua de consumo; los escolares; el tratamiento antiparasitario",
        abstract="Se estudiaron 214 escolares de seis comunidades. El 71 % tenía al menos un parásito. El agua "
        "sin tratar y el piso "
        "de tierra se asociaron con la infección.",
    )
    document = of_journal(
        work,
        "accents",
        names=("Begoña Núñez-Ibáñez", "Jesús Fariña"),
        columns=2,
        pages=7,
        title="Parasitosis intestinales en escolares de la selva: prevalencia y factores asociados",
    )
    return Made(work, document)


@right
def the_index_gives_the_family_name_first() -> Made:
    work = wanted(
        "10.6279/cjap.2016.52",
        "Friction of graphene oxide in brackish water",
        "Wenjing Li, Zhao Peng, Nguyen Thi|Hoa",
        2016,
        "Chinese Journal of Applied Lubrication",
        "4(2)",
        "52-60",
        tongue=MATERIAL,
        topics="friction; graphene oxide flakes; the salinity of the water; the wear track",
        abstract="Graphene oxide lowers friction in water, but the sea is not water alone. We show that flakes "
        "clump above a "
        "salinity of twelve per mille and that friction then returns to that of bare steel.",
    )
    document = of_journal(work, "name order", names=("LI Wen-jing", "PENG Zhao", "NGUYỄN Thị Hòa"), columns=2)
    return Made(work, document, ANY)


@right
def the_index_has_an_old_name_of_the_author_and_a_slip_in_the_title() -> Made:
    work = wanted(
        "10.6280/psq.2009.14",
        "Attachement styles and homesickness in boarding school pupils",
        "Jennifer Rowe, Per Engman",
        2009,
        "Pupil and School Quarterly",
        "25(1)",
        "14-29",
        tongue=SOCIAL,
        topics="attachment styles; homesickness; the boarding school; letters to parents",
        abstract="Some pupils never settle. In 340 pupils of four boarding schools, anxious attachment predicted "
        "homesickness in "
        "the first term, and avoidant attachment predicted its absence, at the price of fewer friends.",
    )
    document = of_journal(
        work,
        "old name",
        title="Attachment styles and homesickness in boarding school pupils",
        names=("Jennifer Rowe-Okafor", "Per Engman"),
    )
    return Made(work, document)


@right
def a_title_of_which_the_index_has_the_first_half() -> Made:
    work = wanted(
        "10.6281/jmh.2002.7",
        "“A most troublesome engine”",
        "",
        2002,
        "Journal of Machine History",
        "12(1)",
        "7-31",
        tongue=HUMANITIES,
        topics="the atmospheric engine; the mine captain’s diary; coal from Swansea; the patent of 1769",
        abstract="The engine at Wheal Prosper was a byword for failure. Its captain’s diary, read here for the "
        "first time, shows "
        "that it failed for want of coal and not of skill.",
    )
    document = of_journal(
        work,
        "engine",
        title="“A most troublesome engine”: coal, credit and the captain’s diary at Wheal Prosper, 1771–1784",
        names=("Demelza Trevanion",),
        pages=25,
    )
    return Made(work, document)


@right
def a_formula_in_the_title_spelled_another_way() -> Made:
    work = wanted(
        "10.6282/crystgr.2017.4",
        "Growth of beta-Ga<sub>2</sub>O<sub>3</sub> on alpha-Al2O3 by mist deposition",
        "Haruka Minagawa, Erik Stenmark",
        2017,
        "Crystal Growth Reports",
        "9(4)",
        "241-247",
        tongue=PHYSICS,
        topics="the gallium oxide film; mist deposition; the sapphire substrate; rotation domains",
        abstract="Films of gallium oxide were grown on sapphire from a mist of acetylacetonate. Above 650 °C the "
        "stable phase grows "
        "in six rotation domains; a step of 200 s at 450 °C reduces them to three.",
    )
    document = of_journal(work, "oxide", title="Growth of β-Ga₂O₃ on α-Al₂O₃ by mist deposition", pages=7, columns=2)
    return Made(work, document, ANY)


# Old papers, and papers without a number


@right
def a_paper_of_1927_whose_author_signs_at_the_end() -> Made:
    work = wanted(
        None,
        "Notes on the Tides of the Severn Bore",
        "E. H. Garland",
        1927,
        "The Geographical Miscellany",
        "70(3)",
        "244-251",
        tongue=OLDER,
        topics="the bore; the spring tides; the pilots of Newnham; the height of the wave",
        abstract="",
    )
    document = article(
        "severn",
        "NOTES ON THE TIDES OF THE SEVERN BORE",
        (),
        8,
        subject=subject_of(work),
        first=244,
        heads=("", "I.", "II."),
        section_numbers=False,
        refs=0,
        title_size=13,
        running="THE GEOGRAPHICAL MISCELLANY",
        info="",
        ending=lines("E. H. GARLAND.", before=12),
    )
    return Made(work, document)


@right
def a_paper_of_1964_that_begins_below_the_end_of_another() -> Made:
    """Printed without a new page: the last lines of the paper before stand on its first page."""
    work = wanted(
        "10.6283/pams.1964.15",
        "A note on the odd divisors of lacunary sums",
        "Harvey Tolland",
        1964,
        "Notices in Pure Arithmetic",
        "15(5)",
        "712-715",
        tongue=MATHS,
        topics="the odd part; the sum over divisors; the lacunary sum; the remainder term",
        abstract="",
    )
    top = (
        Block(
            "so that the group is nilpotent, which was to be shown. It would be of interest to have the result "
            "for loops."
        ),
        *lines(
            "REFERENCES",
            "1. O. Bergen, Loops and nets, Notices in Pure Arithmetic 4 (1953), 77–91.",
            "2. M. Kessel, On nilpotent groups of class three, J. Estoria Math. Soc. 11 (1949), 1–18.",
            size=8,
        ),
        *lines("UNIVERSITY OF ESTORIA", before=6),
    )
    document = article(
        "divisors",
        "A NOTE ON THE ODD DIVISORS OF LACUNARY SUMS",
        ("HARVEY TOLLAND",),
        4,
        subject=subject_of(work),
        top=top,
        first=712,
        refs=5,
        heads=("", ""),
        section_numbers=False,
        title_size=12,
        info="",
        ending=lines("LAKE COLLEGE", before=6),
        after=lines("Received by the editors March 2, 1963.", size=8),
    )
    return Made(work, document)


@right
def a_scan_with_poor_recognition() -> Made:
    """What the recognition of letters made of an old print: rn for m, 1 for l, c for e, broken words."""
    work = wanted(
        "10.6284/bstj.1938.311",
        "The Influence of Moisture upon the Resistance of Paper Insulated Cables",
        "W. L. Hammersmith",
        1938,
        "Bulletin of Telegraph Engineers",
        "17(2)",
        "311-322",
        tongue=OLDER,
        topics="the resistance of the cable; moisture in the paper; the drying oven; the lead sheath",
        abstract="",
    )

    def misread(said: str) -> str:
        words = said.split(" ")
        for at in range(3, len(words), 7):
            words[at] = words[at].replace("m", "rn").replace("l", "1").replace("e", "c", 1)
        for at in range(5, len(words), 23):
            words[at] = words[at][: len(words[at]) // 2] + " " + words[at][len(words[at]) // 2 :]
        return " ".join(words)

    clean = article(
        "cables",
        "The lnfluence of Moisture upon the Resistance of Paper lnsulated Cab1es",
        ("By W. L. HAMMERSMlTH",),
        12,
        subject=subject_of(work),
        first=311,
        heads=("INTRODUCTORY", "METHOD OF TEST", "DISCUSSION", "SUMMARY"),
        refs=0,
        section_numbers=False,
        info="",
        running="BULLETlN OF TELEGRAPH ENGlNEERS",
    )
    body = [block._replace(text=misread(block.text)) for block in clean.body]
    return Made(work, Document(front=clean.front, body=body, marks=clean.marks, first_page=311))


@right
def a_society_journal_that_prints_no_number() -> Made:
    work = wanted(
        "10.6285/nbs.1995.33",
        "Spiders of the Wendle Caves, with a New Record of Meta",
        "P. Q. Hartigan, J. Loosemore",
        1995,
        "Newsletter of the Barrow Speleological Society",
        "33(1)",
        "3-9",
        tongue=BIO,
        topics="the cave spiders; the threshold zone; Meta in the lower passage; flood debris",
        abstract="",
    )
    document = article(
        "spiders",
        "Spiders of the Wendle Caves, with a New Record of Meta",
        ("P.Q. Hartigan & J. Loosemore",),
        7,
        subject=subject_of(work),
        first=3,
        refs=6,
        section_numbers=False,
        heads=("The caves", "Methods", "Species found", "Remarks"),
        marks=(Mark("Barrow Spel. Soc. Newsl. No. 33", 400, 34, 8),),
        info="NL33.pmd",
    )
    return Made(work, document)


@right
def a_report_of_a_laboratory_reprinted_with_its_own_cover() -> Made:
    work = wanted(
        "10.6286/nimx.1982.196",
        "A gas target for low energy neutron sources",
        "G. Pfeiler, C. D. Arbuthnot",
        1982,
        "Instruments and Methods",
        "196(2)",
        "303-309",
        tongue=MATERIAL,
        topics="the gas target; the neutron yield; the thin window; heating by the beam",
        abstract="A target of deuterium gas at two bar is described. With a window of molybdenum of 2.5 "
        "micrometres it stands a beam "
        "of 30 microamperes for a week and yields neutrons within a band of 80 keV.",
    )
    lead = lines(
        "LAKE NATIONAL LABORATORY|",
        "LNL-82-416 (Preprint)",
        "A GAS TARGET FOR LOW ENERGY NEUTRON SOURCES|",
        "G. Pfeiler",
        "C. D. Arbuthnot",
        "This paper was prepared for submittal to Instruments and Methods",
        "February 1982",
        "This is a preprint of a paper intended for publication in a journal. Since changes may be made before "
        "publication, it is made "
        "available with the understanding that it will not be cited without the permission of the author.",
        "DISTRIBUTION OF THIS DOCUMENT IS UNLIMITED",
        "---",
    )
    document = article(
        "gas target",
        "A GAS TARGET FOR LOW ENERGY NEUTRON SOURCES",
        ("G. Pfeiler*", "C. D. Arbuthnot"),
        9,
        subject=subject_of(work),
        lead=lead,
        leads=1,
        places=("Physics Department, Lake National Laboratory, Lakeport",),
        refs=8,
        info="",
    )
    return Made(work, document)


# Short works that are no articles


@right
def a_letter_to_the_editor_of_one_page() -> Made:
    work = wanted(
        "10.6287/lm.2003.1204",
        "Hiccups that come back with each epidural steroid",
        "C. T. Marchetti, Bea Lindqvist",
        2003,
        "Letters in Medicine",
        "161(8)",
        "1204",
        tongue=CLINIC,
        topics="hiccups; epidural steroids; chlorpromazine; the second injection",
        abstract="",
    )
    document = Document(
        front=(
            *lines("CORRESPONDENCE|", work.title + "|"),
            Block(
                "SIR—We read with interest the report on facial flushing after epidural steroids. [1] We saw another "
                "harmless but "
                "vexing effect. A man of 58 years had an epidural injection of 80 mg of methylprednisolone for "
                "sciatica. After six "
                "hours hiccups began, which went on for three days and ended within an hour of 25 mg of chlorpromazine."
            ),
            Block(
                "He had had hiccups once before, for half an hour, after a meal. He took no drugs other than "
                "paracetamol. There was no "
                "fever, no vomiting, and the neurological examination was as before the injection. Blood count, "
                "electrolytes and "
                "glucose were normal. A radiograph of the chest showed nothing that would irritate the diaphragm."
            ),
            Block(
                "Steroids are thought to lower the threshold of the reflex in the midbrain. [2] With tablets, "
                "hiccups are known to begin "
                "within a day, and men are more often affected. Why a depot in the epidural space should act "
                "within hours is less "
                "plain; some of the dose may reach the cerebrospinal fluid through a small tear of the dura."
            ),
            Block(
                "Eight weeks later he asked for a second injection, since his leg had been free of pain. Hiccups "
                "came back after five "
                "hours. We know of four such cases. Patients should be told, and doctors should think of it."
            ),
            *lines("C. T. Marchetti, *Bea Lindqvist", "Pain Clinic, St Botolph’s Hospital, Norrhavn", before=8),
            *lines(
                "1. Oyler P. Flushing of the face after epidural steroids. Lett Med 2002; 160: 911.",
                "2. Brandt S, Ojo F. Hiccups and their treatment: a review. Ward Pract 1998; 7: 20–31.",
                size=8,
            ),
        ),
        marks=(Mark("LETTERS IN MEDICINE • Vol 161 • April 5, 2003", 62, 34), Mark("1204", 520, 34)),
    )
    return Made(work, document)


@right
def an_editorial_of_two_pages() -> Made:
    work = wanted(
        "10.6288/jtn.2011.e1",
        "Who may touch the records?",
        "Sunniva Brekke",
        2011,
        "Journal of Theatre Notes",
        "29(2)",
        "97-98",
        tongue=HUMANITIES,
        topics="the prompt book; the keeper of records; copies on film; the wish of the heirs",
        abstract="",
    )
    said = (
        "In a cellar under the Court Theatre stands a press with forty-one drawers. In the drawers lie the prompt "
        "books of every play "
        "that was given there from 1822 to the fire. Until last year whoever asked was given gloves, a pencil and "
        "a table. Since "
        "then, whoever asks is given a disc with pictures. The books have not been touched for eleven months.",
        "The keeper has good reasons. Each reader takes a little of the paper away, and the ink of the 1840s "
        "flakes when a page is "
        "turned. The pictures are sharp, and can be sent to Perth or Kyoto. Who could object?",
        "This journal does not object. But it wishes to put on record what is lost. A prompt book is not a text. "
        "It is a stack of "
        "cues, cuts, candle wax and thumb marks, in at least five hands, and what it tells it tells to the "
        "fingers: which leaf was "
        "pasted in first, where the book fell open, what was rubbed out. None of this is on the disc.",
        "Three contributions to this issue could not have been written from pictures. Hallgren found the lost "
        "third act because two "
        "leaves felt thicker than their neighbours. Obi dated a cut by the smell of gas, which came to the house "
        "in 1851. And "
        "Marchetti, whose patience we admire, counted pin holes.",
        "There is a middle way, and other houses have found it. At Lund, a reader who has worked through the "
        "pictures and can say "
        "what they do not show is let in for a day. About one in ten asks. No book has suffered.",
        "We know that keepers are few and readers many, and that heirs have wishes too; the family of the last "
        "director would rather "
        "see the books closed for good. Still, records that nobody may touch are on their way to becoming relics, "
        "and relics are "
        "not read but believed in.",
        "We invite letters on the matter, from both sides of the table. The best will be printed in the autumn. "
        "Until then we ask the "
        "keeper of the Court Theatre, with respect, to open a drawer from time to time.",
        "A word on our own house. From the next issue the notes of this journal will stand at the foot of the "
        "page again. Readers "
        "have asked for it since they were moved in 2004, and the editor, who moved them, now sees that readers "
        "were right.",
    )
    document = Document(
        front=(
            *lines("EDITORIAL", size=9),
            *lines(work.title + "|", size=12),
            *(Block(part, size=12, before=10) for part in said[:5]),
            *lines("---"),
            *(Block(part, size=12, before=10) for part in said[5:]),
            *lines("SUNNIVA BREKKE, Editor", before=14),
        ),
        marks=(Mark("Journal of Theatre Notes 29:2 (2011)", 62, 806), Mark("{page}", 290, 34)),
        first_page=97,
    )
    return Made(work, document)


@right
def an_erratum_that_is_itself_the_work() -> Made:
    original = "Gravity anomalies over the Skarv ridge from airborne surveys"
    work = wanted(
        "10.6289/gri.2014.e77",
        f"Erratum: {original}",
        "Ingrid Fossum, Luis Montalvo",
        2014,
        "Geophysical Records International",
        "199(1)",
        "77",
        tongue=PHYSICS,
        topics="the gravity anomaly; the survey lines; the drift of the meter; levelling",
        abstract="",
    )
    document = Document(
        front=(
            *lines("Erratum|", f"Erratum: {original}|", "Ingrid Fossum and Luis Montalvo", size=11),
            *lines("Accepted 2014 June 29. Received 2014 June 16", size=8),
            Block(
                "In the paper ‘Gravity anomalies over the Skarv ridge from airborne surveys’, published in "
                "Geophys. Rec. Int., 197, 411–428, "
                "equation (7) lacked a factor of two. The equation was right in the code, and Figs 4 to 9 are not "
                "affected. It should read: "
                "dg = 2 w v cos(f) sin(a) + v² / R."
            ),
            Block(
                "In Table 2 the entries for lines 14 and 15 were exchanged. The authors thank Dr M. Adair, who "
                "found the error."
            ),
            *lines(
                "© The Authors 2014. Published by the Press of Lake College on behalf of the Society.",
                size=8,
                before=20,
            ),
        ),
        marks=(
            Mark("Geophys. Rec. Int. (2014) 199, 77", 62, 806),
            Mark("doi: 10.6289/gri.2014.e77", 62, 795),
            Mark("77", 290, 34),
        ),
        title=f"Erratum: {original}",
    )
    return Made(work, document)


@right
def a_retraction_that_is_itself_the_work() -> Made:
    work = wanted(
        "10.6290/cgr.2020.r4",
        "Retraction notice to “MicroRNA-4162 silences tumour growth in mice” [Cancer Gene Rev. 61 (2017) 88–97]",
        "Zhou Min, Lan Feng",
        2020,
        "Cancer Gene Reviews",
        "64(2)",
        "299",
        tongue=BIO,
        topics="the blots; the figure; the committee",
        abstract="",
    )
    document = Document(
        front=(
            *lines(
                "Retraction notice to “MicroRNA-4162 silences tumour growth in mice” [Cancer Gene Rev. 61 (2017) "
                "88–97]|",
                "Zhou Min, Lan Feng",
                "Second Hospital of Linhai, China",
                size=11,
            ),
            Block("This article has been retracted: please see the policy of the journal on article withdrawal."),
            Block(
                "This article has been retracted at the request of the Editor-in-Chief. Readers pointed out that "
                "blots in Figures 2 and 5 "
                "look like those of an article by other authors on another tumour. The authors were asked for the "
                "original data and "
                "could not supply them. The editors no longer trust the conclusions and therefore retract the article."
            ),
        ),
        marks=(Mark("Cancer Gene Reviews 64 (2020) 299", 62, 806), Mark(f"https://doi.org/{work.doi}", 62, 34)),
        title="Retraction notice",
        doi=work.doi,
    )
    return Made(work, document)


@right
def an_obituary() -> Made:
    work = wanted(
        "10.6291/amb.2008.150",
        "Professor Wiebke Tönnies (1919–2007)",
        "R. Osterkamp",
        2008,
        "Annals of Marsh Botany",
        "41(2)",
        "150-151",
        tongue=HUMANITIES,
        topics="her herbarium; the salt marsh; the garden at Husby; her pupils",
        abstract="",
    )
    said = (
        "On 3 November 2007, in her eighty-ninth year, Wiebke Tönnies died at Husby. With her the botany of the "
        "marshes has lost "
        "the last of those who had walked every dike of the coast before the great flood of 1962 changed it for ever.",
        "She was born at Tating, the third daughter of a dike reeve. Her father let her come along when he "
        "inspected the forelands, "
        "and she liked to say that she had learned to count on shoots of glasswort. School at Husby was followed "
        "by two years in a "
        "seed shop at Kiel, for there was no money to study. Only in 1941, with a grant of the province, could "
        "she enrol.",
        "Her thesis, on the zones of the salt meadow at Hilligenley, was finished in the winter of 1945, by "
        "candle, and examined in "
        "the rooms of Professor Asmussen because those of the institute had no panes. It has forty pages, and is "
        "still cited.",
        "From 1947 she taught at the school of agriculture, from 1953 at the university, where she became the "
        "first woman to hold "
        "the chair of systematic botany in 1961. She never took a sabbatical: the marsh, she said, does not take "
        "one either.",
        "Her great work is the Flora of the Halligen, in three volumes, of which the last came out in 1978. It "
        "names 411 kinds, with "
        "the places where she herself had seen them; what she had not seen, she left out. The herbarium, some "
        "19,000 sheets, is now "
        "at the museum of Husby, in the order that she gave to it.",
        "To her pupils she was strict and loyal. Whoever mixed up the two sea lavenders heard of it for years; "
        "whoever was in need "
        "found a parcel at the door. Twenty-three theses were written under her care, and she read each of them twice.",
        "After she retired in 1984 she turned to mosses, “because they are nearer to the ground”, and to the "
        "garden of the society, "
        "which she kept until her knees forbade it. Her last paper, on a moss from the roof of the church at "
        "Tating, appeared when "
        "she was eighty-four.",
        "The society made her an honorary member in 1989. She came to the meeting in rubber boots, thanked us in "
        "four words, and "
        "left early, since the tide was right. We shall miss her.",
    )
    document = Document(
        front=(
            *lines("OBITUARY", size=9),
            *lines("WIEBKE TÖNNIES|", "12 May 1919 – 3 November 2007", size=11),
            *(Block(part, size=12, before=10) for part in said),
            *lines("R. OSTERKAMP", before=12),
            *lines("---"),
            *lines(
                "Some writings of Wiebke Tönnies|",
                "Die Zonen der Salzwiese von Hilligenley. Diss. Kiel 1945.",
                "Flora of the Halligen, 3 vols. Husby 1959, 1967, 1978.",
                "The two sea lavenders. Annals of Marsh Botany 3, 1–19 (1970).",
                "A moss from a roof of reed. Annals of Marsh Botany 36, 77–79 (2003).",
                size=9,
            ),
        ),
        marks=(Mark("Annals of Marsh Botany 41, 150–151 (2008)", 62, 806), Mark("{page}", 290, 34)),
        first_page=150,
        title="Obituary",
    )
    return Made(work, document)


@right
def a_review_of_a_book_as_the_index_lists_it() -> Made:
    work = wanted(
        "10.6292/spec.2014.511",
        "Piotr Malik, Ferrymen and Saints: Crossing the Vistula, 1100–1300. Estoria: Lake Press, 2012. Pp. xii, 288",
        "Joanna Kettering",
        2014,
        "Medieval Reviews",
        "89(2)",
        "511-512",
        tongue=HUMANITIES,
        topics="the ferrymen; the bridge at Thorn; saints of the river; the toll",
        abstract="",
    )
    document = Document(
        front=(
            *lines(
                "PIOTR MALIK, Ferrymen and Saints: Crossing the Vistula, 1100–1300. Estoria: Lake Press, 2012. "
                "Pp. xii, 288; 9 maps and 14 "
                "figures. $65. ISBN: 978-0-00-416299-1. doi:10.6292/spec.2014.511",
                size=11,
            ),
            Block(
                "Rivers part and join. This book, the fruit of ten years in small archives, is about those who "
                "lived on that difference."
            ),
            *essay("ferrymen", work, 15),
            Block(
                "The maps are clear, the index is good, and the price is not beyond reason. It deserves many readers."
            ),
            *lines("JOANNA KETTERING, University of Wessex", before=10),
        ),
        marks=(Mark("Reviews", 290, 806), Mark("{page}", 290, 34), Mark("Medieval Reviews 89/2 (April 2014)", 400, 34)),
        first_page=511,
    )
    return Made(work, document)


@right
def an_abstract_of_a_meeting_that_is_all_there_is() -> Made:
    work = wanted(
        "10.6293/jnh.2018.36.s114",
        "P-114: Home blood pressure after night shifts: a diary study in nurses",
        "Tuuli Rautio, Ben Achterberg",
        2018,
        "Journal of Nocturnal Health",
        "36(S1)",
        "114",
        tongue=CLINIC,
        topics="home blood pressure; the night shift; nurses",
        abstract="",
    )
    document = Document(
        front=lines(
            "P-114|",
            "HOME BLOOD PRESSURE AFTER NIGHT SHIFTS: A DIARY STUDY IN NURSES|",
            "Tuuli Rautio, Ben Achterberg",
            "University Hospital of Oulainen, Finland",
            "Objective: Blood pressure should fall at night. We asked what happens on the day after a night shift.",
            "Design and method: 88 nurses of four wards measured their blood pressure at home in the morning, at "
            "noon and in the evening for "
            "six weeks, and kept a diary of shifts and sleep. Readings after night shifts were compared with "
            "those after days off.",
            "Results: Systolic pressure after a night shift was higher by 4.1 mmHg at noon (p = 0.002) and by 2.6 "
            "mmHg in the evening. The "
            "difference was largest after three shifts in a row and was gone on the second day off. Sleep of more "
            "than five hours halved it.",
            "Conclusions: Blood pressure of nurses should not be judged on the day after a night shift.",
        ),
        marks=(
            Mark("Journal of Nocturnal Health  Volume 36, e-Supplement 1, June 2018", 62, 806),
            Mark("e114", 290, 34),
        ),
        title="P-114",
    )
    return Made(work, document)


# Works of other kinds


@right
def a_paper_of_proceedings_in_a_small_format() -> Made:
    work = wanted(
        "10.6294/978-0-00-41629-9_14",
        "Verified Merge of Sorted Streams in Constant Space",
        "Anouk Vermeer, Jyri Salonen, Deepa Kurup",
        2016,
        "Formal Tools 2016, Notes in Computing 9416",
        "9416",
        "201-216",
        tongue=COMPUTING,
        topics="the merge of streams; the proof in the assistant; constant space; the loop invariant",
        abstract="Merging sorted streams is simple until space must be constant. We give a merge in place, prove "
        "it correct in a proof "
        "assistant, and extract code that is as fast as that of the library.",
    )
    document = article(
        "small format",
        work.title,
        ("Anouk Vermeer^1^", "Jyri Salonen^2^", "Deepa Kurup^1^"),
        16,
        subject=subject_of(work),
        first=201,
        running="A. Vermeer et al.",
        size=(439.0, 666.0),
        folio="",
        refs=15,
        after=lines("Keywords: Merge · Verification · Streams", size=8),
        marks=(
            Mark(
                "© Springfeld International 2016. L. Ek and M. Rossi (Eds.): FT 2016, NC 9416, pp. 201–216, 2016.",
                40,
                28,
                7,
                pages="first",
            ),
            Mark("DOI: 10.6294/978-0-00-41629-9_14", 40, 19, 7, pages="first"),
        ),
    )
    return Made(work, document)


@right
def a_chapter_of_a_book() -> Made:
    work = wanted(
        "10.6295/9780416299554-007",
        "Letters from the Customs House: Scribes at the Edge of Empire",
        "Leyla Demirkan",
        2019,
        "Writing at the Border",
        "1(1)",
        "141-163",
        tongue=HUMANITIES,
        topics="the customs house; the scribes; letters of safe conduct; the harbour court",
        abstract="",
    )
    document = article(
        "customs",
        "Letters from the Customs House",
        ("Leyla Demirkan",),
        23,
        subject=subject_of(work),
        first=141,
        section_numbers=False,
        top=lines("CHAPTER 7", size=11),
        after=lines("Scribes at the Edge of Empire", size=13),
        refs=28,
        size=(439.0, 666.0),
        running="Letters from the Customs House: Scribes at the Edge of Empire",
        info="9780416299554_Ch7.indd",
        heads=("A bundle of letters", "Who could write", "The harbour court", "Safe conduct", "Conclusion"),
    )
    return Made(work, document)


@right
def a_doctoral_thesis_that_is_the_work() -> Made:
    work = wanted(
        "10.6296/diss.estoria.00041629",
        "Mobile phones and milk: prices in the dairy cooperatives of Gulmar",
        "Farah Siddiqui",
        2015,
        "University of Estoria",
        "",
        "1-46",
        tongue=SOCIAL,
        topics="milk prices; mobile phones; the dairy cooperative; the collector’s margin",
        abstract="This thesis asks in three essays whether mobile phones have changed what dairy farmers of "
        "Gulmar are paid. It finds that "
        "prices came closer to each other, and that collectors lost a part of their margin, but only where "
        "farmers could sell to a second one.",
    )
    lead = lines(
        "Mobile phones and milk: prices in the dairy cooperatives of Gulmar|",
        "by",
        "Farah Siddiqui",
        "A thesis submitted in partial "
        "fulfilment of the requirements for the degree of Doctor of Philosophy in Economics",
        "University of Estoria",
        "2015",
        "---",
        "Declaration|",
        "I declare that this thesis is my own work and has not been submitted for another degree.",
        "Acknowledgements|",
        "I thank my supervisors, the collectors of Gulmar, and my mother, who taught me to milk.",
        "Contents|",
        "1 Introduction   1",
        "2 Phones and prices   9",
        "3 The collector’s margin   19",
        "4 A second buyer   29",
        "5 Conclusion   39",
        "---",
    )
    document = article(
        "milk",
        "Abstract of the thesis",
        (),
        44,
        subject=subject_of(work),
        lead=lead,
        leads=2,
        refs=40,
        heads=("Introduction", "Phones and prices", "The collector’s margin", "A second buyer", "Conclusion"),
        info="thesis_final_FINAL",
    )
    return Made(work, document)


@right
def a_note_on_software_with_a_margin() -> Made:
    work = wanted(
        "10.6297/joos.04162",
        "tidewater: A Python package for the harmonic analysis of short tide records",
        "Rhona MacPhail, Arjun Seth",
        2021,
        "Journal of Open Software Notes",
        "6(62)",
        "4162",
        tongue=COMPUTING,
        topics="harmonic analysis; short records; the tide gauge; the least-squares fit",
        abstract="",
    )
    document = article(
        "tidewater",
        work.title,
        ("Rhona MacPhail^1^", "Arjun Seth^2^"),
        3,
        subject=subject_of(work),
        refs=7,
        section_numbers=False,
        heads=("Summary", "Statement of need", "Acknowledgements"),
        folio="",
        marks=(
            Mark(
                "MacPhail et al., (2021). tidewater: A Python package for the harmonic analysis of short tide "
                "records. Journal of Open",
                62,
                34,
                7,
            ),
            Mark("Software Notes, 6(62), 4162. https://doi.org/10.6297/joos.04162", 62, 25, 7),
        ),
        ending=lines(
            "Software: Review, Repository, Archive. Submitted: 02 May 2021. Published: 29 June 2021. Authors "
            "retain copyright and "
            "release the work under a licence of attribution.",
            size=8,
        ),
    )
    return Made(work, document)


@right
def a_protocol_that_is_the_work() -> Made:
    work = wanted(
        "10.6249/ot-2019-029416",
        "Text messages to reduce missed dental visits in rural towns: protocol for a cluster randomised trial",
        "Mosa Lekota, Jill Abernathy",
        2019,
        "Open Trials",
        "9(6)",
        "29416",
        tongue=PROTOCOL,
        topics="missed visits; text messages; the dental clinic; rural towns",
        abstract="Introduction: One dental visit in four is missed. Methods and analysis: Thirty clinics will be "
        "randomised to send two text "
        "messages before each visit or none. The primary outcome is the share of visits missed in six months. "
        "Ethics and dissemination: "
        "Approved by the committee of the province. Results will be published.",
    )
    document = of_journal(
        work,
        "dental",
        pages=8,
        columns=2,
        head=("Open access                    Protocol",),
        running="Lekota M, Abernathy J. Open Trials 2019;9:e029416. doi:10.6249/ot-2019-029416",
        heads=("Introduction", "Methods and analysis", "Sample size", "Ethics and dissemination", "Timeline"),
    )
    return Made(work, document)


@right
def a_guideline_signed_by_a_group() -> Made:
    work = wanted(
        "10.6298/gnp.2017.1",
        "Fever in infants under three months: recommendations for emergency departments",
        "Norrhavn Paediatric Emergency|Network",
        2017,
        "Guidance in Paediatrics",
        "2(1)",
        "1-12",
        tongue=GUIDANCE,
        topics="fever; lumbar puncture; the infant under three months; procalcitonin",
        abstract="These recommendations are meant for all who see infants with fever in emergency departments. "
        "Infants under four weeks should "
        "be admitted; for those of four to twelve weeks, a rule of three tests is proposed.",
    )
    document = of_journal(
        work,
        "fever",
        title="Fever in infants under three months",
        names=("Writing group on behalf of the Norrhavn Paediatric Emergency Network*",),
        after=lines("Recommendations for emergency departments", size=13),
        tail=lines(
            "*Members of the Network|",
            "Writing group: A. Holm, J. Petrie, S. Nakkash, W. Brandt. Panel: C. Ude, D. Lauritsen, E. Mensah, "
            "F. Roca, G. Anders, H. Nyberg, I. Pole, K. Sand. Patient representatives: L. Moor, T. Wynn.",
        ),
    )
    return Made(work, document)


@right
def an_experiment_with_sixty_authors() -> Made:
    family = (
        "Abel",
        "Bauer",
        "Costa",
        "Dahl",
        "Egede",
        "Fermat",
        "Gatti",
        "Holub",
        "Ivanov",
        "Jansen",
        "Kato",
        "Lund",
        "Meyer",
        "Novak",
        "Ortiz",
    )
    names = [
        f"{'ABCDEFGHJKLM'[(3 * n) % 12]}. {family[n % 15]}{('', 'ova', 'sen', 'elli')[n // 15]}" for n in range(60)
    ]
    work = wanted(
        "10.6299/plx.2012.716",
        "Search for a light scalar in four million decays of the eta meson",
        ", ".join(names),
        2012,
        "Physics Letters X",
        "716(1)",
        "23-33",
        tongue=PHYSICS,
        topics="the light scalar; decays of the eta meson; the missing mass; the photon veto",
        abstract="A search for a light scalar that decays to two photons is reported. In 4.1 million decays of "
        "the eta meson no signal is "
        "seen. Upper limits between 0.6 and 8 in a million are set for masses from 30 to 400 MeV.",
    )
    document = of_journal(
        work,
        "sixty",
        names=("The KRAKEN Collaboration",),
        columns=2,
        pages=11,
        ending=lines(
            "The KRAKEN Collaboration",
            ", ".join(f"{name}^{n % 9 + 1}^".replace("^", " ") for n, name in enumerate(names)),
            size=8,
        ),
    )
    return Made(work, document)


# More than the paper in the file


@right
def the_paper_with_its_supplement_bound_behind() -> Made:
    work = wanted(
        "10.6240/limn.2019.88",
        "Methane bubbles and the age of reservoirs",
        "Paula Antunes, Göran Ek, Rosalind Tse",
        2019,
        "Limnology Letters",
        "4(3)",
        "88-96",
        tongue=BIO,
        topics="methane bubbles; the age of the reservoir; drawdown; organic matter in the sediment",
        abstract="Do reservoirs grow out of their emissions? Echo-sounding of 14 reservoirs from two to ninety "
        "years old shows no decline of "
        "bubbling with age; sediment from the river keeps it going.",
    )
    extra = (
        *lines(
            "Supporting Information|",
            "Methane bubbles and the age of reservoirs",
            "Table S1. Reservoirs and dates of survey",
            size=10,
        ),
        *[
            Block(f"S{n}   reservoir {n}   {1910 + 7 * n}   {4 * n % 17}.{n % 10} mg per square metre and day", 8)
            for n in range(1, 15)
        ],
        *paragraphs("methane supplement", BIO, ("methane bubbles", "the echo sounder"), 9),
    )
    return Made(work, of_journal(work, "methane", tail=extra))


@right
def the_paper_with_a_correction_bound_before_it() -> Made:
    work = wanted(
        "10.6241/stroke.2015.77",
        "Stroke unit beds and outcome in island hospitals",
        "Calum Mathieson, Rhea Pillai",
        2015,
        "Cerebral Circulation",
        "31(2)",
        "77-85",
        tongue=CLINIC,
        topics="stroke unit beds; outcome at ninety days; island hospitals; transfer by air",
        abstract="Islands have few stroke units. Among 1,416 patients of eleven islands, care on a unit was "
        "associated with a better outcome at "
        "ninety days, also when time to arrival was taken into account.",
    )
    lead = lines(
        "Correction|",
        "Correction to: Stroke unit beds and outcome in island hospitals. Cereb Circ. 2015;31:77–85.",
        "In Table 2, the heads of the third and fourth columns were exchanged. The article that follows has been "
        "corrected.",
        "---",
    )
    return Made(work, of_journal(work, "stroke", lead=lead, leads=1, columns=2))


@right
def the_paper_behind_an_advertisement_and_before_one() -> Made:
    work = wanted(
        "10.6242/anq.2011.404",
        "Clay pipes from the harbour mud of Vlieree",
        "Joost Terpstra, Mina Dogan",
        2011,
        "Antiquities Quarterly",
        "85(2)",
        "404-415",
        tongue=HUMANITIES,
        topics="the clay pipes; the harbour mud; the maker’s mark; trade with the Baltic",
        abstract="Dredging of the harbour brought up 2,962 clay pipes. Their marks show that half of them came "
        "from Gouda and that the share of "
        "English pipes fell after the war of 1672.",
    )
    lead = lines(
        "Join the Society of Antiquities today|",
        "Members receive four issues a year, free entry to our museums, and a tenth off books.",
        "---",
    )
    tail = lines(
        "Forthcoming from Lake Press|",
        "Pots and Princes, by A. Winter. The Sunken Road, by I. Marsh. Ask your bookseller.",
    )
    return Made(work, of_journal(work, "pipes", lead=lead, leads=1, tail=tail))


@right
def the_manuscript_with_tables_at_the_end_and_a_note_of_the_archive() -> Made:
    work = wanted(
        None,
        "Efeito da cobertura morta sobre a germinação de capim-dourado",
        "Tânia Rezende, Marcos|dos Reis",
        2014,
        "Cadernos do Cerrado",
        "2(2)",
        "19-28",
        tongue=PORTUGUESE,
        topics="a cobertura morta; a germinação; o capim-dourado; a umidade do solo",
        abstract="Avaliou-se a germinação do capim-dourado sob três tipos de cobertura morta. A palha de arroz "
        "aumentou a germinação em um terço; a "
        "serragem a reduziu.",
    )
    document = article(
        "capim",
        "EFEITO DA COBERTURA MORTA SOBRE A GERMINAÇÃO DE CAPIM-DOURADO¹",
        ("Tânia REZENDE²", "Marcos dos REIS³"),
        12,
        subject=subject_of(work),
        after=(
            *lines("Effect of mulch on the germination of golden grass", size=11),
            *summary(
                "Abstract",
                "Germination of golden grass was studied under three kinds of mulch. Rice straw raised it by a "
                "third; sawdust lowered it.",
            ),
        ),
        tail=lines("Tabela 1. Germinação aos 30 dias", "Palha de arroz 64 %   Serragem 31 %   Sem cobertura 48 %"),
        marks=(Mark("Manuscrito aceito. Cadernos do Cerrado, v. 2, n. 2, 2014.", 62, 820, 8),),
        section_numbers=False,
        info="",
    )
    return Made(work, document)


@right
def a_paper_whose_references_cite_its_own_twin() -> Made:
    """It names the DOI of Part I on its first page and in its list; it is Part II, which was asked for."""
    first = wanted(
        "10.6243/clays.2000.48",
        "Swelling of bentonite in saline water. Part I: Free swelling",
        "T. Kowalczuk, E. Dreyer",
        2000,
        "Clays in Practice",
        "48(1)",
        "1-9",
        tongue=BIO,
        topics="free swelling",
        abstract="",
    )
    work = wanted(
        "10.6243/clays.2000.57",
        "Swelling of bentonite in saline water. Part II: Swelling pressure",
        "T. Kowalczuk, E. Dreyer",
        2000,
        "Clays in Practice",
        "48(1)",
        "10-19",
        tongue=MATERIAL,
        topics="the swelling pressure; bentonite; saline water; the density of the clay",
        abstract="The pressure of bentonite that is kept from swelling was measured in water of six salinities. "
        "It falls with salinity at low "
        "density, and not at all above 1.8 grams per cubic centimetre. Free swelling was the subject of Part I.",
    )
    document = of_journal(
        work,
        "part two right",
        after=lines(f"Part I: doi:{first.doi}, this issue, pp. 1–9", size=8),
        cited=(listed(first),),
        running="KOWALCZUK AND DREYER",
    )
    return Made(work, document)


@right
def a_german_paper_with_the_title_set_over_four_lines() -> Made:
    work = wanted(
        "10.6244/afg.1978.65",
        "Zur Frage der Kirchenstühle. Sitzordnung und Streit in fränkischen Landpfarreien des 17. Jahrhunderts",
        "Gerlinde Aumüller",
        1978,
        "Archiv für fränkische Geschichte",
        "65(1)",
        "33-49",
        tongue=GERMAN,
        topics="die Sitzordnung; der Streit um die Kirchenstühle; die Visitation; das Pfarrbuch",
        abstract="",
    )
    document = article(
        "stühle",
        "Zur Frage der\nKirchenstühle.\nSitzordnung und Streit in fränkischen\nLandpfarreien des 17. Jahr-\nhunderts",
        ("Von GERLINDE AUMÜLLER",),
        17,
        subject=subject_of(work),
        first=33,
        section_numbers=False,
        heads=("I.", "II.", "III.", "IV."),
        refs=14,
        title_size=18,
        info="",
        running="Archiv für fränkische Geschichte 65 (1978)",
    )
    return Made(work, document)


@right
def a_short_communication_with_a_long_list_of_affiliations() -> Made:
    work = wanted(
        "10.6245/vetpar.2022.31",
        "First record of Hepatozoon in wild cats of the Estorian hills",
        "Marta Juric, Obi Eze, Lin Shao, Petr Klima, Ana Reis",
        2022,
        "Veterinary Parasites",
        "31(1)",
        "104416",
        tongue=BIO,
        topics="Hepatozoon; wild cats; blood smears; ticks from the dens",
        abstract="Blood of nineteen wild cats was searched for Hepatozoon. Four were infected. Sequences were "
        "closest to those of domestic cats.",
    )
    places = [
        f"{n} {what}, {town}"
        for n, (what, town) in enumerate(
            (
                ("Faculty of Veterinary Medicine, University of Estoria", "Estoria"),
                ("Institute of Wildlife Health", "Norrhavn"),
                ("Key Laboratory of Parasites", "Linhai"),
                ("Museum of Natural History", "Nadwarta"),
                ("Centre for Ticks and Mites", "Braga"),
                ("Game Park of the Hills", "Kamenec"),
            ),
            start=1,
        )
    ]
    document = of_journal(
        work,
        "cats",
        names=("Marta Jurić 1,2,†", "Obi Eze 3,†", "Lin Shao 3", "Petr Klíma 4", "Ana Reis 5,6,*"),
        pages=5,
        first=1,
        columns=2,
        places=places,
        head=("Short Communication", f"Veterinary Parasites 31 (2022) 104416     {work.doi}"),
        section_numbers=False,
        after=lines(
            "† These authors contributed equally.  * Correspondence: a.reis@example.org",
            "Received 9 Jan 2022; accepted 4 Mar 2022",
            size=8,
        ),
    )
    return Made(work, document, ANY)


@right
def a_paper_of_which_the_index_knows_the_title_alone() -> Made:
    work = wanted(
        None,
        "Measuring the yield of rope walks",
        "",
        1986,
        "",
        "",
        "61-71",
        tongue=HUMANITIES,
        topics="the rope walk; hemp from Riga; the spinner’s day; the navy’s contract",
        abstract="How much rope could a man lay in a day? The accounts of three rope walks, 1740 to 1790, give an "
        "answer: less than the navy paid for.",
    )
    document = article(
        "ropes",
        "Measuring the Yield of Rope Walks",
        ("Stella Marchbanks",),
        11,
        subject=subject_of(work),
        head=("Maritime Economy 3 (1986) 61–71",),
        first=61,
        section_numbers=False,
    )
    return Made(work, document)


@right
def a_paper_that_says_what_it_is_on_its_last_page() -> Made:
    """A weekly prints the citation, the dates and the DOI below the references and nothing at the top."""
    work = wanted(
        "10.6246/sciweek.abf4162",
        "Iron from dust feeds the upwelling off Namira",
        "Thandi Maseko, Ola Berge, Yun Seo-yeon, Raul Ibarra",
        2021,
        "Science Weekly",
        "371(6)",
        "1141-1145",
        tongue=MATERIAL,
        topics="iron from dust; the upwelling; chlorophyll seen from space; the wind from the desert",
        abstract="Upwelling brings nitrate to the coast of Namira but little iron. Isotopes of iron in the water "
        "show that two thirds of it come from dust "
        "of the coastal desert, and that blooms follow storms by nine days.",
    )
    end = lines(
        "ACKNOWLEDGMENTS",
        "We thank the crew of the Meltemi. Data are in the archive of the survey.",
        "29 June 2020; accepted 16 February 2021",
        "10.6246/sciweek.abf4162",
        size=8,
    )
    document = of_journal(
        work,
        "dust",
        head=("RESEARCH",),
        columns=3,
        pages=5,
        section_numbers=False,
        heads=("", "", ""),
        refs=30,
        running="RESEARCH | REPORT",
    )
    return Made(
        work,
        Document(
            front=document.front,
            body=document.body,
            back=(*document.back, *end),
            marks=document.marks,
            columns=3,
            first_page=1141,
        ),
    )


@right
def the_abstract_as_an_index_knows_it_and_an_essay_in_parts() -> Made:
    """A philosophical essay without abstract, sections or list of references; notes at the foot; title in quotes."""
    work = wanted(
        "10.6247/ratio.1999.12",
        "On saying “I forgot”",
        "Edmund Farrow",
        1999,
        "Ratio et Mens",
        "12(2)",
        "129-140",
        tongue=HUMANITIES,
        topics="the excuse; forgetting; what a promise asks; blame without fault",
        abstract="",
    )
    notes = tuple(
        Block(f"{n} {said}", 8, before=2)
        for n, said in enumerate(
            (
                "I owe this example to Ruth Ambrose.",
                "See the exchange of letters in Mind and Manner, 1991.",
                "Pace those who hold that every excuse is a plea.",
                "The word is used in a narrower sense by lawyers.",
            ),
            start=1,
        )
    )
    document = article(
        "forgot",
        "ON SAYING ‘I FORGOT’",
        ("Edmund Farrow",),
        12,
        subject=subject_of(work),
        first=129,
        heads=("I", "II", "III"),
        section_numbers=False,
        refs=0,
        ending=(*lines("St Aldhelm’s College, Wessex", before=10), *notes),
        marks=(Mark("Ratio et Mens XII 2 June 1999 0034-0006", 62, 820, 8, pages="first"),),
    )
    return Made(work, document)
