"""URLs: what opens, what is refused and how, what lies within what, and what is imported on the way."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from monocontext.errors import InvalidUrl, NotFound, NotPicklable
from monocontext.stores import is_within, open_store, split_object
from monocontext.stores.address import parse
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.secrets_in_urls import without_secrets


@pytest.mark.parametrize(
    ("url", "opened"),
    [
        *(("s3://bucket", "s3://bucket"), ("s3://bucket/", "s3://bucket")),
        *(("s3://my.bucket/a/b/", "s3://my.bucket/a/b"), ("S3://bucket/a", "s3://bucket/a")),
        *(("s3://bucket/a?b#c d", "s3://bucket/a?b#c d"), ("memory://name", "memory://name")),
        *(("memory://name/a/b/", "memory://name/a/b"), ("file:///data/ctx", "file:///data/ctx")),
        *(("file:///data/ctx/", "file:///data/ctx"), ("file://localhost/data", "file:///data")),
        *(("file:/data", "file:///data"), ("file:///a%20b", "file:///a%20b"), ("/data/a b", "file:///data/a%20b")),
        *(("/data/../data/x", "file:///data/x"), (Path("/data/s3:/x"), "file:///data/s3%3A/x")),
    ],
)
def test_places(url: str | Path, opened: str) -> None:
    store = open_store(url)
    assert store.url == opened
    assert open_store(store.url).url == opened


def test_relative_paths_and_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    root = tmp_path.resolve()
    assert open_store("ctx").url == (root / "ctx").as_uri()
    assert open_store("~/ctx").url == (root / "home/ctx").as_uri()
    assert open_store(Path("~/ctx")).url == (root / "home/ctx").as_uri()
    store = open_store("ctx")
    store.put("a", b"x")
    monkeypatch.chdir("/")
    assert store.get("a").data == b"x"


@pytest.mark.parametrize(
    "url",
    [
        *("", "s3://", "s3:///key", "s3:/bucket/key", "s3://a", "s3://buck et/key", "s3://user:secret@host/key"),
        *("s3://bucket/../other/key", "s3://bucket/a//b", "memory://", "memory:/name", "ftp://example.org/x"),
        *("r2://bucket/x", "file://host/dir", "file://", "a\0b"),
    ],
)
def test_no_place(url: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        open_store(url)
    assert "\n" not in str(caught.value)
    assert any(hint in str(caught.value) for hint in ("did you mean memory://name?", "bucket", "file URL", "key"))


def test_options_of_another_scheme() -> None:
    with pytest.raises(TypeError, match="unknown option 'endpoint' for memory://options: this store has none"):
        open_store("memory://options", endpoint="http://127.0.0.1:1")


def test_a_ready_client_excludes_the_rest() -> None:
    with pytest.raises(TypeError, match="cannot be combined with region"):
        open_store("s3://bucket", client=object(), region="eu-west-1")


@pytest.mark.parametrize(
    ("url", "root", "key"),
    [
        ("s3://bucket/a/b.txt", "s3://bucket", "a/b.txt"),
        ("memory://name/a/b.txt", "memory://name", "a/b.txt"),
        ("/data/a b/c.txt", "file:///data/a%20b", "c.txt"),
        ("/c.txt", "file:///", "c.txt"),
        ("s3://bucket/a%20b.txt", "s3://bucket", "a%20b.txt"),
    ],
)
def test_split_object(url: str, root: str, key: str) -> None:
    assert split_object(url) == (root, key)
    assert open_store(root).url == root


@pytest.mark.parametrize(
    "url",
    [
        *("fsspec+sftp://me:secret@host/x", "fsspec+sftp://me:sec@secret@host/x", "hf://me:secret@datasets/x"),
        *("https://me:secret@host/x", "https://secret@host/x", "https://me:a/secret@host/x"),
        *("https:/me:secret@host/x", "s3://me:secret@bucket/x", "ftp://me:secret@host/x", "file://me:secret@host/x"),
        *("https://host/x?sig=secret", "https://host/x?key=1&X-Amz-Signature=secret&b=2"),
        *("https://host/x?token=secret", "https://host/x?access_token=secret#y"),
        *("https://host/x?y=1;refresh_token=secret", "s3://bucket/x?X-Amz-Security-Token=secret"),
        *("gs://bucket/x?GoogleAccessId=secret", "az://container/x?sv=1&sig=secret"),
        *("fsspec+https://host/x?apikey=secret", "ftp://host/x?password=secret", "https:/host/x?sig=secret"),
        *("s3:bucket/x?sig=secret", "gs://secret@bucket/x", "s3://secret@bucket/x"),
        *("fsspec+simplecache::http://bob:secret@host/x", "fsspec+simplecache::http://host/x?token=secret"),
        *("simplecache::s3://secret@host/x", "https://host/\0?sig=secret", "https://host/x?%73ig=secret"),
    ],
)
def test_no_message_shows_a_password(url: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "word",
    [
        *(r"https:\/\/user:secret@host/x", r"https:\\/\\/user:secret@host", r"https:\u002F\u002Fuser:secret\u0040host"),
        *("https://h/x?next=https://u:secret@h", "https://h/x?next=https%3A%2F%2Fu:secret%40h", "//user:secret@host"),
        *("https://h/x?next=https%253A%252F%252Fu%253Asecret%2540h", "https%3A//u:secret@host", "s3:secret@bucket/x"),
        *("https://u:secret%40host/x", "https://u%3Asecret@host", 'url("//u:secret@host/x.css")', "s3:u:secret@bucket"),
        *("jdbc:postgresql://u:secret@host/db", "redis://:secret@host:6379"),
        '{"url":"https:\\/\\/u:secret@host","n":1}',
        *("https://h/x?X%2DAmz%2DSignature=secret", "https://h/x?sig%3Dsecret", "https://h/x%3Fsig=a%26secret"),
        *("https://h/x?a=1&amp;sig=secret", r"https://h/x?a=1\u0026sig\u003dsecret", "https://h/x?%73ig=a%26secret"),
        *("https://h/x?password=a;secret", "https://h/x?password=a#secret", "https://h/x?password=a?secret"),
        *("https://h/x?next=https%3A%2F%2Fh%2F%3Fsig%3Da%2526secret", "https://h/x?next=%2Fy%3Ftoken%3Dsecret"),
        *("https://h/#/cb?token=secret", "https://h/x?token[]=secret", "https://h/x?token%5B0%5D=secret"),
        *("https://h/x;jsessionid=secret", "bucket/x?sig=secret", "https://h/x?authorization=Bearer%20secret"),
        *("https://h/x?session=secret", "https://h/x?PHPSESSID=secret", "https://h/x?sid=secret"),
        *("https://h/x?pass=secret", "https://h/x?otp=secret", "https://h/x?hmac=secret", "https://h/x?ticket=secret"),
        *("https://h/x?private_key=secret", "https://h/x?AccountKey=secret", "https://h/x?subscription-key=secret"),
        *(f"https://h/x?{'long_' * 40}token=secret", "https://h/x?SECRET_KEY=secret", "https://h/x?passcode=secret"),
        *("https://me@example.org:secret@host/x", "//me@example.org:secret@host", r"s3:\/\/a@b:secret@bucket"),
        *(f"https://h/x?{n}=secret" for n in ("encryption_key", "sse_c_key", "SSECustomerKey", "pass_phrase", "creds")),
        *(f"https://h/x?{n}=secret" for n in ("signing_key", "pw", "AWS_SECRETKEY", "cache_app_key", "row.api-key")),
        *("https://h/x?customer-key=secret", "https://h/x?db_pass=secret", "https://h/x?connection_string=secret"),
        *("https://h/x?client_assertion=secret", "https://h/x?SAMLResponse=secret", "https://h/x?cookie=secret"),
    ],
)
def test_a_word_of_a_message_hides_its_secret(word: str) -> None:
    assert "secret" not in without_secrets(word)
    if word.startswith("https://"):
        with pytest.raises(InvalidUrl) as caught:
            open_store(word)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "word",
    [
        *("'h/x?sig=***';", "me@example.org", "a//b@c", "file:///data/me%40work/x"),
        *("?P<key>=", "h/x?monkey=1", "?sort_key=1"),
    ],
)
def test_a_word_without_a_secret_is_shown(word: str) -> None:
    assert without_secrets(word) == word


@pytest.mark.parametrize(
    "url",
    [
        *("https://host/x?page=2", "s3://bucket/x?versionId=3", "s3://bucket/x?key=5"),
        *("gs://buck/token=x", "s3://bucket/a&sig=b"),
    ],
)
def test_a_url_without_a_secret_is_valid(url: str) -> None:
    assert str(parse(url)) == url


def test_a_chained_url_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidUrl, match=r"^not a URL: 'fsspec\+simplecache::http://\*\*\*@host/x'; expected"):
        open_store("fsspec+simplecache::http://bob:secret@host/x").put("a", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/a/", "memory://name", "/", "/data/", "ftp://x/y"])
def test_split_what_names_no_object(url: str) -> None:
    with pytest.raises(InvalidUrl):
        split_object(url)


@pytest.mark.parametrize(
    ("url", "place", "expected"),
    [
        *(("s3://bucket/other/x", "s3://bucket/ctx", True), ("s3://bucket-evil/ctx/x", "s3://bucket", False)),
        *(("s3://bucket/../evil/x", "s3://bucket", False), ("s3://evil/x", "s3://bucket", False)),
        *(("memory://bucket/x", "s3://bucket", False), ("memory://name/x", "memory://name/ctx", True)),
        *(("memory://names/x", "memory://name", False), ("/data/ctx/a", "/data/ctx", True)),
        *(("file:///data/ctx/a/b", "/data/ctx/", True), ("/data/ctx-evil/a", "/data/ctx", False)),
        *(("/data/ctx/../secret", "/data/ctx", False), ("file:///data/ctx/%2e%2e/secret", "/data/ctx", False)),
        *(("/data/ctx/../ctx/a", "/data/ctx", True), ("/etc/passwd", "/", True)),
        *(("s3://bucket/data/ctx/a", "/data/ctx", False), ("", "/data", False)),
        ("http://bucket/x", "s3://bucket", False),
        # One place holds many owners' files on Hugging Face, and all files of a machine.
        ("hf://datasets/a/one/x", "hf://datasets/a/one", True),
        ("hf://datasets/b/two/x", "hf://datasets/a/one", False),
        ("fsspec+file:///etc/passwd", "fsspec+file:///data", False),
    ],
)
def test_within(url: str, place: str, expected: bool) -> None:
    assert is_within(url, place) is expected


def test_within_follows_links(tmp_path: Path) -> None:
    for folder in ("ctx/sub", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "elsewhere/secret").write_text("x")
    (tmp_path / "ctx/out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "ctx/file").symlink_to(tmp_path / "elsewhere/secret")
    (tmp_path / "alias").symlink_to(tmp_path / "ctx")
    assert not is_within(tmp_path / "ctx/out/secret", tmp_path / "ctx")
    assert not is_within(tmp_path / "ctx/file", tmp_path / "ctx")
    # Through the link, `..` is the parent of where it leads.
    assert not is_within(f"{tmp_path}/ctx/out/../x", tmp_path / "ctx")
    assert is_within(tmp_path / "alias/sub/x", tmp_path / "ctx")
    assert is_within(tmp_path / "ctx/x", tmp_path / "alias")


def test_memory_is_shared_by_name() -> None:
    open_store("memory://shared/a").put("x", b"1")
    assert open_store("memory://shared").get("a/x").data == b"1"
    with pytest.raises(NotFound, match="memory://shared2/a/x"):
        open_store("memory://shared2/a").get("x")
    forget("shared")
    with pytest.raises(NotFound):
        open_store("memory://shared/a").get("x")


def test_memory_cannot_leave_its_process() -> None:
    with pytest.raises(NotPicklable, match="memory://here/a exists in this process only"):
        pickle.dumps(MemoryStore("here", "a"))
