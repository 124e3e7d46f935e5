"""Files that came where a paper was asked for and are not it. See the README beside this file."""

from __future__ import annotations

from tests.adversary.samples import ANY, Made, SampleSet, Text, document_of, lines, listed, sheets
from tests.adversary.third_set.writing import (
    BIO,
    CLINIC,
    COMPUTING,
    FRENCH,
    GERMAN,
    GUIDANCE,
    HUMANITIES,
    MATHS,
    OLDER,
    PHYSICS,
    PORTUGUESE,
    PROTOCOL,
    RUSSIAN,
    SOCIAL,
    SPANISH,
    Tongue,
    abstract_of,
    article,
    essay,
    of_journal,
    paragraphs,
    subject_of,
    summary,
    wanted,
    works_cited,
)

from DocsToKG.Sandbox.pdf.document import LANDSCAPE, Block, Document, Mark

SET = SampleSet()
impostor = SET.impostor

PATENT = Tongue(
    (
        "In one embodiment, {a} is provided upstream of {b}.",
        "It is an object of the present invention to overcome the drawbacks of the prior art.",
        "Referring now to FIG. 2, numeral 14 denotes {a}, which is connected to the housing 10 by means of a "
        "flange 16.",
        "As used herein, the term “comprising” means including but not limited to.",
        "Those skilled in the art will recognise that {b} may be replaced by any equivalent means.",
        "In a preferred embodiment the current is between 20 and 200 mA, more preferably between 40 and 80 mA.",
        "FIG. 3 is a cross section along the line A-A of FIG. 2.",
        "Surprisingly, it has been found that {a} can be operated without any moving part.",
        "The invention is not restricted to the embodiments shown, which are given by way of example only.",
        "Known valves of this kind suffer from leakage when {b} is worn.",
        "The controller 30 supplies pulses to the coil 18 in response to a signal of the sensor 32.",
        "In a further aspect, the invention relates to a method of closing a channel by means of {a}.",
    ),
    (),
)
FRENCH_REVIEW = Tongue(
    (
        "Le deuxième chapitre, le plus neuf, traite longuement ce point : {a}.",
        "L’auteure ne cède jamais à la facilité de l’anecdote, même quand les sources l’y invitent.",
        "On suivra moins volontiers la thèse selon laquelle {a} expliquerait {b}.",
        "Les cartes, dues à l’auteure elle-même, sont d’une grande clarté.",
        "Les pages consacrées à la disette de 1709 comptent parmi les plus belles du livre.",
        "Un tableau en annexe permet de suivre semaine après semaine le marché de Forcalquier.",
        "Faut-il pour autant conclure, avec elle, à une entente entre échevins et fourniers ?",
        "La bibliographie, abondante, ignore toutefois les travaux italiens.",
        "Le lecteur découvre, non sans surprise, combien {b} pesait peu dans les procès.",
        "Au fil des pages se dessine un monde de crédit, de voisinage et de rancunes.",
        "La conclusion revient sur {a} et ouvre sur le siècle suivant.",
        "L’écriture est sobre, parfois sèche, toujours précise.",
    ),
    (),
    language="fr",
)
REMARKS = Tongue(
    (
        "The authors should say more about {a}; a single sentence is not enough.",
        "Page 4, second paragraph: I do not follow the step from {a} to {b}.",
        "The discussion of {b} overlooks earlier work, which should be cited.",
        "Has the measurement been repeated on more than one film? If so, please give the spread.",
        "The legend of Figure 3 does not say what the shaded band means.",
        "The wording “for the first time” should be avoided.",
        "The English is good, but the abstract is too long.",
        "I remain unconvinced that {a} can be told from {b} with these data alone.",
    ),
    (),
)
REPLIES = Tongue(
    (
        "We have added a figure to the supplement that shows {a} for all devices.",
        "This is a fair point, and the text has been changed accordingly.",
        "We respectfully disagree: {a} is seen in the dark as well, as the new panel c shows.",
        "In the revised manuscript, the section on {b} has been moved to the methods.",
        "The reference has been added, and we thank the reviewer for pointing it out.",
        "The band is the standard deviation over six devices; the legend now says so.",
        "We agree that {b} could be excluded only by a new experiment, which we describe below.",
        "The abstract has been cut to 150 words.",
    ),
    (),
)

EELS = wanted(
    "10.6240/ecofw.2014.0317",
    "Thermal tolerance of glass eels from three Atlantic estuaries",
    "Maren Oldervik, Tomás Queirós, Ilse Brandhuber",
    2014,
    "Ecology of Fresh Waters",
    "31(2)",
    "317-328",
    tongue=BIO,
    topics="thermal tolerance; the catch of glass eels; acclimation in the estuary; critical temperature",
    abstract="Glass eels enter estuaries when these warm in spring. We measured the critical thermal maximum of 540 "
    "glass eels from three estuaries between 38 and 55 degrees north. Tolerance rose with acclimation temperature by "
    "0.31 K per K and did not differ between estuaries. The margin to summer maxima is smallest in the south, where "
    "it may vanish within decades.",
)
CLATHRATES = wanted(
    "10.6241/jssc.1998.11204",
    "Potassium tin clathrates. I. Synthesis and phase relations",
    "H. Wendelin, P. J. Okonjo",
    1998,
    "Journal of Solid Phases",
    "112(1)",
    "41-48",
    tongue=PHYSICS,
    topics="the clathrate phase; potassium content; phase relations below 900 K; thermal conductivity",
    abstract="Clathrates of potassium and tin were prepared from the elements in sealed tantalum tubes. The phase "
    "field extends from 14.2 to 15.6 at. % K at 700 K and closes at 893 K by a peritectic reaction. Powder patterns "
    "can be indexed on a cubic cell of 12.03 angstroms.",
)
GRAPHS = wanted(
    "10.6242/jgs.2019.88",
    "Incremental pattern matching over evolving property graphs",
    "Yusuf Adeleke, Katarzyna Wilk, Bo Lindahl",
    2019,
    "Journal of Graph Systems",
    "7(3)",
    "188-211",
    tongue=COMPUTING,
    topics="incremental matching; the index of partial matches; edge deletion; the update stream",
    abstract="Graph databases answer the same patterns again and again while the graph changes underneath. We give an "
    "algorithm that keeps the matches of a pattern up to date under insertions and deletions, prove that its work is "
    "bounded by the change of the result, and report a speed-up of 12 to 90 over evaluation from scratch.",
)
KNEES = wanted(
    "10.6243/tmr.2021.04415",
    "Supervised walking after knee replacement: a randomised trial in four hospitals",
    "Eilidh Macrae, Ravi Subramaniam, Petra Honkanen, Luca Dal|Pozzo",
    2021,
    "Trials in Movement and Rehabilitation",
    "9(4)",
    "415-426",
    tongue=CLINIC,
    topics="walking distance; knee pain; supervised walking; the Oxford score",
    abstract="Background: Exercise after knee replacement is advised but rarely supervised. Methods: 312 adults were "
    "randomly assigned to twelve weeks of supervised walking or to usual care. Results: Walking distance at twelve "
    "weeks was 61 m longer after supervised walking (95% CI 22 to 100). Conclusion: Supervised walking is safe and "
    "helps patients to walk further.",
)
QUARRIES = wanted(
    "10.6244/agea.2009.77",
    "Masons, quarries and credit in a Burgundian town, 1380–1430",
    "Blanche Ferrandier",
    2009,
    "Annals of Guild and Estate",
    "64(1)",
    "77-103",
    tongue=HUMANITIES,
    topics="the quarry lease; the masons’ guild; credit for stone; the chapter’s accounts",
    abstract="The building accounts of the chapter of Saint-Aubrac name ninety masons in fifty years. This article "
    "follows their debts. It argues that the lease of a quarry served as security for loans, and that the guild was "
    "less a closed trade than a circle of creditors.",
)
PEROVSKITE = wanted(
    "10.6245/aml.2020.1506",
    "Slow ion migration in caesium tin perovskite films under bias",
    "Jae-won Shim, Farida Benhamou, Otto Riemann, Lucía Prado",
    2020,
    "Applied Materials Letters",
    "15(6)",
    "506-513",
    tongue=PHYSICS,
    topics="ion migration; the bias field; hysteresis; photoluminescence at the grain boundary",
    abstract="Hysteresis of perovskite cells is often ascribed to ions that move under bias. We follow them in films "
    "of caesium tin iodide by mapping photoluminescence while a field is applied, and find two species with "
    "activation energies of 0.31 and 0.58 eV. Grain boundaries are the faster path.",
)
LAGOONS = wanted(
    "10.6246/estuar.2017.0052",
    "Nutrient release from lagoon sediment after the loss of seagrass",
    "Caterina Bussolari, Wim|de Roo, Hanna Sjölund",
    2017,
    "Estuarine Records",
    "22(1)",
    "52-64",
    tongue=BIO,
    topics="nutrient release; seagrass cover; phosphate in pore water; the anoxic layer",
    abstract="Seagrass holds sediment and the nutrients in it. After a heat wave removed the meadows of a shallow "
    "lagoon, phosphate release rose fivefold within a season. Cores with transplanted shoots returned to former rates "
    "after two years, which suggests that loss of roots and not of shade is the cause.",
)


# Other papers by the same hands


