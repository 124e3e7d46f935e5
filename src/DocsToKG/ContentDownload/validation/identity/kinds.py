"""What a file calls itself in its first lines, when it is not an article: a supplement, a notice, a cover, slides, ...

Phrases only; a heading counts where it begins a line. A list like this never proves a paper: it gives a refusal its
name. Promises: a work whose own title has such words is never taken for one of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from urllib.parse import unquote

from DocsToKG.ContentDownload.validation.dois import find_dois, is_part, is_part_doi
from DocsToKG.ContentDownload.validation.identity import thresholds
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.normalization import fold, words
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, Page


class Kind(StrEnum):
    """What a refused file is."""

    ANOTHER_ARTICLE = "another-article"
    PART = "part"
    COVER = "cover"
    CONTENTS = "contents"
    SUPPLEMENT = "supplement"
    CORRECTION = "correction"
    NOTICE = "notice"
    REPLY = "reply"
    REVIEW_REPORT = "review-report"
    PREVIEW = "preview"
    TERMS = "terms"
    ERROR_PAGE = "error-page"
    LOGIN_PAGE = "login-page"
    FORM = "form"
    SLIDES = "slides"
    POSTER = "poster"
    THESIS = "thesis"
    READ_ME = "read-me"
    ABSTRACTS = "abstracts"
    PROTOCOL = "protocol"
    LETTER = "letter"
    BLANK = "blank"


def _heading(*phrases: str, alone: bool = False) -> re.Pattern[str]:
    """One of the phrases where a line begins; `alone`: and where it ends."""
    end = r"\W{0,5}$" if alone else r"\b"
    return re.compile(rf"^\W{{0,5}}(?:\d{{1,2}}\W{{1,3}})?(?:{'|'.join(phrases)}){end}", re.MULTILINE)


_CORRECTION = r"(?:author'?s? |publisher'?s? )?(?:errat(?:um|a)|corrigend(?:um|a)|correction|addendum)"
_SUPPLEMENT_NAMES = (
    r"(?:electronic |online |web )?supplement(?:ary|al|ing)? (?:online )?"
    r"(?:information|materials?|data|appendix|appendices|figures?|tables?|methods|text|notes?|files?|content|results"
    r"|videos?|movies?|references|discussion|code)"
)
# Each is looked for in the folded first lines, in this order.
_HEADINGS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.SUPPLEMENT, _heading(
        _SUPPLEMENT_NAMES, r"supporting (?:online )?(?:information|materials?|data)",
        r"supporting (?:text|figures|tables|methods|appendix)", r"si appendix",
        r"supplemental? (?:document|protocol|appendix)", r"extended methods",
        r"(?:online|web|internet|technical|data) (?:supplement|appendix)", r"appendix s\d", r"supplement (?:of|to|for)",
        r"additional (?:file|material) \d?", r"(?:text|fig(?:ure|\.)?|table|file|data(?:set)?) s\d{1,2}\b",
        r"s\d{1,2} (?:text|fig(?:ure)?|table|appendix|protocol|methods?|file|data(?:set)?)",
        r"extended data (?:fig|table)", r"material suplementa\w+", r"informations? supplementaires?",
        r"erganzende\w* (?:information|material)\w*",
    )),
    (Kind.CORRECTION, re.compile(
        rf"^\W{{0,5}}{_CORRECTION}(?: (?:note|notice|statement|to)\b|\s?:|\W{{0,5}}$)", re.MULTILINE)),
    (Kind.NOTICE, _heading(
        r"retraction(?: notice| note| statement|:"
        r"| of)?", r"withdrawn", r"withdrawal(?: notice)?",
        r"notice of (?:retraction|withdrawal|redundant publication|concern)", r"(?:editorial )?expression of concern",
        r"removal notice", r"temporary removal", r"publisher'?s? note",
    )),
    (Kind.REPLY, _heading(
        r"(?:authors?'?s? )?(?:repl(?:y|ies)|response|rejoinder|rebuttal)(?: by the authors?)? (?:to|on)(?: the| a"
        r"| our)? "
        r"(?:comment|letter|reply|critic|editor|discuss|response|rebuttal|concern|reader)\w*",
        r"in (?:reply|response) to (?:the |our )?(?:comment|letter|critique|correspondence)\w*",
        r"authors?'? (?:reply|response)", r"comments? on(?: the"
        r"| a)?",
    )),
    (Kind.REVIEW_REPORT, _heading(
        r"(?:transparent |open )?peer[- ]review (?:file|reports?|history|record|information|comments)",
        r"(?:reviewer|referee)s?'? ?(?:#?\d\W{0,3})?(?:comments|reports?)", r"review(?:er)? report", r"decision letter",
        r"response to (?:the )?(?:reviewer|referee|editor)s?", r"reporting summary", r"reporting checklist",
        r"(?:consort|prisma|strobe|arrive|care) (?:\d{4} )?checklist", r"point[- ]by[- ]point",
        r"editor(?:ial)? decision", r"author(?:s'?)? response to reviewers?",
    )),
    (Kind.CONTENTS, _heading(
        r"(?:table of )?contents", r"inhaltsverzeichnis", r"inhalt", r"sommaire", r"table des matieres", r"indice",
        r"in this issue", alone=True)),
    (Kind.COVER, _heading(
        r"front ?matter", r"back ?matter", r"editorial board", r"editorial advisory board", r"cover (?:page|image"
        r"|picture)",
        r"front cover", r"issue information", r"masthead", r"instructions (?:to"
        r"|for) (?:the )?authors", r"aims and scope",
        r"call for papers", r"advertisement", r"author index", r"subject index", r"list of (?:reviewers|referees)",
    )),
    (Kind.ABSTRACTS, _heading(
        r"book of abstracts", r"(?:conference |meeting )?abstracts", r"programme? and abstracts", r"poster abstracts",
        r"(?:oral|poster) (?:presentations?|sessions?)", r"abstracts (?:of|from)", r"(?:full |conference )?programme?",
        alone=True)),
    (Kind.FORM, _heading(
        r"copyright (?:transfer|release|assignment|clearance)", r"(?:transfer|assignment) of copyright",
        r"(?:licen[cs]e|agreement) to publish", r"(?:author|publishing|publication|licen[cs]e) agreement",
        r"(?:icmje )?(?:form for )?disclosure of (?:potential )?conflicts? of interest", r"conflicts? of interest form",
        r"declaration of (?:competing )?interests?", r"order form", r"invoice", r"receipt", r"permission (?:form"
        r"|request)",
        r"rightslink", r"informed consent form", r"(?:data )?(?:extraction|submission) form", r"questionnaire",
    )),
    (Kind.TERMS, _heading(
        r"terms (?:and conditions|of use|of service|& conditions)", r"conditions of use", r"privacy (?:policy|notice)",
        r"cookie policy", r"legal notice", r"(?:end[- ]user )?licen[cs]e agreement", r"creative commons legal code",
        r"general terms", r"take ?down policy", r"acceptable use",
    )),
    (Kind.READ_ME, _heading(r"read[- ]?me\b.{0,20}", r"data dictionary", r"codebook", r"release notes",
        r"user(?:'?s)? (?:guide|manual)",
        r"changelog", r"licen[cs]e$")),
    (Kind.PREVIEW, _heading(
        r"(?:first|one)[- ]page preview", r"preview", r"sample (?:pages?|chapter)", r"extended summary only",
        r"(?:plain[- ]language|lay|executive) summary", r"highlights", r"graphical abstract", r"visual abstract",
        r"toc graphic", r"table of contents graphic", r"press release", r"research (?:briefing"
        r"|highlights?)", alone=True)),
    (Kind.POSTER, _heading(r"(?:conference |research |e-?)?poster(?: presentation| session| no\b.*)?", alone=True)),
    (Kind.SLIDES, _heading(r"slide \d+", r"outline of (?:the |this )?talk", r"talk outline", r"agenda", alone=True)),
    (Kind.PROTOCOL, _heading(r"(?:study|trial|review|systematic review) protocol", r"statistical analysis plan",
        r"pre-?registration", r"protocol (?:version|registration)", r"clinical (?:trial|study) protocol")),
    (Kind.LETTER, _heading(r"cover letter", r"dear (?:editors?|sir|dr|prof|colleagues?|authors?|reader|customer)\b")),
)  # fmt: skip
# Anywhere in a file of few words, or on its first page.
_ANYWHERE: tuple[tuple[Kind, re.Pattern[str], int], ...] = (
    (Kind.PREVIEW, re.compile(
        r"this is a preview of|preview of subscription content|(?:first|one)[- ]page preview|preview only"
        r"|purchase (?:this|the|access to) (?:full )?(?:article|pdf|paper|text)"
        r"|you have reached the end of (?:this|the) preview"
        r"|full text (?:is )?(?:only )?available (?:only )?(?:to|for|with) (?:subscri|purchas|members)"
        r"|to (?:read|access|continue reading) the (?:full|rest)|pages? \d+.{0,20}(?:are|is) not (?:shown"
        r"|included)"), 6_000),
    (Kind.NOTICE, re.compile(
        r"this (?:article|paper|manuscript|preprint|submission|chapter) has been (?:withdrawn|retracted|removed)"
        r"|has been (?:withdrawn|retracted) (?:by|at the request)"), 1_800),
    (Kind.LOGIN_PAGE, re.compile(
        r"please (?:sign|log) ?in\b|(?:sign|log) ?in to (?:view|read|access|download|continue|your)"
        r"|(?:institutional|shibboleth) (?:log ?in|sign ?in|access)|forgot(?:ten)? (?:your )?password"), 2_500),
    (Kind.ERROR_PAGE, re.compile(
        r"(?:not|no longer|un)[ -]?available (?:for|to) download|access (?:is |has been )?(?:denied|restricted)\b"
        r"|you (?:do not|don't) have (?:access|permission)|(?:page|file|document|article|resource"
        r"|item)s? (?:requested )?(?:was |could |can ?)?not (?:be )?found"
        r"|(?:under|subject to an?) embargo|subscription (?:is )?required|(?:404|403|500|503)\W{1,3}(?:not"
        r"|forbidden|error|internal|service)"
        r"|error (?:404|403|500|503)|checking your browser|please (?:enable|turn on) (?:javascript|cookies)"
        r"|preparing (?:to|your) download|your download (?:will|should) (?:start|begin)"
        r"|if this message is not eventually replaced|something went wrong|temporarily unavailable"
        r"|(?:are you|verify (?:that )?you are) (?:a |not a )?(?:human|robot)|under (?:construction"
        r"|maintenance)"), 2_500),
    (Kind.TERMS, re.compile(
        r"by (?:accessing|using|downloading) this (?:site|website|service|document),? you (?:agree|accept)"
        r"|these terms and conditions"), 20_000),
    (Kind.THESIS, re.compile(
        r"^\W*(?:an? )?(?:(?:master|bachelor|ph\.? ?d|doctoral|licentiate)\W?s? )?(?:thesis|dissertation|masterarbeit"
        r"|tesi di|memoire de|examensarbete|degree project|rapport de stage|afhandling)\b", re.MULTILINE), 1_500),
    (Kind.THESIS, re.compile(
        r"(?:a |this )?(?:thesis|dissertation)[^.]{0,40} (?:submitted|presented|in partial)"
        r"|in partial fulfil?lment of the requirements"
        r"|for the (?:award of the )?degree of (?:doctor|master|bachelor)|inaugural-?dissertation|zur erlangung des"
        r"|these de doctorat|tesis doctoral|proefschrift|tese de doutorado|phd thesis|master'?s? thesis"
        r"|bachelor'?s? thesis"
        r"|doctoral (?:thesis|dissertation)|diplomarbeit"), 4_000),
)  # fmt: skip
# Cheaper to look for than the patterns, which few pages match.
_HINTS: dict[Kind, tuple[str, ...]] = {
    Kind.PREVIEW: ("preview", "purchase", "full text", "to read", "to access", "continue reading", "not shown",
        "not inc"),
    Kind.TERMS: ("by accessing", "by using", "by downloading", "these terms"),
    Kind.THESIS: (
        "thes", "dissert", "arbeit", "tesi", "tese", "memoire", "examen", "project", "rapport", "afhand", "fulfil",
        "degree of", "zur erlangung", "proefschrift",
    ),
}  # fmt: skip
# Titles of works which are what the lists describe.
_WORK_IS = re.compile(
    r"\b(?:retract|withdr|errat|corrig|correct|addend|expression of concern|front ?matter|back ?matter|contents\b"
    r"|editorial|covers?\b|issue information|masthead|instructions|preview|proceedings|abstracts?\b|supplement"
    r"|supporting"
    r"|appendix|additional file|comments?\b|commentary|repl(?:y|ies)\b|response|rebuttal|rejoinder|discussion"
    r"|protocol|thesis"
    r"|dissertation"
    r"|poster|slides?\b|letter|read ?me|agreement|terms|privacy|checklist|questionnaire|obituary|in memoriam|review"
    r"|summary|guide|manual|index|note\b|licen[cs]e|codebook|preregistration|analysis plan|highlights?)"
)
_DATA_DEPOSITS = ("10.6084/", "10.25384/", "10.5061/", "10.17605/", "10.7910/", "10.1594/", "10.17632/", "10.24433/")
# What a paper's own first page has and what stands in its place has not.
_PAPER = re.compile(
    r"^\W{0,5}summary\b(?! (?:of|for|statistics|data|tables?)\b)|"
    r"\ba\s?b\s?s\s?t\s?r\s?a\s?c\s?t\b|\bkey\s?words?\b|\bintroduction\b|\breceived\b\W{0,3}(?:\d|in "
    r"|[a-z]{3,9}\W{1,2}\d)"
    r"|\barticle (?:info|history)\b|\bzusammenfassung\b|\bresume\b|\bresumen\b|\bresumo\b",
    re.MULTILINE,
)


def opening_kind(document: DocumentText, known: KnownWork, title_line: int | None = None) -> Kind | None:
    """What the file calls itself; None where it says nothing, or where the work itself is such a thing. `title_line` is
    the line of the first page on which the wanted title stands as a block."""
    page = next((page for page in document.pages if page.letters), None)
    if page is None or _asks_for_deposit(known.dois) or any(is_part_doi(doi) for doi in known.dois):
        return None
    own = fold(known.title or "")
    if not own and any(doi.startswith(_DEPOSITS) for doi in known.dois):
        return None
    found = (
        _kind_about_title(page, document, known, title_line)
        or _heading_kind(page, own, title_line)
        or _kind_anywhere(page, document, own)
        or _shape(document)
    )
    if found in _ABOUT_PAPERS and not own:
        return None  # perhaps it was asked for
    return None if found is not None and own and _WORK_IS.search(own) and _is_named(found, own) else found


_ABOUT = re.compile(
    r"(?:(?P<correction>(?:errat(?:um|a)|corrigend(?:um|a)|corrections?|addendum)(?:note|notice|statement)?(?:to"
    r"|of|for|on)?)"
    r"|(?P<notice>(?:retraction|withdrawal|expressionofconcern)(?:note|notice|statement)?(?:to|of|for|on)?)"
    r"|(?P<reply>(?:comments?|commentary|notes?|reply|response|rebuttal|rejoinder|discussion|remarks?)(?:to|on|of|for))"
    r"|(?P<supplement>(?:supplement(?:ary|al)?(?:online)?(?:information|materials?|data|appendix|file|text)?"
    r"|appendix|data"
    r"|supportinginformation)(?:to|on|of|for))"
    r"|(?P<review>(?:review|report|reviewers?comments|decision)(?:to|on|of|for)))"
    r"(?:to|on|of|for|the|our|original|article|paper|manuscript|entitled|titled|comment|on|by|authors?){0,6}$"
)
_ABOUT_KINDS = {
    "correction": Kind.CORRECTION,
    "notice": Kind.NOTICE,
    "reply": Kind.REPLY,
    "supplement": Kind.SUPPLEMENT,
    "review": Kind.REVIEW_REPORT,
}
_ABOUT_CHARS = 80


def _kind_about_title(page: Page, document: DocumentText, known: KnownWork, title_line: int | None) -> Kind | None:
    """The first lines, or the declared title, have the wanted title only behind words such as `Erratum to`."""
    wanted = "".join(words(known.title or ""))
    if len(wanted) < thresholds.MIN_TITLE_LETTERS:
        return None
    for text in (opening(page), document.info.get("Title", "")):
        shown = "".join(words(text))
        kinds = []
        at = shown.find(wanted)
        while at >= 0:
            found = _ABOUT.search(shown[max(0, at - _ABOUT_CHARS) : at])
            kinds.append(_ABOUT_KINDS[found.lastgroup] if found and found.lastgroup else None)
            at = shown.find(wanted, at + len(wanted))
        if kinds and None not in kinds:
            return kinds[0]
    return None


# Names that publishers' systems give to supplements and to nothing else.
_SURE_FILE = re.compile(
    r"(?:^|[-_./])mmc\d{1,3}\.pdf$|_moesm\d{1,3}_esm\.|/suppl_file/|_si_\d{3}\.pdf$|\.s\d{3}\.pdf$", re.IGNORECASE
)


def address_kind(urls: Sequence[str], dois: Sequence[str]) -> Kind | None:
    """A supplement, by a name that only supplements have, or by the DOI of a part of the paper."""
    if any(is_part_doi(doi) for doi in dois) or _asks_for_deposit(dois):
        return None
    paths = [unquote(url.partition("?")[0])[-300:] for url in urls]
    if any(map(_SURE_FILE.search, paths)):
        return Kind.SUPPLEMENT
    named = [doi for url in urls for doi in find_dois(unquote(url[-500:]).replace("&", " ").lower())]
    return Kind.SUPPLEMENT if any(is_part(doi.removesuffix(".pdf"), own) for doi in named for own in dois) else None


def opening(page: Page) -> str:
    """The folded first lines, up to the first that is a sentence."""
    shown: list[str] = []
    for text in page.folded_lines[: thresholds.OPENING_LINES]:
        if len(text) >= _SENTENCE_CHARS and len(_PROSE.findall(text)) >= 2:
            break
        shown.append(text)
    return "\n".join(shown)


_SENTENCE_CHARS = 60
_PROSE = re.compile(r"\b(?:we|is|was|are|were|this|that|these|has|have|had|been|be|can|which|our|their)\b")
# A sentence that begins with the words is no heading.
_GOES_ON = re.compile(
    r"\s+(?:is|are|was|were|can|may|has|have|associated|available|includes?|contains?|shows?|accompanies|provides?"
    r"|and)\b"
)


def looks_like_paper(page: Page) -> bool:
    return _PAPER.search(page.folded) is not None


_ABOUT_PAPERS = frozenset({Kind.CORRECTION, Kind.NOTICE, Kind.REPLY})
_DEPOSITS = ("10.5281/", "10.13140/", "10.17863/", "10.3929/", "10.18452/", "10.6075/", "10.17877/")


def _asks_for_deposit(dois: Sequence[str]) -> bool:
    return any(doi.startswith(_DATA_DEPOSITS) for doi in dois)


# Below the title they are parts of a paper.
_ABOVE_TITLE = frozenset(
    {Kind.CONTENTS, Kind.COVER, Kind.PREVIEW, Kind.ABSTRACTS, Kind.FORM, Kind.READ_ME, Kind.LETTER}
)


def _heading_kind(page: Page, own: str, title_line: int | None) -> Kind | None:
    top = opening(page)
    above = "\n".join(page.folded_lines[:title_line]) if title_line is not None else top
    for kind, pattern in _HEADINGS:
        found = pattern.search(above if kind in _ABOVE_TITLE else top)
        if found is not None and title_line is not None and kind is Kind.SUPPLEMENT and found.start() >= len(above):
            # Below the title it counts as a heading of its own; `Figure S1` is a caption.
            found = found if top[found.end() :].partition("\n")[0].strip(" .:") == "" else None
        if found is not None and kind is Kind.SUPPLEMENT and (title_line is None or found.start() >= len(above)):
            # Publishers link to it from a paper's own first page.
            found = None if looks_like_paper(page) or _GOES_ON.match(top, found.end()) else found
        # The words may begin the work's own title.
        if found is not None and not (own and found[0].strip(" \t\n.:") in own):
            return kind
    return None


def _kind_anywhere(page: Page, document: DocumentText, own: str) -> Kind | None:
    text = page.folded
    for kind, pattern, most_letters in _ANYWHERE:
        if not any(hint in text for hint in _HINTS.get(kind, ("",))):
            continue
        if page.letters <= most_letters and (found := pattern.search(text)) and not (own and found[0] in own):
            return kind
    return None


def _shape(document: DocumentText) -> Kind | None:
    """Slides are wide pages with few words; a poster is one huge page."""
    pages = document.pages
    if not pages or not all(page.height > 0 for page in pages):
        return None
    if (
        document.page_count <= thresholds.POSTER_PAGES
        and max(pages[0].width, pages[0].height) >= thresholds.POSTER_POINTS
    ):
        return Kind.POSTER
    wide = all(page.width >= thresholds.SLIDE_RATIO * page.height for page in pages)
    sparse = document.letters <= thresholds.SLIDE_LETTERS * len(pages)
    return Kind.SLIDES if wide and sparse and document.page_count >= thresholds.SLIDE_PAGES else None


_COVER_SHEET = re.compile(
    r"accepted (?:manuscript|version)|author(?:'s|s')? (?:accepted |final )?(?:manuscript|version)|repository"
    r"|post-?print"
    r"|pre-?proof|to cite this|citation for published|downloaded (?:from|on|by)|open access archive|terms of use"
    r"|cover ?(?:sheet|page)|research (?:online|portal|explorer)|working paper|technical report|take ?down policy"
)


def is_cover(page: Page) -> bool:
    """A repository's or a publisher's sheet before a paper."""
    text = page.folded
    return not _PAPER.search(text) and _COVER_SHEET.search(text) is not None


_NAMES: dict[Kind, str] = {
    Kind.SUPPLEMENT: r"supplement|supporting|appendix|additional",
    Kind.CORRECTION: r"errat|corrig|correct|addend",
    Kind.NOTICE: r"retract|withdr|concern|obituary|memoriam|note\b|remov",
    Kind.REPLY: r"comment|repl(?:y|ies)|response|rebuttal|rejoinder|discussion|letter",
    Kind.REVIEW_REPORT: r"review|checklist|response|decision",
    Kind.CONTENTS: r"contents|index",
    Kind.COVER: r"matter|editorial|cover|information|masthead|instructions|index|call",
    Kind.ABSTRACTS: r"abstract|program|proceedings|presentation|session",
    Kind.FORM: r"agreement|form|questionnaire|declaration|consent",
    Kind.TERMS: r"terms|privacy|licen[cs]e|polic",
    Kind.READ_ME: r"read ?me|dictionary|codebook|notes|guide|manual|licen[cs]e",
    Kind.PREVIEW: r"preview|summary|highlight|press|briefing",
    Kind.POSTER: r"poster",
    Kind.SLIDES: r"slides?|talk|agenda",
    Kind.PROTOCOL: r"protocol|plan|regist",
    Kind.LETTER: r"letter|dear",
    Kind.THESIS: r"thesis|dissertation",
}


def _is_named(kind: Kind, own: str) -> bool:
    kinds = _ABOUT_PAPERS if kind in _ABOUT_PAPERS else (kind,)
    names = "|".join(_NAMES[each] for each in kinds if each in _NAMES) or None
    return names is not None and re.search(rf"\b(?:{names})", own) is not None
