"""Errors of calls to actors, translated from Ray's.

CallError
├─ MethodFailed    the method raised: another actor on the node would fail the same way
├─ ActorSilent     the actor does not answer: it may have run the call, and may still live
└─ ActorLost       the actor has ended, or could not be made
"""


class CallError(Exception):
    """A call of an actor has no result; the message says why, for people."""


class MethodFailed(CallError):
    """The method raised an exception."""


class ActorSilent(CallError):
    """The actor, or its node, does not answer."""


class ActorLost(CallError):
    """The actor has ended, or never was."""


class OptionsRefused(Exception):
    """Ray does not accept the options of an actor; the message is Ray's."""
