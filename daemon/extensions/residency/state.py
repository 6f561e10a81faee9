"""A version in memory: whether it is loaded, and what an operator said.

                        ┌────────────────── load ──────────────────┐
                        ▼                                          │
    UNLOADED ──load──▶ LOADING ──ready──▶ LOADED ──unload──▶ UNLOADING ──gone──▶ UNLOADED
                       │  ▲                 │
                     failed load          failed
                       ▼  │                 ▼
                      FAILED ◀──────────────┘          FAILED ──ready──▶ LOADED

    any state ──hold──▶ HELD ──load──▶ LOADING

A version that is loaded on demand is loaded by a request, or by an operator; any other one by its registration. Only an
operator takes a version out of HELD. A worker that ends by itself is the pool's affair: its version stays LOADED.
"""

from enum import Enum


class ResidenceState(Enum):
    UNLOADED = "unloaded"  # no worker
    LOADING = "loading"  # workers start, and none has been ready since
    LOADED = "loaded"  # a worker has been ready
    UNLOADING = "unloading"  # the workers are leaving
    FAILED = "failed"  # every worker failed, and none is started again
    HELD = "held"  # an operator unloaded it, or scaled it to 0 workers: no request loads it


class ResidenceEvent(Enum):
    LOAD = "load"
    READY = "ready"
    FAIL = "fail"
    UNLOAD = "unload"
    GONE = "gone"
    HOLD = "hold"


_HOLD = {ResidenceEvent.HOLD: ResidenceState.HELD}
TRANSITIONS: dict[ResidenceState, dict[ResidenceEvent, ResidenceState]] = {
    ResidenceState.UNLOADED: {ResidenceEvent.LOAD: ResidenceState.LOADING, **_HOLD},
    ResidenceState.LOADING: {
        ResidenceEvent.READY: ResidenceState.LOADED,
        ResidenceEvent.FAIL: ResidenceState.FAILED,
        **_HOLD,
    },
    ResidenceState.LOADED: {
        ResidenceEvent.UNLOAD: ResidenceState.UNLOADING,
        ResidenceEvent.FAIL: ResidenceState.FAILED,
        **_HOLD,
    },
    ResidenceState.UNLOADING: {
        ResidenceEvent.GONE: ResidenceState.UNLOADED,
        ResidenceEvent.LOAD: ResidenceState.LOADING,
        **_HOLD,
    },
    ResidenceState.FAILED: {
        ResidenceEvent.LOAD: ResidenceState.LOADING,
        ResidenceEvent.READY: ResidenceState.LOADED,
        **_HOLD,
    },
    ResidenceState.HELD: {ResidenceEvent.LOAD: ResidenceState.LOADING, **_HOLD},
}
