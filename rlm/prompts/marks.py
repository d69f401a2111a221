"""Define patterns for the marks around code in the replies of models. Each matches in linear time.

`docs/decisions/012-rlm-loop.md` lists the models that write each mark.
"""

import re

_TAG = r"(?:repl|i?py|i?python|tool_code)\d?(?:\.\d+)?"
PYTHON_TAG = re.compile(_TAG, re.IGNORECASE)  # "repl", "Python", "py3", "python3.11"
OPENING_FENCE = re.compile(
    r"(?P<margin>[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<mark>`{3,}(?!.*`)|~{3,})[{\s]*\.?(?P<tag>[^\s:{},;]*)"
)
"""A fence, also in an item of a list: "- ```repl". `margin`: what stands before it; `tag`: the language behind it."""
FENCE_ATTRIBUTE = re.compile(r"""([\w-]+)=(?:"[^"]*"|'[^']*'|\{[^{}]*\}|[\w./:-]*)(?:\s|$)""")
"""An attribute behind the tag of a fence, such as `title=a.py`."""
_NAMES = r"(?:code|python|repl|py|execute|tool_code|run)"
MARK_PAIRS = [
    (re.compile(opening, re.IGNORECASE), re.compile(closing, re.IGNORECASE))
    for opening, closing in (
        # "<code>" ... "</code>"; "<execute_python>" ... "<end_action>"; not "<code lang='lang-js'>"
        (rf"[ \t]*<{_NAMES}(?:_\w+)?\b(?![^<>]*lang\w*-(?!py))[^<>]*>", rf"</{_NAMES}\w*>?|<end_\w+>?"),
        # "[PYTHON]" ... "[/PYTHON]"
        (r"[ \t]*\[(?:python|code|tool_code)\]", r"\[/\w+\]"),
        # "<|python_tag|>" ... "<|eom_id|>"
        (r"[ \t]*<\|(?:python_tag|python_start|code)\|>", r"<\|\w+\|>"),
        # three quotes in place of a fence, with a tag
        (r"(?:'''|\"\"\")(?:repl|python)$", r"^(?:'''|\"\"\")"),
        # "repl" or "**python:**" alone on its line, up to a fence
        (rf"[`'\"*<\[ \t]{{0,3}}{_TAG}[`'\"*>\]: \t]{{0,3}}$", r"(?:`{3,}|~{3,})[ \t]*$"),
    )
]
"""The marks before and behind code; the last row is a tag that lacks its fence."""
BARE_TAG = MARK_PAIRS[-1][0]
CLOSING_MARKS = re.compile(r"(?:(?:</?\w{1,20}>?|<\|\w{1,30}\|>|\[/\w{1,20}\])[ \t]*){1,3}$")
"""Marks behind the fence that ends a block, or in place of it: "</code>", "<|eom_id|>", "[/PYTHON]"."""
HALF_MARK = re.compile(r"\n[ \t]*(?:</?\w{0,20}|`{1,2}|`{3,}[^\n`]{0,30})\s*\Z")
"""The beginning of a closing mark, such as "</co", on the last line of a reply that was cut."""
DRAFT_MARK = re.compile(
    r"[ \t]*<(analysis|plan\w*|draft|scratchpad|reflection|thought|internal\w*|details)\b[^<>]*>", re.I
)
"""The mark before text in which a model drafts code that it does not want to run yet: "<plan>", "<scratchpad>"."""
INVENTED_TURN = re.compile(
    r"[ \t#*_]*(?:Turn \d+/\d+[.:]|Turn \d+:|REPL output(?: \(block \d+\))?:|REPL variables:)"
    r"|<\|(?:im_start|im_end|start_header_id|eot_id|end_of_turn)\|>|<start_of_turn>|<end_of_turn>"
)
"""How the messages of this REPL begin, "Turn 3/20.", and tokens of chat templates between messages, "<|im_end|>"."""
INVENTED_OUTPUT = re.compile(
    r"[ \t#*_>\[]*(?:(?:(?:repl|execution|code|console|expected|program|python) )?output(?: \(block \d+\))?[*_\]]*:"
    r"|(?:output|stdout)[*_#]*[ \t]*$|results?[*_]*:[*_]*[ \t]*$|stdout:|observation:|Out\[\d+\]:|<output>"
    r"|<(?:function_results?|tool_response|observation)|(?:`{3,}|~{3,})[ \t]*(?:output|stdout)\b"
    r"|(?:user|human|assistant|system)[*_]*:)",
    re.IGNORECASE,
)
"""How a model begins the output or user message that it expects after its code: "Output:", "Out[3]:", "User:"."""