@impostor
def the_sequel_of_the_next_year() -> Made:
    """Same authors, journal and method; another life stage, another volume. It cites the wanted paper with its DOI."""
    said = (
        "Yellow eels stay in fresh water for many years. Following our earlier measurements on glass eels, we measured "
        "the critical thermal maximum of 212 yellow eels from two of the same estuaries. Tolerance was lower by 1.4 K "
        "than in glass eels and fell with body size."
    )
    document = of_journal(
        EELS,
        "sequel",
        title="Thermal tolerance of yellow eels from two Atlantic estuaries",
        abstract=said,
        head=("Ecology of Fresh Waters 32 (2015) 209–221", "https://doi.org/10.6240/ecofw.2015.0209"),
        first=209,
        pages=13,
        places=("Institute of Inland Fisheries, Torvik, Norway", "Universidade do Minho Novo, Portugal"),
        cited=(listed(EELS),),
        running="M. Oldervik et al. / Ecology of Fresh Waters 32 (2015) 209–221",
    )
    return Made(EELS, document)


@impostor
def the_second_part_of_a_series() -> Made:
    said = (
        "The crystal structure of K8Sn44 was refined from single-crystal data to R = 0.031. Two of the 46 tin sites "
        "are vacant and the vacancies are ordered below 340 K. Synthesis and phase relations were given in Part I."
    )
    document = of_journal(
        CLATHRATES,
        "part two",
        title="Potassium tin clathrates. II. Crystal structure and ordering of vacancies",
        abstract=said,
        head=("JOURNAL OF SOLID PHASES 112, 49–57 (1998)", "ARTICLE NO. SC9711205"),
        first=49,
        pages=9,
        after=lines("Received September 3, 1997; accepted November 20, 1997", size=8),
        cited=("Wendelin H, Okonjo PJ. J. Solid Phases 112, 41 (1998) [preceding paper].",),
        columns=2,
        running="WENDELIN AND OKONJO",
    )
    return Made(CLATHRATES, document)


@impostor
def the_workshop_paper_of_the_same_title() -> Made:
    """Six pages of a workshop three years before, with the title that the journal article of 24 pages took over."""
    document = of_journal(
        GRAPHS,
        "workshop",
        names=("Yusuf Adeleke", "Bo Lindahl"),
        head=(
            "6th Int’l Workshop on Dynamic Data Management (DDM ’16), June 26, 2016, Porto Alto",
            "ISBN 978-0-00-416011-7/16/06. DOI: 10.6247/ddm.2016.9",
        ),
        abstract="We sketch an algorithm that keeps the matches of a graph pattern up to date while edges are "
        "inserted. "
        "Deletions are left to future work. First measurements on two small graphs are encouraging.",
        pages=6,
        first=1,
        columns=2,
        refs=11,
        places=("Dept. of Informatics, University of Sandnes",),
        heads=("INTRODUCTION", "ALGORITHM", "FIRST RESULTS", "OUTLOOK"),
    )
    return Made(GRAPHS, document)


@impostor
def the_journal_version_where_the_conference_paper_was_asked_for() -> Made:
    sched = wanted(
        "10.6247/rtos.2011.23",
        "Slack stealing on two cores with bounded migration",
        "Mirela Ionescu, Kwame Boateng",
        2011,
        "Proceedings of the 23rd Conference on Real-Time Operation",
        "23(1)",
        "112-121",
        tongue=COMPUTING,
        topics="slack stealing; bounded migration; the aperiodic queue; deadline misses",
        abstract="We extend slack stealing to two cores. A job migrates at most once.",
    )
    said = (
        "Slack stealing serves aperiodic jobs without harm to periodic ones. We extend it to any number of cores, show "
        "that one migration for each job is enough, and prove a bound on response time. A preliminary version of this "
        "paper, for two cores and without proofs, appeared in RTOS 2011 [9]."
    )
    document = article(
        "slack journal",
        "Slack stealing on many cores: migration bounds and response times",
        ("Mirela Ionescu", "Kwame Boateng", "Sun Liwei"),
        18,
        subject=subject_of(sched),
        abstract=said,
        first=643,
        head=("Transactions on Timed Systems (2013) 49:643–660", "DOI 10.6248/s11241-013-9188-1"),
        after=lines("Published online: 4 July 2013", "© Springfeld Science+Business 2013", size=8),
        cited=(listed(sched),),
    )
    return Made(sched, document)


@impostor
def the_protocol_of_the_trial() -> Made:
    said = (
        "Introduction: Exercise after knee replacement is advised but rarely supervised. Methods and analysis: We will "
        "randomly assign 300 adults to twelve weeks of supervised walking or to usual care. The primary outcome "
        "will be "
        "walking distance at twelve weeks. Ethics and dissemination: The results will be submitted to a journal. Trial "
        "registration number: NCT00416299."
    )
    document = of_journal(
        KNEES,
        "protocol",
        subject=subject_of(KNEES)._replace(tongue=PROTOCOL),
        abstract=said,
        names=(*KNEES.names[:3], "Sofie Aarts"),
        pages=9,
        first=1,
        columns=2,
        title="Supervised walking after knee replacement: protocol of a randomised trial in four hospitals",
        head=(
            "Open access                                Protocol",
            "Open Trials 2018;8:e021733. doi:10.6249/ot-2018-021733",
        ),
        heads=("Introduction", "Methods and analysis", "Outcomes", "Sample size", "Ethics and dissemination"),
        running="Macrae E, et al. Open Trials 2018;8:e021733.",
    )
    return Made(KNEES, document)


@impostor
def the_next_edition_of_a_guideline() -> Made:
    guide = wanted(
        "10.6250/nsr.2015.601",
        "Management of adult bronchiectasis: guideline of the Norrhavn Society of Respiration",
        "Gwen Aldous, Piotr Zając, Rosa Villalba, Henk|van Dalen",
        2015,
        "Respiration Today",
        "46(3)",
        "601-612",
        tongue=GUIDANCE,
        topics="bronchiectasis; long-term macrolides; airway clearance; the number of exacerbations",
        abstract="This is the first guideline of the Society on bronchiectasis in adults.",
    )
    said = (
        "This guideline replaces that of 2015. Nine questions were framed by the panel, and the evidence up to March "
        "2022 was graded. New are the advice on inhaled antibiotics and on the follow-up of children who reach "
        "adult care; the advice on airway clearance is unchanged."
    )
    document = of_journal(
        guide,
        "guideline 2022",
        abstract=said,
        pages=14,
        first=2201,
        names=("Rosa Villalba", "Gwen Aldous", "Min Thant"),
        title=(
            "2022 update of the guideline on the management of adult bronchiectasis of the Norrhavn Society of "
            "Respiration"
        ),
        head=("Respir. Today 2022; 59: 2201–2214", "https://doi.org/10.6250/nsr.2022.2201", "SOCIETY GUIDELINE"),
        cited=(listed(guide),),
    )
    return Made(guide, document, ANY)


@impostor
def the_editorial_of_the_next_year() -> Made:
    editorial = wanted(
        "10.6251/jlh.2014.1",
        "Editorial",
        "Agnes Thorne, Malik Osei",
        2014,
        "Journal of Library Histories",
        "8(1)",
        "1-2",
        tongue=HUMANITIES,
        topics="the reading room; the catalogue in cards; our reviewers; the bindery",
        abstract="",
    )
    said = (
        "With this issue the journal enters its ninth year. The editors look back on a year in which twenty-six "
        "manuscripts came to us, from eleven countries, and in which we said farewell to our founding publisher.",
        "Three of the five articles that follow began as papers at the meeting in Lund. Ruiz writes on catalogues of "
        "lending libraries, Petrov on the chained books of Kazan, and Moss on what a reader was allowed to eat.",
        "We are glad to welcome Dr Ines Falk as review editor. From now on, books for review go to her address.",
        "Readers have asked us why articles on libraries outside Europe are still so few. The honest answer is "
        "that few are sent to us. "
        "We have therefore asked three colleagues, in Dakar, Hanoi and Lima, to join the board and to look for "
        "authors.",
        "The price of the journal remains what it was. Members of the Society receive it with their subscription; "
        "others may buy single "
        "issues from the new publisher, whose address stands on the inside of the cover.",
        "Last, a correction of taste. The photograph on the cover of our autumn issue showed a reading room in "
        "Ghent and not, as we said, "
        "in Bruges. Eleven readers wrote. We are glad to have such readers, and wish them a good year.",
    )
    document = sheets(
        *lines("EDITORIAL|"),
        *(Block(part, size=11, before=8) for part in said),
        *lines("Agnes Thorne and Malik Osei, Editors", "January 2015", before=10),
        marks=(Mark("Journal of Library Histories 9.1 (2015): 1–2", 62, 806), Mark("doi: 10.6251/jlh.2015.1", 62, 795)),
        title="Editorial",
    )
    return Made(editorial, document)


