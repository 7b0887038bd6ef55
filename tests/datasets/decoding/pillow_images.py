#!/usr/bin/env python3
"""pillow_images.py FOLDER: writes images of every format, mode and bit depth that docs/file_formats.md names into FOLDER, and into
expected.json what Pillow decodes each to: width, height, and the SHA-256 of the pixels as RGB, as grey, and as RGB turned upright."""
import hashlib
import io
import json
import pathlib
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageOps

WIDTH, HEIGHT = 61, 47


def picture(channels, height=HEIGHT, width=WIDTH, top=256):
    """[height, width, channels]: slopes with noise, all values from 0 to top - 1."""
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    noise = (x * 7919 + y * 104729 + c * 1299709) % 37
    return ((x * (4 + c) + y * (3 + 2 * c) + noise) * top // 300) % top


def alpha(height=HEIGHT, width=WIDTH):
    y, x = np.mgrid[0:height, 0:width]
    return np.clip((x + y) * 5 - 60, 0, 255).astype(np.uint8)


def packed(samples, bits, order=">"):
    """The bytes of [rows, values]: 1 to 16 bits a value, rows padded to whole bytes."""
    samples = np.asarray(samples)
    if bits == 16:
        return [row.astype(order + "u2").tobytes() for row in samples]
    flags = (samples[..., None] >> np.arange(bits - 1, -1, -1)) & 1
    return [np.packbits(row.reshape(-1)).tobytes() for row in flags.astype(np.uint8)]


# --- PNG
def chunk(kind, data, crc=None):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data) if crc is None else crc)


