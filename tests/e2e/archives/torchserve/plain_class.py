"""A class without a base: form fields and headers in, text with a content type and a header of its own out."""


class Greeter:
    def __init__(self):
        self._context = None
        self.initialized = False

    def initialize(self, context):
        self._context = context
        self.device = "cpu" if context.system_properties.get("gpu_id") is None else "cuda"
        self.initialized = True

    def handle(self, data, context):
        answers = []
        for idx, row in enumerate(data):
            name = row.get("name").decode()
            language = context.get_request_header(idx, "Accept-Language")
            context.set_response_content_type(idx, "text/plain; charset=utf-8")
            context.set_response_header(idx, "Content-Language", language or "en")
            answers.append(("Grüezi " if language == "de-CH" else "Hello ") + name + " from " + self.device)
        return answers
