"""What the samples of the third set are written with: sentences of several fields and tongues, and whole articles."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tests.adversary.samples import known, lines
from tests.adversary.works import IndexedWork

from DocsToKG.Sandbox.pdf.document import A4, Block, Document, Mark
from DocsToKG.Sandbox.pdf.layout import laid_out
from DocsToKG.Sandbox.seeded_random import stream


class Tongue(NamedTuple):
    """How a field writes: its sentences, the heads of its sections, the words for a figure, an abstract, a list."""

    sentences: tuple[str, ...]
    heads: tuple[str, ...]
    figure: str = "Figure {n}. {a}: mean of three runs with standard error."
    abstract: str = "Abstract"
    references: str = "References"
    language: str = "en"
    between: str = " "


_ANY_SCIENCE = (
    "These findings should be read with the size of the sample in mind.",
    "An earlier report gave a higher figure, but it rested on other definitions.",
    "Table 2 gives the full results; here we dwell on the two that matter most.",
    "The reason for this difference is not clear.",
    "It may be asked whether the same would hold elsewhere.",
    "Two explanations come to mind, and the data allow us to rule out the first.",
    "We know of no other work that looks at {a} and {b} together.",
    "The order in which the measurements were made had no influence.",
    "What remains is a small but steady difference, in the direction that was expected.",
    "As a check, the analysis was repeated by a person who did not know our hypothesis.",
)
OLDER = Tongue(
    (
        "It is now some twelve years since my attention was first drawn to {a}.",
        "I am indebted to Mr. Fairbairn for the loan of his notes upon {b}.",
        "The weather was fair, with a light wind from the west, and the glass stood high.",
        "In the course of three visits I was able to examine {a} at leisure.",
        "It has been asserted that {b} can be of no account; I cannot agree.",
        "The accompanying table sets out the observations in the order in which they were made.",
        "Reference may be made to a paper read before this Society in the year of the great frost.",
        "No trace of any such thing was found, though we searched until dusk.",
        "The older residents speak of {a} as a matter of course.",
        "A second trial, made in the presence of two members, gave the same result within a tenth part.",
        "It will be seen that the figure is larger than that given by the late Dr. Morley.",
        "Upon {b} I have little to add to what is already in print.",
        "Great care is needed in the handling of the apparatus, which is easily upset.",
        "I offer these remarks with some diffidence, in the hope that others may extend them.",
        "The ground is soft, and the party was obliged to return by the upper path.",
        "From these facts it would appear that {a} and {b} go together more often than not.",
    ),
    ("Introductory", "Observations", "Remarks"),
    "Fig. {n}. Sketch to show {a}.",
)
BIO = Tongue(
    (
        *_ANY_SCIENCE,
        "Little is known about how {a} would respond once {b} had been disturbed.",
        "Samples were taken at dawn and at dusk and kept on ice until they reached the laboratory.",
        "Sites within two kilometres of each other were pooled because {a} did not differ between them.",
        "We fitted a mixed model with site as a random effect and {a} as the response.",
        "Counts of the second year were lower, most likely because of the dry spring.",
        "In the absence of {b} we saw {a} fall by about a third, without recovery before autumn.",
        "Predation cannot account for this pattern, since cages with fine mesh showed the same decline.",
        "Two specimens could not be identified and were left out of the analysis.",
        "The effect of {a} was strongest in the shallow plots, where the ground warmed first.",
        "Similar figures have been reported from the northern part of the range.",
        "A longer series would be needed to separate {a} from the slow change of {b}.",
        "Residuals showed no trend with depth, and leaving out any one site did not alter the sign of the slope.",
        "We thank the wardens for access, who also helped us to record {a} without knowledge of the treatment.",
    ),
    ("Introduction", "Study area and methods", "Results", "Discussion", "Conclusions"),
)
CLINIC = Tongue(
    (
        *_ANY_SCIENCE,
        "Patients were eligible if they were older than eighteen and had given written consent.",
        "The primary outcome was {a} at twelve weeks, with {b} as a secondary outcome.",
        "Randomisation was done centrally in blocks of varying size, stratified by centre.",
        "Seven patients withdrew before treatment and eleven were lost to follow-up.",
        "Analysis was by intention to treat, with multiple imputation for missing values of {a}.",
        "The difference between the groups was 4.1 points (95% CI 1.7 to 6.5) in favour of the intervention.",
        "Adverse events were mostly mild; two serious events were judged unrelated.",
        "Guidelines say little on {a}, and practice differs widely between hospitals.",
        "Our study has limits: staff could not be masked, and the patients themselves reported {b}.",
        "The number needed to treat was eleven, which compares well with other measures against {a}.",
        "Whether the benefit lasts beyond one year is unknown.",
        "Ethical approval was obtained from the regional committee before the first patient was seen.",
        "In a sensitivity analysis without the largest centre the estimate for {b} hardly changed.",
    ),
    ("Background", "Patients and methods", "Results", "Discussion", "Conclusion"),
    "Table {n}. {a} at baseline and at follow-up, by group.",
)
HUMANITIES = Tongue(
    (
        "The sources that speak of {a} are few, late and for the most part hostile.",
        "It has long been held that {b} came first, a view that rests on a single letter.",
        "Read against the parish accounts, however, there is in {a} less of a break than of a habit.",
        "The clerk, who wrote in haste, left a blank where the name should stand.",
        "One need not follow the older school in every point to see that money was behind {a}.",
        "What the preface promises, the book does not keep; the chapter on {b} is a torso.",
        "In the margin a second hand has added a date, which most editors pass over in silence.",
        "Neither the town nor the bishop had an interest in {a} until the toll was lifted.",
        "The same words return in the will of his widow, now among the papers of the chapter.",
        "This is not to deny that {b} had friends at court.",
        "To speak of decline would be to take the complaint of the guild at its word.",
        "The argument gains in weight when {a} is set beside the practice of the neighbouring towns.",
    ),
    ("The question", "The sources", "A reading", "Objections", "Afterword"),
    "Plate {n}. {a}, from the collection of the Stadtmuseum, reproduced with permission.",
    references="Notes and works cited",
)
MATHS = Tongue(
    (
        "Throughout, all spaces are assumed to be separable unless the contrary is stated.",
        "Lemma. If {a} holds for every finite subset, then it holds for the closure.",
        "Proof. Choose a maximal chain; by compactness it has an upper bound, and the claim follows.",
        "We recall the definition of {b} and fix the notation that is used below.",
        "The constant is sharp, as the example at the end of this section shows.",
        "It suffices to treat the case of dimension two, since {a} is stable under products.",
        "By induction on the rank we may assume that {b} is already known for all proper subsets.",
        "The converse fails, even if the group is abelian.",
        "Theorem. Under these hypotheses {a} is determined up to isomorphism by its trace.",
        "A similar argument, with sums in place of integrals, gives the discrete statement.",
        "We do not know whether the assumption on {b} can be dropped.",
        "Combining the two estimates and letting the parameter tend to zero completes the proof.",
    ),
    ("Introduction", "Preliminaries", "Proof of the main theorem", "Examples", "Open questions"),
    "Figure {n}. The diagram used in the proof for {a}.",
)
MATERIAL = Tongue(
    (
        *_ANY_SCIENCE,
        "All runs were made twice, and a third time where the first two differed by more than five per cent.",
        "The rig was calibrated before each day of work against a reference from the bureau of standards.",
        "We measured {a} every ten minutes until it had been steady for an hour.",
        "A rise in temperature shifts {a} to higher values, as theory would have it.",
        "The role of {b} becomes visible only when the load is doubled.",
        "Samples were cut with a wire saw, dried at 105 °C to constant mass and stored over silica gel.",
        "Under the microscope the surface showed fine cracks, most of them at right angles to the flow.",
        "Equation 4 describes {a} within eight per cent over the whole range.",
        "For practice this means that {b} should be checked once a season.",
        "The scatter of the points is that of the sensor and not of {a}.",
        "Salt, dust and the age of the specimen were recorded but had little bearing on {b}.",
        "A simple balance of energy shows that losses through the walls may be neglected.",
    ),
    ("Introduction", "Materials and methods", "Results", "Discussion", "Conclusions"),
    "Fig. {n}. {a}: measured values (points) and equation 4 (line).",
)
GUIDANCE = Tongue(
    (
        "We recommend a first assessment within an hour of arrival (strong recommendation, low certainty).",
        "The panel weighed {a} against {b} and found the balance to be close.",
        "No study was found that answers this question directly.",
        "In patients who are well, {a} need not be repeated before the next visit.",
        "Good practice statement: parents, carers and patients should be told what to look for at home.",
        "Four members of the panel would have preferred a conditional recommendation.",
        "Of 212 records on {b}, nine trials met the criteria, with 1,904 participants in all.",
        "Certainty was rated down for risk of bias and for imprecision.",
        "Costs were taken into account where {a} calls for staff at night.",
        "Hospitals should audit {b} at least once a year.",
        "If doubt remains, seek the advice of a senior colleague without delay.",
        "Research is needed on {a} in settings without a laboratory.",
    ),
    ("Scope", "Methods", "Recommendations", "Putting them into practice", "Research needs"),
    "Table {n}. Summary of the evidence on {a}.",
)
PROTOCOL = Tongue(
    (
        "Participants will be invited by letter and will give written consent before any data are collected.",
        "The primary outcome is {a}; we will also record {b}.",
        "Allocation will be done by a statistician who has no contact with participants.",
        "With 90% power and a two-sided level of 5%, the planned number allows for losses of one in ten.",
        "Staff at each site will be trained in a session of half a day.",
        "A data monitoring committee will meet after one third and two thirds of participants.",
        "We will analyse {a} with a mixed model, adjusted for site and for the value at baseline.",
        "Missing data on {b} will be imputed if more than five per cent are missing.",
        "Any change of the protocol will be sent to the ethics committee and noted in the registry.",
        "Interviews with twenty participants will explore how they see {a}.",
        "Recruitment began in March and is expected to last for eighteen months.",
        "The results will be presented to participants before they are published.",
    ),
    ("Introduction", "Methods and analysis", "Outcomes", "Sample size", "Ethics and dissemination"),
    "Table {n}. Schedule of visits and measures: {a}.",
)
PHYSICS = Tongue(
    (
        *_ANY_SCIENCE,
        "The samples were grown by molecular beam epitaxy and annealed for two hours in vacuum.",
        "A shift of {a} by 12 meV is seen on cooling below 40 K.",
        "The measured value of {b} agrees with the calculation within the error bars.",
        "We attribute the shoulder at low energy to {a}; no such feature is seen in the bulk.",
        "Stray light was removed with a notch filter, and the spectra were corrected for the response of the detector.",
        "The simulation used a cell of 512 atoms and periodic boundaries.",
        "Fitting with two exponentials gives lifetimes of 0.8 ns and 5.4 ns.",
        "At higher power we see {b} saturate, as one expects of a two-level system.",
        "Doping has little influence on {a} below one per cent.",
        "A full account of strain would need a map with better resolution than ours.",
        "The device was cycled ten thousand times without a change of its resistance.",
        "This rules out heating as the cause of {a} in the range of currents used here.",
    ),
    ("Introduction", "Experiment", "Results", "Discussion", "Summary"),
    "Fig. {n}. Dependence of {a} on temperature; the line is a guide to the eye.",
)
SOCIAL = Tongue(
    (
        *_ANY_SCIENCE,
        "The survey reached 2,314 households, of which 61 per cent answered all questions on {a}.",
        "We treat the reform as exogenous, since its date was set by a court.",
        "Column 3 adds regional trends; the coefficient of {a} falls by a fifth but stays significant.",
        "Interviews lasted about an hour and were transcribed by the first author.",
        "Respondents spoke of {b} in terms of fairness rather than of cost.",
        "These results are at odds with a simple model of {a} in which all agents have the same information.",
        "Standard errors are clustered at the level of the municipality.",
        "A placebo test with the years before the reform shows no effect on {b}.",
        "The theory predicts a rise of {a} with income, which we find in the cities only.",
        "Policy makers should be careful when they carry such findings over to other countries.",
        "Heterogeneity matters: for single parents the effect of {a} is twice as large.",
        "Data and code are available from the authors on request.",
    ),
    ("Introduction", "Theory and earlier work", "Data and method", "Findings", "Concluding remarks"),
    "Table {n}. Regression of {a} on household characteristics; standard errors in brackets.",
)
COMPUTING = Tongue(
    (
        *_ANY_SCIENCE,
        "We compare against three baselines, each tuned on the same validation split.",
        "The cost of {a} grows linearly in the number of edges.",
        "Our implementation uses a single thread and keeps {b} in memory.",
        "On the larger graph the baseline ran out of memory after six hours.",
        "An ablation without {a} loses 2.3 points, which shows that the gain is not due to model size.",
        "Each experiment was repeated with five seeds, and we report the median.",
        "Prior systems treat {b} as a black box; we open it and reuse its partial results.",
        "The invariant holds initially and is kept by every step, hence the algorithm is correct.",
        "Users need not change their code, since {a} is hidden behind the existing interface.",
        "A threat to validity is that all traces came from one data centre.",
        "We leave the distributed case of {b} to future work.",
        "Latency at the 99th percentile fell from 41 ms to 17 ms.",
    ),
    ("Introduction", "Related work", "Design", "Evaluation", "Conclusion and future work"),
    "Fig. {n}. Throughput of {a} for growing input; bars show the median of five runs.",
)
GERMAN = Tongue(
    (
        "Zu diesem Punkt ({a}) liegen bisher nur wenige verlässliche Angaben vor.",
        "Die Proben wurden im Frühjahr entnommen und noch am selben Tag untersucht.",
        "Auffällig ist, dass {b} in allen Jahren kaum ins Gewicht fällt.",
        "Ein Zusammenhang beider Reihen ({a}, {b}) lässt sich daraus nicht ableiten.",
        "Die ältere Literatur geht von anderen Voraussetzungen aus und ist nur bedingt vergleichbar.",
        "Für die Auswertung standen insgesamt 148 Fälle zur Verfügung.",
        "Wie Tabelle 2 zeigt, spielt {a} eine geringere Rolle als erwartet.",
        "Diese Abweichung erklärt sich durch die kurze Dauer der Beobachtung.",
        "Gleichwohl bleibt offen, ob {b} allein den Ausschlag gibt.",
        "Weitere Untersuchungen über einen längeren Zeitraum wären wünschenswert.",
        "Den Herren des Amtes sei für die Einsicht in die Akten gedankt.",
        "Die Ergebnisse stimmen mit den Beobachtungen aus den Nachbargebieten überein.",
    ),
    ("Einleitung", "Material und Methode", "Ergebnisse", "Diskussion", "Schlussfolgerung"),
    "Abb. {n}. Übersicht nach Jahren: {a}.",
    "Zusammenfassung",
    "Literatur",
    "de",
)
FRENCH = Tongue(
    (
        "Peu de travaux ont porté jusqu’ici sur {a}.",
        "Les entretiens ont été menés entre mars et juin auprès de quarante-deux personnes.",
        "On observe que {b} ne varie guère d’une région à l’autre.",
        "Cette hypothèse rejoint celle d’autres auteurs, selon lesquels {a} ne va pas sans {b}.",
        "Il convient toutefois de nuancer ce constat, car l’échantillon reste modeste.",
        "Le tableau 3 présente {a} selon l’âge et la profession.",
        "La différence est significative au seuil de cinq pour cent.",
        "Les archives départementales conservent plusieurs liasses concernant {b}.",
        "Tout se passe comme si {a} précédait {b}, et non l’inverse.",
        "Nous remercions les deux relecteurs anonymes de leurs remarques.",
        "Une enquête de plus longue durée permettrait de trancher.",
        "À cet égard, la situation des communes rurales mérite une attention particulière.",
    ),
    ("Introduction", "Matériel et méthodes", "Résultats", "Discussion", "Conclusion"),
    "Figure {n}. Évolution pendant la période étudiée : {a}.",
    "Résumé",
    "Références",
    "fr",
)
SPANISH = Tongue(
    (
        "Existen pocos estudios sobre {a} en nuestro medio.",
        "Se incluyeron 86 pacientes atendidos entre enero y diciembre.",
        "En los mayores de sesenta años, {b} tuvo un peso mayor.",
        "No se hallaron diferencias significativas entre los grupos ({a}).",
        "Los datos se analizaron con un modelo de regresión logística.",
        "Cuando se sospecha {a}, hay que descartar otras causas frecuentes.",
        "Estos resultados coinciden con los de otras series publicadas en la región.",
        "La evolución fue favorable y la paciente recibió el alta al décimo día.",
        "Entre las limitaciones cabe señalar el carácter retrospectivo del estudio.",
        "Sigue siendo motivo de controversia {b}.",
        "Los autores declaran no tener conflictos de interés.",
        "Serían necesarios ensayos con un número mayor de casos.",
    ),
    ("Introducción", "Material y métodos", "Resultados", "Discusión", "Conclusiones"),
    "Figura {n}. Distribución según la edad: {a}.",
    "Resumen",
    "Bibliografía",
    "es",
)
PORTUGUESE = Tongue(
    (
        "A literatura sobre {a} ainda é escassa no país.",
        "As amostras foram coletadas em três municípios durante a estação seca.",
        "Observou-se que {b} aumentou ao longo do período avaliado.",
        "Não houve diferença estatística entre os tratamentos ({a}).",
        "O delineamento foi em blocos casualizados, com quatro repetições.",
        "Os dados sobre {a} foram submetidos à análise de variância.",
        "Resultados semelhantes foram obtidos em solos de textura média.",
        "A adubação influenciou {b} apenas no segundo ano.",
        "Tal comportamento pode ser explicado pela menor disponibilidade de água.",
        "Recomenda-se cautela ao extrapolar estes resultados para outras regiões.",
        "Os autores agradecem à agência de fomento pela bolsa concedida.",
        "Novos ensaios são necessários para confirmar a relação entre {a} e {b}.",
    ),
    ("Introdução", "Material e métodos", "Resultados", "Discussão", "Conclusões"),
    "Figura {n}. Variação nos dois anos de cultivo: {a}.",
    "Resumo",
    "Referências",
    "pt",
)
RUSSIAN = Tongue(
    (
        "Вопрос о том, как изменяется {a}, до сих пор изучен недостаточно.",
        "Образцы отбирали в летние месяцы и хранили при постоянной температуре.",
        "Полученные данные показывают, что {b} зависит от состава раствора.",
        "Погрешность измерений не превышала пяти процентов.",
        "Как видно из таблицы 2, {a} возрастает с увеличением концентрации.",
        "Эти результаты согласуются с выводами других авторов.",
        "При более высоких температурах наблюдается обратная зависимость.",
        "Следует отметить, что {b} измеряли независимо двумя методами.",
        "Авторы благодарят сотрудников лаборатории за помощь в проведении опытов.",
        "Таким образом, {a} определяется главным образом условиями синтеза.",
        "Расхождение с расчётом объясняется присутствием примесей.",
        "Дальнейшие исследования позволят уточнить механизм процесса.",
    ),
    ("Введение", "Экспериментальная часть", "Результаты", "Обсуждение результатов", "Выводы"),
    "Рис. {n}. Зависимость: {a}.",
    "Аннотация",
    "Список литературы",
    "ru",
)
JAPANESE = Tongue(
    (
        "本研究では春から秋にかけて現地調査を行い、採取した試料を当日中に分析した。",
        "結果は既往の報告とおおむね一致した。",
        "測定値のばらつきは小さく、再現性は良好であった。",
        "一方、夏季には値が大きく低下する傾向が認められた。",
        "この差は水温の違いによるものと考えられる。",
        "今後は観測期間を延ばし、経年変化を明らかにする必要がある。",
        "調査にご協力いただいた漁業協同組合の皆様に感謝する。",
        "図に示すように、深い地点ほど濃度が高かった。",
        "統計解析には一般化線形モデルを用いた。",
        "以上の点から、両者の間には明瞭な関係があると判断した。",
    ),
    ("はじめに", "材料と方法", "結果", "考察", "結論"),
    "図 {n} 調査地点における季節変化",
    "要旨",
    "引用文献",
    "ja",
    "",
)


class Shelf(NamedTuple):
    """What a list of references of a tongue is made of."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    journals: tuple[str, ...]


