"""JupyterLab and TensorBoard for the cluster's jobs: an environment that every node sees."""

import shutil
from pathlib import Path

from contrib.devcluster import host, pipview, rootfs, trees
from contrib.devcluster.commands import Say, run, run_logged, with_retries

NAME = "jupyter"
PLACE = f"/opt/envs/{NAME}"
REQUIREMENTS = ("jupyterlab==4.6.6", "ipykernel==7.4.0", "tensorboard==2.21.0", "setuptools<81")
PIP = "/opt/sluice-broker/bin/pip"
RECIPE_FILE = ".recipe"
PURPOSE = "JupyterLab for the cluster's notebooks"


def ensure(cache: Path, root: Path, say: Say) -> Path:
    """The environment; from the cache, or downloaded into it (a minute)."""
    host.require_root()
    tree = cache / "envs" / NAME
    recipe = trees.fingerprint([*REQUIREMENTS, rootfs.versions(root)["python"]])
    noted = tree / RECIPE_FILE
    if tree.is_dir() and not (noted.is_file() and noted.read_text() == recipe):
        say("The cached JupyterLab is of another recipe: building it again")
        shutil.rmtree(tree)

    def build(partial: Path) -> None:
        _build(partial, root, say)
        (partial / RECIPE_FILE).write_text(recipe)

    return trees.ensure(tree, build, say)


def _build(partial: Path, root: Path, say: Say) -> None:
    say(f"Downloading {', '.join(REQUIREMENTS)}")
    partial.mkdir()
    make = ["/usr/bin/python3", "-m", "venv", "--without-pip", PLACE]
    run(_inside(partial, root, make), purpose=PURPOSE, env=_env())
    install = [PIP, "--python", f"{PLACE}/bin/python", "install", "--only-binary=:all:"]
    with_retries(
        lambda: run_logged(
            _inside(partial, root, [*install, *REQUIREMENTS]),
            purpose=PURPOSE,
            log=partial.parent.parent / rootfs.LOG_NAME,
            env=_env(),
        ),
        what="installing JupyterLab",
        say=say,
    )
    # People cannot write there, and a notebook should not compile it at each start.
    compile_all = [f"{PLACE}/bin/python", "-m", "compileall", "-q", f"{PLACE}/lib"]
    run(_inside(partial, root, compile_all), purpose=PURPOSE, env=_env())
    for program in ("jupyter-lab", "tensorboard"):
        run(
            _inside(partial, root, [f"{PLACE}/bin/{program}", "--version"]),
            purpose=PURPOSE,
            env=_env(),
        )


def _inside(partial: Path, root: Path, argv: list[str]) -> list[str | Path]:
    binds = [(path, path) for path in pipview.of_machine().binds]
    return trees.inside(root, argv, binds=[*binds, (partial, Path(PLACE))])


def _env() -> dict[str, str]:
    plain = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    return {**plain, **pipview.of_machine().env}
