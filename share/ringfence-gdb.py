"""gdb: symbols, source lines and locals for code in Ringfence domains.

    (gdb) source /usr/local/share/ringfence/ringfence-gdb.py
    (gdb) ringfence-symbols [DIRECTORY or MODULE]...

Modules are found in the process's map by file name, and looked for in the given places and the current directory.
Faults of domains are the host's to handle: let them pass with `handle SIGSEGV nostop noprint pass` unless you want to
stop where they happen.
"""

import os
import re

import gdb


class RingfenceSymbols(gdb.Command):
    """Load the symbols of all modules that domains of this process run."""

    def __init__(self):
        super().__init__("ringfence-symbols", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)
        self.loaded = set()

    def invoke(self, argument, from_tty):
        pid = gdb.selected_inferior().pid
        if not pid:
            raise gdb.GdbError("the program is not running")
        places = gdb.string_to_argv(argument) + ["."]
        seen = set()
        with open(f"/proc/{pid}/maps") as maps:
            for line in maps:
                found = re.match(r"([0-9a-f]+)-\S+ r-x\S ([0-9a-f]+) \S+ \S+\s+/memfd:ringfence:(\S+)", line)
                if found:
                    # A page of stubs stands in front of the image.
                    base = int(found[1], 16) - int(found[2], 16) + 0x1000
                    seen.add((base, found[3]))
        if not seen:
            print("no module is loaded")
        for base, name in sorted(seen):
            if (pid, base, name) in self.loaded:
                continue
            path = self.find(name, places)
            if path is None:
                print(f"{name} at {base:#x}: not found; name its directory")
                continue
            gdb.execute(f"add-symbol-file {path} -o {base:#x}", False, True)
            self.loaded.add((pid, base, name))
            print(f"{name} at {base:#x}: {path}")

    @staticmethod
    def find(name, places):
        for place in places:
            if os.path.basename(place) == name and os.path.isfile(place):
                return place
            path = os.path.join(place, name)
            if os.path.isfile(path):
                return path
        return None


RingfenceSymbols()
