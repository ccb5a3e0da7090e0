"""Which files of the four layers may name what only Linux has.

docs/internals/porting.md lists them in two tables: in the first the mechanisms that have a portable form, in the second what is
not behind such a mechanism yet. A word counts in code, and a path in strings; comments may say
what they like. What POSIX.1-2024 has is not
Linux's, even if other systems lack it (accept4 and pipe2 on macOS); nor is what all of them have besides (MSG_DONTWAIT), or
under the name that it had before (posix_spawn_file_actions_addfchdir_np).
"""

import re

PAGE = "docs/internals/porting.md"
TABLES = ("| mechanism | Linux's form | portable form | what weakens |", "| file | what it names |")

LINUX = re.compile(r"""
    <linux/[\w/]+\.h>
  | <sys/(?:epoll|eventfd|inotify|prctl|random|sendfile|signalfd|syscall|sysinfo|timerfd)\.h>
  | <(?:elf|link|malloc)\.h>
  | \b(?:EPOLL|FUTEX|MADV|MEMBARRIER|RESOLVE|SIOC|SPLICE|SYS)_?[A-Z]*_?\w*   # calls by number, and their arguments
  | \bsys::(?:call|invoke)\b | \bsyscall\(
  | \bMAP_(?:FIXED_NOREPLACE|GROWSDOWN|HUGETLB|NORESERVE|POPULATE|STACK)\b
  | \bMSG_(?:ERRQUEUE|FASTOPEN|MORE|ZEROCOPY)\b | \bPOLLRDHUP\b
  | \bSO_(?:BUSY_POLL|INCOMING_CPU|PEERCRED)\b | \bTCP_(?!(?:NODELAY|KEEP\w+)\b)\w+
  | \b(?:AT_EMPTY_PATH|F_SETPIPE_SZ|O_DIRECT|O_NOATIME|O_PATH|O_TMPFILE)\b
  | \b(?:cpu_set_t|dl_iterate_phdr|mallinfo2?|malloc_usable_size|mallopt|memfd_create|prctl|process_vm_readv
        |sched_[gs]etaffinity|signalfd|timerfd_\w+)\b
  | \bgregs\b | \b(?!posix_spawn_file_actions_addfchdir_np)\w+_np\(
  | "/(?:proc|sys)/
""", re.VERBOSE)
COMMENT_OR_STRING = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'(?!\w)""", re.DOTALL)


def words(text):
    """Pairs of a line number and a word that is Linux's."""
    def kept(match):
        return match[0] if match[0].startswith(('"/proc/', '"/sys/')) else "\n" * match[0].count("\n")
    code = COMMENT_OR_STRING.sub(kept, text)
    for number, line in enumerate(code.split("\n"), 1):
        for word in LINUX.findall(line):
            yield number, word


def is_source(name):
    """Tests and benchmarks run where they run."""
    return re.match(r"(?:sched|netpoll|http|framework)/.*\.(?:h|cpp)$", name) and not re.search(r"/(?:tests|bench|fuzz)/", name)


def listed(page):
    """The files that the tables of the page list, in order."""
    column = None
    for line in page.split("\n"):
        if line in TABLES:
            column = TABLES.index(line)
        elif not line.startswith("|"):
            column = None
        elif column is not None:
            cell = line.split("|")[2 if column == 0 else 1]
            yield from re.findall(r"`((?:sched|netpoll|http|framework)/[^`]*)`", cell)


def problems(sources, page):
    """`sources`: the text of each file, by its name. Yields FILE:LINE: text."""
    allowed = list(listed(page))
    for name in sorted(set(allowed)):
        if allowed.count(name) > 1:
            yield f"{PAGE}: {name} is listed twice: a file has one mechanism"
        if not any(True for _ in words(sources.get(name, ""))):
            yield f"{PAGE}: {name} names nothing that is Linux's, and needs no row"
    for name, text in sorted(sources.items()):
        for number, word in words(text) if name not in allowed else ():
            yield f"{name}:{number}: {word} is Linux's, and {PAGE} does not list the file"
