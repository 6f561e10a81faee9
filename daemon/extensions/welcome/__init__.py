"""`GET /` of an inference address: that the daemon is alive, for programs; its models, for people.

page    the answer
"""

from tsctl.daemon.extension import Extension, Kernel, Service


class WelcomeExtension(Extension):
    name = "welcome"

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.welcome.page import WelcomeService

        return WelcomeService(kernel.registry, kernel.tokens)
