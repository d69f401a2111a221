"""Filter system calls with seccomp: refuse with EPERM the calls that a worker never needs.

It refuses what the other mechanisms allow: new processes and programs, sockets, signals to other processes, their
memory, mounts, memory that limits do not count, and parts of the kernel through which sandboxes were escaped.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from rlm.runners.confine import system

_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Each system call with its numbers on x86_64 and aarch64; None where it does not exist.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other programs and processes: the limits are those of one process
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    # memory and descriptors of other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "get_robust_list": (274, 100), "sched_rr_get_interval": (148, 127),
    "ioprio_get": (252, 31),
    # signals whose target no filter can check
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    # sockets; `socketpair`, which asyncio needs, has rules of its own
    "socket": (41, 198), "bind": (49, 200), "connect": (42, 203), "listen": (50, 201),
    # rings, whose calls no filter sees; those of `io_setup` also count towards a limit of the whole machine
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    # mounts, namespaces, roots
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "mknod": (133, None), "mknodat": (259, 33),
    "open_tree_attr": (467, 467), "statmount": (457, 457), "listmount": (458, 458),
    # memory outside RLIMIT_AS; attributes of files, which the size limit of /tmp does not count
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "setsockopt": (54, 208),  # larger buffers of socket pairs could take 2 GB of the machine's memory
    # pages in a pipe or socket, which stay when their owner has unmapped or truncated them
    "vmsplice": (278, 75), "splice": (275, 76), "tee": (276, 77), "sendfile": (40, 71),
    # descriptors on their way through a socket, which count towards no process's limit
    "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # rules of Landlock, which could take a GB
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
    # objects of System V and queues, which belong to the machine, not to a process
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    # resources with a limit for each user: a worker could take those of its host's user; asyncio can use `poll`
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "epoll_create": (213, None), "epoll_create1": (291, 20), "timer_create": (222, 107),
    # writes to all disks of the machine
    "sync": (162, 81), "syncfs": (306, 267),
    # rarely used parts of the kernel, and settings of the machine
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
    # the user, group and session of the worker
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151),
    "setfsgid": (123, 152), "setsid": (112, 157), "setpgid": (109, 154),
}  # fmt: skip
_REFUSED_WITHOUT_VIEW: dict[str, tuple[int | None, int | None]] = {
    # changes to files of the host's user, which Landlock does not refuse
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466), "truncate": (76, 45),
    "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88), "file_setattr": (469, 469),
    "capget": (125, 90),  # of any process
}  # fmt: skip
_OWN_ONLY: dict[str, tuple[int, int]] = {"kill": (62, 129), "tgkill": (234, 131)}
"""Refused unless the first argument, a process, is the worker itself."""
_SELF_OR_ZERO: dict[str, tuple[int, int]] = {
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120), "sched_getattr": (315, 275), "getpgid": (121, 155), "getsid": (124, 156),
}  # fmt: skip
"""Refused unless the first argument, a process, is the worker itself or 0, which means the same."""
_GET_AFFINITY, _GET_PRIORITY = (204, 123), (140, 141)
"""For other processes, ENOSYS and EPERM. The C library asks for the affinity of threads, and can do without it."""
_NOTHING_TO_DO: dict[str, tuple[int, int]] = {
    "fsync": (74, 82), "fdatasync": (75, 83), "sync_file_range": (277, 84), "msync": (26, 227),
}  # fmt: skip
"""Succeed and do nothing: a worker writes only to memory, and must not make the host's disks write."""
_MMAP, _MAP_HUGETLB = (9, 222), 0x40000
_CLOCK_CALLS: tuple[tuple[int, int], ...] = ((228, 113), (229, 114), (230, 115))
_NEGATIVE = 0x80000000  # the sign of a clock's number: a negative one is the clock of any process, or of a descriptor
_CLONE, _CLONE3 = (56, 220), (435, 435)
_CLONE_THREAD = 0x10000
_SOCKETPAIR = (53, 199)
_UNIX, _NO_STREAM = 1, 0b1110  # all types but SOCK_STREAM: a datagram socket, even of a pair, can send to any address


class _RefusedValues(NamedTuple):
    call: tuple[int, int]  # the numbers of a system call
    argument: int  # the position of an argument, from 0
    values: tuple[int, ...]  # values of that argument that are refused


_REFUSED_VALUES = (
    # prctl: the worker must still die with its parent, hide its memory from others of its user, and use no huge pages.
    # 62 is PR_SCHED_CORE, 67 is PR_SET_MEMORY_MERGE: both compare it with other processes.
    _RefusedValues((157, 167), 0, (system.PR_SET_PDEATHSIG, system.PR_SET_DUMPABLE, system.PR_SET_THP_DISABLE, 62, 67)),
    # fcntl: F_SETOWN, F_SETSIG and F_SETOWN_EX make the kernel send signals to others. F_SETLEASE and F_NOTIFY make
    # writers of a file wait. F_SETPIPE_SZ takes room that all pipes of a user share.
    _RefusedValues((72, 25), 1, (8, 10, 15, 1024, 1026, 1031)),
    # madvise: MADV_MERGEABLE, MADV_HUGEPAGE, MADV_COLLAPSE. A huge page stays whole when a part of it is unmapped.
    _RefusedValues((28, 233), 2, (12, 14, 25)),
    # futex: the operations that pass on priorities look up any process whose number is in the word.
    _RefusedValues((202, 98), 1, tuple(op | flags for op in (6, 8, 11, 12, 13) for flags in (0, 128, 256, 384))),
    # ioctl: TIOCSTI and TIOCLINUX write to terminals; FIOSETOWN and SIOCSPGRP do what F_SETOWN does.
    _RefusedValues((16, 29), 1, (0x5412, 0x541C, 0x8901, 0x8902)),
)

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _ARCH = 0, 4

