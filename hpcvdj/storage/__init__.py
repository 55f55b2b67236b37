"""Files that appear whole under their name or not at all."""
