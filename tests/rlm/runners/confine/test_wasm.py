"""The runner `wasm`, attacked from inside: first what Python finds, then what JavaScript would find behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import calls

import rlm.runners.wasm
from monocontext import Monocontext, publish
from rlm import RLM, ScriptedLM
from rlm.errors import ChannelAbuse, RunnerUnavailable
from rlm.runners import make_runner
from rlm.runners.pyodide import PYODIDE_VARIABLE, find_folder, what_is_missing
from rlm.runners.wasm import DISK_BYTES, WasmRunner, node_command

SECRET = "planted-secret-4711"
REFUSED = """
def refused(*attempts):
    got = []
    for attempt in attempts:
        try:
            got.append(attempt())
        except (OSError, MemoryError, ImportError, AttributeError, RuntimeError):
            pass
    return got
"""

real = pytest.mark.slow
"""Starting a module takes seconds."""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "secret.txt").write_text(SECRET)
    return [str(tmp_path / "secret.txt"), "/etc/passwd", "/etc/hostname", "/root/.ssh", str(Path(__file__))]


@pytest.fixture(scope="module")
def module() -> Iterator[WasmRunner]:
    if lacks := what_is_missing():
        pytest.skip(lacks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        runner = make(memory_bytes=512 << 20)
    yield runner
    runner.close()


def make(context: object = "the context", **options: Any) -> WasmRunner:
    return WasmRunner(context, calls(), **{"cell_timeout": 60, **options})


def outcome(runner: WasmRunner, code: str) -> str:
    """What a cell prints; it must not fail otherwise than by what it catches."""
    result = runner.run(code)
    assert not result.stderr, result.stderr
    return result.stdout.strip()


@real
def test_it_says_how_it_is_confined_and_works(module: WasmRunner) -> None:
    assert module.confinement == "wasm"
    code = (
        "import json, re, sqlite3, tempfile, time, uuid\n"
        "with tempfile.TemporaryFile('w+') as file: file.write('x'); file.seek(0); x = file.read()\n"
        "rows = sqlite3.connect(':memory:').execute('select 1').fetchall()\n"
        "uuid.uuid4(), time.sleep(0.01), time.localtime()\n"
        "print(context, x, rows, llm_query('hi'), llm_query_batched(['a', 'b']))"
    )
    assert outcome(module, code) == "the context x [(1,)] HI ['A', 'B']"


@real
def test_a_lazy_text_of_any_script_is_read(module: WasmRunner) -> None:
    text = "".join(f"{number} é 漢字 😀\n" for number in range(20_000))
    publish(text, "memory://wasm-scripts", replace=True)
    with Monocontext.open("memory://wasm-scripts") as lazy:
        runner = make(lazy)
        try:
            code = "print(context[0:9], context[100_000:100_020], context.find('777 é'), context.count('漢'))"
            expected = f"{text[:9]} {text[100_000:100_020]} {text.find('777 é')} {text.count('漢')}"
            assert outcome(runner, code) == expected
        finally:
            runner.close()


@real
def test_the_environment_and_the_host_are_not_to_be_seen(module: WasmRunner, files: list[str]) -> None:
    assert outcome(module, "import os\nos.environ.copy(), os.getuid(), os.getpid()") == "({}, 65534, 42)"
    code = REFUSED + (
        f"import os\npaths = {files!r}\n"
        "refused(*[lambda p=p: open(p).read() for p in paths], *[lambda p=p: os.listdir(p) for p in paths],"
        " *[lambda p=p: open('/proc/self/root' + p) for p in paths], lambda: open('/proc/1/environ').read(),"
        " lambda: open('/proc/self/environ').read(), lambda: os.listdir('/etc'))"
    )
    assert outcome(module, code) == "[]"
    code = (
        "import os\nnames = [os.path.join(d, f) for d, _, fs in os.walk('/') for f in fs]\n"
        "print([n for n in names if 'secret' in n or n.endswith(('passwd', '.mjs', '.wasm'))])"
    )
    assert outcome(module, code).replace("/lib/python3.14/secrets.py", "") == "[]"


@real
def test_there_is_no_network_no_process_and_no_signal_to_the_host(module: WasmRunner) -> None:
    code = REFUSED + (
        "import os, socket, subprocess, threading, multiprocessing\n"
        "refused(socket.socket, socket.socketpair, lambda: socket.getaddrinfo('example.org', 80),"
        " lambda: socket.create_connection(('127.0.0.1', 80), 1), lambda: socket.gethostbyname('example.org'),"
        " os.fork, os.pipe, lambda: os.system('true') == -1 and os.fork(), lambda: os.popen('true').read(),"
        " lambda: subprocess.run(['/bin/true']), lambda: os.execv('/bin/sh', ['sh']),"
        f" lambda: os.kill({os.getpid()}, 9), lambda: os.killpg({os.getpid()}, 9),"
        " lambda: threading.Thread(target=print).start(), lambda: multiprocessing.Process(target=print).start())"
    )
    assert outcome(module, code) == "[]"


@real
@pytest.mark.parametrize(
    "name",
    ["js", "pyodide_js", "_pyodide_core", "ctypes", "_ctypes", "_ctypes_test", "_testcapi", "_testinternalcapi",
     "_remote_debugging", "xxsubtype"],
)  # fmt: skip
def test_modules_that_reach_javascript_or_memory_are_not_there(module: WasmRunner, name: str) -> None:
    told = module.run(f"import {name}").stderr
    assert told.splitlines()[-1].split(":")[0] in ("ModuleNotFoundError", "ImportError"), told
    assert outcome(module, f"import sys\n{name!r} in sys.modules") == "False"


@real
def test_no_object_of_javascript_is_left(module: WasmRunner) -> None:
    code = (
        "import gc, sys, warnings\nwarnings.simplefilter('ignore')\ngc.unfreeze()\n"
        "def below(kind, seen):\n    for each in type.__subclasses__(kind):\n"
        "        if each not in seen:\n            seen.add(each)\n            below(each, seen)\n    return seen\n"
        "kinds = tuple(k for k in below(object, set()) if k.__module__ == 'pyodide.ffi' and 'Js' in k.__name__"
        " and not issubclass(k, (int, type)) and k.__name__ != 'JsNull')\n"
        "objects = gc.get_objects()\n"
        "objects += [r for o in objects for r in gc.get_referents(o)]\n"
        "print(len(kinds) > 5, len([o for o in objects if type(o) in kinds]),"
        " [type(f).__name__ for f in sys.meta_path], [f.__name__ for f in sys.meta_path])\n"
        "del objects, kinds"
    )
    found = "['type', 'type', 'type'] ['BuiltinImporter', 'FrozenImporter', 'PathFinder']"
    assert outcome(module, code) == f"True 0 {found}"


BRIDGES = ["core.to_js([1])", "core.create_proxy(print)", "__import__('pyodide.code').code.run_js('process')"]


@real
def test_what_of_the_bridge_can_be_built_anew_ends_the_worker_or_fails(module: WasmRunner) -> None:
    """`_imp` gives C's functions of the bridge, for they were loaded once; behind them stands nothing."""
    get = "import _imp, importlib.machinery as m\ncore = _imp.create_builtin(m.ModuleSpec('_pyodide_core', None))\n"
    told = [module.run(get + f"print('got', {bridge})") for bridge in BRIDGES]
    assert not any("got" in result.stdout for result in told), told
    assert any("the module asked JavaScript for Jsv" in result.stderr for result in told), told
    refused = "_imp.create_builtin(m.ModuleSpec(n, None)) for n in ('_ctypes', '_testcapi', '_testinternalcapi')"
    assert outcome(module, f"import _imp, importlib.machinery as m\n[{refused}]") == "[None, None, None]"


