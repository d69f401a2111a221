"""Sources of a sync other than files: commits of a real git, pages of a real HTTP server."""

from __future__ import annotations

import subprocess
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.errors import InvalidText, NotFound, StoreFailure
from monocontext.stores.memory import MemoryStore, forget
from monocontext.writing.upkeep.sync import sync


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    name = uuid.uuid4().hex
    yield MemoryStore(name)
    forget(name)


def texts_in(store: MemoryStore) -> dict[str, str]:
    with Monocontext.open(store) as context:
        return {name: str(context.documents[name]) for name in context.documents}


# -- git ---------------------------------------------------------------------------------------------------------------


def git(tree: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, "-C", str(tree), *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "main", str(tree))
    (tree / "a.txt").write_text("one\n")
    (tree / "src" / "é b.py").write_text("x = 1")
    (tree / "binary").write_bytes(b"\0\1")
    (tree / "link").symlink_to("a.txt")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "first")
    git(tree, "tag", "v1")
    (tree / "a.txt").write_text("two\n")
    (tree / "c.txt").write_text("")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "second")
    (tree / "a.txt").write_text("not committed")
    (tree / "d.txt").write_text("not committed")
    return tree


def test_a_repository_at_a_commit(store: MemoryStore, repository: Path) -> None:
    assert sync(repository, store, commit="v1").added == ("a.txt", "src/é b.py")
    found = sync(repository, store, commit="main", delete=True)
    assert (found.added, found.changed, found.unchanged, found.touched) == (("c.txt",), ("a.txt",), 1, 0)
    assert texts_in(store) == {"a.txt": "two\n", "src/é b.py": "x = 1", "c.txt": ""}
    back = sync(repository, store, commit="v1", delete=True)
    assert (back.changed, back.deleted) == (("a.txt",), ("c.txt",))
    assert sync(repository / "src", store, commit="main", dry_run=True).added == ("é b.py",)


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/o/r.git", "https://github.com/o/r/blob/{}/src/%C3%A9%20b.py"),
        ("git@github.com:o/r.git", "https://github.com/o/r/blob/{}/src/%C3%A9%20b.py"),
        ("https://user:secret@gitlab.com/group/sub/r", "https://gitlab.com/group/sub/r/-/blob/{}/src/%C3%A9%20b.py"),
        ("ssh://git@codeberg.org:22/o/r.git", "https://codeberg.org/o/r/src/commit/{}/src/%C3%A9%20b.py"),
        ("https://bitbucket.org/o/r.git/", "https://bitbucket.org/o/r/src/{}/src/%C3%A9%20b.py"),
        ("https://git.example.com/o/r.git", None),
        ("/srv/github.com/r.git", None),
        (None, None),
    ],
)
def test_the_address_of_a_file_at_a_commit(
    store: MemoryStore, repository: Path, remote: str | None, address: str | None
) -> None:
    """It comes from the remote, without users and passwords, and stays where the text stays."""
    if remote:
        git(repository, "remote", "add", "origin", remote)
    sync(repository / "src", store, commit="v1")
    sync(repository / "src", store, commit="main")
    number = subprocess.check_output(["git", "-C", str(repository), "rev-parse", "v1"], text=True).strip()
    with Monocontext.open(store) as context:
        found = context.documents.metadata("é b.py").get("url")
    assert found == (address and address.format(number))


@pytest.mark.parametrize("commit", ["none", "--help", "--output=x", "v1:a.txt"])
def test_no_such_commit(store: MemoryStore, repository: Path, commit: str) -> None:
    with pytest.raises(NotFound, match=r"tree: fatal: "):
        sync(repository, store, commit=commit)


def test_no_repository(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="not a git repository"):
        sync(tmp_path, store, commit="main")
    with pytest.raises(ValueError, match="a commit needs a git repository on this machine"):
        sync("s3://bucket/x", store, commit="main")


# -- pages -------------------------------------------------------------------------------------------------------------


class Site:
    """A server of pages; counts its requests."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.asked: list[str] = []
        self.takes_head = True
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self._answer(site.takes_head, b"")

            def do_GET(self) -> None:
                self._answer(True, None)

            def _answer(self, is_taken: bool, instead: bytes | None) -> None:
                site.asked.append(f"{self.command} {self.path}")
                found = site.pages.get(self.path)
                self.send_response(404 if found is None else 200 if is_taken else 501)
                body, headers = found or (b"", {})
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body if instead is None else instead)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


def test_pages(store: MemoryStore, site: Site) -> None:
    site.pages = {
        "/a.html": (b"<p>a", {"ETag": '"1"'}),
        "/latin": ("é".encode("latin-1"), {"Content-Type": "text/plain; charset=iso-8859-1", "Last-Modified": "now"}),
        "/bare": (b"bare", {}),
        "/binary": (b"\0", {"ETag": '"1"'}),
    }
    a, latin, bare, binary = addresses = [site.url + path for path in site.pages]
    assert sync(addresses, store).added == (a, latin, bare)
    assert texts_in(store) == {a: "<p>a", latin: "é", bare: "bare"}
    site.asked = []
    again = sync([a, latin, bare], store)
    assert (again.unchanged, again.touched, again.root and again.root.generation) == (3, 0, 1)
    assert sorted(site.asked) == ["GET /bare", "HEAD /a.html", "HEAD /bare", "HEAD /latin"]
    site.pages["/bare"] = (b"more", {})
    site.pages["/a.html"] = (b"<p>a", {"ETag": '"2"'})
    found = sync([a, latin, bare], store)
    assert (found.changed, found.touched) == ((bare,), 1)
    del site.pages["/latin"]
    with pytest.raises(NotFound, match=f"{latin}: the server answered 404"):
        sync([a, latin, bare], store, delete=True)
    assert sync([a, bare], store, delete=True).deleted == (latin,)
    assert binary not in texts_in(store)


def test_a_server_without_head(store: MemoryStore, site: Site) -> None:
    site.takes_head = False
    site.pages["/a"] = (b"one", {"ETag": '"1"'})
    assert sync(site.url + "/a", store).added == (site.url + "/a",)
    site.pages["/a"] = (b"two", {"ETag": '"2"'})
    assert sync(site.url + "/a", store).changed == (site.url + "/a",)
    found = sync(site.url + "/a", store)
    assert (found.unchanged, found.touched) == (1, 0)


def test_pages_that_are_no_text_or_break_off(store: MemoryStore, site: Site) -> None:
    site.pages["/cut"] = (b"short", {"Content-Length": "10", "ETag": '"1"'})
    with pytest.raises(StoreFailure, match="/cut: the page broke off after 5 bytes"):
        sync(site.url + "/cut", store)
    site.pages["/packed"] = (b"short", {"Content-Encoding": "gzip", "ETag": '"1"'})
    with pytest.raises(StoreFailure, match="/packed: the server sent the content encoding gzip"):
        sync(site.url + "/packed", store)
    site.pages["/latin"] = (b"\xe9", {"ETag": '"1"'})
    with pytest.raises(InvalidText, match="/latin: not utf-8 at byte 0"):
        sync(site.url + "/latin", store)
    assert sync(site.url + "/latin", store, errors="skip", note=str).added == ()
    with pytest.raises(ValueError, match="an address with a user or a password is refused"):
        sync("https://me:secret@example.com/a", store)
    with pytest.raises(StoreFailure, match=r"https://127.0.0.1:1/ä: "):
        sync("https://127.0.0.1:1/ä", store)
