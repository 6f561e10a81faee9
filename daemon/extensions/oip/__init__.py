"""The Open Inference Protocol, version 2, over HTTP: metadata, health, requests in tensors, the model repository."""

from tsctl.daemon.extension import Extension, Kernel, RoutesService, Service


class OipExtension(Extension):
    name = "oip"

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.api.oip.repository import repository_routes
        from tsctl.daemon.api.oip.routes import oip_routes

        most, plain = kernel.config.max_request_size, kernel.predictions["v2"]
        clients = oip_routes(kernel.registry, kernel.ready, most, plain, kernel.turns, kernel.receiving, kernel.take)
        return RoutesService(clients, repository_routes(kernel.registry, kernel.registrar))
