"""The methods on a GPU; importing a module of this folder needs cupy."""