@real
def test_memory_and_files_are_bounded_and_variables_stay(module: WasmRunner) -> None:
    outcome(module, "kept = 5")
    bombs = ["bytearray(1 << 30)", "[bytearray(1 << 24) for _ in range(1000)]", "__import__('mmap').mmap(-1, 1 << 30)"]
    assert outcome(module, REFUSED + f"refused({', '.join(f'lambda: {bomb}' for bomb in bombs)})") == "[]"
    fill = (
        "written = 0\ntry:\n    for at in range(1000):\n        with open(f'/tmp/fill{at}', 'wb', 0) as file:\n"
        "            file.truncate(1 << 20)\n            written += 1 << 20\n"
        "            file.seek(1 << 20)\n            written += file.write(bytes(1 << 20))\n"
        "except OSError as error: print(error.errno)\n"
        "print(written)"
    )
    errno, written = outcome(module, fill).split()
    assert errno == "51"  # no space left
    assert int(written) <= DISK_BYTES
    assert outcome(module, "kept") == "5"


@real
def test_time_is_up_and_variables_stay() -> None:
    if lacks := what_is_missing():
        pytest.skip(lacks)
    runner = make(cell_timeout=1)
    outcome(runner, "kept = 5")
    for stuck in ("while True: pass", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", "10 ** 10 ** 8"):
        result = runner.run(stuck)
        assert "CellTimeout" in result.stderr
    assert outcome(runner, "kept") == "5"
    caught = runner.run("def f():\n    while True:\n        try:\n            while True: pass\n"
                        "        except BaseException: pass\nf()")  # fmt: skip
    assert "lost: kept" in caught.stderr
    assert outcome(runner, "print(context)") == "the context"
    runner.close()


@real
@pytest.mark.parametrize("sent", ["b'\\xff' * 8", "b'\\0\\0\\0\\2\\0\\0\\0\\2[]'"])
def test_tampering_with_the_channel_ends_the_run(module: WasmRunner, sent: str) -> None:
    with pytest.raises(ChannelAbuse):
        module.run(f"import os, time\nos.write(os.open('/dev/channel', os.O_RDWR), {sent})\ntime.sleep(60)")
    assert "cell and its process were ended" in module.run("").stderr
    assert outcome(module, "print(context)") == "the context"


BEHIND = """
import fs from "node:fs";
import child from "node:child_process";
import workers from "node:worker_threads";
const [secret, place] = process.argv.slice(-2);
const attempts = [
  () => fs.readFileSync(secret), () => fs.readFileSync("/etc/passwd"), () => fs.readdirSync("/"),
  () => fs.readdirSync("/tmp"), () => fs.readdirSync("/home"), () => fs.readdirSync(`${process.cwd()}/..`),
  () => fs.readFileSync(`${process.cwd()}/../../package.json`),
  () => fs.writeFileSync(place, "x"), () => fs.unlinkSync(secret), () => fs.symlinkSync("/", place),
  () => child.execSync("true"), () => child.spawnSync("/bin/true").error ? null.x : 1,
  () => new workers.Worker("1", { eval: true }), () => process.binding("fs"),
  () => eval("1"), () => new Function("return 1")(), () => (() => {}).constructor("return process")(),
  () => new WebAssembly.Memory({ initial: 20000 }), () => process.dlopen({ exports: {} }, "/lib/x.so"),
];
const got = [];
for (const attempt of attempts) try { got.push(String(attempt())) } catch {}
console.log(JSON.stringify([got, Object.keys(process.env)]));
"""


@real
def test_behind_it_node_has_no_files_no_programs_and_no_code_of_text(tmp_path: Path, files: list[str]) -> None:
    """The second layer by itself: a program of JavaScript with the options that the module gets."""
    if lacks := what_is_missing():
        pytest.skip(lacks)
    ours = Path(rlm.runners.wasm.__file__).with_name("node.mjs").read_text()
    node = rlm.runners.wasm.shutil.which("node")
    assert node
    command = node_command(node, find_folder(None), 512 << 20)
    command = [BEHIND if word == ours else word for word in command]
    assert BEHIND in command
    command += [files[0], str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, env={}, cwd=find_folder(None), check=True)
    assert done.stdout.strip() == "[[],[]]"
    assert Path(files[0]).read_text() == SECRET


def test_a_user_without_a_home_has_no_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", PYODIDE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 2)
    assert find_folder(None) == Path("/~/.monocontext/node_modules/pyodide")


def test_without_pyodide_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/node")
    monkeypatch.setenv(PYODIDE_VARIABLE, str(tmp_path))
    with pytest.raises(RunnerUnavailable, match=r"npm install --prefix ~/\.monocontext pyodide") as error:
        RLM(lm=ScriptedLM([]), runner="wasm")
    assert "\n" not in str(error.value)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(RunnerUnavailable, match="no program 'node' here"):
        RLM(lm=ScriptedLM([]), runner="wasm")
    with pytest.raises(RunnerUnavailable, match=r"needs Node 20\.12 or newer; `node --version` printed 'Python 3"):
        node_command(sys.executable, tmp_path, 512 << 20)


def test_it_is_the_default_where_nothing_else_confines(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, object]] = []
    monkeypatch.setattr("rlm.runners.wasm.WasmRunner", lambda *words, **options: (made.append(options), "a runner")[1])
    given: Any = {"cell_timeout": 1.0, "output_limit": 1}
    monkeypatch.setattr("rlm.runners.registry.what_is_missing", lambda folder: "")
    assert make_runner("confined", "c", calls(), **given, mechanisms=(), pyodide="here") == "a runner"
    monkeypatch.setattr("rlm.runners.registry.what_is_missing", lambda folder: "no Pyodide: install it")
    not_either = "--runner wasm is not available either: there is no Pyodide: install it"
    for name, tried, told in (("confined", (), not_either), ("subprocess", ["landlok"], "no such mechanism .landlok.")):
        with pytest.raises(RunnerUnavailable, match=told):
            make_runner(name, "c", calls(), **given, mechanisms=tried)
    assert [sorted(options) for options in made] == [["cell_timeout", "names", "output_limit", "pyodide"]]
