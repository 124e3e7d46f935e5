"""Invented works of many fields, as an index would describe them. No name, title or DOI is that of a real paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Author(NamedTuple):
    given: str
    family: str

    @property
    def name(self) -> str:
        return f"{self.given} {self.family}"


@dataclass(frozen=True)
class IndexedWork:
    """What an index knows of a work before its file is seen."""

    doi: str | None
    title: str
    authors: tuple[Author, ...]
    year: int
    journal: str
    volume: str = "12"
    issue: str = "3"
    first_page: int = 101
    last_page: int = 106
    arxiv_id: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(author.name for author in self.authors)

    @property
    def pages(self) -> int:
        return self.last_page - self.first_page + 1


def _authors(text: str) -> tuple[Author, ...]:
    """`Given Family; Given Middle|van Family`: a bar parts given from family names of several words."""
    found = []
    for name in text.split("; "):
        given, bar, family = name.partition("|")
        if not bar:
            given, _, family = name.rpartition(" ")
        found.append(Author(given, family))
    return tuple(found)


SALT = IndexedWork(
    "10.5801/jce.2017.04.112", "Salt tolerance of southern reed stands under repeated tidal flooding",
    _authors("Marit Oldervik; Teun|van der Hoeve; Ifeoma Achebe-Lund"), 2017, "Journal of Coastal Ecology",
    "41", "2", 233, 241,
)  # fmt: skip
SLEEP = IndexedWork(
    "10.5802/S0099-4412(19)30412-7", "Effect of evening light on sleep onset in shift workers: a randomised trial",
    _authors("Pia Lauterwald; Goran Mirković; Sunniva Hageland; Rohan Deshpande"), 2019, "Annals of Rest Medicine",
    "7", "11", 845, 853,
)  # fmt: skip
SPIN = IndexedWork(
    "10.5803/PhysLettQ.88.024401", "Spin relaxation in layered honeycomb magnets. Part I: Theory",
    _authors("K. Ostrander; L. F. Beauvoir; W. Tsukimori"), 2013, "Physics Letters Q", "88", "2", 1, 9,
    arxiv_id="1304.81230",
)  # fmt: skip
LEDGERS = IndexedWork(
    "10.5804/ehr/kad117", "Merchants, ledgers and trust in the port of Vistrand, 1640–1710",
    _authors("Agnes Thorvaldsdatter"), 2009, "Economic History Notes", "62", "4", 511, 519,
)  # fmt: skip
PARSING = IndexedWork(
    "10.5805/3411.770012", "Incremental parsing of spoken dialogue with bounded memory",
    _authors("Dario Quintavalle; Mei-Ling Hsu; Bastien Roucoule"), 2021,
    "Proceedings of the Workshop on Dialogue Machines", "4", "1", 55, 63,
)  # fmt: skip
SURVEY = IndexedWork(
    "10.5806/mmr.2016.0031", "Annual survey of drinking water in mountain districts, 2015",
    _authors("Lotte Brandhuber; Ciro Pannella; Yewande Oyelaran"), 2016, "Monographs on Mountain Regions", "22", "1",
    14, 20,
)  # fmt: skip
EVIDENCE = IndexedWork(
    "10.5807/psyl.000611", "Evidence for a left-hand advantage in rapid counting",
    _authors("Henrike Solberg-Weiss; Tadeusz Wolanin"), 2018, "Psychological Letters", "30", "5", 77, 83,
)  # fmt: skip
ALLOY = IndexedWork(
    "10.5808/j.matstr.2014.09.021", "Creep of nickel–hafnium alloys at intermediate temperatures",
    _authors("Ruben Castellane; Noor Al-Khatib; Jia Wenfang; Piet|de Roo"), 2014, "Materials and Structure",
    "115", "C", 1204, 1212,
)  # fmt: skip
MICE = IndexedWork(
    "10.5809/neu.2020.118822", "β-Catenin signalling and α-synuclein clearance in ageing mice",
    _authors("Zsófia Bárándi; Łukasz Wróblewicz; Åse Nyström; Émile Gauthereau"), 2020, "Neural Ageing", "9", "7",
    1301, 1311,
)  # fmt: skip
BEES = IndexedWork(
    "10.5810/zk.1002.55511", "A new genus of cleptoparasitic bees from the Andean foothills (Hymenoptera, Apidae)",
    _authors("Ximena Urrutia-Paz; Colm Hathersage"), 2021, "Zoological Keys", "1002", "1", 87, 97,
)  # fmt: skip
PRIMES = IndexedWork(
    "10.5811/amn.2011.173.4.8", "On the distribution of primes in thin sequences",
    _authors("Ivo Szentkuthy"), 2011, "Annals of Mathematical Notes", "173", "4", 1881, 1890, arxiv_id="1011.93345",
)  # fmt: skip
TEACHERS = IndexedWork(
    "10.5812/edq.45.1.3", "What do novice teachers notice? Attention and judgement in the first year",
    _authors("Orla Fennimore; Kwabena Asante-Boadi; Judit Harsányi"), 2012, "Education Quarterly", "45", "1", 3, 12,
)  # fmt: skip
CLIMATE = IndexedWork(
    "10.5813/gmd-14-3021-2021", "A reduced-order model of northern sea ice for seasonal forecasts",
    _authors("Eskil Rasmussøn; Paloma Iriarte; Daichi Moritaka; Fen Liu; Aoife O'Sheridan"), 2021,
    "Geophysical Model Notes", "14", "5", 3021, 3032,
)  # fmt: skip
COHORT = IndexedWork(
    "10.5814/bmjx-2015-009912", "Statin use and risk of cataract: population based cohort study of 124 000 adults",
    _authors("Mairead Kilbracken; Sanjay Venkataraghavan; Tova Lindenbaum; Oscar Pellegrino; Ngozi Umeh; Hal Bristowe"),
    2015, "British Journal of Cohort Studies", "351", "8021", 412, 420,
)  # fmt: skip
PHASE = IndexedWork(
    "10.5815/onc.2018.77.1190", "Velorutinib in advanced thymoma: results of a phase 2 trial",
    _authors("Beatriz Sant'Elmo; Kjell Arvidson; Hsiao-Wen Pai"), 2018, "Oncology Records", "77", "9", 1190, 1198,
)  # fmt: skip
CATALYST = IndexedWork(
    "10.5816/c9cy01177e", "CO2 hydrogenation over Cu/ZnO/Al2O3: the role of water",
    _authors("Ferran Puigdomenech; Asta Kristjánsdóttir; Olumide Bankole"), 2019, "Catalysis Reports", "9", "18",
    4921, 4930,
)  # fmt: skip
URBAN = IndexedWork(
    "10.5817/geogr.2010.44", "Desigualdad urbana y transporte público en ciudades intermedias",
    _authors("Rocío Valdelomar; Iñaki Etxeberri-Goñi"), 2010, "Revista de Geografía Menor", "18", "44", 61, 70,
)  # fmt: skip
POEM = IndexedWork(
    "10.5818/lit.1998.0077", "“The door stood open”: thresholds in late ballads",
    _authors("Winifred Aldous-Kerr"), 1998, "Studies in Minor Verse", "33", "1", 77, 86,
)  # fmt: skip
SOIL = IndexedWork(
    "10.5819/soil.2022.3390", "土壤有机碳对轮作制度的响应",
    (Author("文芳", "贾"), Author("建国", "柳")), 2022, "农业生态学报",
    "12", "6", 339, 345,
)  # fmt: skip
QUAKE = IndexedWork(
    "10.5820/jjgeo.74.210", "内陸活断層における微小地震の時空間分布",
    (Author("大地", "森高"), Author("千尋", "月守")), 2015,
    "地球科学年報", "74", "2", 210, 216,
)  # fmt: skip
HEBREW = IndexedWork(
    "10.5821/iyun.2014.63.9", "זיכרון ושכחה בספרות הנדודים המאוחרת",
    (Author("תמר", "אלקיים"), Author("יונתן", "בר-שדה")),
    2014, "כתבי עיון", "63", "1", 9, 16,
)  # fmt: skip
ARABIC = IndexedWork(
    "10.5822/majalla.2019.5.2.31", "أثر التعليم المبكر في مهارات القراءة لدى الأطفال",
    (Author("ليلى", "الحمداني"), Author("سمير", "بوزيان")), 2019, "مجلة البحوث التربوية الصغرى", "5", "2", 31, 38,
)  # fmt: skip
LATIN_WORKS = (
    SALT, SLEEP, SPIN, LEDGERS, PARSING, SURVEY, EVIDENCE, ALLOY, MICE, BEES, PRIMES, TEACHERS, CLIMATE, COHORT, PHASE,
    CATALYST, URBAN, POEM,
)  # fmt: skip
