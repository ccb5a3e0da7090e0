# gdb commands that list goroutines and show their stacks, in a live process or in a core file.
#
#     (gdb) source tuza-gdb.py
#     (gdb) info goroutines                       one line per goroutine
#     (gdb) goroutine 17 bt                       any gdb command, as if goroutine 17 were a thread
#     (gdb) goroutine 17 frame apply level 6 -q info locals
#     (gdb) goroutine all bt
#     (gdb) gcore-goroutines FILE                 a core file that contains the goroutines' stacks
#
# Written for gdb 13 and later, x86-64 and aarch64.
#
# How goroutines are found. The symbol `tuza_sched` points to the runtime, rt/sched.h. From there the script reaches
# the directory of all Gs (rt/memory/g_pool.h) and the Ms (rt/m.h). Types, offsets and the names of states come from
# the debug info of sched.cpp, which defines the symbol. sched.cpp must therefore be compiled with full debug info (-g;
# -g1 has no types). Whole slabs of Gs are read at once: member by member, a hundred thousand goroutines would take
# minutes.
#
# How a parked stack is shown. A parked goroutine has no thread whose registers gdb could read: its registers are in a
# frame at the end of its stack (arch/context.h). The script could write them into a thread, and restore the thread's
# own registers afterwards. That does not work in a core file, and would wreck a live process if gdb died in between.
# So nothing is written. While the command runs, an unwinder (ParkedStack) claims that the innermost frame of the
# selected thread was called by the goroutine, from the place where the goroutine parked:
#
#     frame 0   what the thread is really doing          hidden from `bt` by a frame filter
#     frame 1   where the goroutine left its stack       selected when the command starts
#     frame 2   its caller, and so on: gdb's own unwinding, from the registers that frame 1 was given
#
# Hence back traces of parked goroutines begin at #1, or at a higher number if the thread is in an inlined function. gdb
# caches unwound frames, so the cache is dropped when the unwinder is enabled and when it is disabled.
#
# Limits. Commands that run the program (continue, step, finish) must not be used with `goroutine N`: gdb runs threads,
# and `goroutine N` ends with the command. Registers that a call does not preserve are <not saved> in a parked
# goroutine; so are v8-v15 on aarch64. In the instant in which a thread's scheduler is about to switch to a goroutine,
# that goroutine already counts as running, and its back trace is the scheduler's.

import bisect
import collections
import contextlib
import itertools
import os
import re
import struct

import gdb
import gdb.unwinder

SavedFrame = collections.namedtuple("SavedFrame", "size pc sp offsets constant")

# Per architecture: the frame that a saved context points to. Size and offsets are those of arch/context.h
# (kFrameBytes, kFrameResume) and of the drawing in arch/context_<architecture>.S. After the frame is popped, the stack
# pointer is `size` higher. `constant`: registers that are the same in all threads, if the target has them. The
# registers listed here tell gdb which bits of a return address are a signature.
SAVED_FRAMES = {
    "i386:x86-64": SavedFrame(
        64, "rip", "rsp", {"r12": 8, "r13": 16, "r14": 24, "r15": 32, "rbx": 40, "rbp": 48, "rip": 56}, ()
    ),
    "aarch64": SavedFrame(
        240, "pc", "sp", {**{f"x{19 + i}": 8 * i for i in range(12)}, "pc": 88},
        ("pauth_dmask", "pauth_cmask", "pauth_dmask_high", "pauth_cmask_high"),
    ),
}

WORD = struct.Struct("<Q")