_SHELVES = {
    "en": Shelf(
        (
            *(
                "Abbott",
                "Barenko",
                "Castile",
                "Dunmore",
                "Eklof",
                "Farsi",
                "Grantly",
                "Hovland",
                "Imre",
                "Jessup",
                "Kirwan",
            ),
            *(
                "Lomas",
                "Mbeki",
                "Norling",
                "Osuna",
                "Pryce",
                "Quade",
                "Rennick",
                "Sorrel",
                "Tamm",
                "Umar",
                "Vasko",
                "Wragg",
            ),
        ),
        (
            "On {a}",
            "A note on {a}",
            "Remarks on {a} and {b}",
            "Studies of {a}",
            "Once more on {b}",
            "Some problems of {a}",
        ),
        ("Journal of the Field", "Quarterly Record", "Norrhavn Letters", "Proc. Estoria Acad.", "Annals of Method"),
    ),
    "de": Shelf(
        (
            "Abele",
            "Brinkmeier",
            "Dörfler",
            "Eschbach",
            "Freund",
            "Gundlach",
            "Hillebrand",
            "Jobst",
            "Kranich",
            "Lüdtke",
        ),
        ("Beiträge zum Thema: {a}", "Beobachtungen ({a})", "Zur Frage: {a} und {b}", "Nachtrag ({b})"),
        ("Jahrbuch der Heimat", "Blätter für Landeskunde", "Mitt. Ges. Halberstein", "Archiv für Praxis"),
    ),
    "fr": Shelf(
        ("Aubrac", "Bonnafous", "Chastel", "Delorme", "Estève", "Fournel", "Gaillac", "Hamon", "Joly", "Lacaze"),
        ("Quelques remarques sur {a}", "Note sur {b}", "Encore sur {a}", "Recherches sur {a}"),
        ("Annales du Sud", "Cahiers d’enquête", "Bulletin de la société de Manosque", "Revue de terrain"),
    ),
    "es": Shelf(
        ("Aldecoa", "Bermejo", "Cuesta", "Dorado", "Espino", "Frías", "Galdós", "Huerta", "Iriarte", "Lozano"),
        ("Notas sobre {a}", "Estudio sobre {b}", "Nuevas observaciones sobre {a}"),
        ("Anales del Litoral", "Rev Clínica del Sur", "Archivos de Medicina Popular"),
    ),
    "pt": Shelf(
        ("Almeida", "Bastos", "Corrêa", "Drummond", "Esteves", "Fontoura", "Guedes", "Hilário", "Jordão", "Lacerda"),
        ("Notas sobre {a}", "Estudos sobre {b}", "Considerações sobre {a}"),
        ("Boletim do Cerrado", "Revista de Lavouras", "Cadernos de Solos"),
    ),
    "ru": Shelf(
        ("Абросимов", "Булатов", "Веденский", "Горшков", "Дёмин", "Ерофеев", "Жилин", "Зотов", "Кедров", "Лукин"),
        ("К вопросу: {a}", "Исследования по теме: {b}", "Новые данные: {a}"),
        ("Вестник растворов", "Журнал опытной химии", "Труды Новоозёрского института"),
    ),
    "ja": Shelf(
        ("青木", "石田", "上原", "大塚", "加納", "北川"),
        ("{a}に関する研究", "{b}の観測"),
        ("内海水産学会誌", "沿岸研究"),
    ),
}


