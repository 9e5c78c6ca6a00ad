"""Make the committed stubs of the `.proto` files, or compare them.

`holdfast.v1` is the contract, `holdfast.raft.wire` what nodes say to each other. Stubs lie beside
their `.proto` file, whose folder below its import root has the name of the package.

Run it with the interpreter of the generator environment (`./dev proto` makes `.venv-proto`): the
generators are pinned and hold protobuf below 7, so they must not be in the development environment.
The stubs of an older generator run on newer runtimes, not the other way round.

    generate.py --write    replace the stubs by fresh ones
    generate.py --check    exit 1 and name every stub that differs from a fresh one
"""

import argparse
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"proto": "holdfast/v1", "raft": "holdfast/raft/wire"}
"""The folder of `.proto` files in each import root that has one."""
PINS = {"grpcio-tools": "1.76.0", "mypy-protobuf": "5.1.0"}
EXIT_OK, EXIT_DIFFERENT, EXIT_CANNOT = 0, 1, 2


class CannotGenerateError(Exception):
    """The generators are missing, of another version, or refuse a `.proto` file."""


def main() -> int:
    """Run one of the two modes; returns the exit code."""
    parser = argparse.ArgumentParser(description="Make or check the committed stubs.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="replace the committed stubs")
    mode.add_argument("--check", action="store_true", help="fail if the committed stubs differ")
    arguments = parser.parse_args()
    try:
        check_pins()
        with tempfile.TemporaryDirectory(prefix="holdfast-proto-") as folder:
            generate(Path(folder))
            fresh = read_stubs(Path(folder))
    except CannotGenerateError as error:
        report(f"proto: {error}")
        return EXIT_CANNOT
    return write(fresh) if arguments.write else check(fresh)


def check_pins() -> None:
    """Refuse any generator but the pinned ones: another version would give other stubs."""
    for name, pinned in PINS.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "not installed"
        if found != pinned:
            wanted = " ".join(f"{each}=={pin}" for each, pin in PINS.items())
            message = (
                f"{name} is {found} in {sys.executable}, but the stubs are made with {pinned}. "
                f"Run `./dev proto`, or `pip install {wanted}` in an environment of its own."
            )
            raise CannotGenerateError(message)


def generate(target: Path) -> None:
    """Write fresh stubs of every `.proto` file below `target`, in the folders of the repository."""
    for place, package in PACKAGES.items():
        root, home = ROOT / place, target / place
        home.mkdir()
        sources = sorted((root / package).glob("*.proto"))
        serving = [path for path in sources if "\nservice " in path.read_text(encoding="utf-8")]
        run_protoc(root, home, sources, ["python", "mypy"])
        if serving:
            run_protoc(root, home, serving, ["grpc_python", "mypy_grpc"])


def run_protoc(root: Path, target: Path, sources: list[Path], outputs: list[str]) -> None:
    """Run the compiler over `sources` below `root` for the named kinds of output."""
    scripts = Path(sys.executable).parent
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={root}"),
        *(f"--plugin=protoc-gen-{name}={scripts / f'protoc-gen-{name}'}" for name in PLUGINS),
        *(f"--{output}_out={target}" for output in outputs),
        *(str(path.relative_to(root)) for path in sources),
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"protoc refused a file; mend it and run again:\n{done.stderr.strip()}"
        raise CannotGenerateError(message)


PLUGINS = ("mypy", "mypy_grpc")


def read_stubs(root: Path) -> dict[str, bytes]:
    """Return the generated files of all packages by their place below `root`."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for place, package in PACKAGES.items()
        for path in (root / place / package).glob("*_pb2*.py*")
        if path.is_file()
    }


def write(fresh: dict[str, bytes]) -> int:
    """Replace the committed stubs; stubs of a `.proto` file that is gone are removed."""
    committed = read_stubs(ROOT)
    for name in sorted(committed.keys() - fresh.keys()):
        (ROOT / name).unlink()
        report(f"proto: removed {name}")
    for name, content in sorted(fresh.items()):
        if committed.get(name) != content:
            (ROOT / name).write_bytes(content)
            report(f"proto: wrote {name}")
    return EXIT_OK


def check(fresh: dict[str, bytes]) -> int:
    """Name every committed stub that is missing, superfluous or different."""
    committed = read_stubs(ROOT)
    different = [n for n in sorted(fresh | committed) if fresh.get(n) != committed.get(n)]
    for name in different:
        report(f"proto: {name} is not what the .proto files give; run `./dev proto`")
    return EXIT_DIFFERENT if different else EXIT_OK


def report(line: str) -> None:
    """Tell the person or CI job that runs this."""
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
