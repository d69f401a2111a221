"""The command `config`: show the defaults of the commands, and where each comes from."""

from __future__ import annotations

import json
import os

from monocontext.cli.help import CommandGroup
from monocontext.cli.options import AsJson
from monocontext.cli.printing import say, say_row
from monocontext.cli.settings import IDENTITY_VARIABLES, SETTINGS, config_path, hide_secrets, read_config


def show(as_json: AsJson = False) -> None:
    """Print each setting, its value, and whether it comes from the environment or the file. Secrets are not shown."""
    file = read_config()
    for key, setting in SETTINGS.items():
        origin = setting.variable()
        if origin is None:
            value = file.get(key)
            origin = str(config_path()) if key in file else None
        else:
            value = None if origin in IDENTITY_VARIABLES else os.environ[origin]
        value = hide_secrets(value) if value and setting.is_url else value
        if as_json:
            print(json.dumps({"key": key, "value": value, "from": origin}))
        else:
            say_row(f"{key:<20} {'-' if value is None else value}  ({origin or 'not set'})")


def path() -> None:
    """Print the path of the configuration file, whether it exists or not."""
    say(str(config_path()))


app = CommandGroup(
    "Show the defaults that your configuration file sets; `help config` lists what it may hold.",
    {"show": show, "path": path},
)