class Subject(NamedTuple):
    """What a work is about: how its field writes, what its sentences speak of, its abstract."""

    tongue: Tongue
    topics: tuple[str, ...]
    abstract: str
    year: int


_SUBJECTS: dict[str, Subject] = {}


def wanted(
    doi: str | None,
    title: str,
    by: str,
    year: int,
    journal: str,
    where: str,
    pages: str,
    *,
    tongue: Tongue,
    topics: str,
    abstract: str,
    arxiv: str | None = None,
) -> IndexedWork:
    """A work as `known` gives it, and what it is about. `topics` are parted by semicolons."""
    work = known(doi, title, by, year, journal, where, pages, arxiv)
    _SUBJECTS[title] = Subject(tongue, tuple(topics.split("; ")), abstract, year)
    return work


def subject_of(work: IndexedWork) -> Subject:
    return _SUBJECTS[work.title]


def abstract_of(work: IndexedWork) -> str:
    return subject_of(work).abstract


def paragraphs(key: str, tongue: Tongue, topics: Sequence[str], count: int, sentences: int = 6) -> Iterator[Block]:
    chance = stream("third", key)
    for _ in range(count):
        said = chance.sample(tongue.sentences, min(sentences, len(tongue.sentences)))
        told = []
        for sentence in said:
            a, b = chance.sample(topics, 2) if len(topics) > 1 else (*topics, *topics)
            told.append(sentence.format(a=a, b=b))
        yield Block(tongue.between.join(sentence[0].upper() + sentence[1:] for sentence in told))


