#!/usr/bin/env python3
"""Packs the data of a test suite: tests/golden/NAME.tar.xz holds one folder, NAME.

    tests/golden/pack.py NAME[/FOLDER] FILE...    replaces files and folders in the archive, or adds them, and writes it again

The build unpacks the archives to build/test_data (kgrpo_test_data in cmake/Kgrpo.cmake); without a build, `tar xf` does. The
scripts make_*.py make the data anew: they write a folder that `packed` gives them. Same content, same bytes of the archive.
"""
import contextlib
import lzma
import pathlib
import shutil
import sys
import tarfile
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parent


@contextlib.contextmanager
def unpacked(name):
    """A temporary folder with the content of NAME.tar.xz; empty if there is no such archive."""
    with tempfile.TemporaryDirectory() as temporary:
        archive = GOLDEN / f"{name}.tar.xz"
        if archive.exists():
            with tarfile.open(archive) as tar:
                tar.extractall(temporary)
        folder = pathlib.Path(temporary) / name
        folder.mkdir(exist_ok=True)
        yield folder


@contextlib.contextmanager
def packed(name):
    """The same folder, which becomes NAME.tar.xz at the end."""
    with unpacked(name) as folder:
        yield folder
        with lzma.open(GOLDEN / f"{name}.tar.xz", "wb", preset=9 | lzma.PRESET_EXTREME) as stream:
            with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
                for path in sorted(folder.rglob("*")):
                    if path.is_file():
                        member = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
                        member.size = path.stat().st_size
                        with open(path, "rb") as file:
                            tar.addfile(member, file)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        print(__doc__.strip())
        sys.exit(0 if sys.argv[1:] == ["--help"] else 2)
    name, _, inside = sys.argv[1].partition("/")
    with packed(name) as target:
        (target / inside).mkdir(parents=True, exist_ok=True)
        for source in map(pathlib.Path, sys.argv[2:]):
            if source.is_dir():
                shutil.copytree(source, target / inside / source.name, dirs_exist_ok=True)
            else:
                shutil.copy(source, target / inside)
