"""The targets of `tsctl serve`, `register` and `check`: files that are served as they are, without an archive.

A door: standard library only, imported by the command line and by the daemon. Files are read, and never run: Python
files with `ast`.
"""

from tsctl.daemon.targets.bare import ARCHIVE_SUFFIXES as ARCHIVE_SUFFIXES
from tsctl.daemon.targets.bare import BARE_SUFFIXES as BARE_SUFFIXES
from tsctl.daemon.targets.bare import DIRECTORY_OF_TORCH as DIRECTORY_OF_TORCH
from tsctl.daemon.targets.bare import FALLBACK_BATCH_SIZE as FALLBACK_BATCH_SIZE
from tsctl.daemon.targets.bare import SAVED_BEFORE_ZIP as SAVED_BEFORE_ZIP
from tsctl.daemon.targets.bare import ServeTarget as ServeTarget
from tsctl.daemon.targets.bare import bare_target as bare_target
from tsctl.daemon.targets.bare import is_bare as is_bare
from tsctl.daemon.targets.bare import is_url as is_url
from tsctl.daemon.targets.bare import model_name_of as model_name_of
from tsctl.daemon.targets.bare import split_function as split_function
from tsctl.daemon.targets.opened_paths import folders_named as folders_named
from tsctl.daemon.targets.opened_paths import opened_by as opened_by
from tsctl.daemon.targets.source import TargetError as TargetError
from tsctl.daemon.targets.source import check_syntax as check_syntax
from tsctl.daemon.targets.source import local_files as local_files
from tsctl.daemon.targets.source import top_imports as top_imports
from tsctl.daemon.targets.target import KINDS as KINDS
from tsctl.daemon.targets.target import MODULE as MODULE
from tsctl.daemon.targets.target import checked_target as checked_target
from tsctl.daemon.targets.target import read_target as read_target
