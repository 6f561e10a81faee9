"""Archives from stores of objects: `s3://`, `gs://` and Hugging Face's hub, `hf://`.

objects   the downloads of one daemon, each by a program of its own, `fetch`
parts     the parts that interrupted downloads leave
"""

from tsctl.daemon.extension import Extension, Kernel, Service


class ObjectStoresExtension(Extension):
    name = "object_stores"
    schemes = ("s3", "gs", "hf")

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.object_stores.objects import ObjectStores

        return ObjectStores(kernel.config, kernel.registrar.archives, self.schemes)
