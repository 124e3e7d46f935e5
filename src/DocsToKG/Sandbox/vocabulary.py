"""Words that titles, authors and journals of the invented literature are made of."""

from __future__ import annotations

QUALITIES = (
    "Adaptive", "Bounded", "Coarse", "Delayed", "Elastic", "Fragmented", "Granular", "Hidden", "Irregular", "Layered",
    "Marginal", "Nonlinear", "Ordered", "Persistent", "Quiet", "Recurrent", "Seasonal", "Tidal", "Uneven", "Weak",
)  # fmt: skip
SUBJECTS = (
    "assembly", "boundary layers", "carbon uptake", "decision making", "erosion", "foraging", "gene expression",
    "heat transfer", "immune response", "lattice growth", "migration", "nutrient cycling", "oscillation", "pollination",
    "recall", "sediment transport", "sleep", "turbulence", "vaccine uptake", "wetting",
)  # fmt: skip
PLACES = (
    "alpine lakes", "brackish estuaries", "cortical slices", "dense suspensions", "estuarine mud", "forest edges",
    "glass fibres", "hospital wards", "island populations", "kelp beds", "loose soils", "mouse models",
    "narrow channels", "older adults", "peat bogs", "random graphs",
    "shallow seas", "thin films", "urban gardens", "young stars",
)  # fmt: skip
METHODS = (
    "a cohort study", "a field experiment", "a numerical study", "a review of the evidence", "a simple model",
    "an open data set", "evidence from long records", "first results", "measurements and theory", "a registered report",
)  # fmt: skip
GIVEN = (
    "Ana", "Björn", "Chidi", "Dana", "Elif", "Farid", "Grace", "Hana", "Imre", "Jun", "Katya", "Lucía", "Mateo",
    "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Søren", "Tomas",
)  # fmt: skip
FAMILY = (
    "Adeyemi", "Bergström", "Castillo", "Dvořák", "Eriksen", "Fontaine", "Gupta", "Haddad", "Ivanova", "Jansen", "Kim",
    "Lindqvist", "Müller", "Nakamura", "Okafor", "Pereira", "Quispe", "Rossi", "Sato", "Tanaka",
)  # fmt: skip
JOURNALS = (
    "Annals of Quiet Systems", "Archive of Small Effects", "Bulletin of Open Methods", "Journal of Edge Ecology",
    "Letters in Soft Dynamics", "Open Records of Medicine", "Proceedings on Measurement", "Transactions on Thin Things",
)  # fmt: skip
