"""The program for compute-sanitizer runs.  Skipped without a GPU."""

import pytest

from hpcvdj.kernels.backends import gpu_count
from tests.gpu.under_sanitizer import main


@pytest.mark.skipif(gpu_count() == 0, reason="no GPU")
def test_every_result_is_that_of_the_reference():
    main()
