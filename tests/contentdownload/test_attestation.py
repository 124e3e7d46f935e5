"""A signed list of a corpus and copies of it: whatever was changed, in the files or in the list, is found and named."""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.contentdownload.stored_corpus import Corpus, make_corpus
from typer.testing import CliRunner

from DocsToKG.ContentDownload.attestation.attesting import Attested, attest
from DocsToKG.ContentDownload.attestation.checking import Compared, check
from DocsToKG.ContentDownload.attestation.statement import AttestationBad
from DocsToKG.ContentDownload.catalog.store import Download
from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.storage.files import LocalFiles
from DocsToKG.core.digest import sha256_hex
from DocsToKG.Orchestrator.errors import NotVerified
from DocsToKG.Orchestrator.signing.keyring import KeyFolder, read_trust, write_trust
from DocsToKG.Orchestrator.signing.keys import PublicKey, Signer, Trust, new_signer

BODIES = {f"doi:10.1/{n}": b"%PDF-1.4 " + str(n).encode() * 50 for n in range(23)}
KEY = new_signer("curator", 0.0)
NOW = 1_800_000_000.0
TRUST = Trust([KEY.key], NOW)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path / "corpus", BODIES)


def attested(
    corpus: Corpus, signers: tuple[Signer, ...] = (KEY,), *, part_files: int = 4, files: LocalFiles | None = None
) -> tuple[bytes, Attested]:
    out = io.BytesIO()
    with corpus.catalog() as catalog:
        done = attest(
            catalog.files(), files or corpus.files, out, name="papers", at="2026-01-01T00:00:00.000Z",
            tool="docstokg 1", signers=signers, part_files=part_files,
        )  # fmt: skip
    return out.getvalue(), done


def compare(content: bytes, root: Path, trust: Trust = TRUST) -> Compared:
    return check(io.BytesIO(content), root, trust)


def statements(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        yield json.loads(base64.b64decode(json.loads(line)["payload"]))


@pytest.fixture
def copy(corpus: Corpus, tmp_path: Path) -> Path:
    """The papers alone, without a record, as somebody else has them."""
    place = tmp_path / "copy"
    shutil.copytree(corpus.root / "PDF", place / "PDF", copy_function=shutil.copyfile)
    return place


def test_a_true_copy_is_whole(corpus: Corpus, copy: Path) -> None:
    content, done = attested(corpus)
    assert (done.files, done.parts, done.spoiled) == (23, 6, [])
    found = compare(content, copy)
    assert found.is_good
    assert (found.files, found.bytes) == (23, sum(map(len, BODIES.values())))


def test_the_list_is_what_in_toto_and_dsse_say_and_others_can_prove_it(corpus: Corpus) -> None:
    """Signature by hand, from the public key alone; and every file with its works."""
    content, _ = attested(corpus)
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(KEY.key.public))
    for line in content.splitlines():
        envelope = json.loads(line)
        payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
        message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
        public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), message)
        assert kind == b"application/vnd.in-toto+json"
    told = {}
    for statement in statements(content):
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        for subject, more in zip(statement["subject"], statement["predicate"]["files"], strict=True):
            told[more["works"][0]["id"]] = (subject["digest"]["sha256"], subject["name"], more)
    assert {doc_id: (sha, name) for doc_id, (sha, name, _) in told.items()} == {
        doc_id: (corpus.digests[doc_id], corpus.paths[doc_id]) for doc_id in BODIES
    }
    _, _, more = told["doi:10.1/0"]
    assert more["size"] == len(BODIES["doi:10.1/0"])
    [work] = more["works"]
    assert work["url"] == "https://host0.example.org/0.pdf"
    assert work["license"] == "CC-BY-4.0"
    assert work["retrievedAt"].endswith("Z")


def test_the_same_corpus_gives_the_same_bytes(corpus: Corpus) -> None:
    assert attested(corpus) == attested(corpus)


def test_every_changed_missing_and_extra_file_is_named(corpus: Corpus, copy: Path) -> None:
    content, _ = attested(corpus)
    names = sorted(corpus.paths.values())
    (copy / names[3]).write_bytes(b"%PDF-1.4 other")
    (copy / names[7]).unlink()
    (copy / names[9]).unlink()
    (copy / names[9]).symlink_to(copy / names[10])
    (copy / names[11]).unlink()
    (copy / names[11]).mkdir()
    (copy / names[11] / "inside").write_bytes(b"x")
    (copy / names[13]).unlink()
    os.mkfifo(copy / names[13])
    added = ["HTML/nobody had one.html", "PDF/0 first.pdf", "PDF/zz/deep/last.pdf", "PDF/caf\u00e9.pdf"]
    for name in added:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(b"%PDF-1.4")
    found = compare(content, copy)
    assert found.changed == [names[3], names[9], names[11], names[13]]
    assert found.missing == [names[7]]
    assert sorted(found.extra) == sorted([*added, f"{names[11]}/inside"])


