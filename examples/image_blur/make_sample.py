#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paints sample.png: a lake at sunset in front of mountains, with sharp edges that a blur softens.

    make_sample.py OUTPUT.png
"""

import math
import random
import struct
import sys
import zlib

WIDTH, HEIGHT, HORIZON = 480, 320, 205
SUN = (330, 150, 26)


def ridge(seed, base, height):
    """The skyline of one mountain range: y for each x, from waves of falling size."""
    rng = random.Random(seed)
    waves = [(rng.uniform(0.6, 1.4) * 2**k, rng.uniform(0, 6.28), height / 1.7**k) for k in range(7)]
    return [base - sum(size * abs(math.sin(f * x / 90 + phase)) for f, phase, size in waves) / 2
            for x in range(WIDTH)]


RIDGES = [(ridge(3, 190, 70), (112, 88, 128)), (ridge(8, 203, 42), (70, 58, 98)),
          (ridge(21, 212, 20), (34, 32, 60))]
STARS = {(random.Random(i).randrange(WIDTH), random.Random(i + 999).randrange(80)) for i in range(60)}


def mix(a, b, t):
    return tuple(p + (q - p) * t for p, q in zip(a, b))


def sky(x, y):
    if (x, y) in STARS:
        return (255, 250, 235)
    colour = mix((38, 42, 96), (250, 170, 110), min(1, y / HORIZON) ** 1.5)
    distance = math.hypot(x - SUN[0], y - SUN[1])
    if distance < SUN[2]:
        return (255, 244, 200)
    return mix(colour, (255, 220, 150), max(0, 1 - (distance - SUN[2]) / 140) ** 2 * 0.8)


def scene(x, y):
    colour = sky(x, y)
    for skyline, of_ridge in RIDGES:
        if y > skyline[x]:
            colour = mix(of_ridge, (250, 170, 110), max(0, 0.25 - (y - skyline[x]) / 200))
    return colour


def pixel(x, y):
    if y < HORIZON:
        return scene(x, y)
    depth = (y - HORIZON) / (HEIGHT - HORIZON)
    ripple = math.sin((y - HORIZON) * (2.2 - depth)) * 2 + math.sin(x / 9 + y * 1.7)
    mirrored = scene(min(WIDTH - 1, max(0, int(x + ripple * (1 + 3 * depth)))),
                     max(0, int(HORIZON - (y - HORIZON) * 1.6)))
    return mix(mirrored, (22, 30, 66), 0.25 + 0.35 * depth)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main():
    rows = b"".join(
        b"\0" + bytes(min(255, max(0, int(c))) for x in range(WIDTH) for c in pixel(x, y))
        for y in range(HEIGHT))
    with open(sys.argv[1], "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n")
        out.write(chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)))
        out.write(chunk(b"IDAT", zlib.compress(rows, 9)))
        out.write(chunk(b"IEND", b""))


if __name__ == "__main__":
    main()
