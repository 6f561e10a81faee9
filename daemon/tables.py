"""The tables of the daemon: the core's rows, and then those of the extensions, in the order of their list.

Everything that shows, checks or documents rows reads them here. Standard library only: the command line imports this
module.
"""

from tsctl.daemon.core.batch_reasons import CORE_REASONS
from tsctl.daemon.extension import ClientProtocol
from tsctl.daemon.model_settings.row import ModelSetting
from tsctl.daemon.model_settings.table import CORE_MODEL_SETTINGS
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.setting_values import Setting
from tsctl.daemon.settings import CORE_SETTINGS

SETTINGS: tuple[Setting, ...] = (
    *CORE_SETTINGS, *(row for extension in EXTENSIONS for row in extension.settings)
)  # fmt: skip
MODEL_SETTINGS: tuple[ModelSetting, ...] = (
    *CORE_MODEL_SETTINGS, *(row for extension in EXTENSIONS for row in extension.model_settings)
)  # fmt: skip
BATCH_REASONS: dict[str, str] = CORE_REASONS | {
    name: meaning for extension in EXTENSIONS for name, meaning in extension.batch_reasons
}
PROTOCOLS: tuple[ClientProtocol, ...] = tuple(each.protocol for each in EXTENSIONS if each.protocol is not None)
