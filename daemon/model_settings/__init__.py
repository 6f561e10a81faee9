"""Every setting of a model: names, limits, default, when a change takes effect, help text.

One table feeds the options of `tsctl register` and `tsctl set`, the parameters of `POST /models` and `PATCH`, the
keys of model-config.yaml, the defaults, the descriptions of a model and of the API, the snapshot, and
docs/model-settings.md. A new setting is a row of `MODEL_SETTINGS`; the code that obeys the setting reads its value
from `tsctl.daemon.models.settings.ModelSettings` under the row's name.

A value that was `set` wins over one of the registration, which wins over model-config.yaml, which wins over the
`models` block of config.properties, which wins over the daemon's setting, which wins over the default.

Standard library only: the command line imports this package.
"""

from tsctl.daemon.model_settings.kinds import MOST as MOST
from tsctl.daemon.model_settings.kinds import ValueKind as ValueKind
from tsctl.daemon.model_settings.row import ModelSetting as ModelSetting
from tsctl.daemon.model_settings.table import MOST_WORKERS as MOST_WORKERS
from tsctl.daemon.model_settings.table import POLICIES as POLICIES
