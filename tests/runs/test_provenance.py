"""What every output records of its run."""

import getpass

from hpcvdj.runs.provenance import run_facts
from hpcvdj.runs.ranks import World


def test_the_login_name_is_not_recorded(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "somebody")
    monkeypatch.setenv("LOGNAME", "somebody")
    facts = run_facts(World())
    assert "user" not in facts
    assert "somebody" not in map(str, facts.values())
