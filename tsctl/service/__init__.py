"""systemd's units for a daemon: `tsctl install-service`.

plan.py      settings and this installation → the facts of the units, checked; whether the service's user can read them
service.py   facts → the texts of NAME.service and NAME.socket, quoted as systemd reads them
files.py     where the units are; written, and removed, if this program wrote them
"""
