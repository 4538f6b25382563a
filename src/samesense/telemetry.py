"""Turns the telemetry of dependencies off.

``import samesense`` calls ``disable_telemetry`` before anything else is imported. A later call would be too late:
onnxruntime creates its uploader, a device id and a database of events while it is imported. A variable that the user
has set stays as it is.
"""

from __future__ import annotations

import os
import sys

OPT_OUT_VARIABLES = {
    # Linux and macOS since onnxruntime 1.29; on Windows, `onnxruntime.disable_telemetry_events` is needed as well.
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",  # versions and a session id in the User-Agent of downloads
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # datasets asks a third host once a dataset, to count it
    "RAY_USAGE_STATS_ENABLED": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GRADIO_ANALYTICS_ENABLED": "False",  # trackio's dashboard is a gradio app
}

BLOCKED_MODULES = ("openvino_telemetry",)
"""Packages that only send telemetry, and have no variable: OpenVINO and NNCF use them at import if they are there."""


def disable_telemetry() -> None:
    """Set the opt-out of every dependency that has one, unless the variable is set already.

    Modules that only send telemetry cannot be imported any more, unless they are imported already.

    An empty variable counts as unset, as it does for onnxruntime.
    """
    for name, value in OPT_OUT_VARIABLES.items():
        if not os.environ.get(name):
            os.environ[name] = value
    for module in BLOCKED_MODULES:
        sys.modules.setdefault(module, None)  # type: ignore[arg-type]  # Python takes None for "not to be found"
