"""PyTorch for the cluster's jobs: a CPU build in an environment that every node sees.

The root file system's own Python is tried first. Where its PyTorch would be a CUDA build of
gigabytes, Debian 12's Python is laid into the environment and asked for instead: it needs nothing
from the machine's own interpreter, so the same steps work on every machine.

The environment comes in two sizes at one place: PyTorch alone, or with the training frameworks
on top. The larger serves whoever wants the smaller.
"""

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from contrib.devcluster import apt, downloads, host, pipview, rootfs, trees
from contrib.devcluster.commands import Say, run, run_logged, with_retries
from contrib.devcluster.downloads import Download
from contrib.devcluster.errors import DevclusterError

TORCH = "2.13.0"
NAME = "torch-2.13"
PLACE = f"/opt/envs/{NAME}"
REQUIREMENTS = (f"torch=={TORCH}", "numpy")
# DeepSpeed is offered as source only, and its build looks at the PyTorch that is there: what the
# build needs comes first, and no isolated build may fetch another PyTorch.
BUILD_REQUIREMENTS = ("setuptools", "wheel", "ninja", "packaging", "py-cpuinfo", "psutil")
FRAMEWORKS = ("transformers==5.24.0", "accelerate==1.15.0", "deepspeed==0.19.8")
INDEX_VARIABLE = "SLUICE_TORCH_INDEX"
OLDER_SUITE, OLDER_PYTHON = "bookworm", "python3.11"
PIP = "/opt/sluice-broker/bin/pip"
RECIPE_FILE = ".recipe"
PURPOSE = "PyTorch for the cluster's jobs"


def ensure(
    cache: Path, root: Path, say: Say, *, allow_cuda: bool = False, frameworks: bool = False
) -> Path:
    """The environment, built first where the cache has none of today's recipe and size."""
    host.require_root()
    tree = location(cache)
    plain = [*REQUIREMENTS, rootfs.versions(root)["python"]]
    whole = trees.fingerprint([*plain, *BUILD_REQUIREMENTS, *FRAMEWORKS])
    good = {whole} if frameworks else {whole, trees.fingerprint(plain)}
    if tree.is_dir() and _recipe(tree) not in good:
        say("The cached PyTorch is of another recipe or size: building it again")
        shutil.rmtree(tree)

    def build(partial: Path) -> None:
        _build(partial, root, say, allow_cuda=allow_cuda)
        if frameworks:
            _add_frameworks(partial, root, say)
        (partial / RECIPE_FILE).write_text(whole if frameworks else trees.fingerprint(plain))

    return trees.ensure(tree, build, say)


def location(cache: Path) -> Path:
    return cache / "envs" / NAME


def _recipe(tree: Path) -> str:
    noted = tree / RECIPE_FILE
    return noted.read_text() if noted.is_file() else ""


def _build(partial: Path, root: Path, say: Say, *, allow_cuda: bool) -> None:
    host.install_tools(say)
    plan = _choose(partial, root, say, allow_cuda=allow_cuda)
    say(f"Downloading PyTorch {plan.version('torch')}: {plan.described()}")
    install = _pip()
    with_retries(lambda: _install(partial, root, install), what="installing PyTorch", say=say)
    say("Trying PyTorch")
    check = "import torch, numpy; assert torch.ones(2).sum().item() == 2; torch.from_numpy"
    run(_inside(partial, root, [f"{PLACE}/bin/python", "-c", check]), purpose=PURPOSE, env=_env())


def _choose(partial: Path, root: Path, say: Say, *, allow_cuda: bool) -> Download:
    """Leaves an empty environment in `partial`, and tells what pip would download into it."""
    say(f"Asking what PyTorch {TORCH} would download")
    newer = _offer(lambda: _make_environment(partial, root), partial, root)
    if newer is not None and not newer.for_cuda:
        return newer
    found = "no build" if newer is None else f"a CUDA build: {newer.described()}"
    say(f"For the cluster's own Python there is {found}. Asking for Debian 12's Python")
    older = _offer(lambda: _make_older_environment(partial, root, say), partial, root)
    if older is not None and (allow_cuda or not older.for_cuda):
        return older
    large = "" if older is None else ", or take the large one: `sluice cluster torch --allow-cuda`"
    raise DevclusterError(
        f"No CPU build of PyTorch {TORCH} is on offer here; for the cluster's own Python there is "
        f"{found}. Name an index that has a CPU build in {INDEX_VARIABLE}{large}."
    )