def essay(key: str, work: IndexedWork, count: int) -> tuple[Block, ...]:
    """Running text about what the work is about."""
    subject = subject_of(work)
    return tuple(paragraphs(key, subject.tongue, subject.topics, count))


def works_cited(key: str, subject: Subject, count: int, cited: Sequence[str] = ()) -> tuple[Block, ...]:
    """A list of references, all of them older than the work but for those of `cited`; some later ones have a DOI."""
    chance = stream("third works", key)
    shelf = _SHELVES[subject.tongue.language]
    initials = "АВГЕИКЛМНПС" if subject.tongue.language == "ru" else "ABDEHJKMPRST"
    entries = [*cited]
    for _ in range(count):
        names = ", ".join(
            f"{name} {chance.choice(initials)}" for name in chance.sample(shelf.names, chance.randint(1, 3))
        )
        title = chance.choice(shelf.titles).format(a=chance.choice(subject.topics), b=chance.choice(subject.topics))
        year, page = subject.year - chance.randint(1, 24), chance.randint(2, 800)
        place = f"{chance.choice(shelf.journals)} {year};{chance.randint(3, 60)}:{page}-{page + chance.randint(3, 20)}"
        number = f" doi:10.6217/ref.{year}.{page}" if year > 1999 and chance.random() < 0.5 else ""
        entries.append(f"{names}. {title}. {place}.{number}")
    shown = [Block(f"{at}. {entry}", size=8, before=2) for at, entry in enumerate(sorted(entries), start=1)]
    return (Block(subject.tongue.references, size=11, bold=True, before=10, role="H2"), *shown)


