"""Whatever is done to a bundle after it was signed is found. 10,000 ways to try, drawn at random, none unseen.

Set DOCSTOKG_TEST_SEED to repeat a run; the seed is in the message of a failure.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from tests.orchestrator.eventful import afternoon, bundle, morning, ms, trust

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.audit import archive, layout
from DocsToKG.Orchestrator.audit.verify import Report, verify
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keys import Trust, new_signer

NOW = ManualClock().now()
OURS, SECOND, STRANGER = new_signer("ours", NOW), new_signer("second", NOW), new_signer("stranger", NOW)
# Every run tries others; those that take minutes on a small machine are for `make test-long`.
FEW = pytest.param(1000, marks=pytest.mark.slow, id="few")
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Trust]:
    folder, clock = tmp_path_factory.mktemp("bundles"), ManualClock()
    with SqliteLedger(folder / "ledger.sqlite", clock=clock) as ledger:
        start = ms(clock)
        morning(ledger, clock)
        afternoon(ledger, clock)
        for target in ("plain", "packed.tar.zst"):
            bundle(ledger, start, ms(clock), folder / target, [OURS, SECOND])
    return folder / "plain", folder / "packed.tar.zst", trust(clock, OURS)


def read(folder: Path) -> Files:
    return {name: (folder / name).read_bytes() for name in layout.ORDER}


def write(folder: Path, files: Files, before: Files) -> None:
    """Write what differs, so that a try costs little."""
    for name in before.keys() - files.keys():
        (folder / name).unlink()
    for name, data in files.items():
        if before.get(name) != data:
            (folder / name).write_bytes(data)


# ways to change bytes


def flip(draw: random.Random, data: bytes) -> bytes:
    if not data:
        return b"\n"
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]


def cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data))] if data else b" "


def grow(draw: random.Random, data: bytes) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + draw.choice([b"\n", b" ", b"{}\n", draw.randbytes(3)]) + data[place:]


def drop_bytes(draw: random.Random, data: bytes) -> bytes:
    place = draw.randrange(max(1, len(data)))
    return data[:place] + data[place + draw.randint(1, 40) :] if data else b"\n"


BYTES = (flip, flip, cut, grow, drop_bytes)


# ways to change rows


def drop_row(draw: random.Random, rows: list[bytes]) -> None:
    rows.pop(draw.randrange(len(rows)))


def swap_rows(draw: random.Random, rows: list[bytes]) -> None:
    one, other = draw.sample(range(len(rows)), 2)
    rows[one], rows[other] = rows[other], rows[one]


def twice(draw: random.Random, rows: list[bytes]) -> None:
    rows.insert(draw.randrange(len(rows) + 1), draw.choice(rows))


def reword(draw: random.Random, rows: list[bytes]) -> None:
    """A field with another value, written as a bundle writes it, its digest made to fit."""
    place = draw.randrange(len(rows))
    row = orjson.loads(rows[place])
    name = draw.choice(sorted(row))
    row[name] = draw.choice([None, "x", 7, f"{row[name]}0"])
    if "digest" in row and draw.random() < 0.7:
        row = layout.digested({name: value for name, value in row.items() if name != "digest"})
    rows[place] = layout.line(row)


ROWS = (drop_row, swap_rows, twice, reword, reword)


def change_content(draw: random.Random, files: Files) -> str:
    """One file of the content, by bytes or by rows."""
    name = draw.choice([name for name in layout.CONTENT if files[name]])
    rows = files[name].splitlines(keepends=True)
    way: Callable[..., object] = draw.choice(ROWS if len(rows) > 1 and draw.random() < 0.6 else BYTES)
    if way in BYTES:
        files[name] = way(draw, files[name])  # type: ignore[assignment]
    else:
        way(draw, rows)
        files[name] = b"".join(rows)
    return f"{way.__name__} of {name}"


def change_head(draw: random.Random, files: Files) -> str:
    name, way = draw.choice([layout.MANIFEST, layout.SIGNATURE]), draw.choice(BYTES)
    files[name] = way(draw, files[name])
    return f"{way.__name__} of {name}"


def change_files(draw: random.Random, files: Files) -> str:
    name = draw.choice(layout.ORDER)
    if draw.random() < 0.5:
        del files[name]
        return f"{name} removed"
    files[draw.choice(["more.jsonl", ".hidden", "signatures/other.dsse.json"])] = b"{}\n"
    return "a file beside"


def change_signatures(draw: random.Random, files: Files) -> str:
    """Signatures dropped, added, exchanged, or all of it signed anew by somebody else."""
    manifest, envelope = files[layout.MANIFEST], orjson.loads(files[layout.SIGNATURE])
    signatures = envelope["signatures"]
    way = draw.choice(["dropped", "stranger", "twice", "swapped", "other bytes", "signed anew", "said anew"])
    if way == "dropped":
        signatures.pop(draw.randrange(len(signatures)))
    elif way == "stranger":
        signatures += dsse.sign(manifest, layout.MANIFEST_TYPE, [STRANGER])["signatures"]
    elif way == "twice":
        signatures.append(draw.choice(signatures))
    elif way == "swapped":
        signatures[0]["sig"], signatures[1]["sig"] = signatures[1]["sig"], signatures[0]["sig"]
    elif way == "other bytes":
        envelope["signatures"] = dsse.sign(manifest + b" ", layout.MANIFEST_TYPE, [OURS, SECOND])["signatures"]
    elif way == "signed anew":
        envelope = dsse.sign(manifest, layout.MANIFEST_TYPE, [STRANGER])
    else:
        envelope = forge(files)
    files[layout.SIGNATURE] = layout.line(envelope)
    return f"signatures {way}"


def forge(files: Files) -> dict[str, object]:
    """A stranger makes the whole bundle anew, so that everything fits but the key."""
    manifest = orjson.loads(files[layout.MANIFEST])
    manifest["range"]["to"] = "2099-01-01T00:00:00.000Z"
    files[layout.MANIFEST] = layout.line(manifest)
    return dsse.sign(files[layout.MANIFEST], layout.MANIFEST_TYPE, [STRANGER])


WAYS = (change_content, change_content, change_content, change_content, change_head, change_signatures, change_files)


def seed() -> int:
    return int(os.environ.get("DOCSTOKG_TEST_SEED") or random.SystemRandom().randrange(2**32))


def test_an_unchanged_bundle_is_proved(made: tuple[Path, Path, Trust]) -> None:
    folder, packed, trusted = made
    assert verify(folder, trusted).problems == verify(packed, trusted).problems == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("most", [FEW, pytest.param(7000, marks=pytest.mark.long, id="many")])
def test_no_change_of_a_folder_goes_unseen(made: tuple[Path, Path, Trust], tmp_path: Path, most: int) -> None:
    original, _, trusted = made
    folder, files, chosen = tmp_path / "copy", read(original), seed()
    shutil.copytree(original, folder)
    draw, tries = random.Random(chosen), 0
    while tries < most:
        changed = dict(files)
        what = draw.choice(WAYS)(draw, changed)
        if changed == files:
            continue  # for example two equal bytes exchanged
        tries += 1
        write(folder, changed, files)
        report = verify(folder, trusted)
        assert report.problems, f"unseen: {what} (seed {chosen}, try {tries})"
        assert named(report), report.problems
        write(folder, files, changed)
    assert verify(folder, trusted).problems == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("most", [FEW, pytest.param(3000, marks=pytest.mark.long, id="many")])
def test_no_change_of_an_archive_goes_unseen(made: tuple[Path, Path, Trust], tmp_path: Path, most: int) -> None:
    _, original, trusted = made
    path, data, chosen = tmp_path / "copy.tar.zst", original.read_bytes(), seed()
    with original.open("rb") as file:
        _, body = archive.read_trailer(file, "x")
    strange = archive.trailer(dsse.sign(b"{}", archive.TRAILER_TYPE, [STRANGER]))
    draw, tries = random.Random(chosen), 0
    while tries < most:
        way = draw.choice([*BYTES, "trailer", "stranger"])
        if way == "trailer":
            changed = data[:body] + flip(draw, data[body:])
        elif way == "stranger":
            changed = flip(draw, data[:body]) + strange
        else:
            changed = way(draw, data)  # type: ignore[operator]
        if changed == data:
            continue
        tries += 1
        path.write_bytes(changed)
        assert verify(path, trusted).problems, f"unseen: {way} (seed {chosen}, try {tries})"


def named(report: Report) -> bool:
    """Each problem says where it is: a file of the bundle, or the bundle."""
    places = {*layout.ORDER, report.path.name, "signatures"}
    return all(problem.split(":")[0].split(" line ")[0] in places for problem in report.problems)