Instruction = tuple[int, int, int, int]  # operation, instructions that a jump skips if true and if false, operand

_REFUSE: Instruction = (_RETURN, 0, 0, _ERRNO | _EPERM)


def program(machine: str, pid: int, *, has_view: bool) -> list[Instruction]:
    """The filter for the process `pid`. `has_view`: whether it has a file system view of its own. Pure."""
    column = 0 if machine == "x86_64" else 1
    return [*_load_number(machine), *_rules(column, pid, has_view), (_RETURN, 0, 0, _ALLOW)]


def _load_number(machine: str) -> Iterator[Instruction]:
    """Yield instructions that load the number of the call, and kill the process if it is of another machine type."""
    yield _LOAD, 0, 0, _ARCH
    yield _JUMP_EQUAL, 1, 0, _ARCHITECTURE[machine]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    if machine == "x86_64":  # the numbers of x32 begin there
        yield _JUMP_AT_LEAST, 0, 1, 0x40000000
        yield _RETURN, 0, 0, _ERRNO | _ENOSYS


def _rules(column: int, pid: int, has_view: bool) -> Iterator[Instruction]:
    """Yield the instructions of all rules. A jump in a list of tests skips or reaches the instruction that refuses."""
    for numbers in (*_REFUSED.values(), *(() if has_view else _REFUSED_WITHOUT_VIEW.values())):
        if (number := numbers[column]) is not None:
            yield from _fail_with(number, _EPERM)
    yield from _fail_with(_CLONE3[column], _ENOSYS)  # the C library then uses clone, whose flags a filter can test
    yield from _test_argument(_CLONE[column], 0, [(_JUMP_ANY_BIT, 1, 0, _CLONE_THREAD), _REFUSE])
    is_self_or_zero: list[Instruction] = [(_JUMP_EQUAL, 2, 0, 0), (_JUMP_EQUAL, 1, 0, pid)]
    for call in _OWN_ONLY.values():
        yield from _test_argument(call[column], 0, [(_JUMP_EQUAL, 1, 0, pid), _REFUSE])
    for call in _SELF_OR_ZERO.values():
        yield from _test_argument(call[column], 0, [*is_self_or_zero, _REFUSE])
    for call in _NOTHING_TO_DO.values():
        yield from _fail_with(call[column], 0)
    yield from _test_argument(_GET_AFFINITY[column], 0, [*is_self_or_zero, (_RETURN, 0, 0, _ERRNO | _ENOSYS)])
    yield from _test_argument(_GET_PRIORITY[column], 0, [(_JUMP_EQUAL, 1, 0, 0), _REFUSE])
    yield from _test_argument(_GET_PRIORITY[column], 1, [*is_self_or_zero, _REFUSE])
    yield from _test_argument(_MMAP[column], 3, [(_JUMP_ANY_BIT, 0, 1, _MAP_HUGETLB), _REFUSE])
    for call in _CLOCK_CALLS:
        yield from _test_argument(call[column], 0, [(_JUMP_ANY_BIT, 0, 1, _NEGATIVE), _REFUSE])
    yield from _test_argument(_SOCKETPAIR[column], 0, [(_JUMP_EQUAL, 1, 0, _UNIX), _REFUSE])
    yield from _test_argument(_SOCKETPAIR[column], 1, [(_JUMP_ANY_BIT, 0, 1, _NO_STREAM), _REFUSE])
    for rule in _REFUSED_VALUES:
        for value in rule.values:
            yield from _test_argument(rule.call[column], rule.argument, [(_JUMP_EQUAL, 0, 1, value), _REFUSE])


def _fail_with(number: int, error: int) -> list[Instruction]:
    """Instructions that make one system call fail with an error number, or for 0 succeed and do nothing."""
    return [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _test_argument(number: int, argument: int, tests: list[Instruction]) -> list[Instruction]:
    """Instructions that test an argument of one system call. If it passes, its number is loaded for the next rules."""
    low_word = 16 + 8 * argument  # both machines are little endian
    inner = [(_LOAD, 0, 0, low_word), *tests, (_LOAD, 0, 0, _NUMBER)]
    return [(_JUMP_EQUAL, 0, len(inner), number), *inner]


class _Program(ctypes.Structure):
    """`struct sock_fprog`: the number of instructions, and their bytes."""

    _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.c_char_p)]


def install(*, has_view: bool) -> None:
    """Filter this process from here on, for good. Needs `no_new_privileges`. Raises SystemFailed."""
    instructions = program(system.machine(), os.getpid(), has_view=has_view)
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)  # `struct sock_filter`
    compiled = _Program(len(instructions), packed)
    system.prctl("seccomp", system.PR_SET_SECCOMP, 2, ctypes.byref(compiled))