@impostor
def a_paper_of_that_title_by_others() -> Made:
    trust = wanted(
        "10.6252/jcs.2012.290",
        "Trust in authorities after the flood",
        "Noor Rahimi, Claes Edström",
        2012,
        "Journal of Community Studies",
        "40(2)",
        "290-309",
        tongue=SOCIAL,
        topics="trust in the council; flood damage; compensation; the volunteer brigade",
        abstract=(
            "Did the flood of 2002 change how much people trust their council? A panel of 1,100 households says no."
        ),
    )
    document = article(
        "flood others",
        "Trust in authorities after the flood",
        ("Hyun-ki Baek", "Teresa Lobo"),
        15,
        subject=subject_of(trust),
        first=71,
        head=("Asian Review of Disaster and Society 5 (2018), no. 1, 71–85",),
        abstract="The 2011 flood of the lower Chao delta left two million people without a home. Using three "
        "waves of a "
        "national survey, we show that trust in the army rose and trust in the irrigation office fell.",
        cited=(listed(trust),),
        running="TRUST IN AUTHORITIES AFTER THE FLOOD",
    )
    return Made(trust, document)


@impostor
def the_article_that_begins_where_the_wanted_one_ends() -> Made:
    """A scan from the last page of the wanted paper, with its last lines and its author, to the end of the next one."""
    mosses = wanted(
        None,
        "On some mosses from the walls of Roman camps",
        "R. T. Penhallow",
        1911,
        "The Northern Bryologist",
        "6(2)",
        "88-95",
        tongue=OLDER,
        topics="the mosses of the wall; old mortar; the turf of the camp; capsules in spring",
        abstract="",
    )
    top = (
        Block(
            "of the mortar, and I have seen it nowhere else on the Wall. The specimens are in my herbarium, and I "
            "shall "
            "be glad to send duplicates to any member who asks. As I said on the first page, the mosses of these camps "
            "are those of the limestone, which lies nowhere within twenty miles."
        ),
        *lines("R. T. PENHALLOW.", "Carlisle, December 1910.", before=8),
    )
    document = article(
        "sphagna",
        "THE SPHAGNA OF WARDLE MOOR",
        ("By the Rev. J. ACKERLEY, M.A.",),
        8,
        subject=subject_of(mosses),
        top=top,
        abstract="",
        heads=("", "", ""),
        refs=0,
        first=95,
        section_numbers=False,
        title_size=13,
        running="THE NORTHERN BRYOLOGIST",
        info="Scan 0095",
    )
    return Made(mosses, document)


@impostor
def a_cover_of_the_repository_before_another_paper() -> Made:
    """The repository's cover names the wanted paper; whoever deposited it attached another one by the same author."""
    document = article(
        "wrong deposit",
        "Seagrass transplants and the price of failure",
        ("Hanna Sjölund", "Wim de Roo"),
        10,
        subject=subject_of(LAGOONS),
        lead=lines(
            "Norrhavn Research Archive|",
            f"Sjölund, H. et al. (2017) {LAGOONS.title}. Estuarine Records, 22 (1). pp. 52-64.",
            "Version: Accepted Version",
            f"DOI: https://doi.org/{LAGOONS.doi}",
            "Reuse: items in the archive are protected by copyright. You may download one copy for private study.",
            "Deposited by: library desk, 14 March 2018",
            "---",
        ),
        leads=1,
        first=1,
        abstract="Between 1990 and 2012 at least sixty attempts were made to plant seagrass along the coasts of "
        "the North "
        "Sea. We gathered their reports and costs. Two thirds failed in the first winter; the price of a surviving "
        "square metre was 410 euro. We ask what makes a planting fail, and what it would cost to know beforehand.",
        heads=("Introduction", "A survey of plantings", "Costs", "Why plantings fail", "What to do"),
        cited=(listed(LAGOONS, doi=False),),
        info="Microsoft Word - costs_v7.docx",
    )
    return Made(LAGOONS, document)


# What stands beside a paper


@impostor
def supporting_information() -> Made:
    document = article(
        "si",
        f"Supporting Information for “{PEROVSKITE.title}”",
        PEROVSKITE.names,
        7,
        subject=subject_of(PEROVSKITE),
        abstract="",
        folio="S{page}",
        refs=6,
        heads=("Film growth", "Photoluminescence maps", "Fits", "Additional devices"),
        after=lines(
            "This file contains: Figures S1 to S9, Tables S1 to S3, and details of the fits.",
            "Corresponding author: J.-w. Shim, shim@example.org",
            size=9,
        ),
    )
    return Made(PEROVSKITE, document)


@impostor
def an_online_resource_with_tables() -> Made:
    rows = [f"{12 + n}.{n % 7}    {30 + 3 * n}    {0.1 * n + 0.4:.2f}    {4 * n % 13}" for n in range(1, 24)]
    document = sheets(
        *lines(
            "Online Resource 2|",
            f"Article title: {LAGOONS.title}",
            f"Journal: {LAGOONS.journal}",
            f"Authors: {', '.join(LAGOONS.names)}",
            "Corresponding author: Caterina Bussolari, Istituto di Ecologia Marina, Chiomare; bussolari@example.org",
            "Table S1. Phosphate, ammonium and redox potential of the 96 cores.|",
            "Core    Depth (mm)    Phosphate (µM)    Shoots",
            *rows,
            "---",
            "Table S2. Sites and dates.|",
            *rows,
            "Table S3. Results of the mixed models. Estimates with standard error.|",
            *rows[:9],
        ),
        title="ESM2",
    )
    return Made(LAGOONS, document)


@impostor
def the_readme_of_the_data() -> Made:
    document = sheets(
        *lines(
            f"Data from: {EELS.title}|",
            "README",
            f"Authors: {', '.join(EELS.names)}",
            "Dataset DOI: 10.6253/dataden.q7f41",
            f"Please cite the paper: {listed(EELS)}",
            "Summary|",
            abstract_of(EELS),
            "Files|",
            "ctmax_raw.csv: one row for each eel; columns id, estuary, date, mass_mg, length_mm, "
            "acclimation_c, ctmax_c. Missing values are coded -9.",
            "temperature_log.csv: hourly temperature of the holding tanks, in degrees Celsius; one file for each "
            "estuary.",
            "analysis.R: the models and figures of the paper. Needs R 3.1 and the package lme4.",
            "Methods|",
            "Glass eels were caught with a dip net at night on the flood tide. They were held for fourteen "
            "days at 8, 14 or 20 degrees. The bath was then warmed by 0.3 K per minute until an eel lost its balance. "
            "That temperature is ctmax_c. Eels were returned to the estuary after a day.",
            "Licence|",
            "These data are released to the public domain (CC0). We would be glad to hear of any reuse.",
        ),
        title="README",
    )
    return Made(EELS, document)


@impostor
def a_file_of_figures_only() -> Made:
    pages: list[str] = []
    for number, caption in enumerate(
        (
            "Map of the lagoon with the twelve stations. Hatched: seagrass before the heat wave.",
            "Release of phosphate from cores with and without shoots, 2010 to 2015. Bars are standard errors.",
            "Redox potential against depth in cores of June and September.",
            "Modelled release under four scenarios of recovery.",
            "Root mass of transplanted shoots after one and two years.",
        ),
        start=1,
    ):
        pages += [
            f"Figure {number}",
            caption,
            "0    10    20    30    40    50",
            "µmol per square metre and hour",
            "---",
        ]
    document = sheets(
        *lines("Figures|", f"Bussolari, de Roo and Sjölund: {LAGOONS.title}", "Submitted to Estuarine Records", "---"),
        *lines(*pages[:-1]),
        title="figures_final2.pdf",
    )
    return Made(LAGOONS, document)


@impostor
def a_reporting_checklist() -> Made:
    items = (
        "1a  Identification as a randomised trial in the title                       p. 415",
        "1b  Structured summary of trial design, methods, results, conclusions       p. 415",
        "2a  Scientific background and explanation of rationale                      p. 416",
        "2b  Specific objectives or hypotheses                                       p. 416",
        "3a  Description of trial design including allocation ratio                  p. 416",
        "4a  Eligibility criteria for participants                                   p. 417",
        "5   The interventions for each group with details to allow replication      p. 417",
        "6a  Completely defined primary and secondary outcome measures               p. 418",
        "7a  How sample size was determined                                          p. 418",
        "8a  Method used to generate the random allocation sequence                  p. 418",
        "11a If done, who was blinded after assignment                               n/a",
        "13a Numbers randomly assigned, treated and analysed                         p. 419, Figure 1",
        "16  Number of participants included in each analysis                        p. 420",
        "19  All important harms or unintended effects in each group                 p. 422",
        "20  Trial limitations, sources of bias, imprecision                         p. 423",
        "23  Registration number and name of trial registry                          p. 415",
        "25  Sources of funding and other support, role of funders                   p. 425",
    )
    document = sheets(
        *lines(
            "Checklist of information to include when reporting a randomised trial|",
            f"Title: {KNEES.title}",
            f"Authors: {', '.join(KNEES.names)}",
            "Section/topic and item                              Reported on page",
            *items,
            "We strongly recommend reading this list together with the explanation and elaboration.",
        ),
        title="checklist",
    )
    return Made(KNEES, document)


