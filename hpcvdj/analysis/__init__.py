"""One run for a cohort: what each command would do with it, one after another, and the page about all of it."""
