"""`kgrpo` and `kgrpo-host` of the wheel: finds libtorch and NVIDIA's compiler among the installed packages and becomes the
packed program. `kgrpo quickstart [DIR]` first writes a pipeline of the packed model and problems."""
import importlib.util
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
TORCH = "2.11.0"  # what the plugins are built for


def packages(name):
    """The folders of an installed package, which is not imported."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return [pathlib.Path(place) for place in (spec.submodule_search_locations or [])] if spec else []


def version_of(torch):
    text = (torch / "version.py").read_text() if (torch / "version.py").exists() else ""
    return text.partition("__version__ = ")[2].strip().split("\n")[0].strip("'\"").split("+")[0]


def environment():
    """This process's environment with what the packed programs look for. What the user has set stays."""
    env = dict(os.environ)
    if "CUDA_HOME" not in env:
        for place in packages("nvidia"):
            if (place / "cu13/bin/nvcc").exists():
                env["CUDA_HOME"] = str(place / "cu13")
    env.setdefault("KGRPO_PYTHON", sys.executable)
    env["PATH"] = env.get("PATH", "") + os.pathsep + str(HERE / "bin")  # bwrap, if the machine has none
    for torch in packages("torch") + packages("kgrpo_libtorch"):  # the last is taken
        if version_of(torch) == TORCH:
            env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (str(torch / "lib"), os.environ.get("LD_LIBRARY_PATH"))))
    return env


def quickstart(words):
    """Writes DIR/quickstart.yaml, with absolute paths, and returns the words that run it."""
    folder = pathlib.Path(words[0] if words and not words[0].startswith("-") else "kgrpo-quickstart").absolute()
    rest = words[1:] if words and not words[0].startswith("-") else words
    text = (HERE / "share/kgrpo/configs/quickstart.yaml").read_text()
    text = text.replace("build/models/", "%s/models/" % HERE).replace("problems/", "%s/share/kgrpo/problems/" % HERE)
    folder.mkdir(parents=True, exist_ok=True)
    pipeline = folder / "quickstart.yaml"
    if not pipeline.exists():
        pipeline.write_text(text.replace("output_dir: runs/quickstart", "output_dir: %s/run" % folder))
    print("%s: edit it and run it again by: kgrpo %s --overwrite" % (pipeline, pipeline), file=sys.stderr)
    return [str(pipeline), *rest]


def main():
    words = sys.argv[1:]
    if words[:1] == ["quickstart"]:
        if "-h" in words or "--help" in words:
            return print("usage: kgrpo quickstart [DIR] [OPTIONS of run]\nTrains a small policy in minutes, without a GPU. "
                         "Needs: pip install 'kgrpo[cuda,train]'\nexample: kgrpo quickstart first")
        words = quickstart(words[1:])
    program = str(HERE / "bin/kgrpo-host")
    os.execve(program, ["kgrpo-host", *words], environment())


if __name__ == "__main__":
    main()
