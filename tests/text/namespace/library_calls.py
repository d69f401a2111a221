"""Calls of other people's libraries as code of a cell makes them, and what comes of each: the table of
library_calls.md. `python -m tests.text.namespace.library_calls` prints it, for the libraries that are installed.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
from typing import Any, NamedTuple

from monocontext import Monocontext, publish
from monocontext.errors import ContextTooLarge
from monocontext.stores.memory import forget
from monocontext.text.namespace import NamespacePatch

PROSE = "".join(
    f"Chapter {i}. The café of Dr. Łukasz opens at 8; it's {i * 7 % 24}:15 now, isn't it?\n\n" for i in range(25)
)
TEXTS = {
    "prose": PROSE,
    "html": f"<html><head><title>One &amp; two</title></head><body><p class='a'>{PROSE}</p><p>b</p></body></html>",
    "xml": "<doc><item id='1'>a</item><item id='2'>é</item></doc>",
    "feed": "<rss version='2.0'><channel><title>T</title><item><title>A</title></item></channel></rss>",
    "json": '{"rows": [1, 2.5, "é", null], "name": "Ann"}',
    "yaml": "rows: [1, 2.5, é]\nname: Ann\n",
    "toml": 'name = "Ann"\n[a]\nrows = [1, 2]\n',
    "ini": "[a]\nname = Ann\n",
    "csv": "name,age\n" + "".join(f"Ann{i},{i}\n" for i in range(20)),
    "sql": "select a, b from t where a = 1 order by b; delete from t",
    "number": "1234567",
    "base64": "SGVsbG8sIHdvcmxkLCBoZWxsbyE=",
    "python": "x = [1, 'a']\ndef f(y):\n    return x\n",
    "literal": "[1, 'a', {'k': (2.5, None)}]",
    "date": "2026-11-22T10:11:12",
    "words": "alpha beta $name {{ name }} %s\n",
    "url": "https://example.org/a/b?x=1&y=2#z",
    "mail": "From: a@example.org\nSubject: Hi\n\nHello\n",
}

_TIKTOKEN = (
    "import tiktoken\n"
    "ranks = {bytes([i]): i for i in range(256)} | {b'ca': 256, b'fe': 257}\n"
    "enc = tiktoken.Encoding('tiny', pat_str=r'\\S+|\\s+', mergeable_ranks=ranks, special_tokens={})"
)


class Call(NamedTuple):
    """`library`, an expression about `context`, the text that it is about, and statements before it."""

    library: str
    code: str
    text: str = "prose"
    before: str = ""
    module: str = ""
    """What to import to see whether it is here; empty for the standard library."""


STANDARD = [
    Call("builtins", "int(context)", "number"),
    Call("builtins", "float(context)", "number"),
    Call("builtins", "bytes(context, 'utf-8')"),
    Call("builtins", "eval(context)", "literal"),
    Call("builtins", "exec(context) or x", "python"),
    Call("builtins", "compile(context, 'c', 'exec').co_names", "python"),
    Call("builtins", "'abc'.replace('b', context)"),
    Call("builtins", "str.upper(context)"),
    Call("builtins", "list(map(str.split, [context]))"),
    Call("builtins", "len(sorted([context, 'b'], key=str.lower))"),
    Call("ast", "ast.literal_eval(context)", "literal", "import ast"),
    Call("ast", "ast.dump(ast.parse(context))", "python", "import ast"),
    Call("base64", "base64.b64decode(context)", "base64", "import base64"),
    Call("binascii", "binascii.a2b_base64(context)", "base64", "import binascii"),
    Call("codecs", "codecs.encode(context, 'rot13')", "prose", "import codecs"),
    Call("collections", "Counter(context).most_common(3)", "prose", "from collections import Counter"),
    Call("configparser", "c.read_string(context) or dict(c['a'])", "ini",
         "import configparser\nc = configparser.ConfigParser()"),
    Call("csv", "list(csv.reader([context]))", "words", "import csv"),
    Call("datetime", "datetime.fromisoformat(context)", "date", "from datetime import datetime"),
    Call("decimal", "Decimal(context)", "number", "from decimal import Decimal"),
    Call("difflib", "difflib.SequenceMatcher(None, context, 'Chapter 1').ratio()", "words", "import difflib"),
    Call("email", "email.message_from_string(context)['Subject']", "mail", "import email"),
    Call("email", "m.set_content(context) or m.get_content()", "words",
         "from email.message import EmailMessage\nm = EmailMessage()"),
    Call("fractions", "Fraction(context)", "number", "from fractions import Fraction"),
    Call("functools", "partial(str.split, context)('\\n')[0]", "prose", "from functools import partial"),
    Call("hashlib", "hashlib.sha256(context.encode()).hexdigest()", "prose", "import hashlib"),
    Call("hashlib", "hashlib.sha256(bytes(context, 'utf-8')).hexdigest()", "prose", "import hashlib"),
    Call("html", "html.unescape(context)", "html", "import html"),
    Call("html", "p.feed(context) or p.rawdata", "html", "from html.parser import HTMLParser\np = HTMLParser()"),
    Call("json", "json.JSONDecoder().raw_decode(context)", "json", "import json"),
    Call("json", "json.loads(context)", "json", "import json"),
    Call("json", "json.dumps({'t': [context]})", "words", "import json"),
    Call("quopri", "quopri.encodestring(context.encode())", "prose", "import quopri"),
    Call("re", "len(re.findall(r'\\w+', context))", "prose", "import re"),
    Call("re", "re.escape(context)", "words", "import re"),
    Call("shlex", "shlex.split(context)", "words", "import shlex"),
    Call("sqlite3", "db.execute('select length(?), upper(?)', (context, 'a')).fetchall()", "prose",
         "import sqlite3\ndb = sqlite3.connect(':memory:')"),
    Call("statistics", "statistics.mode([context, 'a', context]) == context", "words", "import statistics"),
    Call("string", "string.Template(context).substitute(name=1)", "words", "import string"),
    Call("struct", "struct.pack('5s', bytes(context[:5], 'ascii'))", "words", "import struct"),
    Call("subprocess", "subprocess.run(['echo', context], capture_output=True, text=True).stdout", "words",
         "import subprocess"),
    Call("textwrap", "textwrap.dedent(context)", "prose", "import textwrap"),
    Call("textwrap", "textwrap.shorten(context, width=40)", "prose", "import textwrap"),
    Call("tokenize", "len(list(tokenize.generate_tokens(io.StringIO(context).readline)))", "python",
         "import io, tokenize"),
    Call("tomllib", "tomllib.loads(context)", "toml", "import tomllib"),
    Call("unicodedata", "unicodedata.normalize('NFD', context)", "prose", "import unicodedata"),
    Call("urllib", "urllib.parse.urlparse(context)", "url", "import urllib.parse"),
    Call("urllib", "urllib.parse.quote(context)", "prose", "import urllib.parse"),
    Call("uuid", "uuid.uuid5(uuid.NAMESPACE_URL, context)", "url", "import uuid"),
    Call("xml.etree", "[e.text for e in ET.fromstring(context)]", "xml", "import xml.etree.ElementTree as ET"),
    Call("xml.etree", "ET.tostring(e)", "words", "import xml.etree.ElementTree as ET\ne = ET.Element('a')\ne.text = context"),
    Call("xml.sax", "saxutils.escape(context)", "html", "from xml.sax import saxutils"),
    Call("zlib", "zlib.crc32(bytes(context, 'utf-8'))", "prose", "import zlib"),
]  # fmt: skip

LIBRARIES = [
    Call("tiktoken", "enc.encode(context)", "prose", _TIKTOKEN, "tiktoken"),
    Call("tiktoken", "enc.encode_batch([context, 'a'])", "prose", _TIKTOKEN, "tiktoken"),
    Call("beautifulsoup4", "BeautifulSoup(context, 'html.parser').title.text", "html", "from bs4 import BeautifulSoup", "bs4"),
    Call("beautifulsoup4", "BeautifulSoup(markup=context, features='lxml').get_text()", "html", "from bs4 import BeautifulSoup", "bs4"),
    Call("lxml", "lxml.html.fromstring(context).text_content()", "html", "import lxml.html", "lxml"),
    Call("lxml", "lxml.etree.tostring(e)", "words", "import lxml.etree\ne = lxml.etree.Element('a')\ne.text = context", "lxml"),
    Call("html5lib", "len(list(html5lib.parse(context).iter()))", "html", "import html5lib", "html5lib"),
    Call("markdown", "markdown.markdown(context)", "prose", "import markdown", "markdown"),
    Call("langchain-text-splitters", "RecursiveCharacterTextSplitter(chunk_size=200, chunk_overlap=20).split_text(context)",
         "prose", "from langchain_text_splitters import RecursiveCharacterTextSplitter", "langchain_text_splitters"),
    Call("langchain-text-splitters", "[d.page_content for d in CharacterTextSplitter(chunk_size=200, chunk_overlap=0).create_documents([context])]",
         "prose", "from langchain_text_splitters import CharacterTextSplitter", "langchain_text_splitters"),
    Call("langchain-core", "Document(page_content=context).page_content", "prose", "from langchain_core.documents import Document", "langchain_core"),
    Call("nltk", "nltk.wordpunct_tokenize(context)", "prose", "import nltk", "nltk"),
    Call("nltk", "TreebankWordTokenizer().tokenize(context)", "prose", "from nltk.tokenize import TreebankWordTokenizer", "nltk"),
    Call("nltk", "nltk.edit_distance(context, 'abc')", "words", "import nltk", "nltk"),
    Call("spacy", "[t.text for t in nlp(context)]", "prose", "import spacy\nnlp = spacy.blank('en')", "spacy"),
    Call("spacy", "[len(d) for d in nlp.pipe([context, 'a'])]", "prose", "import spacy\nnlp = spacy.blank('en')", "spacy"),
    Call("regex", "regex.findall(r'\\p{L}+', context)[:9]", "prose", "import regex", "regex"),
    Call("regex", "regex.compile(r'\\s+').sub(' ', context)", "prose", "import regex", "regex"),
    Call("orjson", "orjson.loads(context)", "json", "import orjson", "orjson"),
    Call("orjson", "orjson.dumps({'t': context})", "prose", "import orjson", "orjson"),
    Call("ujson", "ujson.loads(context)", "json", "import ujson", "ujson"),
    Call("simplejson", "simplejson.loads(context)", "json", "import simplejson", "simplejson"),
    Call("simplejson", "simplejson.dumps([context])", "prose", "import simplejson", "simplejson"),
    Call("pyyaml", "yaml.safe_load(context)", "yaml", "import yaml", "yaml"),
    Call("pyyaml", "yaml.safe_dump({'t': context})", "prose", "import yaml", "yaml"),
    Call("ruamel.yaml", "dict(YAML(typ='safe').load(context))", "yaml", "from ruamel.yaml import YAML", "ruamel.yaml"),
    Call("tomli", "tomli.loads(context)", "toml", "import tomli", "tomli"),
    Call("pyarrow", "pa.array([context]).to_pylist()", "prose", "import pyarrow as pa", "pyarrow"),
    Call("pyarrow", "pa.table({'t': [context]})['t'].type", "prose", "import pyarrow as pa", "pyarrow"),
    Call("pyarrow", "pa.scalar(context).as_py()", "prose", "import pyarrow as pa", "pyarrow"),
    Call("polars", "pl.Series([context]).str.len_chars().to_list()", "prose", "import polars as pl", "polars"),
    Call("polars", "pl.DataFrame({'t': [context]}).schema", "prose", "import polars as pl", "polars"),
    Call("polars", "pl.DataFrame({'a': [1]}).with_columns(t=pl.lit(context))['t'].to_list()", "prose", "import polars as pl", "polars"),
    Call("pandas", "pd.Series([context]).str.split('\\n').str.len().tolist()", "prose", "import pandas as pd", "pandas"),
    Call("pandas", "int(pd.Series([context]).str.contains('caf').sum())", "prose", "import pandas as pd", "pandas"),
    Call("pandas", "pd.DataFrame({'t': [context]})['t'].str.len().tolist()", "prose", "import pandas as pd", "pandas"),
    Call("pandas", "pd.DataFrame([{'t': context}], columns=['t'])['t'].str.len().tolist()", "prose", "import pandas as pd", "pandas"),
    Call("pandas", "df['t'].str.len().tolist()", "prose", "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\ndf['t'] = context", "pandas"),
    Call("pandas", "df['t'].str.len().tolist()", "prose", "import pandas as pd\ndf = pd.DataFrame({'t': ['x', 'y']})\ndf.loc[0, 't'] = context", "pandas"),
    Call("pandas", "df.assign(t=context)['t'].str.len().tolist()", "prose", "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})", "pandas"),
    Call("pandas", "pd.read_csv(io.StringIO(context))['age'].sum()", "csv", "import io\nimport pandas as pd", "pandas"),
    Call("pandas", "pd.to_datetime(context)", "date", "import pandas as pd", "pandas"),
    Call("numpy", "np.array([context, 'a']).dtype.kind", "prose", "import numpy as np", "numpy"),
    Call("numpy", "np.char.count(np.array(context), 'caf').tolist()", "prose", "import numpy as np", "numpy"),
    Call("numpy", "len(a[0])", "prose", "import numpy as np\na = np.empty(1, dtype=object)\na[0] = context", "numpy"),
    Call("numpy", "np.fromstring(context, sep=',').tolist()", "number", "import numpy as np", "numpy"),
    Call("rapidfuzz", "fuzz.ratio(context, 'Chapter 1')", "prose", "from rapidfuzz import fuzz", "rapidfuzz"),
    Call("rapidfuzz", "process.extractOne('Chapter', [context, 'Chapter'])", "words", "from rapidfuzz import process", "rapidfuzz"),
    Call("Levenshtein", "Levenshtein.distance(context, 'Chapter')", "prose", "import Levenshtein", "Levenshtein"),
    Call("textdistance", "textdistance.jaccard(context, 'Chapter')", "words", "import textdistance", "textdistance"),
    Call("jinja2", "jinja2.Template(context).render(name='Ann')", "words", "import jinja2", "jinja2"),
    Call("jinja2", "jinja2.Template('{{ t|length }}: {{ t|upper }}').render(t=context)", "prose", "import jinja2", "jinja2"),
    Call("chardet", "chardet.detect(context.encode())['encoding']", "prose", "import chardet", "chardet"),
    Call("charset-normalizer", "str(from_bytes(bytes(context, 'utf-8')).best())", "prose", "from charset_normalizer import from_bytes", "charset_normalizer"),
    Call("ftfy", "ftfy.fix_text(context)", "prose", "import ftfy", "ftfy"),
    Call("unidecode", "unidecode(context)", "prose", "from unidecode import unidecode", "unidecode"),
    Call("sqlparse", "sqlparse.split(context)", "sql", "import sqlparse", "sqlparse"),
    Call("pygments", "highlight(context, PythonLexer(), NullFormatter())", "python",
         "from pygments import highlight\nfrom pygments.lexers import PythonLexer\nfrom pygments.formatters import NullFormatter", "pygments"),
    Call("msgpack", "msgpack.packb({'t': context})", "prose", "import msgpack", "msgpack"),
    Call("python-dateutil", "parse(context)", "date", "from dateutil.parser import parse", "dateutil"),
    Call("dateparser", "dateparser.parse(context)", "date", "import dateparser", "dateparser"),
    Call("jsonschema", "jsonschema.validate(context, {'type': 'string'})", "prose", "import jsonschema", "jsonschema"),
    Call("jsonschema", "jsonschema.validate({'t': context}, {'properties': {'t': {'type': 'string'}}})", "prose", "import jsonschema", "jsonschema"),
    Call("pydantic", "M(t=context).model_dump()", "prose", "from pydantic import BaseModel\nclass M(BaseModel):\n    t: str", "pydantic"),
    Call("xmltodict", "xmltodict.parse(context)", "xml", "import xmltodict", "xmltodict"),
    Call("feedparser", "feedparser.parse(context).entries[0].title", "feed", "import feedparser", "feedparser"),
]  # fmt: skip

CALLS = STANDARD + LIBRARIES


class Told(NamedTuple):
    """What a call gave: its value as shown, or the exception."""

    value: str
    error: BaseException | None = None


def outcome(call: Call, context: object) -> Told:
    """Run the call in a namespace with the kit."""
    kit = NamespacePatch()
    namespace: dict[str, Any] = {"__name__": "cell", "__builtins__": vars(builtins) | kit.names, "context": context}
    try:
        exec(compile(kit.transform(ast.parse(f"{call.before}\nresult = {call.code}")), "<cell>", "exec"), namespace)
    except Exception as error:
        return Told("", error)
    result = namespace["result"]
    return Told(repr("".join(result.chunks()) if isinstance(result, Monocontext) else result))


def wrong(call: Call, real: Told, lazy: Told) -> str:
    """What is wrong with a text below the limit; empty where it does as the `str` does."""
    if type(real.error) is not type(lazy.error):
        return f"{call.code}: {lazy.error!r}, as a str {real.error!r}"
    return "" if lazy.value == real.value else f"{call.code}: {lazy.value[:200]}, as a str {real.value[:200]}"


def above(call: Call, real: Told, lazy: Told) -> str:
    """How it goes above the limit: lazily, or with an error that says what to write; empty where it is neither."""
    if lazy.error is None:
        return "lazily" if lazy.value == real.value else ""
    told = f"{lazy.error} {' '.join(getattr(lazy.error, '__notes__', []))}"
    clear = isinstance(lazy.error, ContextTooLarge) or "Monocontext" in told or "context[a:b]" in told
    return f"`{type(lazy.error).__name__}`" if clear else ""


def results(call: Call) -> tuple[str, str, str]:
    """What is wrong up to the limit, how the text was given there, and how it goes above the limit."""
    text = TEXTS[call.text]
    place = "library-calls"
    publish(text, f"memory://{place}/text", frame_bytes=700)
    try:
        real = outcome(call, text)
        with Monocontext.open(f"memory://{place}/text") as context:
            below = wrong(call, real, outcome(call, context))
            how = "real" if context.stats.real.texts else "lazily"
        with Monocontext.open(f"memory://{place}/text", materialize_limit=len(text) - 1) as context:
            return below, how, above(call, real, outcome(call, context))
    finally:
        forget(place)


def is_here(call: Call) -> bool:
    """Whether the library is installed."""
    if not call.module:  # of the standard library
        return True
    try:
        found = importlib.util.find_spec(call.module)
    except ImportError:  # of the package around it
        return False
    return found is not None and found.origin is not None  # a folder of ours, as tests/regex, has none


def table(calls: list[Call]) -> str:
    """The rows of library_calls.md."""
    rows = []
    for call in calls:
        below, how, larger = results(call)
        code = (call.before.rpartition("\n")[2] + "; " + call.code) if "= context" in call.before else call.code
        rows.append(
            f"| {call.library} | `{code.replace('|', chr(92) + '|')}` | {'WRONG' if below else how} | {larger or 'WRONG'} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    print(table([call for call in CALLS if is_here(call)]))
