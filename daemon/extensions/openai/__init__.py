"""OpenAI's API for completions and chats, over text handlers."""

from tsctl.daemon.extension import Extension, Kernel, RoutesService, Service


class OpenAIExtension(Extension):
    name = "openai"

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.api.openai.routes import openai_routes

        return RoutesService(openai_routes(kernel.registry, kernel.turns))
