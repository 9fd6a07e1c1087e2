#!/usr/bin/env python3
"""Text output on a terminal and off it: colour, bars, width.

usage: terminal_test.py BINARY SOURCE_DIR
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios
import unittest

BINARY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def environment(**changes):
    base = {key: value for key, value in os.environ.items()
            if key not in ("NO_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG", "TERM")}
    return {**base, "FULCRUM_DATA_DIR": str(SOURCE / "data"), "LC_ALL": "C.UTF-8",
            "TERM": "xterm", **changes}


def on_terminal(*arguments, columns=100, **changes):
    """What a terminal of that width shows."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:  # a container without /dev/pts
        raise unittest.SkipTest(f"no pseudo-terminal here: {error}") from error
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([BINARY, *arguments], stdout=theirs, stderr=subprocess.DEVNULL,
                               env=environment(**changes))
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    except OSError:
        pass  # Linux reports the closed terminal as an error
    os.close(ours)
    process.wait()
    return b"".join(pieces).decode().replace("\r\n", "\n")


def into_pipe(*arguments, **changes):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=True,
                          env=environment(**changes)).stdout


class Terminal(unittest.TestCase):

    PREDICT = ("predict", "campaign-a", "-c", "1")

    def test_colour_is_for_terminals_that_want_it(self):
        self.assertRegex(on_terminal(*self.PREDICT), ESCAPE)
        self.assertNotRegex(on_terminal(*self.PREDICT, NO_COLOR="1"), ESCAPE)
        self.assertNotRegex(on_terminal(*self.PREDICT, TERM="dumb"), ESCAPE)
        self.assertNotRegex(into_pipe(*self.PREDICT), ESCAPE)

    def test_bars_fall_back_to_ascii(self):
        self.assertIn("█", on_terminal(*self.PREDICT))
        plain = into_pipe(*self.PREDICT, LC_ALL="C")
        self.assertTrue(plain.isascii())
        self.assertIn("######", plain)

    def test_tables_keep_to_the_width(self):
        for columns in (100, 132):
            for command in (self.PREDICT, ("levers", "campaign-a", "-c", "1")):
                shown = ESCAPE.sub("", on_terminal(*command, columns=columns))
                table = shown.split("op  ")[-1] if command[0] == "predict" else shown
                table = table.split("\nmemory per GPU")[0]
                widest = max(len(line) for line in table.splitlines())
                self.assertLessEqual(widest, columns, command)

    def test_columns_decides_where_it_is_set(self):
        narrow = into_pipe("levers", "campaign-a", "-c", "1", COLUMNS="100")
        self.assertLessEqual(max(map(len, narrow.splitlines())), 100)
        wide = into_pipe("levers", "campaign-a", "-c", "1", COLUMNS="300")
        self.assertGreater(max(map(len, wide.splitlines())), 120)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
