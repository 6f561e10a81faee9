"""A class that sets status, phrase, headers and content type of its answer, as the request says."""


class Speaks:
    def initialize(self, context):
        self.seen = {
            "request_processor": context.request_processor is None,
            "model_name": context.model_name,
            "manifest": dict(context.manifest["model"]),
            "runtime": context.manifest["runtime"],
            "system_properties": sorted(context.system_properties),
            "gpu_id": context.system_properties.get("gpu_id"),
            "batch_size": context.system_properties.get("batch_size"),
            "server_name": context.system_properties.get("server_name"),
            "limit_max_image_pixels": context.system_properties.get("limit_max_image_pixels"),
            "model_yaml_config": context.model_yaml_config,
        }

    def handle(self, data, context):
        answers = []
        for index, row in enumerate(data):
            body = row.get("body") or {}
            wish = body if isinstance(body, dict) else {}
            if "type" in wish:
                context.set_response_content_type(index, wish["type"])
            if "status" in wish:
                context.set_response_status(wish["status"], wish.get("phrase", ""), index)
            if "all" in wish:
                context.set_all_response_status(wish["all"], wish.get("phrase", ""))
            for key, value in wish.get("headers", {}).items():
                context.set_response_header(index, key, value)
            answers.append(self.answer(wish.get("tell", ""), index, context))
        return answers

    def answer(self, wish, index, context):
        if wish == "initialize":
            return str(sorted(self.seen.items(), key=str))
        if wish == "status":
            return str(context.get_response_status(index))
        if wish == "headers":
            return str(context.get_response_headers(index))
        if wish == "content type":
            return str(context.get_response_content_type(index))
        if wish == "request id":
            return f"{context.get_request_id(index)} {sorted(context.request_ids)}"
        if wish == "processor":
            processor = context.request_processor[index]
            processor.report_status(202, "Taken")
            processor.add_response_property("X-Property", "yes")
            return f"{processor.get_response_status_code()} {processor.get_response_header('X-Property')}"
        if wish == "missing header":
            return str(context.get_request_header(index, "X-Not-There"))
        if wish == "header case":
            return str([context.get_request_header(index, name) for name in ("X-Mine", "x-mine")])
        if wish == "attribute":
            context.count = getattr(context, "count", 0) + 1
            return "kept" if context.count >= 1 else "lost"
        return "said"
