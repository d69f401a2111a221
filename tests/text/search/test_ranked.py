"""`search`: the best passages are those of a full scan, few frames are read, and queries mean what they say."""

from __future__ import annotations

import random

import pytest

from monocontext import Monocontext, documents
from monocontext.engine import filter_lookup
from monocontext.engine.remote import ServedReader
from monocontext.format.filters.grams import stem_of
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from monocontext.text import served_text
from monocontext.text.search.passages import Passage
from monocontext.text.search.terms import parse
from monocontext.writing.publish import publish

WORDS = ["river", "falcon", "copper", "maple", "harbor", "violet", "quartz", "meadow", "rocket", "lantern", "cedar"]


def noise(characters: int, seed: int = 19) -> str:
    """Lines of words that no query has."""
    rng = random.Random(seed)
    lines, size = [], 0
    while size < characters:
        lines.append(" ".join(f"{rng.choice(WORDS)}{rng.randrange(10_000)}" for _ in range(9)) + "\n")
        size += len(lines[-1])
    return "".join(lines)


def planted(characters: int, lines: dict[float, str]) -> str:
    """Noise with lines at shares of its length."""
    text = noise(characters)
    for share, line in sorted(lines.items(), reverse=True):
        offset = text.find("\n", int(share * characters)) + 1
        text = text[:offset] + line + "\n" + text[offset:]
    return text


def opened(text: str, *, frame_bytes: int = 1 << 15, filters: bool = True) -> tuple[CountingStore, Monocontext]:
    store = MemoryStore(f"ranked-{random.random()}")
    publish(text, store, frame_bytes=frame_bytes, filters=filters, codec="raw")
    counting = CountingStore(store)
    return counting, Monocontext.open(counting)


def every(context: Monocontext, query: str) -> list[Passage]:
    """All passages with a word of the query, best first: without a last one to beat, none is ruled out."""
    return context.search(query, k=1 << 40, max_bytes=1 << 40)


def scores(passages: list[Passage]) -> list[float]:
    return [passage.score for passage in passages]


def plain(text: str) -> Monocontext:
    return opened(text, filters=False)[1]


LINES = {
    0.1: "The team rotates credentials each month.",
    0.45: "After the breach we rotated all credentials at once, as the plan for a breach says.",
    0.8: "A breach of contract is another matter.",
}


@pytest.fixture(scope="module")
def large() -> str:
    return planted(6_000_000, LINES)


@pytest.mark.slow
def test_the_best_passage_comes_first_and_little_is_read(large: str) -> None:
    store, context = opened(large)
    ranking = context.search("rotate credentials of a breach", k=3)
    assert "we rotated all credentials" in ranking[0].text
    assert {line for line in LINES.values() for item in ranking if line in item.text} == set(LINES.values())
    assert ranking.note == ""
    assert [item.score for item in ranking] == sorted((item.score for item in ranking), reverse=True)
    store, context = opened(large)
    assert [item.text for item in context.search("rotate credentials of a breach", k=2)] == [
        item.text for item in ranking[:2]
    ]
    assert store.bytes_read < len(large) // 5  # the filter, of less than 1 MiB, is read whole
    assert store.gets <= 9
    for item in ranking:
        assert context[item.start : item.stop] == item.text
        assert large.count("\n", 0, item.start) == item.line - 1


@pytest.mark.parametrize(("before", "text", "query"), [("care", "full moon", '"full moon"'), ("東", "京都", "京都")])
def test_what_may_begin_inside_a_word_does_so_at_a_frame_too(before: str, text: str, query: str) -> None:
    size = 1 << 12
    _, context = opened("." * (size - len(before.encode())) + before + text + ".\n", frame_bytes=size)
    assert [ranking.start for ranking in context.search(query)] == [context.find(text)]
    _, context = opened("." * (size - len("care")) + "careful.\n", frame_bytes=size)
    assert not context.search("ful")  # a word begins with a word
    _, context = opened("." * (size - len(" z")) + " zebra quick\n  fox.\n", frame_bytes=size)
    assert context.search('"zebra quick fox"')