def test_files_beside_the_papers_are_nobodys_business(corpus: Corpus) -> None:
    """The run's own folder has a record, a store and a state beside the papers."""
    content, _ = attested(corpus)
    assert compare(content, corpus.root).is_good


def test_a_damaged_corpus_is_not_signed(corpus: Corpus) -> None:
    for doc_id, spoil in (("doi:10.1/3", lambda path: path.unlink()), ("doi:10.1/5", _damage)):
        spoil(corpus.name_of(doc_id))
    _, done = attested(corpus)
    found = {corpus.paths["doi:10.1/3"]: "missing", corpus.paths["doi:10.1/5"]: "damaged"}
    assert dict(done.spoiled) == found


def test_a_file_that_the_disk_does_not_give_is_named_too(corpus: Corpus) -> None:
    class BadSector(io.RawIOBase):
        def readinto(self, buffer: Any) -> int:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    class Spoiled(LocalFiles):
        def open(self, key: str) -> Any:
            return BadSector() if key == corpus.paths["doi:10.1/3"] else super().open(key)

    _, done = attested(corpus, files=Spoiled(corpus.root))
    assert done.spoiled == [(corpus.paths["doi:10.1/3"], "unreadable")]


def _damage(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"other")


def test_a_stranger_or_an_expired_key_is_not_believed(corpus: Corpus, copy: Path) -> None:
    stranger = new_signer("curator", 0.0)
    content, _ = attested(corpus, (stranger,))
    with pytest.raises(NotVerified, match=r"part 1: .*not among the trusted"):
        compare(content, copy)
    late = new_signer("late", 0.0, NOW - 1)
    content, _ = attested(corpus, (late,))
    with pytest.raises(NotVerified, match="not good at"):
        compare(content, copy, Trust([late.key], NOW))
    content, _ = attested(corpus, (KEY, stranger))
    assert compare(content, copy).is_good
    with pytest.raises(NotVerified, match="1 trusted"):
        compare(content, copy, Trust([KEY.key], NOW, threshold=2))


@pytest.mark.slow
def test_no_change_of_the_list_goes_unseen(corpus: Corpus, copy: Path) -> None:
    """Flips, cuts, lost, moved, doubled and borrowed parts: 1,500 of them, and none is believed."""
    content, _ = attested(corpus)
    other, _ = attested(corpus, part_files=3)
    foreign, _ = attested(corpus, (new_signer("curator", 0.0),))
    lines, others, strangers = (text.splitlines(keepends=True) for text in (content, other, foreign))
    draw = random.Random(7)

    def flip() -> bytes:
        place = draw.randrange(len(content))
        return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]

    def mixed(some: list[bytes]) -> bytes:
        place = draw.randrange(min(len(lines), len(some)))
        return b"".join([*lines[:place], some[place], *lines[place + 1 :]])

    def moved() -> bytes:
        first, second = draw.sample(range(len(lines)), 2)
        changed = list(lines)
        changed[first], changed[second] = changed[second], changed[first]
        return b"".join(changed)

    ways = [
        flip,
        flip,
        flip,
        lambda: content[: draw.randrange(len(content))],
        lambda: b"".join(lines[: (place := draw.randrange(len(lines)))] + lines[place + 1 :]),
        moved,
        lambda: content + draw.choice(lines),
        lambda: mixed(others),
        lambda: mixed(strangers),
    ]
    believed = []
    for _ in range(1500):
        changed = draw.choice(ways)()
        if changed == content:
            continue
        try:
            compare(changed, copy)
        except (AttestationBad, NotVerified):
            continue
        # White space between the words of a line is not what was signed, and says nothing.
        if [json.loads(line) for line in changed.splitlines()] != [json.loads(line) for line in lines]:
            believed.append(changed)
    assert believed == []


@pytest.mark.parametrize("name", ["../out.pdf", "/etc/passwd", "PDF//x", "PDF/./x", "", "PDF/\0"])
def test_a_name_that_leads_out_is_refused_though_it_is_signed(name: str, tmp_path: Path) -> None:
    from DocsToKG.ContentDownload.attestation import statement
    from DocsToKG.Orchestrator.signing import dsse

    file = statement.AttestedFile(name, "0" * 64, 1)
    whole = statement.Corpus("c", "t", "d", ("PDF",))
    payload = statement.payload(statement.Part(1, None, whole, (file,), statement.Sums(1, 1, 1)))
    line = json.dumps(dsse.sign(payload, statement.PAYLOAD_TYPE, [KEY])).encode() + b"\n"
    with pytest.raises(AttestationBad, match="not in the form"):
        compare(line, tmp_path)


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str]:
    folder = KeyFolder(tmp_path / "keys")
    write_trust(tmp_path / "trust.json", [folder.new("curator", 0.0)])
    return str(folder.path), str(tmp_path / "trust.json")