def read_memory(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def read_string(address):
    if address == 0:
        return ""
    text = gdb.Value(address).cast(gdb.lookup_type("char").pointer())
    return text.string("utf-8", errors="replace")


# -- The runtime's types, from the debug info.


def bare(type_):
    """The T of std::atomic<T> and rt::Relaxed<T>, which contain only a T."""
    type_ = type_.strip_typedefs().unqualified()
    while re.match(r"(std::(\w+::)?atomic|tuza::rt::Relaxed)<", type_.name or ""):
        type_ = type_.template_argument(0).strip_typedefs().unqualified()
    return type_


class Layout:
    """The places of the members of a class: 'pending.g' -> offset and type."""

    def __init__(self, type_):
        self.type = type_
        self.size = type_.sizeof
        self._members = {}
        self._enumerators = {}

    def member(self, path):
        if path not in self._members:
            offset, type_ = 0, self.type
            for name in path.split("."):
                field = next((f for f in type_.fields() if f.name == name and hasattr(f, "bitpos")), None)
                if field is None:
                    raise gdb.GdbError(f"{type_} has no {name}: this script and the program's Tuza differ")
                offset, type_ = offset + field.bitpos // 8, bare(field.type)
            self._members[path] = offset, type_
        return self._members[path]

    def enumerator(self, path, value):
        if path not in self._enumerators:
            fields = self.member(path)[1].fields()
            self._enumerators[path] = {f.enumval: f.name.rsplit("::", 1)[-1] for f in fields}
        return self._enumerators[path].get(value, str(value))


class Record:
    """One object of the program; its memory is read as a whole."""

    def __init__(self, layout, address, memory=None):
        self.layout = layout
        self.address = address
        self._memory = read_memory(address, layout.size) if memory is None else memory

    def bytes(self, path):
        offset, type_ = self.layout.member(path)
        return self._memory[offset : offset + type_.sizeof]

    def integer(self, path):
        return int.from_bytes(self.bytes(path), "little")

    def enumerator(self, path):
        return self.layout.enumerator(path, self.integer(path))

    def string(self, path):
        return self.bytes(path).split(b"\0")[0].decode("utf-8", "replace")

    def address_of(self, path):
        return self.address + self.layout.member(path)[0]


def words(enumerator):
    """kWaitGroup -> wait group"""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", enumerator[1:]).lower()


# -- Goroutines.


class Goroutine:
    def __init__(self, record):
        self.address = record.address
        self.id = record.integer("id")
        self.name = record.string("name_text")
        self.status = record.enumerator("status")
        self.wait_reason = record.enumerator("wait_reason")
        self.blocking = record.integer("blocking") != 0  # in a marked blocking call
        self.locked = record.integer("locked_m") != 0
        self.entry = record.integer("entry")
        self.guard_low = record.integer("stack.guard_low")
        self.stack_low = record.integer("stack.low")
        self.stack_top = record.integer("stack.top")
        self.context_sp = record.integer("context.sp")  # the saved frame, unless a thread executes the goroutine
        self.thread = None  # the gdb thread that executes it
        self._file = record.integer("site_file")
        self._line = record.integer("site_line")

    def owns(self, sp):
        return self.guard_low < sp <= self.stack_top  # sp in the guard: the stack is overflowing

    def state(self):
        details = []
        if self.thread is not None:
            details.append(f"thread {self.thread.num}")
        elif self.status in ("kWaiting", "kPinned"):
            details.append(words(self.wait_reason))
        if self.locked:
            details.append("locked to thread")
        # In Go's words, as in dumps.
        status = "syscall" if self.status == "kRunning" and self.blocking else words(self.status)
        return status + (f" ({', '.join(details)})" if details else "")

    def site(self):
        return f"{read_string(self._file)}:{self._line}" if self._file else ""


class Runtime:
    """The current goroutines of the program. Raises gdb.GdbError if there is no runtime."""

    def __init__(self):
        symbol = self._symbol()
        pointer = symbol.value().address.cast(bare(symbol.type).pointer()).dereference()
        if int(pointer) == 0:
            raise gdb.GdbError("No goroutines: no tuza::run is on (tuza_sched is null).")
        self._sched = Record(Layout(pointer.type.target()), int(pointer))
        self.goroutines = sorted(self._read_goroutines(), key=lambda g: g.id)
        self._find_threads()

    @staticmethod
    def _symbol():
        # Compilers differ in whether an `extern "C"` variable in a namespace has the qualified name.
        found = [gdb.lookup_global_symbol(name) for name in ("tuza::rt::tuza_sched", "tuza_sched")]
        for symbol in found:
            # Debug info of level 1 has variables, but gives all of them the type int.
            if symbol is not None and bare(symbol.type).code == gdb.TYPE_CODE_PTR:
                return symbol
        try:
            gdb.parse_and_eval("&tuza_sched")
        except gdb.error:
            message = "No goroutines: no symbol tuza_sched. The program has no Tuza in it, or is stripped."
            raise gdb.GdbError(message) from None
        raise gdb.GdbError("Tuza's debug info has no types: its sched.cpp must be compiled with -g (not -g1).")

    def _read_goroutines(self):
        pool = gdb.Value(self._sched.address_of("gs")).cast(self._sched.layout.member("gs")[1].pointer())
        per_slab = int(pool.dereference()["kSlabGs"])
        count = self._sched.integer("gs.count_")
        slabs_type = self._sched.layout.member("gs.slabs_")[1]
        layout = Layout(bare(slabs_type.template_argument(0)).target())
        slabs = WORD.iter_unpack(self._sched.bytes("gs.slabs_"))
        for first, (slab,) in zip(range(0, count, per_slab), slabs):
            in_slab = min(per_slab, count - first)
            memory = memoryview(read_memory(slab, in_slab * layout.size))
            for offset in range(0, in_slab * layout.size, layout.size):
                one = bytes(memory[offset : offset + layout.size])
                record = Record(layout, slab + offset, one)
                if record.enumerator("status") != "kDead":
                    yield Goroutine(record)

    def _machines(self):
        layout = Layout(self._sched.layout.member("ms")[1].target())
        first = self._sched.integer("ms")
        for i in range(self._sched.integer("ms_made")):
            yield Record(layout, first + i * layout.size)

    def _find_threads(self):
        by_address = {g.address: g for g in self.goroutines}
        threads = {thread.ptid[1]: thread for thread in gdb.selected_inferior().threads()}
        with selection_kept():
            for m in self._machines():
                # In the middle of a switch `current` is the next goroutine, or g0, which is not in the list;
                # `pending` is the goroutine that the thread leaves.
                pending, current = (by_address.get(m.integer(path)) for path in ("pending.g", "current"))
                if pending is None and current is None:
                    continue
                thread = threads.get(m.integer("thread_id"))
                if thread is None:
                    # Seen from outside a container, threads have other ids.
                    thread = next((t for t in threads.values() if executed_by(t, pending, current)), None)
                if thread is not None:
                    # executed_by() finds no goroutine if the thread is on another stack that cannot be unwound to
                    # a goroutine's stack: the program may have switched stacks by itself.
                    executed = executed_by(thread, pending, current) or current
                    if executed is not None:
                        executed.thread = thread

    def find(self, number):
        for g in self.goroutines:
            if g.id == number:
                return g
        raise gdb.GdbError(f"No goroutine {number}. `info goroutines` lists those that are not dead.")


def executed_by(thread, *goroutines):
    """The goroutine on whose stack the thread is. Looks through signal handlers on other stacks."""
    thread.switch()
    try:
        for frame in frames():
            sp = int(frame.read_register("sp"))
            for g in goroutines:
                if g is not None and g.owns(sp):
                    return g
    except gdb.error:
        pass  # the frames cannot be unwound further
    return None


# -- gdb's threads and frames.


def frames():
    frame = gdb.newest_frame()
    while frame is not None:
        yield frame
        frame = frame.older()


def saved_frame_layout():
    name = gdb.selected_inferior().architecture().name()
    for architecture, layout in SAVED_FRAMES.items():
        if name.startswith(architecture):
            return layout
    raise gdb.GdbError(f"The frame of a parked goroutine is not known for {name}.")


def saved_registers(goroutine, layout):
    saved = read_memory(goroutine.context_sp, layout.size)
    registers = {name: WORD.unpack_from(saved, offset)[0] for name, offset in layout.offsets.items()}
    registers[layout.sp] = goroutine.context_sp + layout.size
    return registers


def has_run(goroutine):
    if goroutine.context_sp == 0:
        return False
    # The context may still be the initial one, with a thread about to enter it.
    layout = saved_frame_layout()
    entry = int(gdb.parse_and_eval("&tuza_context_entry"))
    return saved_registers(goroutine, layout)[layout.pc] != entry


@contextlib.contextmanager
def selection_kept():
    """Restores the selected thread and frame afterwards."""
    thread = gdb.selected_thread()
    frame = None
    with contextlib.suppress(gdb.error):
        frame = gdb.selected_frame()
    try:
        yield
    finally:
        if thread is not None and thread.is_valid():
            thread.switch()
            if frame is not None and frame.is_valid():
                frame.select()


@contextlib.contextmanager
def plain_errors():
    """Turns errors of gdb commands into GdbError: otherwise gdb reports them as errors of this script."""
    try:
        yield
    except gdb.error as error:
        raise gdb.GdbError(str(error)) from None


def select_host():
    """Selects a thread to show a parked goroutine with, if possible the selected one. Returns its sp."""
    for thread in (gdb.selected_thread(), *gdb.selected_inferior().threads()):
        # In a core file, threads that were beginning or ending may have no registers.
        with contextlib.suppress(gdb.error):
            thread.switch()
            return int(gdb.newest_frame().read_register("sp"))
    raise gdb.GdbError("No thread has registers.")


FrameId = collections.namedtuple("FrameId", "sp pc")


class ParkedStack(gdb.unwinder.Unwinder):
    """Makes a parked goroutine the caller of the selected thread's innermost frame; see the head of this file."""

    def __init__(self):
        super().__init__("tuza-goroutine")
        self.enabled = False

    def __call__(self, pending):
        # Only the frame with this stack pointer is handled: the other frames are on the goroutine's stack.
        if int(pending.read_register(self._layout.sp)) != self._host_sp:
            return None
        # gdb gives up when a caller's frame seems to lie below its callee's. The unwinder may choose the frame id: the
        # id says that this frame ends where the goroutine's stack ends.
        frame_id = FrameId(gdb.Value(self._context_sp), pending.read_register(self._layout.pc))
        info = pending.create_unwind_info(frame_id)
        for name, value in self._registers.items():
            info.add_saved_register(name, gdb.Value(value).cast(pending.read_register(name).type))
        for name in self._layout.constant:
            with contextlib.suppress(gdb.error, ValueError):
                info.add_saved_register(name, pending.read_register(name))
        return info

    @contextlib.contextmanager
    def showing(self, goroutine):
        self._layout = saved_frame_layout()
        self._context_sp = goroutine.context_sp
        self._host_sp = select_host()
        self._registers = saved_registers(goroutine, self._layout)
        resumed_sp = self._registers[self._layout.sp]
        self.enabled = True
        gdb.invalidate_cached_frames()
        try:
            parked = (f for f in frames() if int(f.read_register(self._layout.sp)) == resumed_sp)
            innermost = next(parked, None)
            if innermost is None:
                raise gdb.GdbError("gdb did not accept the parked stack.")
            innermost.select()
            with hide_host.below(innermost.level()):
                yield
        finally:
            self.enabled = False
            gdb.invalidate_cached_frames()


class HideHost:
    """The frame filter that leaves out the frames below the parked goroutine: the thread's own."""

    def __init__(self):
        self.name = "tuza-goroutine"
        self.enabled = False
        self.priority = 1000  # runs before filters that may change or merge frames

    def filter(self, decorated_frames):
        return itertools.dropwhile(lambda f: f.inferior_frame().level() < self._level, decorated_frames)

    @contextlib.contextmanager
    def below(self, level):
        self._level = level
        self.enabled = True
        try:
            yield
        finally:
            self.enabled = False


def run_in(goroutine, command, from_tty):
    with selection_kept(), plain_errors():
        if goroutine.thread is not None:
            goroutine.thread.switch()
            gdb.newest_frame().select()
            gdb.execute(command, from_tty)
        elif not has_run(goroutine):
            block = gdb.current_progspace().block_for_pc(goroutine.entry)
            function = block.function if block is not None else None
            where = function.print_name if function is not None else hex(goroutine.entry)
            raise gdb.GdbError(f"Goroutine {goroutine.id} has not run yet; it will begin in {where}.")
        else:
            with parked_stack.showing(goroutine):
                gdb.execute(command, from_tty)


# -- Core files.


class CoreFile:
    """An ELF core file that memory can be written into."""

    def __init__(self, file):
        self._file = file
        header = file.read(64)
        (table,) = struct.unpack_from("<Q", header, 32)
        entry_size, count = struct.unpack_from("<HH", header, 54)
        self._segments = []
        for i in range(count):
            file.seek(table + i * entry_size)
            kind, _, offset, address, _, in_file, _, _ = struct.unpack("<IIQQQQQQ", file.read(56))
            if kind == 1:  # PT_LOAD
                self._segments.append((address, in_file, offset))
        self._segments.sort()

    def write(self, address, memory):
        i = bisect.bisect_right(self._segments, address, key=lambda segment: segment[0])
        start, size, offset = self._segments[i - 1]
        if not start <= address <= address + len(memory) <= start + size:
            return False
        self._file.seek(offset + address - start)
        self._file.write(memory)
        return True


def save_stacks(goroutines, path):
    red_zone = 128
    with open(path, "r+b") as file:
        core = CoreFile(file)
        for g in goroutines:
            sp = g.context_sp
            if g.thread is not None:
                g.thread.switch()
                sp = int(gdb.newest_frame().read_register("sp"))
            if not g.owns(sp):
                continue  # the goroutine has not run yet, or is on another stack
            low = max(sp - red_zone, g.stack_low)
            if not core.write(low, read_memory(low, g.stack_top - low)):
                print(f"warning: no room in {path} for the stack of goroutine {g.id}")


# -- Commands.


class InfoGoroutines(gdb.Command):
    """List the goroutines that are not dead.
One line each: id, state, name, place of creation. A * marks those that a thread executes."""

    def __init__(self):
        super().__init__("info goroutines", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE)

    def invoke(self, argument, from_tty):
        goroutines = Runtime().goroutines
        rows = [("*" if g.thread is not None else " ", str(g.id), g.state(), g.name, g.site())
                for g in goroutines]
        number_w, state_w, name_w = (max((len(row[i]) for row in rows), default=0) for i in (1, 2, 3))
        for mark, number, state, name, site in rows:
            print(f"{mark} {number:>{number_w}} {state:<{state_w}}  {name:<{name_w}}  {site}".rstrip())


class GoroutineCommand(gdb.Command):
    """Run a gdb command in the context of a goroutine: goroutine ID COMMAND, goroutine all COMMAND.
Example: goroutine 17 bt
Frames of a parked goroutine are numbered from 1, or above; commands start with the first one selected."""

    def __init__(self):
        super().__init__("goroutine", gdb.COMMAND_STACK, gdb.COMPLETE_NONE)

    def invoke(self, argument, from_tty):
        which, _, command = argument.strip().partition(" ")
        if not command or not (which == "all" or which.isdecimal()):
            raise gdb.GdbError("usage: goroutine ID COMMAND, or goroutine all COMMAND")
        runtime = Runtime()
        if which != "all":
            run_in(runtime.find(int(which)), command, from_tty)
            return
        for g in runtime.goroutines:
            print(f"\nGoroutine {g.id}, {g.state()}{', ' + g.name if g.name else ''}:")
            try:
                run_in(g, command, from_tty)
            except gdb.GdbError as error:  # one that cannot be shown must not hide the others
                print(error)


class GcoreGoroutines(gdb.Command):
    """Save a core file of the process, the stacks of goroutines included: gcore-goroutines [FILE].
The default FILE is core.PID. Where the kernel supports it, stacks have guard regions inside their mapping;
gdb's own generate-core-file stops at the first one and leaves out all that follows. Core files that the
kernel writes are complete."""

    def __init__(self):
        super().__init__("gcore-goroutines", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        goroutines = Runtime().goroutines
        path = argument.strip() or f"core.{gdb.selected_inferior().pid}"
        gdb.execute(f"generate-core-file {path}", from_tty)
        with selection_kept():
            save_stacks(goroutines, os.path.expanduser(path))


# If the script is sourced again, it replaces its earlier registrations.
parked_stack = ParkedStack()
gdb.unwinder.register_unwinder(None, parked_stack, replace=True)
hide_host = HideHost()
gdb.frame_filters[hide_host.name] = hide_host
InfoGoroutines()
GoroutineCommand()
GcoreGoroutines()
