"""Compile on Modal every ten minutes: `modal deploy modal_app.py`.

It needs a secret named `rlm-watch` with MONOCONTEXT_URL, the keys of the bucket and one of a model's maker.
"""

from __future__ import annotations

import subprocess

import modal

COMMAND = ["rlm", "compile", "--watch", "--once", "--max-dollars-per-day", "5", "--quiet"]

app = modal.App("rlm-watch", image=modal.Image.debian_slim().pip_install("monocontext-rlm"))


@app.function(schedule=modal.Period(minutes=10), secrets=[modal.Secret.from_name("rlm-watch")], timeout=3600)
def look() -> None:
    subprocess.run(COMMAND, check=True)