@impostor
def the_reviewers_reports() -> Made:
    document = sheets(
        *lines(
            "PEER REVIEW FILE|",
            f"Title: {PEROVSKITE.title}",
            f"Authors: {', '.join(PEROVSKITE.names)}",
            "This file holds the reports of the reviewers and the replies of the authors for the published article.",
            "Reviewer comments, first round|",
            "Reviewer #1 (Remarks to the Author):",
            abstract_of(PEROVSKITE),
            "The subject is timely and the maps are beautiful. I have three concerns. First, the two species are told "
            "apart by a fit with two exponentials; would one stretched exponential not do? Second, the films were in "
            "air for up to an hour. Third, the claim that boundaries are the faster path needs a sample of larger "
            "grains.",
            "Reviewer #2 (Remarks to the Author):",
        ),
        *paragraphs("review two", REMARKS, subject_of(PEROVSKITE).topics, 8),
        *lines(
            "Author rebuttal, first round|",
            "We thank both reviewers. Below, their remarks are repeated and our replies follow each of them.",
            "Reply 1: We now compare the two fits in Supplementary Figure 4. The stretched form leaves a residual.",
            "Reply 2: We repeated the measurement on a film that was kept in nitrogen and found no difference.",
        ),
        *paragraphs("rebuttal", REPLIES, subject_of(PEROVSKITE).topics, 12),
        *lines(
            "Reviewer comments, second round|",
            "Reviewer #1: The authors have met my concerns. I support publication.",
            "Reviewer #2: I have no further remarks.",
        ),
        title="Peer review file",
        marks=(Mark("{page}", 290, 34, 9),),
    )
    return Made(PEROVSKITE, document)


@impostor
def a_comment_on_the_paper() -> Made:
    document = of_journal(
        PEROVSKITE,
        "comment",
        title=f"Comment on “{PEROVSKITE.title}” [Appl. Mater. Lett. 15, 506 (2020)]",
        names=("Silvan Ott", "Divya Narayan"),
        head=("Applied Materials Letters 16, 216101 (2021)", "doi: 10.6245/aml.2021.0611"),
        abstract="",
        pages=3,
        first=1,
        heads=("", "", ""),
        section_numbers=False,
        refs=5,
        cited=(listed(PEROVSKITE),),
        after=(
            Block(
                "In a recent Letter [1], Shim and co-workers report maps of photoluminescence of caesium tin "
                "iodide films "
                "under bias, and conclude that two species of ions move. We show here that the slower signal is "
                "found in "
                "films without bias as well, and that a trap which fills within seconds explains all of their data."
            ),
        ),
        places=("Laboratory for Thin Films, Thunberg Polytechnic",),
        columns=2,
    )
    return Made(PEROVSKITE, document)


@impostor
def the_authors_reply_to_a_comment() -> Made:
    reply = (
        "We thank Ott and Narayan for their interest in our work [1]. They argue [2] that the slower of the two "
        "species "
        "is a trap and does not move. Their argument rests on the assumption that the field is uniform across the "
        "film. In our geometry it is not, as Fig. 2 of the paper shows, and with the true field the mobility follows.",
    )
    document = of_journal(
        PEROVSKITE,
        "reply",
        head=("Applied Materials Letters 16, 216102 (2021)", "https://doi.org/10.6245/aml.2021.0612"),
        title="Reply to “Comment on ‘Slow ion migration in caesium tin perovskite films under bias’”",
        abstract="",
        after=tuple(Block(part) for part in reply),
        pages=2,
        first=1,
        heads=("", ""),
        section_numbers=False,
        refs=4,
        cited=(listed(PEROVSKITE),),
        columns=2,
    )
    return Made(PEROVSKITE, document)


@impostor
def a_correction_of_two_figures() -> Made:
    document = document_of(
        [
            Text("Estuarine Records (2018) 23:401", 8, at=(62, 806)),
            Text("https://doi.org/10.6246/estuar.2018.0401", 8, at=(62, 795)),
            Text("AUTHOR CORRECTION", 9, bold=True),
            Text(f"Correction to: {LAGOONS.title}", 16, bold=True),
            Text(", ".join(LAGOONS.names), 11),
            Text("Published online: 2 May 2018", 8),
            Text(f"Correction to: Estuar Rec (2017) 22:52–64. https://doi.org/{LAGOONS.doi}", 9, before=14),
            Text(
                "In the original publication, the panels of Figure 3 were exchanged, and the unit of the axis in "
                "Figure 4 "
                "was given as µmol per square metre and day. It should be µmol per square metre and hour. The correct "
                "figures are given below. The results and conclusions are not affected. The original article has been "
                "corrected.",
                10,
            ),
            Text("Fig. 3 Redox potential against depth in cores of (a) June and (b) September", 8, before=180),
            Text("Fig. 4 Modelled release under four scenarios of recovery", 8, before=180),
            Text("The online version of the original article can be found under the DOI given above.", 8, before=14),
        ],
        title="Correction to: Nutrient release from lagoon sediment after the loss of seagrass",
    )
    return Made(LAGOONS, document)


@impostor
def the_notice_left_by_a_withdrawal() -> Made:
    turmeric = wanted(
        "10.6254/j.phytonut.2019.103",
        "Curcumin complexes lower fasting glucose in diabetic rats",
        "A. K. Bhansali, S. Devarajan, L. Otieno",
        2019,
        "Phytonutrition Reports",
        "55(2)",
        "103-112",
        tongue=CLINIC,
        topics="fasting glucose; curcumin; the islets; body weight",
        abstract="",
    )
    document = document_of(
        [
            Text("Accepted Manuscript", 18, bold=True),
            Text(turmeric.title, 14, bold=True, before=16),
            Text("A.K. Bhansali, S. Devarajan, L. Otieno", 11),
            Text("PII: S0378-0416(19)30103-7", 9, before=16),
            Text(f"DOI: https://doi.org/{turmeric.doi}", 9),
            Text("Reference: PHYNUT 103", 9),
            Text("To appear in: Phytonutrition Reports", 9),
            Text("Received date: 3 January 2019    Accepted date: 27 May 2019", 9),
            Text(
                "This article has been withdrawn at the request of the authors and the editor, since parts of "
                "Figure 2 had "
                "appeared in an earlier paper of other authors. The publisher apologises for any inconvenience "
                "this may "
                "cause. The policy on article withdrawal can be found on the pages of the journal.",
                10,
                before=20,
            ),
        ],
        title=turmeric.title,
        doi=turmeric.doi,
    )
    return Made(turmeric, document)


@impostor
def a_plain_language_summary() -> Made:
    document = sheets(
        *lines(
            "Plain language summary|",
            KNEES.title + "|",
            ", ".join(KNEES.names),
            "What is this summary about?|",
            "This is a summary of an article that was published in Trials in Movement and "
            f"Rehabilitation in 2021 (https://doi.org/{KNEES.doi}). It is meant for people who had, or will have, "
            f"a new knee.",
            "Why was the study done?|",
            "After the operation most people are told to walk, but few have somebody who walks "
            "with them. We wanted to know whether that makes a difference.",
            "What did we do?|",
            "312 people took part in four hospitals. Half of them walked twice a week with a "
            "physiotherapist. The others were given a leaflet. Chance decided who was in which group.",
            "What did we find?|",
            "After twelve weeks, people who had walked with a physiotherapist could walk 61 metres "
            "further in six minutes. They did not have more falls. Pain was the same in both groups.",
            "What does this mean?|",
            "Walking with somebody helps. Ask your hospital whether it has a walking group.",
            "Where can I find out more?|",
            "The full article is free to read on the journal’s pages. We thank everybody who "
            "took part, and the patient group that helped to write this text.",
        ),
        title="PLS",
    )
    return Made(KNEES, document)


@impostor
def a_poster_of_the_work() -> Made:
    document = Document(
        front=(
            *lines(
                GRAPHS.title + "|",
                ", ".join(GRAPHS.names),
                "University of Sandnes; Politechnika Nadwarta",
                "Poster 41, Summer School on Data Systems, August 2018",
                size=9,
            ),
            *summary("Motivation", abstract_of(GRAPHS)),
            *summary(
                "Approach",
                "Partial matches are kept in a tree of joins. An edge that comes or goes touches one leaf; "
                "its change is pushed towards the root until nothing changes any more.",
            ),
            *summary("Results", "12 to 90 times faster than evaluation from scratch. Memory grows by a factor of 2.4."),
            *summary("Next", "Paths of unknown length. Transactions. Paper in preparation!"),
            *lines(
                "Scan me: slides and code", "References: [1] Ullvik 1996. [2] Gupta-Rao 1993. [3] Terwil 2014.", size=8
            ),
        ),
        size=LANDSCAPE,
        columns=2,
        title="poster_a0_final",
    )
    return Made(GRAPHS, document)


@impostor
def the_slides_of_the_talk() -> Made:
    points = {
        "Outline": ("The building accounts", "Who lends to a mason?", "The quarry as security", "What is a guild?"),
        "The source": ("Accounts of the chapter, 1380–1430", "Seven volumes, two lost in 1793", "Ninety names"),
        "An example": ("Jehan le Picart, 1402", "Forty livres from a canon", "Lease of the quarry at Vaux in return"),
        "Who lends?": ("Canons: 41 %", "Other masons: 33 %", "Merchants of Dijon: 12 %", "Unknown: 14 %"),
        "The quarry as security": ("Lease without use", "Returned when the debt is paid", "A legal fiction?"),
        "The guild": ("No rule on entry before 1461", "A circle of creditors", "Not a closed trade"),
        "Objections": ("Only one town", "Only debts that were written down", "Women lenders hidden by husbands"),
        "Conclusion": ("Follow the debts", "Stone is credit", "Article forthcoming in Annals of Guild and Estate"),
        "Thank you!": ("Questions?", "ferrandier@example.org"),
    }
    slides: list[Block] = [
        *lines(QUARRIES.title + "|", "Blanche Ferrandier", "Medieval Congress, Leedham, 9 July 2008", size=16)
    ]
    for head, said in points.items():
        slides += lines("---", head + "|", *(f"• {point}" for point in said), size=16, before=12)
    marks = (Mark("B. Ferrandier: Masons, quarries and credit", 62, 24, 9), Mark("{page}", 780, 24, 9))
    return Made(QUARRIES, sheets(*slides, marks=marks, size=LANDSCAPE, title="PowerPoint Presentation"))


