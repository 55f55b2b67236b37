"""What `import hpcvdj` finds, in a clone and after the README's installation."""

import subprocess
import sys
import zipfile
from importlib import import_module
from importlib.machinery import PathFinder
from shutil import copy

import pytest

import hpcvdj
from tests.commands import hpcvdj_command
from tests.conftest import ROOT


def test_one_sentence_says_what_hpcvdj_does():
    said = hpcvdj.__doc__.partition("\n")[0]
    assert f"description = {said}\n" in (ROOT / "setup.cfg").read_text()
    assert f"site_description: {said}\n" in (ROOT / "mkdocs.yml").read_text()
    assert f"  {said}\n" in (ROOT / "CITATION.cff").read_text()
    assert said in " ".join(hpcvdj_command("--help")[0].split())


@pytest.mark.parametrize("package", [hpcvdj, hpcvdj.motifs], ids=lambda package: package.__name__)
def test_no_import_replaces_a_public_name(package):
    """A folder beside a function of its name would, and needs no __init__.py for that."""
    for name in package.__all__:
        public = getattr(package, name)
        full = f"{package.__name__}.{name}"
        if PathFinder.find_spec(full, package.__path__) is not None:
            assert import_module(full) is public, full


def test_an_editable_installation_is_found_from_the_folder_of_the_clone(tmp_path):
    """There a clone named hpcvdj is a folder that Python takes for a package unless sys.path has the real one."""
    pytest.importorskip("setuptools", minversion="70.1")
    clone, installed = tmp_path / "hpcvdj", tmp_path / "installed"
    (clone / "hpcvdj" / "motifs").mkdir(parents=True)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "hpcvdj/__init__.py"):
        copy(ROOT / name, clone / name)
    (clone / "hpcvdj" / "motifs" / "__init__.py").touch()

    build = f"from setuptools.build_meta import build_editable as build; build({str(tmp_path)!r})"
    made = subprocess.run([sys.executable, "-c", build], cwd=clone, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(installed)

    # As Python starts with this wheel installed, and nothing else: from the folder of the clone.
    found = f"""if True:
        import site, sys
        sys.path.insert(0, {str(tmp_path)!r})
        site.addsitedir({str(installed)!r})
        import hpcvdj, hpcvdj.motifs
        print(hpcvdj.__file__, hpcvdj.__version__, hpcvdj.motifs.__file__, sep="\\n")
    """
    shown = subprocess.run([sys.executable, "-IS", "-c", found], capture_output=True, text=True, check=False)
    folder = clone / "hpcvdj"
    expected = [str(folder / "__init__.py"), hpcvdj.__version__, str(folder / "motifs" / "__init__.py")]
    assert shown.stdout.splitlines() == expected, shown.stderr
