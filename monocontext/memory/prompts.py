"""Prompts about the memory: the protocol in short, for one agent, and for a council of agents."""

from __future__ import annotations

SPECIFICATION = """\
Memory tool quick-reference
Keys and values that outlive this conversation. Everyone with this tool sees the same ones.

P <key> <value> [ttl]   store; the value may hold spaces; a number at its end is the lifetime in seconds
P <key> "<text>" [ttl]  store a text that ends in a number: write it as a JSON string
G <key>                 read; G <key> META also says when it was stored and when it expires
L                       list keys; L <start>* those that begin so; L META with times
D <key>                 delete
C                       delete everything
T A                     bytes in all; T K of the keys, T V of the values
SPEC                    this text

Long texts and keys with spaces go in fields of their own, kept as they are:
{"command": "P", "key": "report", "value": "any text", "ttl": 3600}
To claim a task nobody else has: {"command": "P task:7 me", "if_absent": true}; ERR:EXISTS means it is taken.
To change what you have read: {"command": "P", "key": ..., "value": ..., "if_match": <etag of G key META>}; \
ERR:CONFLICT means that someone wrote in between: read again.
A reply has success, output and error. ERR:NOT_FOUND: no such key, or it has expired."""

_CALLS = """\
The tool is called "memory" and takes {"command": "..."}:
- store: {"command": "P key value ttl_in_seconds"}; without a number at the end it stays
- read: {"command": "G key"}, with times {"command": "G key META"}
- list: {"command": "L"}, by beginning {"command": "L task_*"}
- everything else: {"command": "SPEC"}"""


def agent_prompt(task: str = "") -> str:
    """System prompt for one agent that keeps its progress, so that another run can go on where it stopped."""
    return f"""\
{task.strip() or "You work on a task of many steps."}

You have a memory that outlives this session. {_CALLS}

Use it so that you, or whoever comes after you, can go on at any moment:
1. First look: L, and G recovery_point. If there is one, go on from there and do nothing twice.
2. When you begin, store what the task is (task_description), for example P task_description Summarize_report 7200.
3. After each step store how far you are (progress) and how to go on (recovery_point).
4. Store results and decisions without a lifetime, passing state with one: 60-300 s while you work, 600-7200 s for \
progress.
Give keys names that say what they hold, and keep values short."""


def council_prompt(role: str = "", members: tuple[str, ...] = ()) -> str:
    """System prompt for a member of a council whose members share one memory."""
    known = f" The members are: {', '.join(members)}." if members else ""
    return f"""\
{role.strip() or "You are a member of a council that decides together."}{known}

All members share one memory: what one stores, all see at once. {_CALLS}

1. Before you speak, read what the others left: L, then G of what concerns you.
2. Store your findings under your own name, for example P analyst_findings "Trend is up" 3600. Never write over a key \
of another member.
3. Refer to the keys that your view builds on.
4. A task that only one of you should do is claimed first: \
{{"command": "P claimed:task_1 analyst", "if_absent": true}}. ERR:EXISTS means that another has it.
5. Who closes the discussion stores the decision without a lifetime: P final_decision ..."""
