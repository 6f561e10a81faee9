"""Parts of `tsctl tune`: the process that measures, and the report."""
