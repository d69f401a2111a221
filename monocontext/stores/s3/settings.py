"""Read the settings for S3 from options, the environment and the shared AWS files, in botocore's order. No requests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from shlex import split
from typing import Any

from monocontext.records import dataclass


@dataclass(frozen=True, slots=True)
class S3Options:
    """The options of `open_store` for `s3://`, as `StoreOptions` describes them, with defaults. None is a secret."""

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    path_style: bool | None = None
    anonymous: bool = False
    transport: str = "own"
    keep_alive: bool = True


class NeedsBotocore(Exception):
    """Only botocore implements this setting, so botocore must prepare requests. The message names the setting."""


class ConfigurationError(Exception):
    """Credentials or a setting cannot be read. The message, one line, names the source and contains no secret."""


class NoCredentials(ConfigurationError):
    """No source has credentials. The message names the sources that were tried."""


_BOTOCORE_ONLY = (
    "api_versions", "auth_scheme_preference", "data_path", "defaults_mode", "proxy_ca_bundle", "proxy_client_cert",
    "proxy_use_forwarding_for_https", "s3", "s3_us_east_1_regional_endpoint", "sigv4a_signing_region_set",
    "use_dualstack_endpoint", "use_fips_endpoint",
)  # fmt: skip
"""Settings of a profile that only botocore implements, such as `data_path`, whose variable is `AWS_DATA_PATH`."""
_SENT_IN_HEADERS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url")
Section = dict[str, Any]
"""The values in a section of a file, by name. The value of an indented block begins with a line break."""


class Settings:
    """The settings of one profile. Raises `ConfigurationError` for a missing profile, or an invalid file or value."""

    def __init__(
        self, environment: Mapping[str, str], profile: str | None, config_path: str, credentials_path: str
    ) -> None:
        self.environment = environment
        for variable, text in environment.items():
            if variable.startswith("AWS_") or variable.lower().endswith("_proxy"):
                _check_line(text, f"the variable {variable}")
        self.credentials_path = credentials_path
        self.unreadable: list[str] = []
        """Files that may not be read. They count as empty, as in botocore, and error messages name them."""
        profiles = _profiles(self._read(config_path))
        credentials = self._read(self.credentials_path)
        for title, section in credentials.items():
            profiles[title] = profiles.get(title, {}) | section
        self.profile_is_explicit = profile is not None
        """Whether the caller named the profile; then credentials in the environment do not count."""
        if profile is None:
            profile = environment.get("AWS_DEFAULT_PROFILE", environment.get("AWS_PROFILE"))
        if profile is not None and profile not in profiles:
            unreadable = f"; unreadable: {', '.join(self.unreadable)}" if self.unreadable else ""
            raise ConfigurationError(f"no profile {profile!r} in the AWS files{unreadable}")
        self.profile_name = profile or "default"
        # An empty name (`AWS_PROFILE=`) is a profile of its own for the configuration, and the default for credentials.
        self.profile: Section = profiles.get("default" if profile is None else profile, {})
        self.credentials: Section = credentials.get(self.profile_name, {})
        """The section of the profile in the credentials file."""
        for name in _SENT_IN_HEADERS:
            _check_line(self.profile.get(name), f"{name} in the profile {self.profile_name}")

    def _read(self, path: str) -> dict[str, Section]:
        if not os.path.isfile(path):
            return {}
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            self.unreadable.append(f"{path} ({error.strerror})")
            return {}
        except UnicodeDecodeError:
            raise ConfigurationError(f"{path} cannot be parsed: it is not UTF-8 text") from None
        return _parse(text, path)

    def variable_or_setting(self, variable: str, name: str) -> Any:
        """The value of an environment variable, else of a setting of the profile, else `None`."""
        return self.environment.get(variable, self.profile.get(name))

    def region(self) -> str | None:
        """The configured region. Raises `NeedsBotocore`."""
        region = self.variable_or_setting("AWS_DEFAULT_REGION", "region")
        if region == "":
            raise NeedsBotocore("the configured region is empty")
        return region if region is None else str(region)

    def endpoint(self) -> str | None:
        """The configured URL of S3; `None` for AWS. Raises `NeedsBotocore`."""
        ignored = self.variable_or_setting("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "ignore_configured_endpoint_urls")
        if str(ignored).lower() == "true":
            return None
        for variable in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            if url := self.environment.get(variable):
                return url
        if "services" in self.profile:
            raise NeedsBotocore(f"the profile {self.profile_name} names a services section")
        return str(self.profile.get("endpoint_url") or "") or None

    def ca_bundle(self) -> str | None:
        """The path of the configured certificates; `None` for the default."""
        return self.variable_or_setting("AWS_CA_BUNDLE", "ca_bundle") or self.environment.get("REQUESTS_CA_BUNDLE")

    def check_for_s3(self) -> None:
        """Raise `NeedsBotocore` for a setting that only botocore implements."""
        for name in _BOTOCORE_ONLY:
            if (variable := f"AWS_{name.upper()}") in self.environment:
                raise NeedsBotocore(f"{variable} is set")
            if name in self.profile:
                raise NeedsBotocore(f"{name} is set in the profile {self.profile_name}")
        if os.path.isdir(os.path.expanduser("~/.aws/models")):
            raise NeedsBotocore("~/.aws/models may define other endpoints")


def _check_line(text: object, name: str) -> None:
    """Raise `ConfigurationError` for a value with a control character, which cannot be sent in a header."""
    if isinstance(text, str) and any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text):
        raise ConfigurationError(f"{name} contains a line break or another control character: remove it")


def _parse(text: str, path: str) -> dict[str, Section]:
    """The sections of a file by name. Raises `ConfigurationError`."""
    from configparser import Error, RawConfigParser  # 2 ms that variables in the environment need not pay

    parser = RawConfigParser()
    try:
        parser.read_string(text)
        sections = {name: dict(parser.items(name)) for name in parser.sections()}
    except (Error, ValueError) as error:
        # The line itself may contain a secret, so the message has only its number.
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", ())), None)
        raise ConfigurationError(f"{path} cannot be parsed{f': line {line}' if line else ''}") from None
    for title, section in sections.items():
        for name, value in section.items():
            if value.startswith("\n") and not all("=" in line for line in value.splitlines() if line.strip()):
                raise ConfigurationError(f"{path} cannot be parsed: a line below {name} in [{title}] is not a setting")
    return sections


def _profiles(config: Mapping[str, Section]) -> dict[str, Section]:
    """The profiles in a configuration by name: `[default]`, `[profile name]`, and `[profile "a name"]`."""
    results: dict[str, Section] = {}
    for title, section in config.items():
        if title.startswith("profile"):
            try:
                words = split(title)
            except ValueError:  # an unterminated quote: botocore ignores the section too
                continue
            if len(words) == 2:
                results[words[1]] = section
    if "default" in config:
        results["default"] = config["default"]
    return results