@impostor
def the_thesis_with_the_paper_as_a_chapter() -> Made:
    titles = ("General introduction", LAGOONS.title, "Sulphide and the timing of shoot loss", "General discussion")
    contents = ("Contents|", "Summary  5", *(f"Chapter {n}. {t}  {4 + 5 * n}" for n, t in enumerate(titles, 1)), "---")
    chapters: list[Block] = []
    for number, title in enumerate(titles, 1):
        chapters += lines("---", f"Chapter {number}|", f"{title}|") if number > 1 else lines("Chapter 1|", f"{title}|")
        if number == 2:
            chapters += lines("Published as: " + listed(LAGOONS), size=9)
            chapters += summary("Abstract", abstract_of(LAGOONS))
        chapters += essay(f"thesis {number}", LAGOONS, 36)
    document = Document(
        front=lines(
            "Meadows without roots: nutrients in shallow lagoons|",
            "Caterina Bussolari",
            "A thesis submitted for the degree of Doctor of Philosophy",
            "University of Chiomare, Department of Biology",
            "September 2018",
            "Supervisors: Prof. Wim de Roo, Dr Hanna Sjölund",
            "---",
            *contents,
            "Summary|",
            "This thesis asks what becomes of a lagoon when its meadows die, in three studies in the field.",
            "---",
        ),
        body=chapters,
        back=works_cited("thesis", subject_of(LAGOONS), 30, (listed(LAGOONS),)),
        marks=(Mark("{page}", 290, 34, 9),),
        title="PhD thesis C. Bussolari",
    )
    return Made(LAGOONS, document)


@impostor
def a_patent_of_that_title() -> Made:
    valve = wanted(
        "10.6255/jmf.2006.341",
        "Magnetically actuated microvalve with a ferrofluid plug",
        "Dieter Kessenich, Aiko Murata, Paul Nwosu",
        2006,
        "Journal of Microfluid Devices",
        "3(4)",
        "341-350",
        tongue=PHYSICS,
        topics="the ferrofluid plug; leak rate; the actuating coil; the valve seat",
        abstract="We present a microvalve that is closed by a plug of ferrofluid in the field of a coil.",
    )
    parts = ("the plug of ferrofluid", "the coil", "the valve seat", "the permanent magnet")
    claims = (
        "What is claimed is: 1. A valve for a fluid channel, comprising a plug of ferrofluid in said channel, and "
        "a coil "
        "adapted to move said plug between a first position and a second position.",
        "2. The valve of claim 1, wherein said channel is formed in a polymer.",
        "3. The valve of claim 1 or 2, wherein said plug has a volume of less than one microlitre.",
        "4. The valve of any preceding claim, further comprising a permanent magnet that holds the plug when no "
        "current flows.",
    )
    document = sheets(
        *lines(
            "United States Patent Application Publication|",
            "Pub. No.: US 2005/0004162 A1      Pub. Date: Jan. 6, 2005",
            "(54) MAGNETICALLY ACTUATED MICROVALVE WITH A FERROFLUID PLUG|",
            "(75) Inventors: Dieter Kessenich, Jena (DE); Aiko Murata, Sendai (JP); Paul Nwosu, Leeds (GB)",
            "(21) Appl. No.: 10/416,233     (22) Filed: Jul. 2, 2004",
            "(51) Int. Cl. F16K 31/02",
            "(57) ABSTRACT|",
            "A valve for microfluidic channels is closed by a plug of ferrofluid which is moved by the field of a "
            "coil.",
            "---",
            "FIELD OF THE INVENTION|",
        ),
        *paragraphs("patent", PATENT, parts, 4),
        *lines("DETAILED DESCRIPTION|"),
        *paragraphs("patent detail", PATENT, parts, 26),
        *lines("CLAIMS|", *claims),
        title="US20050004162A1",
    )
    return Made(valve, document)


# Only a part of the paper


@impostor
def the_first_page_as_a_preview() -> Made:
    whole = of_journal(
        EELS, "preview", columns=2, head=("Ecology of Fresh Waters 31 (2014) 317–328", f"doi:{EELS.doi}")
    )
    body = tuple(whole.body)[:9]
    document = Document(
        front=(*whole.front, *body),
        marks=(*whole.marks, Mark("PREVIEW: first page of the article", 120, 300, 26, 45)),
        columns=2,
        first_page=317,
        title=EELS.title,
    )
    return Made(EELS, document)


@impostor
def the_two_pages_that_are_free_and_an_offer_to_buy() -> Made:
    front = of_journal(KNEES, "look inside").front
    document = Document(
        front=(
            *front,
            *lines("1. Background|"),
            *essay("look inside", KNEES, 5),
            *lines("---"),
            *lines(
                "This is a preview of subscription content|",
                "Buy this article: EUR 39.95, PDF, 12 pages, instant access.",
                "Tax will be calculated during checkout.",
                "Rent it for 48 hours: EUR 6.00",
                "Institutions: sign in through your library. Societies: members of the Association read for free.",
                f"Cite this article: {listed(KNEES)}",
                "Similar articles|",
                "Home exercise after hip replacement: a pilot. Step counts in older adults. Falls after surgery.",
            ),
        ),
        marks=(Mark("Trials in Movement and Rehabilitation (2021) 9:415–426", 62, 806, pages="first"),),
        first_page=415,
        title=KNEES.title,
    )
    return Made(KNEES, document)


@impostor
def a_scan_of_the_odd_pages_only() -> Made:
    """Both sides were printed, one was scanned: pages 77, 79 … 103 of 77 to 103, each begins within a sentence."""
    blocks: list[Block] = [
        *lines(QUARRIES.title.upper() + "|", "BLANCHE FERRANDIER"),
        *summary("Abstract", abstract_of(QUARRIES)),
    ]
    marks: list[Mark] = [Mark("77", 290, 34, 9, pages="1")]
    for at, number in enumerate(range(77, 104, 2), start=1):
        if at > 1:
            blocks += lines("---")
            carried_over = essay(f"carried over {number}", QUARRIES, 1)[0].text
            blocks.append(Block(" ".join(carried_over.split()[7:])))
            marks += [
                Mark("Masons, quarries and credit", 220, 806, 8, pages=str(at)),
                Mark(str(number), 520, 806, 8, pages=str(at)),
            ]
        *whole, last = essay(f"odd {number}", QUARRIES, 7 if at == 1 else 8)
        blocks += [*whole, Block(last.text.rpartition(" ")[0].rpartition(" ")[0])]
    blocks += works_cited("odd", subject_of(QUARRIES), 6)
    return Made(QUARRIES, Document(front=tuple(blocks), marks=tuple(marks), title="scan0043"))


