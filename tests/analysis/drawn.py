"""What tests of `hpcvdj analyze` have in common."""

import json

MODEL = "human_trb_m15"
COLUMNS = ["sequence_id", "v_call", "j_call", "junction"]
DRAWS = 10_000


def state(folder):
    """What became of each step."""
    record = json.loads((folder / "analysis.json").read_text())
    return {own["step"]: own["state"] for own in record["steps"]}
