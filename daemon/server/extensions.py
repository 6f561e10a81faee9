"""The extensions of the daemon, in the order in which they are begun: the one file of the core that names any."""

from tsctl.daemon.extension import Extension
from tsctl.daemon.extensions.apply import ApplyExtension
from tsctl.daemon.extensions.cache import CacheExtension
from tsctl.daemon.extensions.customized import CustomizedExtension
from tsctl.daemon.extensions.fitting import FittingExtension
from tsctl.daemon.extensions.grouping import GroupingExtension
from tsctl.daemon.extensions.grpc import GrpcExtension
from tsctl.daemon.extensions.history import HistoryExtension
from tsctl.daemon.extensions.keys import KeysExtension
from tsctl.daemon.extensions.live import LiveExtension
from tsctl.daemon.extensions.object_stores import ObjectStoresExtension
from tsctl.daemon.extensions.oip import OipExtension
from tsctl.daemon.extensions.openai import OpenAIExtension
from tsctl.daemon.extensions.optimizing import OptimizingExtension
from tsctl.daemon.extensions.prometheus import PrometheusExtension
from tsctl.daemon.extensions.quarantine import QuarantineExtension
from tsctl.daemon.extensions.ranks import RanksExtension
from tsctl.daemon.extensions.ray import RayExtension
from tsctl.daemon.extensions.recording import RecordingExtension
from tsctl.daemon.extensions.residency import ResidencyExtension
from tsctl.daemon.extensions.rollouts import RolloutsExtension
from tsctl.daemon.extensions.routing import RoutingExtension
from tsctl.daemon.extensions.scaling import ScalingExtension
from tsctl.daemon.extensions.sequences import SequencesExtension
from tsctl.daemon.extensions.shadowing import ShadowingExtension
from tsctl.daemon.extensions.torchserve_logs import TorchServeLogsExtension
from tsctl.daemon.extensions.tracing import TracingExtension
from tsctl.daemon.extensions.verdict import VerdictExtension
from tsctl.daemon.extensions.welcome import WelcomeExtension

EXTENSIONS: tuple[Extension, ...] = (
    TorchServeLogsExtension(),  # first, so that its files get the last line
    PrometheusExtension(),
    ResidencyExtension(),
    ScalingExtension(),
    RayExtension(),  # before optimizing, which reads where the workers run
    OptimizingExtension(),
    RoutingExtension(),
    RolloutsExtension(),
    ShadowingExtension(),
    RanksExtension(),
    SequencesExtension(),  # before quarantine, whose dispatcher all other versions have
    QuarantineExtension(),
    RecordingExtension(),
    LiveExtension(),
    HistoryExtension(),
    VerdictExtension(),
    TracingExtension(),
    GroupingExtension(),
    FittingExtension(),
    KeysExtension(),
    WelcomeExtension(),
    CustomizedExtension(),
    ApplyExtension(),
    ObjectStoresExtension(),
    OpenAIExtension(),
    OipExtension(),
    GrpcExtension(),
    CacheExtension(),  # last: it sees the requests that it answers after all others have
)
