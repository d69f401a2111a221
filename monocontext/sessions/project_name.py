"""Find the project of a directory. Reads at most three small files and starts no process: hooks call this."""

from __future__ import annotations

import os
import re

from monocontext.sessions.secret_names import looks_random

_MOST_BYTES = 64 << 10
_REMOTE = re.compile(r'^\s*\[remote "([^"]+)"\]\s*$')
_URL = re.compile(r"^\s*url\s*=\s*(\S+)\s*$")
_PARAMETERS = re.compile(r"[?#;&]|%(?:3F|23|3B|26)", re.IGNORECASE)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


def project_of(folder: str) -> str:
    """The name of the project that a working directory belongs to.

    That of the git remote (`github.com-acme-api`), so that clones of one repository on any machine share it; without
    one the name of the repository's folder, else of the directory itself. Never a credential, never empty.
    """
    top, git = _find_repository(folder)
    remote = _remote_url(git) if git else None
    if remote:
        return slug(_strip_credentials(remote))
    return slug(os.path.basename((top or folder or "").rstrip("/\\"))) or "unnamed"


def slug(text: str) -> str:
    """A short readable name: letters, digits, `._-`; the beginning is never a dot."""
    return _UNFIT.sub("-", text).strip("-.")[-120:].lstrip("-.") or "unnamed"


def _find_repository(folder: str) -> tuple[str, str]:
    """The top of the working tree around a directory, and the directory that holds its configuration."""
    at = os.path.abspath(folder) if folder else ""
    while at:
        git = os.path.join(at, ".git")
        if os.path.isdir(git):
            return at, git
        if os.path.isfile(git):
            return at, _follow_link(git)
        parent = os.path.dirname(at)
        if parent == at:
            break
        at = parent
    return "", ""


def _follow_link(file: str) -> str:
    """The configuration's directory of a worktree or submodule, whose `.git` is a file."""
    target = _read_file(file).strip().removeprefix("gitdir:").strip()
    git = os.path.join(os.path.dirname(file), target)
    common = _read_file(os.path.join(git, "commondir")).strip()
    return os.path.join(git, common) if common else git


def _remote_url(git: str) -> str | None:
    """The URL of `origin`, else of the first remote."""
    found: dict[str, str] = {}
    name = ""
    for line in _read_file(os.path.join(git, "config")).splitlines():
        if line.lstrip().startswith("["):
            head = _REMOTE.match(line)
            name = head[1] if head else ""
        elif name and (url := _URL.match(line)):
            found.setdefault(name, url[1])
    return found.get("origin") or next(iter(found.values()), None)


def _strip_credentials(url: str) -> str:
    """`https://me:token@github.com/acme/api.git` and `git@github.com:acme/api` are both `github.com/acme/api`.

    What is no name of a repository goes: user info, query, fragment, parameters, and parts of a path that look random.
    """
    _, scheme, rest = _PARAMETERS.split(url, maxsplit=1)[0].rpartition("://")
    if "@" in rest.partition("/")[0]:
        rest = rest.rpartition("@")[2]  # a password may hold "/" and "@"
    host, slash, path = rest.partition("/" if scheme else ":")
    if scheme:
        host = host.partition(":")[0]
    if not slash:
        return os.path.basename(rest.rstrip("/")).removesuffix(".git")
    path = "/".join(part for part in path.split("/") if part and not looks_random(part, 20)).removesuffix(".git")
    return f"{host}/{path}" if host else path


def _read_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:  # no such file: no remote, no link
        return ""
