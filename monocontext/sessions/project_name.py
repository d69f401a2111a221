"""Name the project of a directory. Reads at most three small files and starts no process, since hooks call it."""

from __future__ import annotations

import os
import re

from monocontext.sessions.secret_values import looks_random

_MOST_CHARACTERS = 64 << 10  # the most of a file of git that is read for the name of a project
_REMOTE = re.compile(r'^[ \t]*\[remote "([^"]+)"\][ \t\r]*$((?:\n(?![ \t]*\[).*)*)', re.MULTILINE)  # and its lines
_URL = re.compile(r"^[ \t]*url[ \t]*=[ \t]*(\S+)[ \t\r]*$", re.MULTILINE)  # `url = https://github.com/acme/api`
_SCHEME = re.compile(r"(?:[\w+.-]+::)*[\w+.-]+://")  # `https://`, `ext::ssh://`; not `git@github.com:`
_PARAMETERS = re.compile(r"(?:[?#;&]|%(?:3F|23|3B|26))", re.IGNORECASE)  # where they begin: `?a=1`, `#readme`, `%3Fa=1`
_NAMED_PARAMETER = re.compile(_PARAMETERS.pattern + r"[\w.-]+(?:=|%3D)", re.IGNORECASE)  # `?a=`, not `#readme`
_HOST_AND_PORT = re.compile(r"(?:[\w.-]*|\[[^]]*\])(?::\d*)?")  # `github.com`, `[::1]:22`, nothing; not `me:password`
_LOGIN_OF_HOST = re.compile(r".*@(?=[\w.-]+:)")  # `me:password@` of `me:password@host:path`, as ssh writes remotes
# What a known host may have before its name: `ssh.` of `ssh.github.com`, not `git.` of `git.acme.org`.
_ALIAS = re.compile(r"(?:ssh|www|altssh)\.(?=(?:github\.com|gitlab\.com|bitbucket\.org|dev\.azure\.com)$)")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")  # the beginning of a path: `C:\`, `C:/`, `\\`
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


def project_of(folder: str, remote: str = "") -> str:
    """The name of the project that a working directory belongs to.

    The name is made from the git remote (`github.com-acme-api`), so that all clones of a repository share it; without
    a remote, from the repository's folder or the directory. It never contains credentials, and is never empty.
    `remote`: the remote that a session names, whose directory may be gone, or on another machine.
    """
    if os.name != "nt" and _WINDOWS.match(folder):  # `C:\work` is `/mnt/c/work` where Linux runs on that machine
        mounted = f"/mnt/{folder[0].lower()}/{folder[3:]}".replace("\\", "/")
        folder = mounted if os.path.isdir(mounted) else folder
    top, git = find_repository(folder)
    remote = remote.strip() or _first_remote(git)
    if _WINDOWS.match(remote):
        return slug(_last_part(remote).removesuffix(".git"))
    if remote:
        return slug(_host_and_path(remote))
    if os.path.basename(git) == ".git":
        top = os.path.dirname(git)  # also for a linked worktree, whose own name is that of a branch
    return slug(_last_part(top or folder))


def slug(text: str) -> str:
    """A text as a short name of letters, digits and `._-` that does not begin with a dot."""
    return _UNFIT.sub("-", text).strip("-.")[-120:].lstrip("-.") or "unnamed"


def find_repository(folder: str) -> tuple[str, str]:
    """The top of the working tree around a directory, and the directory with its git configuration; or both empty."""
    top = ""
    parent = os.path.abspath(folder) if os.path.isabs(folder) else ""  # another system's path is not here
    while parent != top:
        top, parent = parent, os.path.dirname(parent)
        git = os.path.join(top, ".git")
        if os.path.isdir(git):
            return top, git
        if os.path.isfile(git):  # of a worktree or submodule
            git = os.path.join(top, _read_file(git).strip().removeprefix("gitdir:").strip())
            common = _read_file(os.path.join(git, "commondir")).strip()
            return top, os.path.normpath(os.path.join(git, common)) if common else git
    return "", ""


def _first_remote(git: str) -> str:
    """The URL of the remote `origin`, else of the first remote; empty if there is none."""
    urls, config = dict[str, str](), _read_file(os.path.join(git, "config")) if git else ""
    for name, lines in _REMOTE.findall(config):
        if url := _URL.search(lines):
            urls.setdefault(name, url[1])
    return urls.get("origin") or next(iter(urls.values()), "")


def _last_part(path: str) -> str:
    return re.split(r"[/\\]" if _WINDOWS.match(path) else "/", path.rstrip("/\\"))[-1]


def _host_and_path(url: str) -> str:
    """The URL of a remote as `host/path`, without its login, its parameters, and parts of the path that look random."""
    scheme = _SCHEME.match(url)
    address = _without_login(url[scheme.end() :] if scheme else url, has_scheme=scheme is not None)
    host, separator, path = _PARAMETERS.split(address, maxsplit=1)[0].partition("/" if scheme else ":")
    if not separator:  # the path of a folder
        return os.path.basename(host.rstrip("/")).removesuffix(".git")
    host = host.partition(":")[0].lower()
    path = "/".join(part for part in path.split("/") if part and not looks_random(part, 20)).removesuffix(".git")
    if host == "ssh.dev.azure.com" and path.startswith("v3/"):
        path = "/_git/".join(path.removeprefix("v3/").rsplit("/", 1))
    return f"{_ALIAS.sub('', host)}/{path}" if host else path


def _without_login(address: str, *, has_scheme: bool) -> str:
    """The rest of a URL, `host/path` or with ssh `host:path`, without a `user:password@` before it.

    A password may hold `/`, `@` and what looks like a parameter; the value of a parameter may hold `@`. So the login
    ends at the last `@` before the first named parameter, or if none is there, at the last `@` before a host.
    """
    authority = address.partition("/")[0]
    if _HOST_AND_PORT.fullmatch(authority) if has_scheme else not re.search("@|%40", authority):
        return address
    parameter = _NAMED_PARAMETER.search(address, len(authority) if has_scheme else 0)
    before_parameter = address[: parameter.start()] if parameter else address
    at = "@" if "@" in before_parameter else "%40"
    if at in before_parameter:
        return before_parameter.rpartition(at)[2]
    login = _LOGIN_OF_HOST.match(authority)
    return address[login.end() :] if login else address


def _read_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_CHARACTERS)
    except OSError:  # no such file: no remote, no link
        return ""
