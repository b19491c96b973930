"""What wants the embedded speech engine, of which there is no wheel for some Pythons and machines."""

from importlib.util import find_spec

import pytest

from dualloop.doctor.speech import PARTS

_MISSING = [part for part in PARTS if find_spec(part) is None]

wanted = pytest.mark.skipif(bool(_MISSING), reason=f"there is no {' and no '.join(_MISSING)} here: no wheel of it")