@pytest.mark.slow
def test_the_commands_sign_and_check_a_copy(corpus: Corpus, copy: Path, keys: tuple[str, str]) -> None:
    made = run("catalog", "attest", "--run", str(corpus.root), "--keys", keys[0])
    assert made.exit_code == 0, made.output
    assert "23 files" in made.output
    paper = str(corpus.root / "corpus.intoto.jsonl")
    words = ["catalog", "verify", "--run", str(copy), "--attestation", paper, "--trust", keys[1]]
    good = run(*words)
    assert good.exit_code == 0, good.output
    assert "0 changed, 0 missing, 0 extra" in good.output
    name = corpus.paths["doi:10.1/4"]
    (copy / name).unlink()
    bad = run(*words, "--json")
    assert bad.exit_code == 1
    told = json.loads(bad.stdout)
    assert (told["ok"], told["missing"], told["changed"], told["extra"]) == (False, [name], [], [])
    [key] = read_trust(Path(keys[1]))
    write_trust(Path(keys[1]), [PublicKey(key.public, key.name, 0.0, 1000.0)])
    assert "is not good at" in run(*words).output
    assert f"missing: {name}" in run(*words, "--at", "1970-01-01").output
    Path(paper).write_bytes(Path(paper).read_bytes()[:-1])
    cut = run(*words)
    assert (cut.exit_code, "was cut short" in cut.output) == (1, True)


@pytest.mark.slow
def test_the_commands_say_what_is_in_the_way(corpus: Corpus, keys: tuple[str, str], tmp_path: Path) -> None:
    where = ["--run", str(corpus.root)]
    assert "audit keys new" in run("catalog", "attest", *where, "--keys", str(tmp_path / "none")).output
    for words in (["--trust", keys[1]], ["--attestation", "x"], ["--attestation", "x", "--trust", "y", "--repair"]):
        assert run("catalog", "verify", *where, *words).exit_code == 2
    missing = run("catalog", "verify", *where, "--attestation", str(tmp_path / "x"), "--trust", keys[1])
    assert missing.exit_code != 0
    assert "there is no attestation at" in missing.output
    corpus.damage("doi:10.1/4")
    corpus.name_of("doi:10.1/6").unlink()
    refused = run("catalog", "attest", *where, "--keys", keys[0])
    assert refused.exit_code == 1
    assert f"missing: {corpus.paths['doi:10.1/6']}" in refused.output
    assert "Nothing was signed" in refused.output
    assert not (corpus.root / "corpus.intoto.jsonl").exists()


class NoDisk:
    """A store of any number of files that takes no room: each holds its own name."""

    def open(self, key: str) -> io.BytesIO:
        return io.BytesIO(key.encode())


def many(count: int) -> Iterator[Download]:
    for number in range(count):
        path = f"PDF/{number:07d}.pdf"
        url = f"https://host{number % 1000}.example.org/papers/{number}.pdf"
        yield Download(f"doi:10.1/{number}", sha256_hex(path.encode()), path, 16, "application/pdf", url, "CC-BY-4.0",
                       "gold", "publishedVersion", "r", "2026-01-01T00:00:00.000Z")  # fmt: skip


MEMORY = """
import io, sys
from tests.contentdownload.test_attestation import KEY, TRUST, NoDisk, many
from tests.largest import grown_mb
from DocsToKG.ContentDownload.attestation.attesting import attest
from DocsToKG.ContentDownload.attestation.checking import parts
with grown_mb() as grown, open(sys.argv[2], "w+b") as out:
    done = attest(many(int(sys.argv[1])), NoDisk(), out, name="n", at="t", tool="d", signers=[KEY])
    out.seek(0)
    files = sum(len(part.files) for part in parts(out, TRUST))
    print(done.files, files, round(grown()))
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """Measured in a process of its own: what is signed and read again is a part at a time."""
    words = [sys.executable, "-c", MEMORY, "12000", str(tmp_path / "a.jsonl")]
    root = Path(__file__).parents[2]
    done = subprocess.run(words, capture_output=True, text=True, cwd=root, timeout=300)
    assert done.returncode == 0, done.stderr
    signed, read, grown_mb = map(int, done.stdout.split())
    assert (signed, read) == (12000, 12000)
    assert grown_mb < 60
