"""A new version takes over step by step, judged by its own metrics, and goes back by itself.

conditions   the conditions that end a rollout, such as `errors>1%`, and the requests that each of them counts
sequential   the test: is a share of bad requests within its limit, or not?
evidence     the evidence of a step: the counts of the versions since its beginning, in this daemon and those before
rollout      a rollout: its plan, and its one-way life
decision     stay, go on, or go back, from the facts of the present step: a pure function
rollouts     all models: the decision of each, once a second, and its effect on the model's route
route        `/models/MODEL/rollout`, and its description for OpenAPI
service      the same as a service of the daemon, with the route and fields of documents
"""

from tsctl.daemon.declarations import EventRow, Operations
from tsctl.daemon.extension import Extension, Kernel, Service


class RolloutsExtension(Extension):
    name = "rollouts"
    events = (
        EventRow("rollout-started", "info", "a new version begins to take over, step by step"),
        EventRow("rollout-advanced", "info", "a rollout has passed a step, and the new version has a larger share"),
        EventRow("rollout-promoted", "info", "a rollout has ended: the new version answers all requests"),
        EventRow("rollout-aborted", "error", "a rollout has ended: the versions before answer all requests again"),
    )

    def operations(self, *, own: bool) -> Operations:
        from tsctl.daemon.extensions.rollouts.route import rollout_operations

        return {} if own else rollout_operations()

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.rollouts.service import RolloutsService

        return RolloutsService(kernel)
