"""No package of hpcvdj has the name of a public function: importing it would replace the function."""

from pathlib import Path

import hpcvdj


def test_packages_leave_public_names_alone():
    packages = {path.name for path in Path(hpcvdj.__file__).parent.iterdir() if (path / "__init__.py").is_file()}
    # Those are packages for users, too.
    assert packages & {*hpcvdj.__all__} == {"motifs"}
