"""The commands `hooks ...`: let coding agents upload their sessions and begin with the team's brief."""

from __future__ import annotations

import shlex
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import click

from monocontext.cli.archive import ArchiveUrl, OwnProject, Patterns, To, archive_url
from monocontext.cli.help import CommandGroup
from monocontext.cli.options import S3, checked_options
from monocontext.cli.parameters import NOT_NEGATIVE, Option
from monocontext.options import StoreOptions
from monocontext.sessions import settings
from monocontext.sessions.redaction import Redactor

CODEX_TRUST = (
    "Codex runs only hooks that you trust, in directories that you trust, and `codex exec` skips others silently: "
    "start `codex` there once, and accept both when it asks"
)
_CLAUDE_KEEPS_DAYS = 30  # the default of its setting `cleanupPeriodDays`

AgentName = Annotated[str, Option("--agent", type=click.Choice(list(settings.AGENTS)), help="The agent.")]
User = Annotated[bool, Option(help="Apply to all directories of this user instead of the current one.")]


def install(
    s3: S3,
    archive: ArchiveUrl = None,
    agent: AgentName = "claude-code",
    url: To = None,
    project: OwnProject = None,
    user: User = False,
    no_redact: Annotated[bool, Option(help="Keep secrets in uploads.")] = False,
    compile_after: Annotated[bool, Option("--compile", help="Run `rlm compile` after each upload.")] = False,
    max_dollars: Annotated[float | None, Option(type=NOT_NEGATIVE, help="Limit of --compile; by default 1.")] = None,
    pattern: Patterns = None,
) -> None:
    """Add hooks to the settings of a coding agent. Other settings stay, and the old file is kept as a backup."""
    if max_dollars is not None and not compile_after:
        raise click.BadParameter("--max-dollars limits --compile: add --compile, or leave --max-dollars out")
    target, location = settings.AGENTS[agent], archive_url(archive, url)
    checked_options(location, s3)  # raises for a URL that the hook could not open
    Redactor(pattern or ())  # raises for an invalid pattern
    if "://" not in location:
        location = str(Path(location).expanduser().absolute())
    store_flags = _store_flags(s3, project)
    upload_flags = [word for expression in pattern or () for word in ("--pattern", expression)]
    flags = {"--no-redact": no_redact, "--user": user, "--compile": compile_after}
    upload_flags += [flag for flag, is_set in flags.items() if is_set]
    if compile_after:
        upload_flags += ["--max-dollars", f"{1.0 if max_dollars is None else max_dollars:g}"]
    path = target.settings_path(Path.cwd(), user)
    arguments = ["--url", location, *store_flags, *upload_flags, "--agent", target.name]
    backup = settings.write_settings(path, settings.add_hooks(settings.read_settings(path), target, arguments))
    click.echo(f"hooks of {target.name} in {path}" + (f" (backup: {backup.name})" if backup else ""))
    _write_skill(target, location, store_flags, is_user=user)
    _explain(target, [location, *store_flags], is_user=user, redacts=not no_redact)


def _write_skill(target: settings.AgentSettings, location: str, store_flags: list[str], *, is_user: bool) -> None:
    """Write the skill that tells an agent how to use the archive. `store_flags`: the flags that locate the archive."""
    skill = target.skill_path(Path.cwd(), is_user)
    skill.parent.mkdir(parents=True, exist_ok=True)
    template = (files("monocontext.sessions") / "skill.md").read_text("utf-8")
    flags = "".join(f" {shlex.quote(word)}" for word in ("--to", location, *store_flags))
    skill.write_text(template.format(more=flags, url=location), "utf-8")
    click.echo(f"skill in {skill}")


def _store_flags(s3: StoreOptions, project: str | None) -> list[str]:
    """The flags for the store and the project, which a hook, the skill and `sessions list` need."""
    values = {**s3, "project": project}
    is_anonymous = values.pop("anonymous", False)
    named = [word for name, value in values.items() if value for word in (f"--{name}", str(value))]
    return [*named, "--anonymous"] if is_anonymous else named


def _explain(target: settings.AgentSettings, listing: list[str], *, is_user: bool, redacts: bool) -> None:
    """Print what the hooks do, what they depend on, and how to try and to remove them.

    `listing`: the arguments of `sessions list` that name the archive, its URL first.
    """
    end = "when it ends, " if "SessionEnd" in target.events else ""
    click.echo(
        f"a new session {'of yours' if is_user else 'in this directory'} begins with the team's brief, "
        f"if `rlm compile` has made one, and is uploaded to {listing[0]} {end}before it is compacted and after its "
        f"answers, at most once a minute, {'without' if redacts else 'with'} its secrets; so are "
        f"{'your other sessions' if is_user else 'other sessions of this project'} that the archive lacks"
    )
    clean_up = describe_clean_up(target, Path.cwd())
    if clean_up:
        click.echo(clean_up)
    if target.name == "codex":
        click.echo(CODEX_TRUST)
    click.echo(f"to try it: {target.example}, and look with: monocontext sessions list {shlex.join(listing)}")
    agent_flag = "" if target.name == "claude-code" else f" --agent {target.name}"
    click.echo(f"to undo it: monocontext hooks uninstall{agent_flag}{' --user' if is_user else ''}")


def describe_clean_up(agent: settings.AgentSettings, repository: Path) -> str:
    """A sentence on when an agent deletes its own copies of sessions; empty if the agent keeps them."""
    if agent.name != "claude-code":
        return ""
    days, source = _CLAUDE_KEEPS_DAYS, "its default"
    for path in (agent.settings_path(repository, True), agent.settings_path(repository, False)):
        recorded = settings.read_settings(path).get("cleanupPeriodDays")
        if isinstance(recorded, int | float) and not isinstance(recorded, bool):
            days, source = int(recorded), str(path)
    when = f"after {days} days (cleanupPeriodDays, {source}); the uploaded copy stays"
    return f"Claude Code deletes its own copy of a session {when}"


def uninstall(agent: AgentName = "claude-code", user: User = False) -> None:
    """Remove the hooks and the skill of monocontext from a coding agent. Other settings do not change."""
    target = settings.AGENTS[agent]
    path = target.settings_path(Path.cwd(), user)
    before = settings.read_settings(path)
    remaining = settings.remove_hooks(before)
    backup = settings.write_settings(path, remaining)
    copy = f" any more (backup: {backup.name})" if remaining != before and backup else ""
    click.echo(f"no hooks of monocontext in {path}{copy}")
    skill = target.skill_path(Path.cwd(), user)
    if skill.exists():
        skill.unlink()
        with suppress(OSError):  # the folder may hold files of others
            skill.parent.rmdir()
        click.echo(f"removed {skill}")


app = CommandGroup(
    "Let a coding agent upload its sessions and begin with the team's brief.",
    {"install": install, "uninstall": uninstall},
)
