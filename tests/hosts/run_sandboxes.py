"""Compare the doubles of sandbox providers with the packages: they take each call that examples/sandboxes make."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import daytona
import e2b
from daytona._sync.process import Process as DaytonaProcess
from e2b.sandbox_sync.commands.command import Commands
from e2b.sandbox_sync.commands.command_handle import CommandHandle
from vercel.sandbox import NetworkPolicy, SnapshotSource, sync
from vercel.sandbox._internal.process_stdin import SyncProcessStdin
from vercel.sandbox._internal.sync_runtime import SyncProcess, _ManagedSyncSandbox

sys.path.insert(0, str(Path(__file__).parents[1] / "rlm" / "runners"))
import provider_doubles as doubles

PAIRS: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (doubles.E2BSandbox.create, e2b.Sandbox.create),
    (doubles.E2BSandbox.kill, e2b.Sandbox.kill),
    (doubles.E2BCommands.run, Commands.run),
    (doubles.E2BCommandHandle.wait, CommandHandle.wait),
    (doubles.E2BCommandHandle.send_stdin, CommandHandle.send_stdin),
    (doubles.Daytona.create, daytona.Daytona.create),
    (doubles.Daytona.delete, daytona.Daytona.delete),
    (doubles.DaytonaProcess.create_session, DaytonaProcess.create_session),
    (doubles.DaytonaProcess.execute_session_command, DaytonaProcess.execute_session_command),
    (doubles.DaytonaProcess.get_session_command_logs_async, DaytonaProcess.get_session_command_logs_async),
    (doubles.DaytonaProcess.send_session_command_input, DaytonaProcess.send_session_command_input),
    (doubles.create_sandbox, sync.create_sandbox),
    (doubles.VercelSandbox.create_process, _ManagedSyncSandbox.create_process),
    (doubles.VercelSandbox.destroy, _ManagedSyncSandbox.destroy),
)


def compare(double: Callable[..., Any], real: Callable[..., Any]) -> None:
    """A parameter of the double has its name and place in the package, and the package needs no other."""
    ours = list(inspect.signature(double).parameters.values())
    theirs = inspect.signature(real).parameters
    for place, parameter in enumerate(ours):
        assert parameter.name in theirs, f"{real.__qualname__} has no parameter {parameter.name}"
        if parameter.kind is not parameter.KEYWORD_ONLY and not parameter.name.startswith("on_"):
            by_name = ("background", "stdin", "timeout")
            assert parameter.name in by_name or list(theirs).index(parameter.name) == place, (real, parameter)
    names = {parameter.name for parameter in ours}
    for parameter in theirs.values():
        optional = parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        )
        assert optional or parameter.name in names, f"{real.__qualname__} needs {parameter.name}"


if __name__ == "__main__":
    for double, real in PAIRS:
        compare(double, real)
    daytona.CreateSandboxFromSnapshotParams(snapshot="a", network_block_all=True, ephemeral=True)
    request = daytona.SessionExecuteRequest(command="a", run_async=True, suppress_input_echo=True)
    assert "cmd_id" in daytona.SessionExecuteResponse.model_fields, request
    assert NetworkPolicy.deny_all().mode == "deny-all"
    SnapshotSource(snapshot_id="a")
    assert {"stdin", "stdout"} <= set(SyncProcess.__slots__)
    assert list(inspect.signature(SyncProcessStdin.write).parameters)[1] == "data"
    print(f"sandboxes: {len(PAIRS)} calls alike")
