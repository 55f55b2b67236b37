"""Files that appear under their name when they are complete, or not at all."""