def _offer(make: Callable[[], None], partial: Path, root: Path) -> Download | None:
    """What pip would download into the environment that `make` makes; None if it has no build."""
    make()
    ask = _inside(partial, root, _pip("--dry-run", "--quiet", "--report", "-"))
    try:
        return downloads.planned(run(ask, purpose=PURPOSE, env=_env()))
    except DevclusterError:
        return None


def _make_environment(partial: Path, root: Path) -> None:
    partial.mkdir()
    _venv(partial, root, "/usr/bin/python3")


def _make_older_environment(partial: Path, root: Path, say: Say) -> None:
    """With Debian 12's interpreter inside the environment itself."""
    shutil.rmtree(partial)
    partial.mkdir()
    base = partial / "debian"
    with_retries(lambda: _older_python(base), what="fetching Debian 12's Python", say=say)
    _copy_python(base, partial / "base")
    shutil.rmtree(base)
    _venv(partial, root, f"{PLACE}/base/usr/bin/{OLDER_PYTHON}")


def _venv(partial: Path, root: Path, python: str) -> None:
    make = [python, "-m", "venv", "--without-pip", PLACE]
    run(_inside(partial, root, make), purpose=PURPOSE, env=_env())


def _older_python(base: Path) -> None:
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    words = [*trees.PRIVATE, "--mount-proc", "mmdebstrap"]
    words += ["--variant=extract", "--skip=output/mknod", f"--include={OLDER_PYTHON}"]
    words += ['--aptopt=Acquire::Check-Valid-Until "false"']
    source = apt.mirror(host.release())
    log = base.parents[2] / rootfs.LOG_NAME
    run_logged([*words, OLDER_SUITE, base, source], purpose=PURPOSE, log=log)


def _copy_python(base: Path, target: Path) -> None:
    """Python finds its library from where its program lies, so a part of the tree is enough."""
    (target / "usr/bin").mkdir(parents=True)
    shutil.copy2(base / f"usr/bin/{OLDER_PYTHON}", target / "usr/bin")
    library = f"usr/lib/{OLDER_PYTHON}"
    shutil.copytree(base / library, target / library, symlinks=True)


def _add_frameworks(partial: Path, root: Path, say: Say) -> None:
    say(f"Adding the training frameworks: {', '.join(FRAMEWORKS)}")
    source = ("--no-build-isolation", "--no-binary=deepspeed")
    for install in (_pip(*BUILD_REQUIREMENTS), _pip(*source, *FRAMEWORKS)):
        step = functools.partial(_install, partial, root, install)
        with_retries(step, what="installing the training frameworks", say=say)
    say("Trying the training frameworks")
    check = [f"{PLACE}/bin/python", "-c", "import accelerate, deepspeed, transformers"]
    run(_inside(partial, root, check), purpose=PURPOSE, env=_env())


def _install(partial: Path, root: Path, install: list[str]) -> None:
    log = partial.parent.parent / rootfs.LOG_NAME
    run_logged(_inside(partial, root, install), purpose=PURPOSE, log=log, env=_env())


def _pip(*words: str) -> list[str]:
    """With the requirements of PyTorch always among them, so that none is exchanged later."""
    base = [PIP, "--python", f"{PLACE}/bin/python", "install", "--only-binary=:all:"]
    return [*base, *words, *REQUIREMENTS]


def _inside(partial: Path, root: Path, argv: list[str]) -> list[str | Path]:
    binds = [(path, path) for path in pipview.of_machine(_environ()).binds]
    return trees.inside(root, argv, binds=[*binds, (partial, Path(PLACE))])


def _env() -> dict[str, str]:
    plain = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    return {**plain, **pipview.of_machine(_environ()).env}


def _environ() -> dict[str, str]:
    """The machine's environment, with the index for PyTorch as one more."""
    environ = dict(os.environ)
    index = environ.get(INDEX_VARIABLE)
    if index:
        more = pipview.of_machine().env.get("PIP_EXTRA_INDEX_URL", "")
        environ["PIP_EXTRA_INDEX_URL"] = f"{more} {index}".strip()
    return environ
