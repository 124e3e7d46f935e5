"""Every number by which a file is judged to be the paper, in one place.

Set on the papers and impostors of the tests; the benchmark of the adversary's sets shows what a change does.
"""

from __future__ import annotations

MIN_LETTERS = 200  # fewer on the pages that are read: too little to compare
FOREIGN_LETTERS = 500  # so much text of the same script would show something of the work
LOOK_THROUGH_PAGES = 40  # read before any refusal: a paper may be bound behind covers
COVER_PAGES = 5  # a title page after so many others is that of a paper in a volume

TITLE_LINES = 60  # of a page, from its top, in which a title is looked for
OPENING_LINES = 12  # in which a file says what kind it is
MIN_TITLE_WORDS = 3  # content words; a shorter title is shared by many papers
MIN_TITLE_LETTERS = 12
LARGER = 1.12  # a title's size over that of the text
SAME_SIZE = 1.06
STRANGER_SHARE = 0.34  # a paper's own pages have more of its title's words than this
OTHER_TITLE = 0.5  # two titles of one paper share more of the shorter one's words
SHARED_TITLE = 0.6  # a paper that is spoken of lends fewer words of its title
MIN_TELLING_WORDS = 4

AUTHORS_COMPARED = 8
AUTHORS_SHARE = 0.5
LINES_ABOVE_TITLE = 8
LINES_BELOW_TITLE = 30
YEARS_APART = 1  # between first publication online and the issue

REFERENCE_ENTRIES = 3  # lines that look like entries, where no heading says so
WHOLE_SHARE = 0.5  # of the pages of the printed range; a manuscript has more pages than its article, hardly fewer
MIN_RANGE = 4
NOTICE_PAGES = 4  # an erratum, obituary or reply that is the work has hardly more
LARGEST_PAGE = 9_999  # beyond are the numbers of articles
SERIES_YEARS = 6  # from a working paper to its publication
FEW_PAGES = 4  # a paper of fewer pages shows more sections, where no page range is known
SECTIONS_OF_FEW_PAGES = 2
BODY_LETTERS = 1_500  # of a page of text

SLIDE_RATIO = 1.2  # width over height
SLIDE_LETTERS = 700  # of a page
SLIDE_PAGES = 4
POSTER_POINTS = 1_600  # A2 is 1,684 points high
POSTER_PAGES = 2
