"""Make the committed stubs of `holdfast.v1` from the `.proto` files, or compare them.

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

ROOT = Path(__file__).resolve().parent
PACKAGE = Path("holdfast/v1")
PINS = {"grpcio-tools": "1.76.0", "mypy-protobuf": "5.1.0"}
EXIT_OK, EXIT_DIFFERENT, EXIT_CANNOT = 0, 1, 2


class CannotGenerateError(Exception):
    """The generators are missing, of another version, or refuse a `.proto` file."""


def main() -> int:
    """Run one of the two modes; returns the exit code."""
    parser = argparse.ArgumentParser(description="Make or check the stubs of holdfast.v1.")
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
    """Write fresh stubs of every `.proto` file below `target`."""
    sources = sorted((ROOT / PACKAGE).glob("*.proto"))
    with_service = [path for path in sources if "\nservice " in path.read_text(encoding="utf-8")]
    run_protoc(target, sources, ["python", "mypy"])
    run_protoc(target, with_service, ["grpc_python", "mypy_grpc"])


def run_protoc(target: Path, sources: list[Path], outputs: list[str]) -> None:
    """Run the compiler over `sources` for the named kinds of output."""
    scripts = Path(sys.executable).parent
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={ROOT}"),
        *(f"--plugin=protoc-gen-{name}={scripts / f'protoc-gen-{name}'}" for name in PLUGINS),
        *(f"--{output}_out={target}" for output in outputs),
        *(str(path.relative_to(ROOT)) for path in sources),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"protoc refused a file; mend it and run again:\n{done.stderr.strip()}"
        raise CannotGenerateError(message)


PLUGINS = ("mypy", "mypy_grpc")


def read_stubs(root: Path) -> dict[str, bytes]:
    """Return the generated files below `root` by their name."""
    folder = root / PACKAGE
    return {path.name: path.read_bytes() for path in folder.glob("*_pb2*.py*") if path.is_file()}


def write(fresh: dict[str, bytes]) -> int:
    """Replace the committed stubs; stubs of a `.proto` file that is gone are removed."""
    committed = read_stubs(ROOT)
    for name in sorted(committed.keys() - fresh.keys()):
        (ROOT / PACKAGE / name).unlink()
        report(f"proto: removed {name}")
    for name, content in sorted(fresh.items()):
        if committed.get(name) != content:
            (ROOT / PACKAGE / name).write_bytes(content)
            report(f"proto: wrote {name}")
    return EXIT_OK


def check(fresh: dict[str, bytes]) -> int:
    """Name every committed stub that is missing, superfluous or different."""
    committed = read_stubs(ROOT)
    different = [n for n in sorted(fresh | committed) if fresh.get(n) != committed.get(n)]
    for name in different:
        report(f"proto: {PACKAGE / name} is not what the .proto files give; run `./dev proto`")
    return EXIT_DIFFERENT if different else EXIT_OK


def report(line: str) -> None:
    """Tell the person or CI job that runs this."""
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
