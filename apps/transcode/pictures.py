#!/usr/bin/env python3
"""Makes test pictures, the same ones each time: hills under a sky, with the noise of a camera.

  pictures.py WIDTH HEIGHT FILE.png
"""

import math
import random
import struct
import sys
import zlib


def rows(width, height):
    """The picture's rows, three bytes a pixel."""
    rng = random.Random(width * height)
    ridge = [
        [height * (0.35 + 0.17 * n) + height * 0.08 * math.sin(x * (7 - n) / width + 2 * n) + height * 0.01 * math.sin(x * 90 / width)
         for x in range(width)]
        for n in range(3)
    ]
    colours = [(80, 105, 140), (70, 110, 80), (45, 70, 40)]
    sun = (width * 0.72, height * 0.2, (height * 0.07) ** 2)
    for y in range(height):
        sky = (120 + 90 * y // height, 160 + 60 * y // height, 225)
        noise = rng.randbytes(width)
        row = bytearray()
        for x in range(width):
            colour = sky
            if (x - sun[0]) ** 2 + (y - sun[1]) ** 2 < sun[2]:
                colour = (250, 235, 170)
            for n in range(3):
                if y > ridge[n][x]:
                    colour = colours[n]
            grain = (noise[x] & 15) - 8
            row += bytes((min(255, max(0, c + grain)) for c in colour))
        yield bytes(row)


def png(width, height, lines):
    """Those rows as a PNG file."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packed = zlib.compress(b"".join(b"\0" + line for line in lines), 3)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


if __name__ == "__main__":
    width, height = int(sys.argv[1]), int(sys.argv[2])
    with open(sys.argv[3], "wb") as file:
        file.write(png(width, height, rows(width, height)))
