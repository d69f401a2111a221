"""The one GET of a session that begins: over TLS, in chunks, cut off, of a server that answers something else."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from stores.http.certificates import make_authority
from stores.http.object_server import ObjectServer, Turn

from monocontext.errors import StoreFailure
from monocontext.sessions.fast_get import NeedsFullClient, get_once

DATA = b"# Brief\n" + b"- a line\n" * 20_000
MOST = 1 << 20


@pytest.fixture
def authority(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    return make_authority(tmp_path)


def get(server: ObjectServer, most: int = MOST) -> bytes | None:
    options: dict[str, object] = {"endpoint": server.endpoint, "anonymous": True}
    return get_once("s3://bucket/a", "brief.md", options, 5.0, most)


@pytest.mark.parametrize("turn", [Turn(), Turn(chunk_bytes=999), Turn(chunk_bytes=1 << 20)], ids=str)
def test_a_body_in_one_piece_or_in_chunks(turn: Turn) -> None:
    with ObjectServer(DATA, turn, turn) as server:
        assert get(server) == DATA
        assert get(server, 100) == DATA[:100]


def test_a_body_that_breaks_off_is_no_brief() -> None:
    with ObjectServer(DATA, Turn(cut_at=100_000)) as server, pytest.raises(StoreFailure, match="broke off"):
        get(server)


@pytest.mark.parametrize(
    ("status", "error"), [(404, None), (403, StoreFailure), (500, StoreFailure), (301, NeedsFullClient)]
)
def test_other_answers(status: int, error: type[Exception] | None) -> None:
    with ObjectServer(DATA, Turn(status=status)) as server:
        if error is None:
            assert get(server) is None
        else:
            with pytest.raises(error, match=str(status)):
                get(server)


def test_tls_trusts_what_the_system_trusts(
    authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, context = authority
    with ObjectServer(DATA, tls=context) as server:
        with pytest.raises(StoreFailure, match="certificate verify failed"):
            get(server)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert get(server) == DATA


def test_a_certificate_that_the_file_alone_has(
    authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder with a file for each of the others is looked at first."""
    trusted, context = authority
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "0a0b0c0d.0").write_bytes(trusted.read_bytes())  # under the name of another

    def paths() -> ssl.DefaultVerifyPaths:
        return ssl.DefaultVerifyPaths(str(trusted), str(folder), "SSL_CERT_FILE", "", "SSL_CERT_DIR", "")

    def everything() -> ssl.SSLContext:
        return make_default(cafile=str(trusted))

    make_default = ssl.create_default_context
    monkeypatch.setattr(ssl, "get_default_verify_paths", paths)
    monkeypatch.setattr(ssl, "create_default_context", everything)
    with ObjectServer(DATA, tls=context) as server:
        assert get(server) == DATA
