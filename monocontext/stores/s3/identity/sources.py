"""Ask one source of keys after the other, in botocore's order; the first that has some counts.

| source | cost |
|---|---|
| `AWS_ACCESS_KEY_ID` and its kin | none |
| role for a web identity; SSO session | reading a file, 1 request |
| `~/.aws/credentials`, `credential_process`, `~/.aws/config` | reading a file; a process |
| container, instance metadata | 1; 3 requests, two seconds at most |

Of these botocore is asked for: roles over a source profile, `aws login`, and the files of boto 2 and older.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from monocontext.stores.http.signing import Credentials
from monocontext.stores.s3.identity.keys import FoundKeys, keys_of, parse_json, seconds_of
from monocontext.stores.s3.identity.reasons import AskBotocore, NoIdentity, NothingFound
from monocontext.stores.s3.identity.settings import Settings

if TYPE_CHECKING:
    from ssl import SSLContext


def find(settings: Settings, region: str | None, tls: Callable[[], SSLContext]) -> FoundKeys:
    """The keys of a profile; `region` is that of STS. Raises `NoIdentity`, and `AskBotocore` for other sources."""
    environment, profile, name = settings.environment, settings.profile, settings.profile_name
    tried: list[str] = []
    if not settings.profile_is_explicit:
        if found := _from_environment(settings):
            return found
        tried.append("the environment")
    if "role_arn" in profile and "web_identity_token_file" not in profile:
        raise AskBotocore(f"the profile {name} assumes a role")
    if "login_session" in profile:
        raise AskBotocore(f"the profile {name} has a login_session")
    if "web_identity_token_file" in profile or "AWS_WEB_IDENTITY_TOKEN_FILE" in environment:
        from monocontext.stores.s3.identity.roles import from_web_identity

        if found := from_web_identity(settings, region, tls):
            return found
    if "sso_role_name" in profile or "sso_account_id" in profile:
        from monocontext.stores.s3.identity.roles import from_sso

        if found := from_sso(settings, tls):
            return found
    for read in (_from_credentials, _from_process, _from_config):
        if found := read(settings):
            return found
    tried += settings.files.unreadable or [f"the profile {name} in {settings.files.credentials_path}"]
    _check_for_older_files(environment)
    from monocontext.stores.s3.identity.metadata import from_container, from_instance

    if found := from_container(settings, tls) or from_instance(settings, tls, tried):
        return found
    raise NothingFound(", ".join(tried))


def _from_environment(settings: Settings) -> FoundKeys | None:
    environment = settings.environment
    if not environment.get("AWS_ACCESS_KEY_ID"):
        return None
    token = environment.get("AWS_SECURITY_TOKEN") or environment.get("AWS_SESSION_TOKEN") or None
    secret, end = environment.get("AWS_SECRET_ACCESS_KEY"), environment.get("AWS_CREDENTIAL_EXPIRATION")
    if not secret:
        raise NoIdentity("AWS_ACCESS_KEY_ID is set but not AWS_SECRET_ACCESS_KEY")
    expires = seconds_of(end, "AWS_CREDENTIAL_EXPIRATION") if end else None
    return FoundKeys(Credentials(environment["AWS_ACCESS_KEY_ID"], secret, token), "the environment", expires)


def _from_section(section: dict[str, Any], path: str, name: str) -> FoundKeys | None:
    if "aws_access_key_id" not in section:
        return None
    source = f"{path}, profile {name}"
    if "aws_secret_access_key" not in section:
        raise NoIdentity(f"{source} has aws_access_key_id but no aws_secret_access_key")
    token = section.get("aws_security_token", section.get("aws_session_token"))
    return FoundKeys(Credentials(section["aws_access_key_id"], section["aws_secret_access_key"], token or None), source)


def _from_credentials(settings: Settings) -> FoundKeys | None:
    files, name = settings.files, settings.profile_name
    return _from_section(files.credentials.get(name, {}), files.credentials_path, name)


def _from_config(settings: Settings) -> FoundKeys | None:
    files, name = settings.files, settings.profile_name
    return _from_section(files.config_profiles.get(name, {}), files.config_path, name)


def _from_process(settings: Settings) -> FoundKeys | None:
    command = settings.profile.get("credential_process")
    if command is None:
        return None
    if os.name == "nt":
        raise AskBotocore("credential_process")  # Windows splits a command by rules of its own
    import shlex
    import subprocess

    source = f"the credential_process of the profile {settings.profile_name}"
    try:
        done = subprocess.run(shlex.split(command), stdin=None, capture_output=True, check=False)
    except (OSError, ValueError) as error:
        raise NoIdentity(f"{source}: {error}") from None
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:300]
        raise NoIdentity(f"{source} ended with {done.returncode}: {said}")
    answer = parse_json(done.stdout, source)
    if answer.get("Version") != 1:
        raise NoIdentity(f"{source} gave version {answer.get('Version')!r}, expected 1")
    return keys_of(answer, source, ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"))


def _check_for_older_files(environment: Any) -> None:
    given = [environment[name] for name in ("AWS_CREDENTIAL_FILE", "BOTO_CONFIG") if name in environment]
    for path in given or ["/etc/boto.cfg", "~/.boto"]:
        if given or os.path.isfile(os.path.expanduser(path)):
            raise AskBotocore(f"{path} may hold keys")
