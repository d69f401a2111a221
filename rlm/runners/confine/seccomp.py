"""A filter of system calls, written by hand: what a worker never needs is refused with EPERM.

It closes what the other walls leave open (in the way `landlock` it is most of the walls): new processes and programs,
sockets, signals to others, memory of others, mounts and namespaces, memory that limits do not count, and the corners of
the kernel that sandboxes were left through.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

from rlm.runners.confine import system

_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Numbers on x86_64 and aarch64; None: does not exist there.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other programs, other processes: one process is what the limits hold for
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    # others' memory and descriptors
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    # signals without a target that can be told here
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    # sockets; a pair of streams (asyncio's) leads nowhere, see _PAIR
    "socket": (41, 198), "bind": (49, 200), "connect": (42, 203), "listen": (50, 201),
    # rings carry out calls that no filter sees; the older kind takes from a number that is the whole machine's
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    # mounts, namespaces, roots
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "mknod": (133, None), "mknodat": (259, 33),
    # memory beside RLIMIT_AS; attributes of files are none of a file system's bytes
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "setsockopt": (54, 208),  # buffers of pairs: where the machine allows 4 MiB each, 2 GB of its memory
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    # corners
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "personality": (135, 92), "fanotify_init": (300, 262), "vhangup": (153, 58),
    "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "uselib": (134, None),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setattr": (314, 274), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    # who it is
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151),
    "setfsgid": (123, 152), "setsid": (112, 157), "setpgid": (109, 154),
}  # fmt: skip
_REFUSED_WITHOUT_VIEW: dict[str, tuple[int | None, int | None]] = {
    # what Landlock has no word on, and would reach files of the host's user
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466), "truncate": (76, 45),
    "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88), "inotify_init": (253, None),
    "inotify_init1": (294, 26), "file_setattr": (469, 469),
}  # fmt: skip
_OWN_ONLY: dict[str, tuple[int, int]] = {"kill": (62, 129), "tgkill": (234, 131)}
"""First argument: a process, which must be the worker itself."""
_SELF_OR_ZERO: dict[str, tuple[int, int]] = {"prlimit64": (302, 261), "sched_setaffinity": (203, 122)}
_CLONE, _CLONE3 = (56, 220), (435, 435)
_CLONE_THREAD = 0x10000
_PAIR = (53, 199)
_UNIX, _NO_STREAM = 1, 0b1110
"""Kinds of sockets but SOCK_STREAM have one of these bits. Datagrams of a pair could be sent to any address."""
_NOT_WITH: tuple[tuple[tuple[int, int], int, tuple[int, ...]], ...] = (
    # It must go on dying with its parent, and stay out of reach of others of its user.
    ((157, 167), 0, (system.PR_SET_PDEATHSIG, system.PR_SET_DUMPABLE)),
    # fcntl: F_SETOWN, F_SETSIG and F_SETOWN_EX have the kernel send signals to others; F_SETLEASE makes those wait
    # who write to a file.
    ((72, 25), 1, (8, 10, 15, 1024)),
    # ioctl: TIOCSTI and TIOCLINUX write to terminals; FIOSETOWN and SIOCSPGRP are F_SETOWN again.
    ((16, 29), 1, (0x5412, 0x541C, 0x8901, 0x8902)),
)
"""Numbers of a system call, an argument of it, and values that are refused there."""

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _ARCH = 0, 4

Instruction = tuple[int, int, int, int]
"""Code, instructions to skip if true, if false, and an operand."""


def _argument(i: int) -> int:
    """Offset of the low word of an argument; both machines are little endian."""
    return 16 + 8 * i


def program(machine: str, pid: int, *, has_view: bool) -> list[Instruction]:
    """The filter for a process, with files of its own to look at or among those of the host. Pure."""
    column = 0 if machine == "x86_64" else 1
    return [*_prologue(machine), *_rules(column, pid, has_view), (_RETURN, 0, 0, _ALLOW)]


def _prologue(machine: str) -> Iterator[Instruction]:
    yield _LOAD, 0, 0, _ARCH
    yield _JUMP_EQUAL, 1, 0, _ARCHITECTURE[machine]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    if machine == "x86_64":  # the numbers of x32 begin there
        yield _JUMP_AT_LEAST, 0, 1, 0x40000000
        yield _RETURN, 0, 0, _ERRNO | _ENOSYS


def _rules(column: int, pid: int, has_view: bool) -> Iterator[Instruction]:
    for places in (*_REFUSED.values(), *(() if has_view else _REFUSED_WITHOUT_VIEW.values())):
        number = places[column]
        if number is not None:
            yield from _refused(number, _EPERM)
    # The library falls back to clone, whose flags can be looked at.
    yield from _refused(_CLONE3[column], _ENOSYS)
    yield from _when(_CLONE[column], 0, [(_JUMP_ANY_BIT, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _ERRNO | _EPERM)])
    for own in _OWN_ONLY.values():
        yield from _when(own[column], 0, [(_JUMP_EQUAL, 1, 0, pid), (_RETURN, 0, 0, _ERRNO | _EPERM)])
    for self_or_zero in _SELF_OR_ZERO.values():
        tests = [(_JUMP_EQUAL, 2, 0, 0), (_JUMP_EQUAL, 1, 0, pid), (_RETURN, 0, 0, _ERRNO | _EPERM)]
        yield from _when(self_or_zero[column], 0, tests)
    refused = (_RETURN, 0, 0, _ERRNO | _EPERM)
    yield from _when(_PAIR[column], 0, [(_JUMP_EQUAL, 1, 0, _UNIX), refused])
    yield from _when(_PAIR[column], 1, [(_JUMP_ANY_BIT, 0, 1, _NO_STREAM), refused])
    for numbers, argument, values in _NOT_WITH:
        for value in values:
            yield from _when(numbers[column], argument, [(_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | _EPERM)])


def _refused(number: int, error: int) -> list[Instruction]:
    return [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _when(number: int, argument: int, tests: list[Instruction]) -> list[Instruction]:
    """Tests of an argument for one system call; what passes them goes on with its number loaded again."""
    inner = [(_LOAD, 0, 0, _argument(argument)), *tests, (_LOAD, 0, 0, _NUMBER)]
    return [(_JUMP_EQUAL, 0, len(inner), number), *inner]


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction))]


def install(*, has_view: bool) -> None:
    """Filter this process from here on, for good. Needs `no_new_privileges`. Raises SystemFailed."""
    instructions = program(system.machine(), os.getpid(), has_view=has_view)
    array = (_Instruction * len(instructions))(*(_Instruction(*one) for one in instructions))
    wanted = _Program(len(instructions), array)
    system.prctl("seccomp", system.PR_SET_SECCOMP, 2, ctypes.byref(wanted))
