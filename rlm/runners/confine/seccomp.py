"""Filter system calls with seccomp: refuse with EPERM the calls that a worker never needs.

The filter closes what the other means leave open (for `landlock` it is most of the confinement): new processes and
programs, sockets, signals to others, memory of others, mounts and namespaces, memory that limits do not count, and
corners of the kernel through which sandboxes were escaped.
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
    "migrate_pages": (256, 238), "get_robust_list": (274, 100), "sched_rr_get_interval": (148, 127),
    "ioprio_get": (252, 31),
    # signals whose target cannot be checked here
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
    "statmount": (457, 457), "listmount": (458, 458),
    # memory outside RLIMIT_AS; attributes of files are none of a file system's bytes
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "setsockopt": (54, 208),  # buffers of pairs: where the machine allows 4 MiB each, 2 GB of its memory
    # pages that a pipe or a socket holds stay when their owner has unmapped or truncated them
    "vmsplice": (278, 75), "splice": (275, 76), "tee": (276, 77), "sendfile": (40, 71),
    # descriptors in flight count in no process's table of files
    "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # a rule for each port, in each of its descriptors: a GB
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
    # what is the machine's and has no owner: objects of System V, of others too, and queues
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    # what is counted by user, so that a worker could take all that its host's user has; `poll` serves for `epoll`
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "epoll_create": (213, None), "epoll_create1": (291, 20), "timer_create": (222, 107),
    # what has all disks of the machine write
    "sync": (162, 81), "syncfs": (306, 267),
    # corners
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "personality": (135, 92), "vhangup": (153, 58), "quotactl_fd": (443, 443),
    "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "uselib": (134, None),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setattr": (314, 274), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    # its identity
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
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88), "file_setattr": (469, 469),
    "capget": (125, 90),  # of any process
}  # fmt: skip
_OWN_ONLY: dict[str, tuple[int, int]] = {"kill": (62, 129), "tgkill": (234, 131)}
"""First argument: a process, which must be the worker itself."""
_SELF_OR_ZERO: dict[str, tuple[int, int]] = {
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120), "sched_getattr": (315, 275), "getpgid": (121, 155), "getsid": (124, 156),
}  # fmt: skip
"""First argument: a process; the call is refused unless it is the worker itself."""
_AFFINITY, _PRIORITY = (204, 123), (140, 141)
"""The first of another process does not exist: the C library asks for threads, and goes on without when it is so."""
_NOTHING_TO_DO: dict[str, tuple[int, int]] = {
    "fsync": (74, 82), "fdatasync": (75, 83), "sync_file_range": (277, 84), "msync": (26, 227),
}  # fmt: skip
"""Succeed without a system call: a worker writes to memory, and the disk that it reads from is the host's."""
_MMAP, _MAP_HUGETLB = (9, 222), 0x40000
_CLOCKS: tuple[tuple[int, int], ...] = ((228, 113), (229, 114), (230, 115))
_CLOCK_OF_SOMEBODY = 0x80000000
"""A clock below zero is that of a process, of any, or of a descriptor."""
_CLONE, _CLONE3 = (56, 220), (435, 435)
_CLONE_THREAD = 0x10000
_PAIR = (53, 199)
_UNIX, _NO_STREAM = 1, 0b1110
"""Kinds of sockets but SOCK_STREAM have one of these bits. Datagrams of a pair could be sent to any address."""
_NOT_WITH: tuple[tuple[tuple[int, int], int, tuple[int, ...]], ...] = (
    # It must go on dying with its parent, stay out of reach of others of its user, and have no huge pages; its memory
    # is not compared with that of others (67), nor its cookies of cores (62).
    ((157, 167), 0, (system.PR_SET_PDEATHSIG, system.PR_SET_DUMPABLE, system.PR_SET_THP_DISABLE, 62, 67)),
    # fcntl: F_SETOWN, F_SETSIG and F_SETOWN_EX have the kernel send signals to others; F_SETLEASE and F_NOTIFY make
    # those wait who write to a file; F_SETPIPE_SZ takes from what all pipes of a user may hold.
    ((72, 25), 1, (8, 10, 15, 1024, 1026, 1031)),
    # madvise: of a huge page of which a part is unmapped all stays. MADV_MERGEABLE, MADV_HUGEPAGE, MADV_COLLAPSE.
    ((28, 233), 2, (12, 14, 25)),
    # futex: the kinds that hand down priorities look up the process whose number is in the word, any process.
    ((202, 98), 1, tuple(kind | flags for kind in (6, 8, 11, 12, 13) for flags in (0, 128, 256, 384))),
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
    """The filter for a process; `has_view`: it has a file system view of its own. Pure."""
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
            yield from _refuse(number, _EPERM)
    # The library falls back to clone, whose flags can be looked at.
    yield from _refuse(_CLONE3[column], _ENOSYS)
    yield from _test_argument(
        _CLONE[column], 0, [(_JUMP_ANY_BIT, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    )
    for own in _OWN_ONLY.values():
        yield from _test_argument(own[column], 0, [(_JUMP_EQUAL, 1, 0, pid), (_RETURN, 0, 0, _ERRNO | _EPERM)])
    for self_or_zero in _SELF_OR_ZERO.values():
        tests = [(_JUMP_EQUAL, 2, 0, 0), (_JUMP_EQUAL, 1, 0, pid), (_RETURN, 0, 0, _ERRNO | _EPERM)]
        yield from _test_argument(self_or_zero[column], 0, tests)
    for nothing in _NOTHING_TO_DO.values():
        yield from _refuse(nothing[column], 0)
    refused = (_RETURN, 0, 0, _ERRNO | _EPERM)
    tests = [(_JUMP_EQUAL, 2, 0, 0), (_JUMP_EQUAL, 1, 0, pid), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    yield from _test_argument(_AFFINITY[column], 0, tests)
    yield from _test_argument(_PRIORITY[column], 0, [(_JUMP_EQUAL, 1, 0, 0), refused])
    yield from _test_argument(_PRIORITY[column], 1, [(_JUMP_EQUAL, 2, 0, 0), (_JUMP_EQUAL, 1, 0, pid), refused])
    yield from _test_argument(_MMAP[column], 3, [(_JUMP_ANY_BIT, 0, 1, _MAP_HUGETLB), refused])
    for clock in _CLOCKS:
        yield from _test_argument(clock[column], 0, [(_JUMP_ANY_BIT, 0, 1, _CLOCK_OF_SOMEBODY), refused])
    yield from _test_argument(_PAIR[column], 0, [(_JUMP_EQUAL, 1, 0, _UNIX), refused])
    yield from _test_argument(_PAIR[column], 1, [(_JUMP_ANY_BIT, 0, 1, _NO_STREAM), refused])
    for numbers, argument, values in _NOT_WITH:
        for value in values:
            yield from _test_argument(
                numbers[column], argument, [(_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | _EPERM)]
            )


def _refuse(number: int, error: int) -> list[Instruction]:
    return [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _test_argument(number: int, argument: int, tests: list[Instruction]) -> list[Instruction]:
    """Tests of an argument for one system call; a call that passes them goes on with its number loaded again."""
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
    compiled = _Program(len(instructions), array)
    system.prctl("seccomp", system.PR_SET_SECCOMP, 2, ctypes.byref(compiled))
