"""The ground floor: errors, jobs, shared memory, time, logs. Imports no other room."""