@impostor
def a_download_that_breaks_off_in_the_middle() -> Made:
    """The connection was lost; what came was saved as a file of its own: six pages of 24."""
    whole = of_journal(
        GRAPHS,
        "broken off",
        head=("Journal of Graph Systems 7(3), 188–211, 2019", "https://doi.org/10.6242/jgs.2019.88"),
        running="Adeleke, Wilk, Lindahl: Incremental pattern matching",
    )
    *half, last = tuple(whole.body)[:72]
    cut = Block(last.text[: len(last.text) // 2].rpartition(" ")[0])
    document = Document(front=(*whole.front, *half, cut), marks=whole.marks, first_page=188, title=GRAPHS.title)
    return Made(GRAPHS, document)


@impostor
def the_extended_summary_in_english() -> Made:
    oats = wanted(
        "10.6256/rcb.2008.151",
        "Adubação nitrogenada e qualidade de grãos de aveia em solos arenosos",
        "Rita|de Cássia Moura, João Batista Ferraz, Elza Kunz",
        2008,
        "Revista de Culturas Brandas",
        "38(1)",
        "151-166",
        tongue=PORTUGUESE,
        topics="a adubação nitrogenada; a qualidade de grãos; o teor de proteína; a palhada",
        abstract="Avaliou-se o efeito de doses de nitrogênio na qualidade de grãos de aveia.",
    )
    document = document_of(
        [
            Text("Revista de Culturas Brandas, v. 38, n. 1, 2008. Extended summaries in English.", 8, at=(62, 806)),
            Text("Nitrogen fertilization and grain quality of oats on sandy soils", 14, bold=True),
            Text("R. de C. Moura, J. B. Ferraz and E. Kunz", 10),
            Text("(The full article, in Portuguese, is on pages 151 to 166 of this issue.)", 9),
            Text(
                "Oats are grown on sandy soils of the plateau without much fertilizer. Nitrogen was applied at "
                "rates of 0, "
                "30, 60 and 90 kg per hectare at tillering in two seasons. Grain yield rose up to 60 kg and "
                "protein up to "
                "90 kg. The share of thin grains did not change. Straw left on the field halved the response in "
                "the first "
                "season. The authors recommend 50 to 60 kg where straw is removed, and 40 kg elsewhere.",
                10,
            ),
            Text("Key words: Avena sativa, nitrogen, protein, straw, thin grains.", 9),
            Text("Adubação verde e erosão em encostas: an extended summary", 14, bold=True, before=20),
            Text("L. Prates and O. Sá", 10),
            Text(
                "Cover crops were sown between rows of maize on slopes of eight to fifteen per cent. Loss of soil was "
                "measured in troughs for three years. All cover crops reduced the loss, and vetch most of all.",
                10,
            ),
        ],
        title="English summaries",
    )
    return Made(oats, document)


# Papers about papers, and what publishers and libraries print


@impostor
def a_licence_to_reuse_a_figure() -> Made:
    document = sheets(
        *lines(
            "SPRINGFELD LICENSE|",
            "TERMS AND CONDITIONS",
            "Jun 14, 2022",
            "This Agreement between University of Norrhavn -- Library (“You”) and Springfeld Press (“Springfeld”) "
            "consists of "
            "your license details and the terms and conditions provided by Springfeld and Clearance Center.",
            "License Number: 5416 2960 1183",
            "License date: Jun 14, 2022",
            f"Licensed Content Publication: {LAGOONS.journal}",
            f"Licensed Content Title: {LAGOONS.title}",
            f"Licensed Content Author: {', '.join(LAGOONS.names)}",
            "Licensed Content Date: Mar 3, 2017",
            f"Licensed Content DOI: {LAGOONS.doi}",
            "Licensed Content Pages: 13",
            "Type of use: Thesis/Dissertation",
            "Portion: figures/tables/illustrations",
            "Number of figures: 1",
            "Total: 0.00 USD",
            "Terms and Conditions|",
            "1. The Publisher grants you a non-exclusive, non-transferable licence to reproduce the figure named "
            "above in "
            "your thesis, in print and in electronic form, provided that the source is acknowledged.",
            "2. Except as allowed above, you may not copy, distribute, adapt or translate the Licensed Material, "
            "or use it "
            "for any commercial purpose. All rights not granted are reserved.",
            "3. The licence is void if the fee is not paid within thirty days of the date of the invoice.",
            "4. Figures which are marked as taken from other works need a permission of their own.",
            "5. This Agreement is governed by the laws of the country in which the Publisher has its seat.",
            "Questions? Write to the customer care of the Clearance Center.",
        ),
        title="RightsDirect Printable License",
    )
    return Made(LAGOONS, document)


@impostor
def a_request_for_a_copy_between_libraries() -> Made:
    document = document_of(
        [
            Text("FERNLEIHE / INTERLIBRARY LOAN", 16, bold=True),
            Text("Article copy request no. A041-629934      Date: 02.11.2011", 9),
            Text("Ordering library: Stadtbücherei Lindau      Delivering library: UB Harzburg, Zs 4416", 9),
            Text("Journal: Annals of Guild and Estate", 10, before=12),
            Text("Volume: 64   Issue: 1   Year: 2009   Pages: 77-103", 10),
            Text("Author: Ferrandier, Blanche", 10),
            Text(f"Title: {QUARRIES.title}", 10),
            Text(f"DOI: {QUARRIES.doi}", 10),
            Text(
                "[ ] not on shelf   [x] at the bindery until 20.11.   [ ] pages missing   [ ] more than 40 pages",
                9,
                before=12,
            ),
            Text(
                "Notice: This copy is made for the private use of the reader. It may not be passed on in "
                "electronic form. "
                "The reader undertakes to comply with the law of copyright and bears the costs of the order.",
                8,
                before=12,
            ),
            Text("Reader: [name withheld]     Pick up at: main desk     Fee: 1.50 EUR", 9),
        ],
        title="Bestellschein",
    )
    return Made(QUARRIES, document)


@impostor
def the_queries_to_the_author_before_the_proof() -> Made:
    document = document_of(
        [
            Text("AUTHOR QUERY FORM", 16, bold=True),
            Text(
                "Journal: Applied Materials Letters      Article Number: 1506      Please e-mail to: "
                "corrections@example.com",
                9,
            ),
            Text("Dear Author,", 10, before=12),
            Text(
                "Please check your proof carefully and mark all corrections at the place in question. Changes of "
                "the title, "
                "of authors or of their order need the consent of the editor. Send corrections within 48 hours.",
                10,
            ),
            Text(f"Title: {PEROVSKITE.title}", 10, bold=True, before=10),
            Text(f"Authors: {', '.join(PEROVSKITE.names)}", 10),
            Text(f"DOI: {PEROVSKITE.doi}", 10),
            Text("Q1  Please confirm that given names and surnames have been identified correctly.", 9, before=10),
            Text("Q2  Reference [14] is in the list but not cited in the text. Please cite it or delete it.", 9),
            Text("Q3  The resolution of Fig. 3 is low. Please supply a file of at least 300 dpi.", 9),
            Text("Q4  “0.31 and 0.58 eV”: the legend of Fig. 4 has 0.59 eV. Which one is right?", 9),
            Text("Q5  Please give the year of reference [22], or state that it is in press.", 9),
            Text("Q6  Is the funding information complete? No grant number was found for the second agency.", 9),
        ],
        [
            Text("How to annotate your proof", 14, bold=True),
            Text("Open the file in a reader of version 9 or later. Choose Comment, then Drawing Markups.", 10),
            Text("Replace: strike the wrong words and write the new ones in the box that opens.", 10),
            Text(
                "Insert: place the cursor where words are missing, and type. Do not change the text of the file "
                "itself.",
                10,
            ),
            Text(
                "Offprint order: 25, 50 or 100 copies. A price list is on the next sheet. A PDF is free of charge.", 10
            ),
        ],
        title="AQ_aml1506",
        doi=PEROVSKITE.doi,
    )
    return Made(PEROVSKITE, document)


@impostor
def a_transfer_of_copyright() -> Made:
    document = document_of(
        [
            Text("COPYRIGHT TRANSFER AND PUBLISHING AGREEMENT", 14, bold=True),
            Text("Society of Dynamic Data, Journal of Graph Systems", 10),
            Text(f"Title of the manuscript: {GRAPHS.title}", 11, before=12),
            Text(f"All authors: {', '.join(GRAPHS.names)}", 11),
            Text("Manuscript number: JGS-2018-0088R2", 10),
            Text(
                "1. The undersigned, desiring to publish the above work, transfers to the Society all rights "
                "under copyright "
                "that exist in it, including any revised or extended form prepared by the undersigned.",
                10,
                before=12,
            ),
            Text(
                "2. The undersigned warrants that the work is original, has not appeared elsewhere, and that all "
                "persons who "
                "contributed to it are named above and have agreed to be named.",
                10,
            ),
            Text(
                "3. Authors keep the right to post the accepted version on their own pages and in the repository "
                "of their "
                "institution, with a notice of the place of publication.",
                10,
            ),
            Text("4. Should the work not be published within two years, all rights return to the authors.", 10),
            Text(
                "Signature: ____________________     Date: 11 February 2019     Printed name: Yusuf Adeleke",
                10,
                before=24,
            ),
        ],
        title="CTA form",
    )
    return Made(GRAPHS, document)


@impostor
def the_cover_and_contents_of_the_issue() -> Made:
    others = (
        ("Light on the river: lamps and may flies", "P. Ostrander, V. Lemm", 229),
        ("A key to the leeches of Drava", "Z. Horvat", 251),
        ("Do pike remember? A field test", "S. Ellingsen, R. Bui", 268),
        ("Carbon in ponds of the moor", "E. Faircloth et al.", 284),
        ("Crayfish plague in hill streams", "B. Santos, I. Weir", 301),
        (EELS.title, ", ".join(EELS.names), 317),
        ("Dams and drift: seven rivers compared", "T. Nakagawa, J. Prins", 329),
        ("Book reviews", "", 347),
    )
    toc = [f"{title}. {by}    {page}" for title, by, page in others]
    document = sheets(
        *lines("ECOLOGY OF FRESH WATERS|", "Volume 31   Number 2   June 2014", "ISSN 0416-2217", "---"),
        *lines(
            "Editor-in-Chief|",
            "Prof. Dagny Ruud, Torvik",
            "Associate Editors|",
            "L. Abernethy, Perth; C. Dupleix, Lyon; H. Endo, Kyoto; M. Farkas, Szeged; W. Greve, Kiel; T. "
            "Queirós, Braga",
            "Aims and scope|",
            "The journal publishes original work on the life of rivers, lakes, ponds and estuaries.",
            "Subscription: four issues a year, 416 euro for institutions. Claims for missing issues within 90 days.",
            "---",
            "CONTENTS|",
            *toc,
            "Cover: glass eels at the sluice of Torvik (photograph M. Oldervik; see page 317).",
        ),
        title="EFW 31-2 frontmatter",
    )
    return Made(EELS, document)


@impostor
def a_book_of_abstracts() -> Made:
    """The talk bears the title of the paper and has its authors; 40 others stand beside it."""
    strands = (
        "Ions at the surface of wet salt",
        "Tin halides beyond lead",
        "Fields in thin films",
        "Fast maps of slow light",
        "Dopants that do not stay",
        "Grain growth under lamps",
        "Barriers to water",
        "Lifetimes in the lab and outdoors",
    )
    blocks = [*lines("Thin Film Days 2019|", "Book of abstracts", "Estoria, 2–5 September 2019", "---")]
    for number in range(1, 25):
        if number == 11:
            blocks += lines(
                f"O{number}  {PEROVSKITE.title}|", ", ".join(PEROVSKITE.names), abstract_of(PEROVSKITE), size=9
            )
            continue
        topic = strands[number % len(strands)]
        blocks += lines(
            f"O{number}  {topic} ({number % 3 + 1})|",
            f"{'ABCDEFG'[number % 7]}. Sommer, {'HJKLM'[number % 5]}. Ruiz",
            size=9,
        )
        blocks += paragraphs(f"abstracts {number}", PHYSICS, (topic.lower(), "the film", "the cell"), 1)
    blocks += lines(
        "---", "Index of authors|", "Benhamou F. O11    Prado L. O11    Riemann O. O11    Ruiz J. O2    Shim J. O11"
    )
    return Made(PEROVSKITE, sheets(*blocks, title="TFD2019 abstracts", marks=(Mark("{page}", 290, 34, 9),)))


@impostor
def the_index_of_the_volume() -> Made:
    heads = (
        "Abbeys",
        "Accounts",
        "Burgundy",
        "Canons",
        "Credit",
        "Debts",
        "Dijon",
        "Guilds",
        "Leases",
        "Masons",
        "Quarries",
        "Stone",
        "Tolls",
        "Widows",
        "Wills",
    )
    entries = [f"{head}, {12 + 7 * n}, {40 + 9 * n}–{44 + 9 * n}, {210 + n}" for n, head in enumerate(heads)]
    document = sheets(
        *lines(
            "ANNALS OF GUILD AND ESTATE|",
            "INDEX TO VOLUME 64 (2009)",
            "Authors|",
            "Adlington, M., Mills without millers, 1–26",
            "Corti, S., Salt and the salt tax, 141–170",
            "Dorn, U., The baker’s oath, 27–76",
            f"Ferrandier, Blanche, {QUARRIES.title}, 77–103",
            "Grandin, P., Review of E. Voss, Towns on credit, 271–273",
            "Ilves, K., Peasants at law, 104–140",
            "Lund, F., The herring fleets, 171–203",
            "Subjects|",
            *entries,
        ),
        title="Index 64",
    )
    return Made(QUARRIES, document)


@impostor
def the_reading_list_of_a_course() -> Made:
    weeks = (
        "Stone and money",
        "Who is a master?",
        "Guilds: old and new views",
        "Women at work",
        "The end of the guilds",
    )
    blocks = [
        *lines(
            "HIST 4162: Work and Credit in the Medieval Town|",
            "Spring term 2013. Dr M. Adlington. Tuesdays 14–16, Room B12",
            "Please read the starred texts before the class. All are in the folder of the course.",
        )
    ]
    for number, week in enumerate(weeks, 1):
        blocks += lines(f"Week {number}. {week}|")
        if number == 1:
            blocks += lines(
                f"* {listed(QUARRIES)}",
                "Question: does Ferrandier convince you that the guild was a circle of creditors?",
            )
        blocks += works_cited(f"course {number}", subject_of(QUARRIES), 5)
    blocks += lines("Assessment|", "One essay of 3,000 words (60 %), one book report (20 %), participation (20 %).")
    return Made(QUARRIES, sheets(*blocks, title="HIST4162 syllabus"))


@impostor
def a_press_release() -> Made:
    document = document_of(
        [
            Text("UNIVERSITY OF CHIOMARE", 9, bold=True),
            Text("Press release, 6 March 2017. For immediate use", 9),
            Text("When meadows die, the sea bed lets go", 20, bold=True, before=16),
            Text("Loss of seagrass sets nutrients free for years, a study in a shallow lagoon shows", 12),
            Text(
                "In the hot summer of 2010 the meadows of seagrass in the lagoon of Chiomare died within weeks. "
                "What followed "
                "surprised even those who know the lagoon well: algae turned the water green in the next spring, "
                "and again "
                "in the next. “We first thought of farms upstream,” says Caterina Bussolari, lead author of the "
                "study. “But "
                "the nutrients came from below.”",
                before=12,
            ),
            Text(
                "Together with Wim de Roo and Hanna Sjölund she took cores from the sea bed for six years. "
                "Without roots, "
                "phosphate release rose fivefold. Where the team planted new shoots, it fell back after two years."
            ),
            Text(
                "“It is the roots that count, not the shade,” says Sjölund. For those who look after coasts this "
                "is good news: "
                "even small plantings help. The work was paid for by the region and the European fund for coasts."
            ),
            Text(
                f"Original publication: {', '.join(LAGOONS.names)}: {LAGOONS.title}. {LAGOONS.journal} 22, 52–64 "
                f"(2017). "
                f"DOI: {LAGOONS.doi}",
                9,
                before=12,
            ),
            Text("Contact: press office, press@example.org. Photographs can be had on request.", 9),
        ],
        title="Press release",
    )
    return Made(LAGOONS, document)


@impostor
def a_research_highlight_in_another_journal() -> Made:
    document = document_of(
        [
            Text("NEWS & VIEWS", 9, bold=True),
            Text("SOLAR CELLS", 9, before=10),
            Text("Slow ions under bias", 22, bold=True),
            Text("Films of caesium tin perovskite show where ions move, and how fast.", 12),
            Text("Marguerite Oyelaran", 11),
            Text(
                "Ask three people in the field why perovskite cells remember how they were measured, and you will "
                "get four "
                "answers. Ions are the usual suspects. Writing in Applied Materials Letters, Jae-won Shim and "
                "colleagues¹ now "
                "catch them in the act: they map the light that a film gives off while a field is switched on.",
                before=12,
            ),
            Text(
                "Two species emerge. The faster one needs 0.31 eV to hop and prefers the boundaries between "
                "grains; the slower "
                "needs 0.58 eV and does not care. The authors read the first as iodide and the second as tin "
                "vacancies. That "
                "reading is not beyond doubt, as a trap that fills slowly would look much the same."
            ),
            Text(
                "Still, the method is simple and can be used for other films. If larger grains slow the ions "
                "down, as the work "
                "suggests, cells that do not forget may be closer than was thought."
            ),
            Text(f"1. {listed(PEROVSKITE)}", 8, before=12),
            Text("Marguerite Oyelaran is at the Institute of Optics, Ville-Marie.", 8),
            Text("VOL 19 | JULY 2020 | MATERIALS OUTLOOK | 701", 8, at=(62, 34)),
        ],
        title="Slow ions under bias",
    )
    return Made(PEROVSKITE, document)


@impostor
def an_embargoed_item_of_a_repository() -> Made:
    document = document_of(
        [
            Text("TorvikOpen, the institutional archive of the Institute of Inland Fisheries", 9),
            Text(EELS.title, 16, bold=True, before=16),
            Text("Oldervik, Maren; Queirós, Tomás; Brandhuber, Ilse", 11),
            Text("Peer-reviewed article. Published: 2014. Ecology of Fresh Waters, 31(2), 317–328", 10),
            Text(f"DOI: {EELS.doi}      Handle: 11999/4162", 10),
            Text("Abstract", 11, bold=True, before=12),
            Text(abstract_of(EELS), 10),
            Text(
                "The full text of this item is under embargo until 30 June 2015 at the request of the publisher. "
                "This page takes "
                "its place until then. A copy may be asked of the corresponding author.",
                10,
                before=12,
            ),
            Text("Downloaded on 2014-08-19 from TorvikOpen. Terms of use: see the pages of the archive.", 8),
        ],
        title=EELS.title,
        doi=EELS.doi,
    )
    return Made(EELS, document)


@impostor
def a_page_of_the_publisher_printed_from_a_browser() -> Made:
    """Abstract, snippets of each section and the whole list of references; the text itself is for subscribers."""
    document = sheets(
        *lines(
            "ScienceShelf     Journals & Books     Access through your institution     Purchase PDF",
            size=8,
        ),
        *lines(
            "Applied Materials Letters",
            "Volume 15, Issue 6, June 2020, Pages 506-513",
            PEROVSKITE.title + "|",
            ", ".join(PEROVSKITE.names),
            f"https://doi.org/{PEROVSKITE.doi}   Get rights and content",
            "Highlights|",
            "• Ion migration is seen by photoluminescence under bias.",
            "• Two species with different activation energies.",
            "• Grain boundaries are the faster path.",
            "Abstract|",
            abstract_of(PEROVSKITE),
            "Introduction|",
            "Perovskites of tin have been studied as absorbers free of lead. Films of caesium tin iodide can be "
            "grown from "
            "solution or by evaporation, and cells of up to seven per cent have been",
            "Section snippets|",
            "Experiment|",
            "Films were grown on glass at 90 °C from a solution of",
            "Results|",
            "Figure 1 shows maps of a film at",
            "Conclusion|",
            "We have followed ions in films of",
            "Cited by (41)|",
            "Recommended articles (6)|",
        ),
        *works_cited("shelf", subject_of(PEROVSKITE), 26),
        *lines(
            "View full text|",
            "© 2020 Shelf Ltd. All rights reserved. About, Contact, Cookies are used by this site.",
            size=8,
        ),
        marks=(Mark("https://www.scienceshelf.example/article/pii/S0416629920300507     1/3", 62, 20, 7),),
        title=f"{PEROVSKITE.title} - ScienceShelf",
    )
    return Made(PEROVSKITE, document)


@impostor
def a_wall_against_robots() -> Made:
    document = document_of(
        [
            Text("Just a moment...", 18, bold=True),
            Text("Verifying that you are human. This may take a few seconds.", 11),
            Text(f"{KNEES.title} | Trials in Movement and Rehabilitation", 11),
            Text("The site needs to review the security of your connection before proceeding.", 10),
            Text(f"Requested: /doi/pdf/{KNEES.doi}   Reference: 8a41f6299c0d", 9),
            Text("If you are a librarian or a crawler of a search engine, write to access@example.com.", 9),
        ],
        title="Just a moment...",
    )
    return Made(KNEES, document)


# Other tongues and other shelves


@impostor
def the_neighbour_in_a_russian_issue() -> Made:
    melts = wanted(
        "10.6257/s0044-1997-412",
        "Вязкость боратных расплавов, содержащих оксид висмута",
        "И. П. Громов, Л. А. Сухих",
        1997,
        "Журнал физики расплавов",
        "41(2)",
        "212-219",
        tongue=RUSSIAN,
        topics="вязкость расплава; поверхностное натяжение; содержание оксида висмута; температура стеклования",
        abstract="Измерена вязкость боратных расплавов, содержащих от 5 до 40 мол. % оксида висмута.",
    )
    document = article(
        "russian neighbour",
        "Поверхностное натяжение боратных расплавов, содержащих оксид свинца",
        ("Л. А. Сухих", "Н. Н. Яркова"),
        7,
        subject=subject_of(melts),
        head=("ЖУРНАЛ ФИЗИКИ РАСПЛАВОВ, 1997, том 41, № 2, с. 220–226",),
        first=220,
        top=lines("УДК 532.61:546.27", size=8),
        after=lines("Поступила в редакцию 14.03.1996 г.", size=8),
        abstract="Методом максимального давления в пузырьке измерено поверхностное натяжение боратных расплавов, "
        "содержащих "
        "оксид свинца. Показано, что с ростом содержания оксида натяжение проходит через максимум.",
        cited=(
            "Громов И. П., Сухих Л. А. Вязкость боратных расплавов, содержащих оксид висмута // Журн. физики "
            "расплавов. "
            "1997. Т. 41. № 2. С. 212–219.",
        ),
    )
    return Made(melts, document, ANY)


@impostor
def a_german_report_of_the_same_survey() -> Made:
    """The office printed a report of the survey; the article on it, with one more author, appeared a year later."""
    hares = wanted(
        "10.6258/zjw.2003.118",
        "Feldhasen in der Börde: Bestand und Verluste durch Mahd",
        "Karl-Heinz Ströbel, Anke Vollmar",
        2003,
        "Zeitschrift für Jagd und Wild",
        "49(2)",
        "118-131",
        tongue=GERMAN,
        topics=(
            "Bestand der Feldhasen; Verluste durch die Mahd; die Zählung im Scheinwerferlicht; der Anteil der Brachen"
        ),
        abstract="Von 1996 bis 2001 wurden Feldhasen auf 4.100 ha Ackerland gezählt.",
    )
    document = article(
        "hares report",
        "Zählung der Feldhasen in der Börde 1996 bis 2001. Schlussbericht",
        ("Karl-Heinz Ströbel",),
        16,
        subject=subject_of(hares),
        head=("Berichte des Landesamtes für Wild und Jagd, Heft 17", "Halberstein 2002"),
        after=lines("Im Auftrag des Ministeriums für Landwirtschaft und Umwelt", "Aktenzeichen 41-62993/96", size=9),
        abstract="Der Bericht stellt die Zählungen von 1996 bis 2001 nach Revieren zusammen. Eine Auswertung der "
        "Verluste "
        "durch Mahd ist in Vorbereitung und wird an anderer Stelle erscheinen.",
        heads=("Auftrag", "Die Reviere", "Zählungen", "Kosten", "Empfehlungen"),
    )
    return Made(hares, document)


@impostor
def a_review_of_the_book() -> Made:
    """The wanted work is a book; the file is two pages of a journal that review it under its title."""
    bakers = wanted(
        "10.6259/9780416299301",
        "Le pain et la loi: boulangers de Provence au XVIIIe siècle",
        "Odile Castellan",
        2010,
        "Presses du Luberon",
        "1(1)",
        "1-312",
        tongue=FRENCH,
        topics="le prix du pain; la police des grains; les boulangers de Provence; la taxe",
        abstract="",
    )
    document = Document(
        front=(
            *lines(
                "Comptes rendus|",
                "Odile CASTELLAN, Le pain et la loi: boulangers de Provence au XVIIIe siècle, Manosque, Presses "
                "du Luberon, 2010, 312 p., 26 €.",
                size=11,
            ),
            Block(
                "Voici un livre attendu. Issu d’une thèse soutenue à Aix, il suit pendant un siècle les "
                "boulangers de quatre "
                "villes, et montre comment une taxe que l’on croyait immuable se négociait chaque semaine. L’auteure "
                "a dépouillé les registres de la police et, fait plus rare, les livres de compte de trois fours."
            ),
            *paragraphs("bakers review", FRENCH_REVIEW, subject_of(bakers).topics, 15),
            Block("On regrettera l’absence d’un index. Ces réserves n’enlèvent rien à un ouvrage qui fera date."),
            *lines("Guillaume TESSEREAU", size=10),
        ),
        marks=(Mark("Revue des pays du Sud, t. 123, 2011, p. 241–243", 62, 806), Mark("{page}", 290, 34, 9)),
        first_page=241,
        title="Comptes rendus",
        language="fr",
    )
    return Made(bakers, document)


@impostor
def another_case_of_the_same_disease() -> Made:
    """Same hospital, first author, words of the title; another patient, another year."""
    case = wanted(
        "10.6260/rmi.2016.00214",
        "Endocarditis por Bartonella en un paciente con prótesis aórtica: presentación de un caso",
        "Nuria Alcaide|Fuster, Joaquín Peralta",
        2016,
        "Revista de Medicina Interna del Litoral",
        "22(3)",
        "214-217",
        tongue=SPANISH,
        topics="la endocarditis por Bartonella; la prótesis aórtica; la serología; el recambio valvular",
        abstract="Presentamos el caso de un varón de 61 años con prótesis aórtica y fiebre de tres meses.",
    )
    document = article(
        "second case",
        "Endocarditis por Bartonella en una mujer con válvula nativa: a propósito de un caso",
        ("Nuria Alcaide Fuster", "Inés Bordón", "Joaquín Peralta"),
        4,
        subject=subject_of(case),
        first=98,
        refs=9,
        head=("Rev Med Interna Litoral. 2019;25(2):98–101", "Caso clínico"),
        columns=2,
        abstract="Se describe el caso de una mujer de 34 años, sin cardiopatía conocida, con endocarditis por "
        "Bartonella henselae "
        "sobre válvula mitral nativa. Convivía con dos gatos. Recibió doxiciclina y gentamicina, y curó sin cirugía.",
        cited=(listed(case),),
        heads=("Introducción", "Caso clínico", "Discusión"),
    )
    return Made(case, document)


@impostor
def an_article_that_sums_up_the_paper_for_teachers() -> Made:
    """A journal club of students: the head line is the whole citation of the paper, then two pages about it."""
    document = sheets(
        *lines(
            "Journal Club, Department of Physiotherapy, 18 November 2021|",
            f"Paper: {listed(KNEES)}",
            "Presented by: Group C",
            "PICO|",
            "Patients: adults after knee replacement. Intervention: supervised walking, twelve weeks. Comparison: "
            "usual "
            "care. Outcome: walking distance.",
            "Summary of the abstract|",
            abstract_of(KNEES),
            "Was it valid?|",
        ),
        *essay("club", KNEES, 3),
        *lines(
            "Strengths|",
            "Central randomisation. Few losses. The primary outcome was measured by people who were not told.",
            "Weaknesses|",
            "No masking of patients. Follow-up of twelve weeks only. No figures on costs.",
            "Would you change what you do?|",
            "Five of eight said yes. Two would wait for the results after a year. One was not there.",
        ),
        title="JC handout",
    )
    return Made(KNEES, document)


@impostor
def a_math_paper_by_the_same_author_on_the_dual_problem() -> Made:
    """Titles of four words that differ in one; no DOI in the file; same abstract but for two words."""
    packing = wanted(
        "10.6261/acta.1987.33",
        "Packing bushy trees into hypercubes",
        "L. Szentmihály",
        1987,
        "Acta Combinatorica",
        "7(1)",
        "33-41",
        tongue=MATHS,
        topics="the packing of trees; the hypercube of dimension n; the bushy tree; the perfect code",
        abstract="We show that any tree with at most half as many vertices as the hypercube can be packed into it.",
    )
    document = article(
        "covering",
        "COVERING HYPERCUBES BY BUSHY TREES",
        ("L. SZENTMIHÁLY",),
        7,
        subject=subject_of(packing),
        first=305,
        head=("ACTA COMBINATORICA 7 (3) (1987) 305–311",),
        abstract="We show that any tree with at most half as many vertices as the hypercube can be used to cover it.",
        places=("Mathematical Institute, Szegvár, Hungary",),
        after=lines("Received January 11, 1986", size=8),
        refs=8,
        cited=("Szentmihály L. Packing bushy trees into hypercubes. Acta Combinatorica 7 (1) (1987) 33–41.",),
    )
    return Made(packing, document)
