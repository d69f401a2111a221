"""Read the S3 settings of the environment and of one profile, ranked as by botocore. Sends nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from monocontext.stores.s3.identity.reasons import NoIdentity, UnsupportedBySigner, check_line
from monocontext.stores.s3.identity.shared_files import Section, SharedFiles, locate

_OTHERS = ("BOTO_CONFIG", "HOME", "REQUESTS_CA_BUNDLE", "REQUEST_METHOD", "USERPROFILE")
_ENVIRONMENT_OF_BOTOCORE = (
    "AWS_AUTH_SCHEME_PREFERENCE",
    "AWS_DATA_PATH",
    "AWS_DEFAULTS_MODE",
    "AWS_S3_US_EAST_1_REGIONAL_ENDPOINT",
    "AWS_SIGV4A_SIGNING_REGION_SET",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
)
"""Rules for endpoints and signatures that we do not have."""
_PROFILE_OF_BOTOCORE = (
    "api_versions",
    "auth_scheme_preference",
    "data_path",
    "defaults_mode",
    "proxy_ca_bundle",
    "proxy_client_cert",
    "proxy_use_forwarding_for_https",
    "s3_us_east_1_regional_endpoint",
    "sigv4a_signing_region_set",
    "use_dualstack_endpoint",
    "use_fips_endpoint",
)
_OF_HEADERS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url")
_HARMLESS_OF_S3 = frozenset(
    (
        "addressing_style",  # ours is in the options of the store
        "io_chunksize",
        "max_bandwidth",
        "max_concurrent_requests",
        "max_queue_size",
        "multipart_chunksize",
        "multipart_threshold",
        "payload_signing_enabled",  # a GET has no payload
        "preferred_transfer_client",
    )
)


def read_environment() -> dict[str, str]:
    """The variables that settings depend on."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("AWS_") or name in _OTHERS or name.lower().endswith("_proxy")
    }


class Settings:
    """The settings of one profile. Raises `NoIdentity` for a profile that is not there, and for a broken file."""

    def __init__(self, environment: Mapping[str, str], profile: str | None) -> None:
        self.environment = environment
        for variable, text in environment.items():
            if variable.startswith("AWS_") or variable.lower().endswith("_proxy"):
                check_line(text, f"the variable {variable}")
        self.files = SharedFiles(*locate(environment))
        self.profile_is_explicit = profile is not None
        """Then keys in the environment do not count."""
        named = profile
        for name in ("AWS_DEFAULT_PROFILE", "AWS_PROFILE"):
            named = environment.get(name) if named is None else named
        self.profile_name = named or "default"
        if named is None:
            self.profile: Section = self.files.profiles.get("default", {})
        elif named in self.files.profiles:
            self.profile = self.files.profiles[named]
        else:
            hidden = f"; unreadable: {', '.join(self.files.unreadable)}" if self.files.unreadable else ""
            raise NoIdentity(f"The config profile ({named}) could not be found{hidden}")
        for name in _OF_HEADERS:
            check_line(self.profile.get(name), f"{name} in the profile {self.profile_name}")

    def value(self, variable: str, name: str) -> Any:
        """A setting of the environment, else of the profile."""
        return self.environment.get(variable, self.profile.get(name))

    def region(self) -> str | None:
        """The configured region."""
        found = self.value("AWS_DEFAULT_REGION", "region")
        if found == "":
            raise UnsupportedBySigner("the configured region is empty")
        return found if found is None else str(found)

    def endpoint(self, service: str) -> str | None:
        """The URL that is configured for a service."""
        ignored = self.value("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "ignore_configured_endpoint_urls")
        if str(ignored).lower() == "true":
            return None
        for variable in (f"AWS_ENDPOINT_URL_{service.upper()}", "AWS_ENDPOINT_URL"):
            if found := self.environment.get(variable):
                return found
        if "services" in self.profile:
            section = self.files.services.get(str(self.profile["services"]))
            if not section:
                raise UnsupportedBySigner(f"the services section {self.profile['services']} is missing")
            own = section.get(service, {})
            if isinstance(own, dict) and own.get("endpoint_url"):
                return str(own["endpoint_url"])
        return str(self.profile.get("endpoint_url") or "") or None

    def ca_bundle(self) -> str | None:
        """Path of the certificates to trust; `None` for those that botocore trusts."""
        return self.value("AWS_CA_BUNDLE", "ca_bundle") or self.environment.get("REQUESTS_CA_BUNDLE")

    def check_for_s3(self) -> None:
        """Raise `UnsupportedBySigner` where a setting changes endpoints or signatures in a way that we do not know."""
        for name in _ENVIRONMENT_OF_BOTOCORE:
            if name in self.environment:
                raise UnsupportedBySigner(f"{name} is set")
        for name in _PROFILE_OF_BOTOCORE:
            if name in self.profile:
                raise UnsupportedBySigner(f"{name} is set in the profile {self.profile_name}")
        for name in (self.profile.get("s3") or {}) if isinstance(self.profile.get("s3"), dict) else ():
            if name not in _HARMLESS_OF_S3:
                raise UnsupportedBySigner(f"s3.{name} is set in the profile {self.profile_name}")
        if os.path.isdir(os.path.expanduser("~/.aws/models")):
            raise UnsupportedBySigner("~/.aws/models may describe other endpoints")
