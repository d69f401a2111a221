"""Run a program where the kernel refuses all that `subprocess` confines with: `python without_walls.py COMMAND...`.

It refuses filters of system calls, namespaces and Landlock, as old kernels and some containers do. x86_64.
"""

from __future__ import annotations

import ctypes
import os
import sys

from rlm.runners.confine import seccomp, system

_UNSHARE, _SECCOMP, _LANDLOCK, _PRCTL = 272, 317, (444, 445, 446), 157
_ALLOWED = (0x06, 0, 0, 0x7FFF0000)


def main(command: list[str]) -> None:
    refused = [line for number in (_UNSHARE, _SECCOMP, *_LANDLOCK) for line in seccomp._refuse(number, seccomp._EPERM)]
    filters = [(seccomp._JUMP_EQUAL, 0, 1, system.PR_SET_SECCOMP), (_ALLOWED[0], 0, 0, seccomp._ERRNO | seccomp._EPERM)]
    lines = [(seccomp._LOAD, 0, 0, seccomp._NUMBER), *refused, *seccomp._test_argument(_PRCTL, 0, filters), _ALLOWED]
    array = (seccomp._Instruction * len(lines))(*(seccomp._Instruction(*line) for line in lines))
    system.prctl("no new privileges", system.PR_SET_NO_NEW_PRIVS, 1)
    compiled = ctypes.byref(seccomp._Program(len(lines), array))
    system.prctl("seccomp", system.PR_SET_SECCOMP, 2, compiled)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