def summary(head: str, said: str) -> tuple[Block, ...]:
    return (Block(head, size=11, bold=True, before=10, role="H2", across=True), Block(said, size=9, across=True))


def _sections(
    key: str, tongue: Tongue, topics: Sequence[str], heads: Sequence[str], count: int, numbered: bool
) -> Iterator[Block]:
    """`count` paragraphs under all of the heads, with a figure or table after each fifth."""
    supply = paragraphs(key, tongue, topics, count)
    given = 0
    for at, head in enumerate(heads):
        if head:
            yield Block(f"{at + 1}. {head}" if numbered else head, size=11, bold=True, before=10, role="H2")
        share = (at + 1) * count // len(heads) - at * count // len(heads)
        for paragraph in islice(supply, share):
            yield paragraph
            given += 1
            if given % 5 == 0:
                caption = tongue.figure.format(n=given // 5, a=topics[given // 5 % len(topics)])
                yield Block(caption, size=8, before=6)


def article(
    key: str,
    title: str,
    names: Sequence[str],
    pages: int,
    *,
    subject: Subject,
    head: Sequence[str] = (),
    top: tuple[Block, ...] = (),
    places: Sequence[str] = (),
    after: tuple[Block, ...] = (),
    abstract: str | None = None,
    heads: Sequence[str] | None = None,
    section_numbers: bool = True,
    refs: int = 16,
    cited: Sequence[str] = (),
    first: int = 1,
    lead: tuple[Block, ...] = (),
    leads: int = 0,
    ending: tuple[Block, ...] = (),
    tail: tuple[Block, ...] = (),
    marks: tuple[Mark, ...] = (),
    running: str = "",
    folio: str = "{page}",
    columns: int = 1,
    numbered: bool = False,
    title_size: float = 16,
    info: str | None = None,
    doi: str | None = None,
    size: tuple[float, float] = A4,
) -> Document:
    """A whole article of so many pages, from its title over every section to its references. `lead` fills `leads`
    pages before it, `tail` (from a new page on) follows. `ending` stands before the references."""
    tongue = subject.tongue
    said = subject.abstract if abstract is None else abstract
    front = [*lead, *top, Block(title, size=title_size, bold=True, before=14, role="H1", across=True)]
    if names:
        by = ", ".join(names)
        front.append(Block(by, size=11, before=8, across=True, marked="^" in by))
    front += [Block(place, size=8, before=2, across=True) for place in places]
    front += after
    if said:
        front += summary(tongue.abstract, said)
    shown = [Mark(line, 62, 806 - 11 * at, pages="first") for at, line in enumerate(head)]
    if running:
        shown.append(Mark(running, 62, 806, pages="others"))
    if folio:
        shown.append(Mark(folio, 290, 34, 9))
    back = (*ending, *(works_cited(key, subject, refs, cited) if refs or cited else ()))

    def with_paragraphs(count: int, end: tuple[Block, ...] = ()) -> Document:
        body = list(_sections(key, tongue, subject.topics, heads or tongue.heads, count, section_numbers))
        return Document(
            front=tuple(front),
            body=body,
            back=(*back, *end),
            marks=(*shown, *marks),
            first_page=first,
            columns=columns,
            line_numbers=numbered,
            unmarked=leads,
            language=tongue.language,
            title=title if info is None else info,
            authors=tuple(name.partition("^")[0] for name in names),
            doi=doi,
            size=size,
        )

    def pages_with(count: int) -> int:
        return len(laid_out(with_paragraphs(count)))

    counts = range(1, 30 * (pages + 1))
    fewest = bisect_left(counts, pages + leads, key=pages_with)
    most = bisect_right(counts, pages + leads, key=pages_with)
    if fewest == most:
        raise ValueError(f"{key} does not fit on {pages} pages")
    return with_paragraphs(counts[(fewest + most) // 2], (*lines("---"), *tail) if tail else ())


def of_journal(work: IndexedWork, key: str, **changes: object) -> Document:
    """The article as its journal printed it; `changes` as of `article`, and `title`, `names`."""
    place = f"{work.first_page}–{work.last_page}" if work.pages > 1 else f"{work.first_page}"
    given: dict[str, object] = {
        "head": (f"{work.journal}, Vol. {work.volume}, No. {work.issue} ({work.year}), pp. {place}",),
        "subject": subject_of(work),
        "first": work.first_page if work.pages > 1 else 1,
        **changes,
    }
    title = str(given.pop("title", work.title))
    names = given.pop("names", work.names)
    pages = given.pop("pages", work.pages if work.pages > 1 else 8)
    assert isinstance(names, tuple)
    assert isinstance(pages, int)
    return article(key, title, names, pages, **given)  # type: ignore[arg-type]