def png(samples, bits, kind, before=b"", interlaced=False, behind=b""):
    """`samples`: [height, width, channels] of colour type `kind`. `before` and `behind`: chunks before and behind the pixels."""
    height, width, channels = samples.shape
    steps = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)] if interlaced else [(0, 0, 1, 1)]
    data, number = b"", 0
    for top, left, down, across in steps:
        part = samples[top::down, left::across]
        if not part.size:
            continue
        rows = packed(part.reshape(part.shape[0], -1), bits)
        size, above = max(1, bits * channels // 8), bytes(len(rows[0]))
        for row in rows:  # all five filters in turn
            method, number = number % 5, number + 1
            before_row = bytes(size) + row
            corner = bytes(size) + above
            filtered = bytearray()
            for i, value in enumerate(row):
                a, b, c = before_row[i] if i >= size else 0, above[i], corner[i] if i >= size else 0
                distances = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                paeth = (a, b, c)[distances.index(min(distances))]
                filtered.append((value - (0, a, b, (a + b) // 2, paeth)[method]) & 255)
            data += bytes([method]) + bytes(filtered)
            above = row
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(data)) + behind + chunk(b"IEND", b"")


def palette(size):
    return picture(3, 1, size)[0].astype(np.uint8)


def pngs():
    grey, rgb = 0, 2
    for bits in (1, 2, 4, 8, 16):
        for interlaced in (False, True):
            name = f"{bits}{'_interlaced' if interlaced else ''}"
            yield f"grey{name}.png", png(picture(1, top=1 << bits), bits, grey, interlaced=interlaced)
            if bits >= 8:
                yield f"rgb{name}.png", png(picture(3, top=1 << bits), bits, rgb, interlaced=interlaced)
                yield f"grey_alpha{name}.png", png(picture(2, top=1 << bits), bits, 4, interlaced=interlaced)
                yield f"rgba{name}.png", png(picture(4, top=1 << bits), bits, 6, interlaced=interlaced)
            if bits <= 8:
                indices, plte = picture(1, top=1 << bits), chunk(b"PLTE", palette(1 << bits).tobytes())
                yield f"palette{name}.png", png(indices, bits, 3, plte, interlaced)
                yield f"palette_trns{name}.png", png(indices, bits, 3, plte + chunk(b"tRNS", bytes([0, 128])), interlaced)
    yield "palette_short.png", png(picture(1), 8, 3, chunk(b"PLTE", palette(100).tobytes()))
    yield "grey_trns.png", png(picture(1), 8, grey, chunk(b"tRNS", struct.pack(">H", 77)))
    yield "rgb_trns.png", png(picture(3), 8, rgb, chunk(b"tRNS", struct.pack(">HHH", *picture(3)[3, 4])))
    extras = {
        "gama1": chunk(b"gAMA", struct.pack(">I", 100000)),
        "gama22": chunk(b"gAMA", struct.pack(">I", 45455)),
        "srgb": chunk(b"sRGB", b"\0"),
        "iccp_bad": chunk(b"iCCP", b"icc\0\0" + zlib.compress(b"no profile")),
        "chrm_sbit": chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)) + chunk(b"sBIT", b"\5\6\5"),
        "text_phys": chunk(b"tEXt", b"Title\0a") + chunk(b"pHYs", struct.pack(">IIB", 1, 2, 0)) + chunk(b"bKGD", struct.pack(">HHH", 1, 2, 3)),
        "private": chunk(b"prVt", b"whatever"),
    }
    for name, extra in extras.items():
        yield f"rgb_{name}.png", png(picture(3), 8, rgb, extra)
        if name not in ("chrm_sbit", "text_phys"):
            yield f"grey_{name}.png", png(picture(1), 8, grey, extra)
    control, frame = chunk(b"acTL", struct.pack(">II", 2, 0)), struct.pack(">IIIIHHBB", WIDTH, HEIGHT, 0, 0, 1, 2, 0, 0)
    second = chunk(b"fcTL", struct.pack(">I", 1) + frame) + chunk(b"fdAT", struct.pack(">I", 2) + zlib.compress(b"\0" * (HEIGHT * (1 + 3 * WIDTH))))
    yield "animated.png", png(picture(3), 8, rgb, control + chunk(b"fcTL", struct.pack(">I", 0) + frame), behind=second)
    yield "one_pixel.png", png(picture(3, 1, 1), 8, rgb, interlaced=True)
    yield "thin.png", png(picture(1, 300, 1), 8, grey, interlaced=True)


# --- WebP
def saved(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def image_of(samples):
    samples = samples.astype(np.uint8)
    return Image.fromarray(samples[..., 0] if samples.shape[2] == 1 else samples)


def webps():
    rgb, rgba = image_of(picture(3)), image_of(np.dstack([picture(3), alpha()]))
    for quality in (1, 50, 100):
        yield f"lossy{quality}.webp", saved(rgb, "WEBP", quality=quality)
        yield f"lossy_alpha{quality}.webp", saved(rgba, "WEBP", quality=quality, exact=True)
    yield "lossless.webp", saved(rgb, "WEBP", lossless=True)
    yield "lossless_alpha.webp", saved(rgba, "WEBP", lossless=True, exact=True)
    yield "lossless_palette.webp", saved(image_of(picture(3) // 64 * 64), "WEBP", lossless=True)
    yield "lossy_even.webp", saved(image_of(picture(3, 64, 96)), "WEBP", quality=80)
    yield "one_pixel.webp", saved(image_of(picture(3, 1, 1)), "WEBP", lossless=True)
    yield "icc_exif.webp", saved(rgb, "WEBP", quality=70, icc_profile=b"no profile", exif=b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0")
    others = [image_of(255 - picture(3)), image_of(picture(3) // 2)]
    yield "animated.webp", saved(rgb, "WEBP", save_all=True, append_images=others, duration=40, quality=60)
    yield "animated_alpha.webp", saved(rgba, "WEBP", save_all=True, append_images=[rgba.rotate(180)], duration=40, lossless=True, exact=True)
    # A first frame that is smaller than the canvas.
    still = saved(image_of(picture(3, 20, 30)), "WEBP", lossless=True)[12:]
    three = lambda value: struct.pack("<I", value)[:3]
    frame = three(5) + three(4) + three(29) + three(19) + three(10) + b"\0" + still
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes([2, 0, 0, 0]) + three(WIDTH - 1) + three(HEIGHT - 1)
    body += b"ANIM" + struct.pack("<IIH", 6, 0x80FF8040, 0) + b"ANMF" + struct.pack("<I", len(frame)) + frame
    yield "animated_offset.webp", b"RIFF" + struct.pack("<I", len(body)) + body


# --- TIFF
SHORT, LONG = 3, 4


def tiff(samples, bits, photometric, order="<", tile=None, rows=None, separate=False, compress=None, predictor=1, big=False, data=None, **fields):
    """`samples`: [height, width, channels]. `tile`: (height, width). `compress`: None or "deflate". `data`: the one strip's bytes
    in place of the samples'. `fields`: further tags by number, a SHORT or several."""
    height, width, channels = samples.shape
    planes = [samples[..., c : c + 1] for c in range(channels)] if separate else [samples]
    blocks = []
    for plane in planes:
        down, across = tile or (rows or height, width)
        for top in range(0, height, down):
            for left in range(0, width, across):
                block = plane[top : top + down, left : left + across]
                if tile:
                    block = np.pad(block, [(0, down - block.shape[0]), (0, across - block.shape[1]), (0, 0)], mode="edge")
                if predictor == 2:
                    block = np.concatenate([block[:, :1], np.diff(block, axis=1)], axis=1) & ((1 << bits) - 1)
                raw = b"".join(packed(block.reshape(block.shape[0], -1), bits, order))
                blocks.append(zlib.compress(raw) if compress else raw)
    if data is not None:
        blocks = [zlib.compress(data) if compress else data]
    tags = {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [bits] * channels), 259: (SHORT, [8 if compress else 1]),
            262: (SHORT, [photometric]), 277: (SHORT, [channels]), 284: (SHORT, [2 if separate else 1])}
    if predictor != 1:
        tags[317] = (SHORT, [predictor])
    for name, value in fields.items():
        tags[int(name[1:])] = (SHORT, list(np.atleast_1d(value)))
    offset_size, header = (8, 16) if big else (4, 8)
    at, offsets = header, []
    for block in blocks:
        offsets.append(at)
        at += len(block) + len(block) % 2
    kind = 16 if big else LONG
    offsets_tag, counts_tag = (324, 325) if tile else (273, 279)
    tags[offsets_tag], tags[counts_tag] = (kind, offsets), (kind, [len(block) for block in blocks])
    if tile:
        tags[322], tags[323] = (LONG, [tile[1]]), (LONG, [tile[0]])
    else:
        tags[278] = (LONG, [rows or height])
    entries, behind = b"", b""
    count, entry_size = len(tags), 20 if big else 12
    values_at = at + (8 if big else 2) + count * entry_size + offset_size
    for tag in sorted(tags):
        kind, values = tags[tag]
        stored = b"".join(struct.pack(order + {SHORT: "H", LONG: "I", 16: "Q"}[kind], int(value)) for value in values)
        if len(stored) > offset_size:
            place = struct.pack(order + ("Q" if big else "I"), values_at + len(behind))
            behind += stored + bytes(len(stored) % 2)
        else:
            place = stored.ljust(offset_size, b"\0")
        entries += struct.pack(order + ("HHQ" if big else "HHI"), tag, kind, len(values)) + place
    start = (b"II" if order == "<" else b"MM") + (struct.pack(order + "HHHQ", 43, 8, 0, at) if big else struct.pack(order + "HI", 42, at))
    directory = struct.pack(order + ("Q" if big else "H"), count) + entries + bytes(offset_size)
    return start + b"".join(block + bytes(len(block) % 2) for block in blocks) + directory + behind


def subsampled(across, down):
    """YCbCr samples of an image in which `across` x `down` pixels share their colour: Y of these pixels, Cb, Cr."""
    samples = np.pad(picture(3), [(0, -HEIGHT % down), (0, -WIDTH % across), (0, 0)], mode="edge").astype(np.uint8)
    blocks = samples.reshape(samples.shape[0] // down, down, samples.shape[1] // across, across, 3).transpose(0, 2, 1, 3, 4)
    light = blocks[..., 0].reshape(blocks.shape[0], blocks.shape[1], -1)
    return np.concatenate([light, blocks[:, :, 0, 0, 1:]], axis=2).tobytes()


def tiffs():
    white, black, rgb, indexed, cmyk, ycc = 0, 1, 2, 3, 5, 6
    for bits in (1, 2, 4, 8, 16):
        for order in "<>":
            name = f"{bits}{'' if order == '<' else '_big'}"
            yield f"grey{name}.tif", tiff(picture(1, top=1 << bits), bits, black, order, rows=7)
            if bits <= 8:
                yield f"white{name}.tif", tiff(picture(1, top=1 << bits), bits, white, order)
                colours = picture(3, 1, 1 << bits, 65536)[0]
                yield f"palette{name}.tif", tiff(picture(1, top=1 << bits), bits, indexed, order, t320=colours.T.reshape(-1))
            else:
                for photometric, kind, channels in ((rgb, "rgb", 3), (cmyk, "cmyk", 4)):
                    yield f"{kind}{name}.tif", tiff(picture(channels, top=65536), bits, photometric, order, rows=10)
                for extra in (0, 1, 2):
                    yield f"rgb_extra{extra}_{name}.tif", tiff(picture(4, top=65536), bits, rgb, order, t338=extra)
    for name, options in {
        "plain": {}, "strips": {"rows": 5}, "tiles": {"tile": (16, 32)}, "planes": {"separate": True}, "plane_strips": {"separate": True, "rows": 9},
        "plane_tiles": {"separate": True, "tile": (32, 16), "compress": "deflate"}, "deflate": {"compress": "deflate", "rows": 11},
        "deflate_tiles": {"compress": "deflate", "tile": (16, 16)}, "predictor": {"compress": "deflate", "predictor": 2},
        "predictor_tiles": {"compress": "deflate", "predictor": 2, "tile": (48, 16)}, "bigtiff": {"big": True, "rows": 8},
    }.items():
        yield f"rgb_{name}.tif", tiff(picture(3), 8, rgb, **options)
        yield f"cmyk_{name}.tif", tiff(picture(4), 8, cmyk, **options)
        if not options.get("separate"):
            yield f"grey_{name}.tif", tiff(picture(1), 8, black, **options)
    yield "rgb16_predictor.tif", tiff(picture(3, top=65536), 16, rgb, compress="deflate", predictor=2)
    yield "rgb16_planes.tif", tiff(picture(3, top=65536), 16, rgb, compress="deflate", separate=True)
    for extra in (0, 1, 2):
        yield f"rgb_extra{extra}.tif", tiff(np.dstack([picture(3), alpha()]), 8, rgb, t338=extra)
    yield "rgba_no_field.tif", tiff(np.dstack([picture(3), alpha()]), 8, rgb)
    yield "rgb_two_extra.tif", tiff(picture(5), 8, rgb, t338=[0, 0])
    yield "grey_alpha.tif", tiff(np.dstack([picture(1), alpha()]), 8, black, t338=2)
    yield "grey_extra.tif", tiff(np.dstack([picture(1), alpha()]), 8, black, t338=0)
    yield "ycc_plain.tif", tiff(picture(3), 8, ycc, t530=[1, 1])
    for across, down in ((1, 2), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)):
        yield f"ycc{across}{down}.tif", tiff(picture(3), 8, ycc, compress="deflate", data=subsampled(across, down), t530=[across, down])
    for orientation in range(1, 9):
        yield f"orientation{orientation}.tif", tiff(picture(3), 8, rgb, t274=orientation)
        yield f"orientation{orientation}_deflate.tif", tiff(picture(3), 8, rgb, t274=orientation, compress="deflate", tile=(16, 16))
    yield "fill_order2.tif", tiff(picture(1, top=2), 1, black, t266=2)
    colour, grey = image_of(picture(3)), image_of(picture(1))
    images = {"rgb": colour, "grey": grey, "1": grey.convert("1"), "palette": colour.quantize(50), "cmyk": colour.convert("CMYK"),
              "rgba": image_of(np.dstack([picture(3), alpha()])), "la": grey.convert("LA"), "ycc": colour.convert("YCbCr")}
    for mode, image in images.items():
        for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "group3", "group4", "zstd", "lzma"):
            if (compression in ("group3", "group4") and mode != "1") or (compression == "jpeg" and mode not in ("rgb", "grey", "cmyk", "ycc")):
                continue
            if mode == "ycc" and compression not in ("raw", "jpeg"):
                continue
            yield f"{mode}_{compression}.tif", saved(image, "TIFF", compression=compression)
    yield "lzw_predictor.tif", saved(colour, "TIFF", compression="tiff_lzw", tiffinfo={317: 2})
    yield "jpeg_large.tif", saved(image_of(picture(3, 200, 301)), "TIFF", compression="jpeg", quality=60)
    yield "pages.tif", saved(colour, "TIFF", save_all=True, append_images=[grey, colour.rotate(90)])


# --- BMP
def bmp(rows, width, height, bits, header=40, compression=0, colours=b"", masks=b"", top_down=False):
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        used = 0 if bits > 8 else len(colours) // 4
        info = struct.pack("<IiiHHIIiiII", header, width, -height if top_down else height, 1, bits, compression, len(rows), 2835, 2835, used, 0)
    start = 14 + len(info) + len(masks) + len(colours)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + info + masks + colours + rows


def bmp_rows(samples, bits):
    """[height, values] from the bottom, each row padded to four bytes."""
    return b"".join(row.ljust((len(row) + 3) // 4 * 4, b"\0") for row in packed(samples, bits, "<")[::-1])


def bmps():
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        image = image_of(np.dstack([picture(3), alpha()]))
        yield f"{mode}.bmp", saved(image.convert("RGB").quantize(77) if mode == "P" else image.convert(mode), "BMP")
    for bits in (1, 4, 8):
        indices, colours = picture(1, top=1 << bits)[..., 0], palette(1 << bits)
        bgrx = np.hstack([colours[:, ::-1], np.zeros((len(colours), 1), np.uint8)])
        yield f"palette{bits}.bmp", bmp(bmp_rows(indices, bits), WIDTH, HEIGHT, bits, colours=bgrx.tobytes())
        yield f"palette{bits}_os2.bmp", bmp(bmp_rows(indices, bits), WIDTH, HEIGHT, bits, 12, colours=colours[:, ::-1].tobytes())
        yield f"palette{bits}_top_down.bmp", bmp(bmp_rows(indices[::-1], bits), WIDTH, HEIGHT, bits, colours=bgrx.tobytes(), top_down=True)
    runs8 = b"".join(bytes([WIDTH - 5, y, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]) for y in range(HEIGHT)) + b"\0\1"
    runs4 = b"".join(bytes([WIDTH - 5, y * 7 % 256, 0, 5, 0x12, 0x34, 0x50, 0, 0, 0]) for y in range(HEIGHT)) + b"\0\1"
    for name, bits, kind, rows in (("8", 8, 1, runs8), ("4", 4, 2, runs4)):
        colours = np.hstack([palette(1 << bits), np.zeros((1 << bits, 1), np.uint8)])
        yield f"runs{name}.bmp", bmp(rows, WIDTH, HEIGHT, bits, compression=kind, colours=colours.tobytes())
    deep = picture(1, top=65536)[..., 0]
    yield "rgb555.bmp", bmp(bmp_rows(deep & 0x7FFF, 16), WIDTH, HEIGHT, 16)
    yield "rgb565.bmp", bmp(bmp_rows(deep, 16), WIDTH, HEIGHT, 16, compression=3, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F))
    yield "rgb24.bmp", bmp(bmp_rows(picture(3).reshape(HEIGHT, -1), 8), WIDTH, HEIGHT, 24)
    yield "rgb32.bmp", bmp(bmp_rows(picture(4).reshape(HEIGHT, -1), 8), WIDTH, HEIGHT, 32)
    yield "rgb32_masks.bmp", bmp(bmp_rows(picture(4).reshape(HEIGHT, -1), 8), WIDTH, HEIGHT, 32, compression=3, masks=struct.pack("<III", 0xFF0000, 0xFF00, 0xFF))


def turned():
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[274] = orientation
        for kind in ("PNG", "WEBP"):
            image = image_of(picture(3))
            yield f"turned{orientation}.{kind.lower()}", saved(image, kind, exif=exif, **({"lossless": True} if kind == "WEBP" else {}))
        behind = chunk(b"eXIf", exif.tobytes()[6:])
        yield f"turned{orientation}_behind.png", png(picture(3), 8, 2, behind=behind)
        yield f"turned{orientation}_named.png", png(picture(3), 8, 2, before=chunk(b"eXIf", exif.tobytes()))


def digest(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def described(name, data):
    with Image.open(io.BytesIO(data)) as image:
        deep = image.mode.startswith("I;16")
        if deep:  # Pillow makes white of nearly all 16-bit greys; their high byte says more
            image.load()
            image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
        colour = image.convert("RGB")
        # Pillow takes Y of a YCbCr image as its grey, where grey is made of red, green and blue here.
        grey = colour.convert("L") if image.mode in ("YCbCr", "CMYK") else image.convert("L")
        return {"file": name, "width": colour.width, "height": colour.height, "rgb": digest(colour), "grey": digest(grey), "mode": image.mode,
                "upright": digest(ImageOps.exif_transpose(image).convert("RGB"))}


def main():
    target = pathlib.Path(sys.argv[1])
    expected = []
    for make in (pngs, webps, tiffs, bmps, turned):
        for name, data in make():
            (target / name).write_bytes(data)
            expected.append(described(name, data))
    (target / "expected.json").write_text(json.dumps(expected, indent=1))


if __name__ == "__main__":
    main()
