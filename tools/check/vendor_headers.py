# SPDX-License-Identifier: BSD-3-Clause
"""each vendor's interface stays in one folder

So a second device or network engine can come without touching the rest. NVIDIA's own headers are used nowhere.
"""
import re

import _rule

HOME = {
    r"device/cuda/|cuda\w*\.h|driver_api": "src/device/cuda",
    r"ucp/|uct/|ucs/|ucp\.h": "src/transport/ucx",
    r"pmix": "src/job/pmix",
}
for path in _rule.below("src"):
    place = str(path.relative_to(_rule.ROOT))
    for number, line in enumerate(_rule.text(path).splitlines(), 1):
        include = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if not include:
            continue
        if include[1] in ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h"):
            _rule.finding(path, number, "NVIDIA's header; our own minimal one lies in src/device/cuda")
        for pattern, home in HOME.items():
            if re.match(pattern, include[1]) and not place.startswith(home) and not include[1].startswith(
                    place.removeprefix("src/").rsplit("/", 1)[0]):
                if include[1].startswith("device/cuda/cuda_device"):  # The seam's own maker is what upper layers call.
                    continue
                _rule.finding(path, number, f"includes {include[1]}, which belongs to {home}")
_rule.finish()
