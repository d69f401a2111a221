"""Archive sessions of coding agents in a bucket, and read them as one text.

    from monocontext.sessions import Sessions, open_project

    context = open_project("s3://team/agents", "github.com-acme-api")     # a Monocontext over all sessions
    Sessions.open("s3://team/agents").project("github.com-acme-api").read_turn("84ede0c3-...", 12)

Importing this package loads no other module, since hooks import it and must end within a fraction of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.sessions.archive import Project, Sessions, open_project
    from monocontext.sessions.redaction import Redactor
    from monocontext.sessions.session_info import SessionInfo
    from monocontext.sessions.turn import Turn
    from monocontext.sessions.upload import Uploaded, upload_session

_HOMES = {
    "Project": "archive", "Redactor": "redaction", "SessionInfo": "session_info", "Sessions": "archive",
    "Turn": "turn", "Uploaded": "upload", "open_project": "archive", "upload_session": "upload"}  # fmt: skip
__all__ = ["Project", "Redactor", "SessionInfo", "Sessions", "Turn", "Uploaded", "open_project", "upload_session"]


def __getattr__(name: str) -> object:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
