"""Lets programs and libraries that GCC 12 made run with GCC 11's libstdc++, which is RHEL 9's: lower_libstdcxx.py FILE...

GCC 12 gave std::condition_variable::wait a second version, GLIBCXX_3.4.30, when it became noexcept. The first, GLIBCXX_3.4.11, is the
same function and is in every libstdc++ since GCC 4.4. Where it is all that a file takes of 3.4.30, the file is changed to ask for the
first. A file that takes anything else of 3.4.30 is left as it is.
"""

import os
import sys

from elftools.elf.elffile import ELFFile

WAIT = "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
NEW, OLD = b"GLIBCXX_3.4.30", b"GLIBCXX_3.4.11"


def elf_hash(name):
    """The hash of a version's name in an ELF file (System V ABI, chapter 5)."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    return value


def lower(path):
    with open(path, "rb") as file:
        elf = ELFFile(file)
        needs = [
            (need, version)
            for need, versions in elf.get_section_by_name(".gnu.version_r").iter_versions()
            for version in versions
            if version.name.encode() == NEW
        ]
        if not needs:
            return
        ((_, version),) = needs
        indices = elf.get_section_by_name(".gnu.version")
        symbols = [
            symbol.name
            for number, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
            if indices.get_symbol(number)["ndx"] == version["vna_other"]
        ]
        if symbols != [WAIT]:
            print(f"{path} needs the libstdc++ of GCC 12 for {', '.join(symbols)}")
            return
        strings = elf.get_section_by_name(".dynstr")["sh_offset"]
        name = strings + version["vna_name"]
        file.seek(0)
        data = bytearray(file.read())
    hashes = elf_hash(NEW).to_bytes(4, "little"), elf_hash(OLD).to_bytes(4, "little")
    assert data[name : name + len(NEW)] == NEW
    data[name : name + len(NEW)] = OLD
    # An entry: hash, flags, number of the version in .gnu.version, name, next; 4 + 2 + 2 + 4 + 4 bytes.
    entry = hashes[0] + version["vna_flags"].to_bytes(2, "little") + version["vna_other"].to_bytes(2, "little")
    entry += version["vna_name"].to_bytes(4, "little")
    if data.count(entry) != 1:
        sys.exit(f"{path}: {NEW.decode()} stands {data.count(entry)} times in .gnu.version_r")
    at = data.index(entry)
    data[at : at + 4] = hashes[1]
    changed = path + ".changed"
    with open(changed, "wb") as file:
        file.write(data)
    os.chmod(changed, os.stat(path).st_mode)
    os.replace(changed, path)


for argument in sys.argv[1:]:
    lower(argument)