@pytest.mark.slow
def test_a_common_word_ends_where_no_passage_can_score_more() -> None:
    """Filters leave too much to name; the rarer word's frames come first, then the text in its order."""
    rng = random.Random(5)
    lines = [f"common {rng.choice(['common ', ''])}{rng.choice(WORDS)} common {'-' * 260}\n" for _ in range(20_000)]
    for offset in (7_000, 14_000):
        lines[offset : offset + 60] = ["extraordinary common common common extraordinary extraordinary\n"] * 60
    text = "".join(lines)
    for query, share in (("common", 0.2), ("common extraordinary", 0.2), ("falcon extraordinary common", 0.2)):
        store, context = opened(text)
        ranking = context.search(query, k=5)
        assert not ranking.note
        assert store.bytes_read < share * len(text)
        assert scores(ranking) == scores(every(context, query)[:5]), query


def test_without_filters_it_reads_from_the_beginning_and_says_so(large: str) -> None:
    _, context = opened(large, filters=False)
    ranking = context.search("rotate credentials", max_bytes=len(large) // 4)
    assert [item.text.count("credentials") for item in ranking] == [1]
    assert "18 unread frames may match better" in str(ranking)
    assert len(context.search("rotate credentials", max_bytes=1 << 30)) == 2


def common(characters: int) -> str:
    """Lines of which every frame holds both words, never side by side."""
    return "".join(f"falcon {n:06} {'-' * 180} river {n:06} {'-' * 180}\n" for n in range(characters // 394))


def test_words_in_all_frames_are_read_no_further_than_the_budget() -> None:
    store, context = opened(common(8_000_000), frame_bytes=1 << 16)
    assert "max_bytes=" in context.search("falcon river", max_bytes=800_000).note
    assert store.bytes_read < 1_200_000


def test_a_budget_that_cannot_decide_is_not_spent_in_vain() -> None:
    store, context = opened(common(12_000_000), frame_bytes=1 << 14)
    result = context.search("falcon river", k=1, max_bytes=8 << 20)
    assert (bool(result.note), len(result)) == (True, 1)
    assert store.bytes_read < 4 << 20


@pytest.mark.slow
def test_frames_that_hold_words_often_come_first() -> None:
    everywhere = {share / 400: "the falcon saw it" if share % 2 else "the river ran" for share in range(400)}
    text = planted(6_000_000, {**everywhere, 0.9001: "a river of falcons, a falcon at the river, rivers and falcons"})
    _, context = opened(text)
    [best] = context.search("falcon river", k=1, max_bytes=600_000)
    assert "a river of falcons" in best.text
    assert best == context.search("falcon river", k=1, max_bytes=1 << 40)[0]
    served = served_text(ServedReader(context.serve().answer))
    assert served.search("falcon river", k=1, max_bytes=600_000) == [best]


@pytest.mark.parametrize("filters", [True, False])
def test_of_two_words_in_every_frame_the_rarer_counts_more(filters: bool) -> None:
    """By how many passages hold it: filters estimate that; of a small text without filters it is counted."""
    dice = random.Random(7)
    lines = [
        ("omega" if n % 80 == 0 else "alpha alpha alpha" if n % 4 == 1 else dice.choice(WORDS)) + f" {'.' * 440}\n"
        for n in range(4000)
    ]
    store, context = opened("".join(lines), filters=filters)
    ranking = context.search("alpha omega", k=20, max_bytes=1 << 40)
    assert all("omega" in item.text for item in ranking)
    assert scores(ranking) == scores(every(context, "alpha omega")[:20])
    context.count("\n")  # all of it is in memory now
    assert context.search("alpha omega", k=20, max_bytes=1 << 40) == ranking
    with Monocontext.open(store) as cold:
        assert cold.search("alpha omega", k=20, max_bytes=1 << 40) == ranking


def test_a_word_in_too_many_frames_to_list_is_common(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_lookup, "MOST_LISTED", 0)
    lines = [f"{'falcon' if n == 3000 else 'river river river'} {'.' * 440}\n" for n in range(4000)]
    assert "falcon" in opened("".join(lines))[1].search("falcon river", k=1)[0].text


def test_a_form_of_a_word_is_counted_as_the_word() -> None:
    for query, forms in {"rotates": "rotate rotated rotating rotation", "cities": "city cities"}.items():
        stems = {stem_of(word.encode()) for word in parse(query).scoring[0].words}
        assert {stem_of(word.encode()) for word in forms.split()} <= stems
    assert parse("東京都").scoring[0].words == ("東京",)


@pytest.mark.parametrize(
    ("query", "has", "lacks"),
    [
        ("run", "they were running late", "a rune stone"),
        ("running", "they run late", "a rune stone"),
        ("résumés", "his résumé came", "presume nothing"),
        ("re\u0301sume\u0301", "his résumé came", "re sume"),
        ("résumé", "his re\u0301sume\u0301 came", "a result came"),
        ("RÉSUMÉ", "a resume came", "a result came"),
        ("policies", "the policy says", "the police say"),
        ("rotation", "she rotates it", "a rotten egg"),
        ('"full moon"', "a full  moon rose", "the moon was full"),
        ("moon -full", "the moon rose", "the full moon rose"),
        ("東京都", "私は東京に住む", "大阪 だけ"),
        ("東京 -東京都", "私は東京に住む", "東京都に住む"),
        ("python", "用Python语言", "用CPython语言"),
        ("İstanbul", "an İstanbul guide", "an Astanbul guide"),
        ("to be or not", "or not to be", "nothing"),
        ("Straße", "die Straße ist lang", "die Strasse2"),
        ("йод", "тут Йод есть", "тут иод есть"),
        ("한국", "저는 한국에 있다", "저는 한 사람"),
        ('"новая ёлка"', "Новая ёлка", "новая елка"),
        ('"house σίσυφος"', "the House ΣΊΣΥΦΟΣ", "the house"),
        ("error_code", "the error_code was 3", "error code"),
    ],
)
def test_what_a_query_finds(query: str, has: str, lacks: str) -> None:
    text = plain(f"{noise(2000)}{lacks}\n{noise(2000, 2)}{has}\n{noise(2000, 3)}")
    ranking = text.search(query)
    assert len(ranking) == 1
    assert has in ranking[0].text


@pytest.mark.parametrize("query", ["", "   ", "🎉", '""', "-only", "doc:*.py"])
def test_queries_that_find_nothing(query: str) -> None:
    with pytest.raises(ValueError, match=r"^a query"):
        plain("text").search(query)


@pytest.mark.parametrize("query", ["owl doc:", "owl -doc:a.txt"])
def test_queries_that_do_not_parse(query: str) -> None:
    with pytest.raises(ValueError, match=r"^a query names documents[^\n]+$"):
        plain("owl text").search(query)


@pytest.mark.parametrize("query", ['owl "text', 'owl" text', 'what did the "owl say?'])
def test_one_quotation_mark_is_left_out(query: str) -> None:
    assert [ranking.text for ranking in plain("an owl in a text").search(query)] == ["an owl in a text"]


def test_documents_are_named_and_chosen() -> None:
    store = MemoryStore(f"ranked-{random.random()}")
    publish({"src/a.py": "one moon\n", "src/b.txt": "two moons, two\n", "empty": "", "c.py": "no star\n"}, store)
    context = Monocontext.open(store)
    assert {(item.document, item.text) for item in context.search("moon")} == {
        ("src/a.py", "one moon\n"),
        ("src/b.txt", "two moons, two\n"),
    }
    assert [item.document for item in context.search("star moon doc:c.*")] == ["c.py"]
    assert [item.document for item in context.search("moon doc:src/*.txt")] == ["src/b.txt"]
    assert not context.search("moon doc:c.*")
    with pytest.raises(ValueError, match="a text with documents"):
        plain("text").search("moon doc:*.py")


def test_of_each_document_the_best_passage() -> None:
    store = MemoryStore(f"ranked-{random.random()}")
    rng = random.Random(3)
    texts = {
        f"d{n}": "".join(f"{rng.choice(['moon ', ''])}star {rng.choice(WORDS)}\n" for _ in range(90)) for n in range(9)
    }
    publish(texts, store)
    context = Monocontext.open(store)
    every = context.search("moon falcon", k=1000)
    best = {item.document: item for item in reversed(every)}
    expected = sorted(best.values(), key=lambda item: (-item.score, item.start))
    assert list(context.search("moon falcon", k=4, per_document=True)) == expected[:4]
    assert list(context.search("moon falcon", k=20, per_document=True)) == expected
    with pytest.raises(ValueError, match="a text with documents"):
        plain("text").search("text", per_document=True)


def test_documents_of_one_name_count_each() -> None:
    store = MemoryStore(f"ranked-{random.random()}")
    texts = [("a", "zebra one\n"), ("b", "zebra zebra\n"), ("a", "zebra zebra zebra\n"), ("c", "no\n")]
    publish(documents(texts), store)
    with Monocontext.open(store) as context:
        ranking = context.search("zebra", k=5, per_document=True)
        assert [(item.document, item.start) for item in ranking] == [("a", 22), ("b", 10), ("a", 0)]
