"""The registrations of now and before: the state that `tsctl export`, `apply` and `rollback` begin with."""
