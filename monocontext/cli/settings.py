"""Defaults of the commands, read from one file of the user: `config.toml`. The library itself never reads it.

Invariants:

- a value of the file counts only if neither a flag nor an environment variable gives another one
- the file is in the user's own folder, never in the working directory: a cloned repository redirects nothing
- it holds no credentials: a setting that looks like one is refused by name, and its value is never printed
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from monocontext.errors import MonocontextError
from monocontext.options import nearest


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that the file may hold."""

    key: str
    """TABLE.NAME."""
    about: str
    variables: tuple[str, ...] = ()
    """Variables of the environment that override the file."""

    @property
    def is_url(self) -> bool:
        return self.key.endswith(("url", "endpoint"))

    def variable(self) -> str | None:
        """The variable that overrides the file, if one is set in the environment."""
        return next((name for name in self.variables if os.environ.get(name)), None)


IDENTITY_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
"""Variables that name an identity. If one is set, the profile in the file is ignored."""
SETTINGS = {
    setting.key: setting
    for setting in (
        Setting("s3.endpoint", "S3 server other than AWS", ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")),
        Setting("s3.region", "its region", ("AWS_DEFAULT_REGION",)),
        Setting(
            "s3.profile",
            "profile of the AWS configuration",
            ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", *IDENTITY_VARIABLES),
        ),
        Setting("sessions.url", "the archive of sessions", ("MONOCONTEXT_URL",)),
        Setting("volumes.url", "the URL of volumes", ("MONOCONTEXT_VOLUMES",)),
    )
}
"""All settings by key. What models cost and where they are is told by arguments and variables alone."""

_SECRET = re.compile(r"(?!max_).*(key|token|secret|password|credential|authorization)", re.IGNORECASE)
"""Names of settings that look like credentials; `max_tokens` does not."""
_LOGIN_IN_URL = re.compile(r"^(?![A-Za-z]:[\\/])(?:((?:[^/@:]*:)?//)[^/]*@|[^/@]*:/?[^/]*@)")
"""`https://user:password@`, also without `https://`, but not a drive of Windows."""


def config_path() -> Path:
    """The path of the file: `$XDG_CONFIG_HOME/monocontext/config.toml`, or its counterpart on macOS and Windows.

    An empty or relative `XDG_CONFIG_HOME` counts as unset. Without a home folder the path is relative, and never read.
    """
    folder = click.get_app_dir("monocontext")
    if not Path(folder).is_absolute():
        folder = os.path.expanduser("~/.config/monocontext")
    return Path(folder) / "config.toml"


def setting_from_file(key: str) -> Any:
    """The value of a setting in the file, or None if it is missing or an environment variable overrides it.

    Raises `MonocontextError` for a file with a forbidden setting.
    """
    found = read_config().get(key)
    return None if found is None or SETTINGS[key].variable() else found


def read_config() -> Mapping[str, Any]:
    """The values of the file by key, empty without a file. Raises `MonocontextError`."""
    path = config_path()
    if not path.is_absolute():
        return {}
    try:
        return _parse(path, path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise MonocontextError(f"{path} cannot be read: {error.strerror}") from None


def hide_secrets(url: str) -> str:
    """A URL without its user, password and query."""
    return _LOGIN_IN_URL.sub(lambda found: found[1] or "", re.split("[?#]", url)[0])


@lru_cache(1)
def _parse(path: Path, data: bytes) -> Mapping[str, Any]:
    """The values of a file by key, checked. Kept while the bytes are the same."""
    import tomllib

    try:
        tables = tomllib.loads(data.decode())
    except ValueError as error:
        raise MonocontextError(f"{path} is not TOML: {error}") from None
    found: dict[str, Any] = {}
    for table, values in tables.items():
        for name, value in values.items() if isinstance(values, dict) else [("", values)]:
            key = f"{table}.{name}" if name else table
            _check_setting(path, key, value)
            found[key] = value
    return found


def _check_setting(path: Path, key: str, value: object) -> None:
    name = key.rpartition(".")[2]
    if _SECRET.match(name):
        raise MonocontextError(
            f"{path}: {key}: this file must not contain API keys or other secrets; see `monocontext help credentials`"
        )
    if key not in SETTINGS:
        whole = next((known for known in SETTINGS if known.endswith(f".{name}")), None)
        near = (
            f": did you mean {whole}?" if whole else nearest(key, SETTINGS) or f": settings are {', '.join(SETTINGS)}"
        )
        raise MonocontextError(f"{path}: unknown setting {key}{near}")
    setting = SETTINGS[key]
    if not isinstance(value, str):
        raise MonocontextError(f"{path}: {key} must be a text in quotes, not {type(value).__name__}")
    if not value:
        raise MonocontextError(f"{path}: {key} is empty")
    if setting.is_url and (_LOGIN_IN_URL.match(value) or "?" in value):
        raise MonocontextError(
            f"{path}: {key}: a URL in this file must not contain a password or a query (?...); see "
            f"`monocontext help credentials`"
        )
    try:
        urlsplit(value if setting.is_url else "")
    except ValueError as error:
        raise MonocontextError(f"{path}: {key} is not a URL: {error}") from None
