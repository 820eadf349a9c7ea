#!/usr/bin/env python3
"""A noisy neighbour, the same for the same seed: bursts of synced writes, of CPU, or of both, with pauses between.

usage: neighbour.py FOLDER SEED SECONDS

Each burst and each pause takes 3 to 40 s. The file that it writes lies in FOLDER and is gone at its end (SIGTERM ends it).
"""

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time

FILE_BYTES = 64 << 20


def write(folder, until, size):
    block, offset = os.urandom(size), 0
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        while time.monotonic() < until:
            os.pwrite(file.fileno(), block, offset)
            os.fdatasync(file.fileno())
            offset = (offset + size) % FILE_BYTES


def compute(until):
    while time.monotonic() < until:
        sum(range(10_000))


def main():
    folder, seed, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    draw = random.Random(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        kind, writers, size = draw.choice(["disk", "cpu", "both"]), draw.choice([1, 2]), draw.choice([8 << 10, 128 << 10, 1 << 20])
        length, pause = draw.uniform(3, 40), draw.uniform(3, 40)
        until = min(end, time.monotonic() + length)
        work = [] if kind == "cpu" else [(write, (folder, until, size))] * writers
        work += [] if kind == "disk" else [(compute, (until,))]
        processes = [multiprocessing.Process(target=what, args=arguments, daemon=True) for what, arguments in work]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        time.sleep(min(pause, max(0, end - time.monotonic())))


main()
