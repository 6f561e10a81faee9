"""systemd's units for a daemon: `tsctl install-service`.

plan.py      settings and this installation → the facts of the units, checked
reach.py     whether the service's user can read a path
service.py   facts → the text of NAME.service
socket.py    facts → the text of NAME.socket
quoting.py   words as systemd reads them
files.py     where the units are; written, and removed, if this program wrote them
"""
