"""Performs the steps of a Dockerfile without Docker: each stage in a root directory of its own.

The base image cannot be had here. In its place stand this machine's `/usr`, read-only, and its
Python, so what is shown is what the steps do, not what the base holds. Every command runs under
`chroot` in a mount namespace of its own (util-linux), which only root may make.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from image.dockerfile import Copy, Run, Stage, is_given, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

TOOLS: Final = ("unshare", "chroot", "setpriv", "mount", "mknod")
PYTHON_AT: Final = "/python"
"""Where programs of the root find a `python`, as in /usr/local/bin of the base image."""
_LINKS: Final = ("bin", "sbin", "lib", "lib64")
_ETC: Final = (
    *("passwd", "group", "shadow", "gshadow", "login.defs", "nsswitch.conf", "host.conf"),
    *("hosts", "resolv.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl", "pip.conf"),
)
_STEP_SECONDS_MAX: Final = 600.0


def why_not() -> str:
    """Say why no step can be performed on this machine; empty if it can."""
    if os.geteuid() != 0:
        return "root directories are entered by chroot, which needs root"
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not on PATH"
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this machine lets nobody make a mount namespace"


@dataclass(frozen=True)
class Image:
    """The last stage: its files, and what it says of itself."""

    root: Path
    stage: Stage


def build(dockerfile: Path, context: Path, folder: Path) -> Image:
    """Perform all stages in `folder`; raises RuntimeError for a step that fails."""
    given = folder / "context"
    for path in in_context(context):
        (given / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(context / path, given / path)
    roots: dict[str, Path] = {}
    stages = read(dockerfile.read_text())
    for number, stage in enumerate(stages):
        root = make_root(folder / f"stage-{number}")
        roots[stage.name] = root
        (root / stage.workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for step in stage.steps:
            if isinstance(step, Run):
                _run(root, stage, step.command)
            else:
                _copy(step, roots[step.stage] if step.stage else given, root)
    return Image(roots[stages[-1].name], stages[-1])


def in_context(context: Path) -> Iterator[str]:
    """Go through the files of the repository that `docker build` would be given."""
    ignore = (context / ".dockerignore").read_text()
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=context, check=True, capture_output=True, text=True)
    for path in filter(None, listed.stdout.split("\0")):
        if (context / path).is_file() and is_given(path, ignore):
            yield path


def make_root(root: Path) -> Path:
    """Make a root directory that stands for the base image: places to mount on, and /etc."""
    for place in ("usr", "etc", "proc", "dev", "tmp", "root", "var/lib", PYTHON_AT.lstrip("/")):
        (root / place).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for name in _LINKS:  # as on all systems with a merged /usr
        if Path("/", name).is_symlink():
            (root / name).symlink_to(Path("/", name).readlink())
        elif Path("/", name).is_dir():
            (root / name).mkdir()
    for name in _ETC:
        source = Path("/etc", name)
        if source.is_dir():
            shutil.copytree(source, root / "etc" / name, symlinks=True)
        elif source.exists():
            shutil.copy2(source, root / "etc" / name)
    base = Path(sys.base_prefix)
    (root / str(base).lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        (root / PYTHON_AT.lstrip("/") / name).symlink_to(base / "bin" / version)
    return root


def mounts(root: Path, binds: Mapping[str, Path] = {}) -> list[str]:
    """Make the shell's lines that furnish a root; `binds`: what else is seen where, writable."""
    base = sys.base_prefix
    folders = ["/usr", *(f"/{name}" for name in _LINKS if not Path("/", name).is_symlink())]
    folders = [each for each in folders if Path(each).is_dir()]
    folders += [] if base == "/usr" else [base]
    lines = []
    for folder in folders:
        at = shlex.quote(f"{root}{folder}")
        lines += [f"mount --bind {shlex.quote(folder)} {at}", f"mount -o remount,ro,bind {at}"]
    lines += _devices(shlex.quote(str(root / "dev")))
    for at, source in binds.items():
        place = root / at.lstrip("/")
        if source.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        lines.append(f"mount --bind {shlex.quote(str(source))} {shlex.quote(str(place))}")
    return lines


def _devices(at: str) -> list[str]:
    """Make the lines that make the devices which every container has."""
    numbers = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
    made = [f"mknod -m 666 {at}/{name} c 1 {minor}" for name, minor in numbers.items()]
    return [f"mount -t tmpfs -o mode=755 tmpfs {at}", *made, f"mkdir -m 1777 {at}/shm"]


def path_of(stage: Stage) -> str:
    """Return PATH in a root: what the stage says, and where its Python is."""
    return f"{PYTHON_AT}:{stage.environment.get('PATH', '/usr/local/bin:/usr/bin:/bin')}:/usr/sbin"


def _run(root: Path, stage: Stage, command: str) -> None:
    """Perform RUN as root, with this machine's settings and cache of pip."""
    cache = subprocess.run(
        [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    Path(cache).mkdir(parents=True, exist_ok=True)
    inside = f"cd {shlex.quote(stage.workdir)}; {command}"
    script = [
        *mounts(root, {"/pip-cache": Path(cache)}),
        f"mount -t proc proc {shlex.quote(str(root / 'proc'))}",
        f"exec chroot {shlex.quote(str(root))} /bin/sh -euc {shlex.quote(inside)}",
    ]
    pip = {k: v for k, v in os.environ.items() if k.startswith("PIP_") or k.endswith("_proxy")}
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "/bin/sh", "-euc", "\n".join(script)],
        env={**pip, **stage.environment, "PATH": path_of(stage), "HOME": "/root"}
        | {"PIP_CACHE_DIR": "/pip-cache", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        timeout=_STEP_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        told = done.stdout[-2000:] + done.stderr[-2000:]
        raise RuntimeError(f"RUN {command}\nended with {done.returncode}:\n{told}")


def _copy(step: Copy, source: Path, root: Path) -> None:
    """Perform COPY: a folder's content, or a file."""
    target = root / step.target.lstrip("/")
    for name in step.sources:
        found = source / name.lstrip("/")
        if found.is_dir():
            shutil.copytree(found, target, symlinks=True, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, target)


def size_of(paths: Iterable[Path]) -> int:
    """Add up the bytes of the files below; a link counts nothing."""
    return sum(
        file.stat().st_size
        for path in paths
        for file in [path, *path.rglob("*")]
        if file.is_file() and not file.is_symlink()
    )


def installed(image: Image) -> Sequence[Path]:
    """Return the packages of the image, each file or folder of its environment."""
    (site,) = (image.root / "opt/holdfast/lib").glob("python3*/site-packages")
    return sorted(site.iterdir())
