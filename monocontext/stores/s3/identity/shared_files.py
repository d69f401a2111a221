"""Read `~/.aws/config` and `~/.aws/credentials`: profiles, services and SSO sessions, merged as by botocore."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from monocontext.stores.s3.identity.reasons import NoIdentity

Section = dict[str, Any]
"""Values by name; an indented block is a dict of its own."""


class SharedFiles:
    """The content of both files at one moment. A file that is not there is empty."""

    def __init__(self, config_path: str, credentials_path: str) -> None:
        self.credentials_path = credentials_path
        self.unreadable: list[str] = []
        """Files that the system does not let us read: they count as empty, as with botocore, and errors name them."""
        config, self.credentials = self._read(config_path), self._read(credentials_path)
        self.config_path = config_path
        self.config_profiles = _named(config, "profile")
        if "default" in config:
            self.config_profiles["default"] = config["default"]
        self.services, self.sso_sessions = _named(config, "services"), _named(config, "sso-session")
        self.profiles = {name: dict(section) for name, section in self.config_profiles.items()}
        for name, section in self.credentials.items():
            self.profiles.setdefault(name, {}).update(section)

    def _read(self, path: str) -> dict[str, Section]:
        if not os.path.isfile(path):
            return {}
        try:
            with open(path) as file:
                text = file.read()
        except OSError as error:
            self.unreadable.append(f"{path} ({error.strerror})")
            return {}
        except UnicodeDecodeError:
            raise NoIdentity(f"{path} cannot be parsed: it is no text") from None
        return _parse(text, path)


def locate(environment: Mapping[str, str]) -> tuple[str, str]:
    """Paths of the configuration and of the credentials."""
    given = (
        environment.get("AWS_CONFIG_FILE", "~/.aws/config"),
        environment.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    )
    config, credentials = (os.path.expanduser(os.path.expandvars(path)) for path in given)
    return config, credentials


def _parse(text: str, path: str) -> dict[str, Section]:
    from configparser import Error, RawConfigParser  # 4 ms, where there is a file

    parser = RawConfigParser()
    try:
        parser.read_string(text)
        return {name: {key: _value(value) for key, value in parser.items(name)} for name in parser.sections()}
    except (Error, ValueError) as error:
        # The line itself may hold half of a secret.
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", ())), None)
        raise NoIdentity(f"{path} cannot be parsed{f': line {line}' if line else ''}") from None


def _value(value: str) -> Any:
    if not value.startswith("\n"):
        return value
    pairs = [line.split("=", 1) for line in map(str.strip, value.splitlines()) if line]
    return {name.strip(): inner.strip() for name, inner in pairs}


def _named(sections: Mapping[str, Section], kind: str) -> dict[str, Section]:
    """Sections such as `[profile name]`, by their name, which may be in quotes."""
    found: dict[str, Section] = {}
    if not sections:
        return found
    from shlex import split

    for title, section in sections.items():
        if title.startswith(kind):
            try:
                words = split(title)
            except ValueError:  # a quote that does not end: botocore takes it for no profile either
                continue
            if len(words) == 2:
                found[words[1]] = section
    return found
