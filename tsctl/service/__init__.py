"""systemd's units for a daemon: `tsctl install-service`.

plan.py      settings and this installation → the facts of the units, checked; whether the service's user can read them
service.py   facts → the text of NAME.service, quoted as systemd reads it
socket.py    facts → the text of NAME.socket
files.py     where the units are; written, and removed, if this program wrote them
"""
