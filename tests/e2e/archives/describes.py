"""Returns the kind of the request, and a description of itself for describe requests."""


class Describes:
    def initialize(self, context):
        self.classes = ["cat", "dog"]

    def handle(self, data, context):
        answers = []
        for index in range(len(data)):
            if context.get_request_header(index, "describe") == "True":
                answers.append({"classes": self.classes, "rows": len(data), "data": data[index]})
            else:
                answers.append({"header": context.get_request_header(index, "Authorization")})
        return answers
