"""The works that the second set asks for."""

from __future__ import annotations

from tests.adversary.samples import known

MARSH = known(
    "10.6101/ecss.2018.04.017", "Sediment trapping by pioneer vegetation on restored salt marshes of the Wendel"
        " estuary",
    "Katrijn Vanhoutte, Alasdair Muirhead, Soledad Quirós-Peña", 2018, "Estuarine and Shore Science", "207(B)",
    "118-127",
)  # fmt: skip
INSULIN = known(
    "10.6102/S2213-7781(20)30155-2",
    "Once-weekly basal insulin ardelin in adults with type 2 diabetes: a double-blind, randomised, phase 3 trial",
    "Thandeka Mokoena-Price, Jürgen Albersdorfer, Hye-jin Noh, Marco Tagliaferri, Leena Virkkunen", 2020,
    "Diabetes and Endocrine Trials", "8(6)", "491-501",
)  # fmt: skip
WAGES = known(
    "10.6103/jle.20170933", "Minimum wages and the hiring of apprentices", "Rasmus Kjellgren, Ottavia Bellincioni",
    2019, "Journal of Labour Evidence", "37(3)", "745-784",
)  # fmt: skip
GRAPHS = known(
    "10.6104/3470.3482101", "Streaming sketches for triangle counts in evolving graphs",
    "Pranav Eswaramoorthy, Linnea Dahlbeck, Guillaume Sautereau", 2021, "Transactions on Data Algorithms", "17(2)",
    "1-24", "2009.71322",
)  # fmt: skip
PEROVSKITE = known(
    "10.6105/s41999-019-0442-7", "Grain boundary passivation in tin halide perovskite films by vapour annealing",
    "Xiuying Meng, Bram Oosterling, Fatoumata Diabaté, Kenta Horiuchi", 2019, "Nature-like Energy Materials", "4(9)",
    "733-741",
)  # fmt: skip
READING = known(
    "10.6106/0022-0663.98.2.314", "Sources of difficulty in the reading of long fractions",
    "Perpetua Amadi-Clarke, Niels Højgaard", 2006, "Journal of School Psychology Research", "98(2)", "314-325",
)  # fmt: skip
HARBOUR = known(
    "10.6107/9780470555211", "The Making of the Northern Harbour: Work, Water and Empire, 1780-1914", "Ewan Strathearn",
    2011, "Firth University Press", "1(1)", "1-312",
)  # fmt: skip
OWLS = known(
    "10.6108/ibis.12688", "Moult strategy of <i>Strix velata</i> and its use in ageing wintering owls",
    "Cătălina Ionescu-Barbu, Harald Finnebråten", 2019, "Bird Notes International", "161(4)", "802-811",
)  # fmt: skip
STENTS = known(
    "10.6109/circulatoria.114.013998", "Late thrombosis after implantation of bioresorbable stents",
    "Declan Featherstonehaugh, Ji-woo Baek, Amaury Delacroix-Thiry, Nadezhda Polukhina", 2014, "Circulatoria",
    "130(19)", "1655-1663",
)  # fmt: skip
AQUIFER = known(
    "10.6110/j.hydrol.2016.11.042", "Nitrate attenuation in fractured chalk aquifers under changing recharge",
    "Imogen Tarrant, Wojciech Siedlecki, Bao-Tran Nguyen", 2017, "Hydrology of Rock and Soil", "544()", "265-278",
)  # fmt: skip
NEUTRON = known(
    "10.6111/PhysRevX.102.055801", "First measurement of the 18Ne(n,p) cross section at stellar energies",
    "J. P. Oyarzún, M. Ketterling, S. Varanasi", 2020, "Physical Records X", "102(5)", "055801",
)  # fmt: skip
VOICE = known(
    None, "Voice and silence in the letters of Maren Tveit", "Ragnhild Aasgaard", 1987, "Scandia Letters", "42(1)",
    "33-47",
)  # fmt: skip
HANDWASH = known(
    "10.6112/blt.12.109884", "Hand hygiene among community birth attendants: a cluster survey in six districts",
    "Adaeze Nwachukwu-Hill, Prasad Ghimire, Lourdes Cayabyab", 2013, "Bulletin of Public Health Practice", "91(4)",
    "254-262",
)  # fmt: skip
MICROBES = known(
    "10.6113/elife-like.48213", "A gut commensal shapes sleep through microglial signalling",
    "Oriane Castelnau, Yuto Shirakawa, Emeka Obiora", 2020, "Open Life", "9()", "48213",
)  # fmt: skip
TRUST = known(
    "10.6114/polbeh.2015.31", "Trust in local government after amalgamation", "Siiri Lehtovaara", 2015,
    "Political Behaviour Quarterly", "29(4)", "611-629",
)  # fmt: skip
VALVE = known(
    "10.6115/TPEL.2012.2188012", "A digital control scheme for resonant converters with wide input range",
    "Hoang Trung Dieu, Piotr Malczewski, Ricardo Avelar", 2012, "Trans. on Power Circuits", "27(10)", "4301-4309",
)  # fmt: skip
WHEAT = known(
    "10.6116/tag.2022.04005", "Genomic prediction of rust resistance in winter wheat across environments",
    "Elspeth Cargill-Row, Mehmet Özdoğru, Chiara Benvegnù, Tunde Falana", 2022, "Crop Genetics", "135(3)", "901-915",
)  # fmt: skip
