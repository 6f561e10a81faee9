"""Parts of `tsctl tune` and `tsctl optimize`: what is tried, how it is measured, the verdict and the report."""
