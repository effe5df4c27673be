"""environments.toml, and the bash lines made of it."""

import subprocess
from pathlib import Path

import pytest

from gateway.core.answers import BadValue
from gateway.errors import BadConfiguration
from gateway.services.environments import (
    NONE,
    Environment,
    EnvironmentKind,
    load_environments,
    own_venv,
    setup_lines,
)

GOOD = """
[[environment]]
name = "torch-2.13"
kind = "venv"
path = "/opt/envs/torch-2.13"
title = { en = "PyTorch 2.13", zh_Hans = "PyTorch 2.13" }

[[environment]]
name = "conda-vision"
kind = "conda"
path = "/opt/conda"
conda_env = "vision"
title = { en = "Vision", zh_Hans = "视觉" }

[[environment]]
name = "modules"
kind = "module"
modules = ["cuda/12.8", "python/3.12"]
module_path = "/opt/modules"
title = { en = "Modules", zh_Hans = "模块" }

[[environment]]
name = "prefix"
kind = "prefix"
path = "/opt/tools"
title = { en = "Tools", zh_Hans = "工具" }

[[environment]]
name = "image"
kind = "apptainer"
image = "/opt/images/torch-2.13.sif"
binds = ["/scratch:/scratch", "/opt/data:/data:ro"]
title = { en = "Image", zh_Hans = "镜像" }
"""


def load(tmp_path: Path, text: str) -> tuple[Environment, ...]:
    path = tmp_path / "environments.toml"
    path.write_text(text, encoding="utf-8")
    return load_environments(path)


def test_none_is_always_there_and_first(tmp_path: Path) -> None:
    assert load_environments(tmp_path / "missing.toml") == (NONE,)
    assert [e.name for e in load(tmp_path, GOOD)] == [
        "none",
        "torch-2.13",
        "conda-vision",
        "modules",
        "prefix",
        "image",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "venv"', 'kind = "docker"', "kind must be one of"),
        ('path = "/opt/envs/torch-2.13"', "", "path is missing"),
        ('path = "/opt/envs/torch-2.13"', 'path = "/opt/$(id)"', "not allowed"),
        ('path = "/opt/envs/torch-2.13"', 'path = "relative"', "not allowed"),
        ('path = "/opt/envs/torch-2.13"', 'path = "/a"\nextra = 1', "unknown key 'extra'"),
        ('"cuda/12.8"', '"-x"', "module names"),
        ('conda_env = "vision"', 'conda_env = "a b"', "not allowed"),
        ('name = "prefix"', 'name = "none"', "name 'none' is taken"),
        (', zh_Hans = "视觉"', "", "title needs"),
        ('image = "/opt/images/torch-2.13.sif"', 'image = "docker://x"', "not allowed"),
        ('"/scratch:/scratch"', '"/scratch"', "binds must be"),
        ('"/scratch:/scratch"', '"/scratch:/a,/etc:/etc"', "binds must be"),
        ('"/scratch:/scratch"', '"/scratch:/scratch:rx"', "binds must be"),
        ('"/scratch:/scratch"', '"--bind"', "binds must be"),
        ('modules = ["cuda/12.8", "python/3.12"]', 'modules = ["a"]\nbinds = []', "unknown key"),
        ("[[environment]]", "[[environments]]", "unknown key 'environments'"),
        ("[[environment]]", "[[environment", "line 2"),
    ],
)
def test_a_fault_is_told(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(BadConfiguration, match=says.replace("[", r"\[")):
        load(tmp_path, GOOD.replace(old, new, 1))


def bash(lines: tuple[str, ...], after: str, **environ: str) -> subprocess.CompletedProcess[str]:
    script = "\n".join(["set -u", *lines, after])
    return subprocess.run(
        ["bash"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", **environ},
    )


def test_a_venv_is_activated_although_its_script_reads_unset_variables(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/activate").write_text("X=$NOT_SET_ANYWHERE\nexport ACTIVE=yes\n")
    done = bash(setup_lines(own_venv(str(tmp_path))), 'echo "$ACTIVE"; echo "$-"')
    assert done.stdout.startswith("yes\n")
    assert "u" in done.stdout.split("\n")[1]


@pytest.mark.parametrize("name", ["torch-2.13", "conda-vision", "modules", "prefix", "image"])
def test_a_missing_environment_ends_the_job_and_says_so(tmp_path: Path, name: str) -> None:
    environment = next(e for e in load(tmp_path, GOOD) if e.name == name)
    done = bash(setup_lines(environment), "echo reached")
    assert done.returncode == 78
    assert "reached" not in done.stdout
    assert done.stderr


def test_a_prefix_goes_first_in_the_path(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    environment = Environment("x", NONE.title, EnvironmentKind.PREFIX, path=str(tmp_path))
    done = bash(setup_lines(environment), 'echo "$PATH"')
    assert done.stdout.startswith(f"{tmp_path}/bin:")


@pytest.mark.parametrize("program", [True, False])
@pytest.mark.parametrize("image", [True, False])
def test_an_image_is_named_with_its_binds_when_all_is_there(
    tmp_path: Path, program: bool, image: bool
) -> None:
    (tmp_path / "bin").mkdir()
    if program:
        (tmp_path / "bin/apptainer").symlink_to("/bin/true")
    if image:
        (tmp_path / "torch.sif").touch()
    environment = Environment(
        "x",
        NONE.title,
        EnvironmentKind.APPTAINER,
        image=f"{tmp_path}/torch.sif",
        binds=("/a:/b", "/实验:/c:ro"),
    )
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    done = bash(setup_lines(environment), 'printf "%s\\n" "$IMAGE" "${BINDS[@]}"', PATH=path)
    if program and image:
        assert done.stdout.splitlines() == [f"{tmp_path}/torch.sif", "/a:/b", "/实验:/c:ro"]
        return
    assert (done.returncode, done.stdout) == (78, "")
    assert "not found on" in done.stderr


def test_none_needs_no_lines() -> None:
    assert setup_lines(NONE) == ()
    assert setup_lines(None) == ()


@pytest.mark.parametrize("path", ["", "venv", "/a/../b", "/a b", "/a\nid", "/a;id", "-x"])
def test_ones_own_environment_is_an_absolute_plain_path(path: str) -> None:
    with pytest.raises(BadValue):
        own_venv(path)
