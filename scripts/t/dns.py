# SPDX-License-Identifier: BSD-3-Clause
"""A name server for tests: dns.py READY ADDRESS NAME=ADDRESS...  Answers for these names, and that
there are no others.

Listens on UDP port 53 of ADDRESS and makes the file READY then. What was asked for goes to standard
output, a name a line."""
import socket
import struct
import sys


def question(packet):
    """The labels of the first question, its type, and where it ends."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode().lower())
        at += 1 + packet[at]
    return ".".join(labels), struct.unpack_from(">H", packet, at + 1)[0], at + 5


def answer(packet, known):
    name, kind, end = question(packet)
    print(name, flush=True)
    found = socket.inet_aton(known[name]) if name in known and kind == 1 else b""
    flags = 0x8580 | (0 if name in known else 3)
    head = packet[:2] + struct.pack(">HHHHH", flags, 1, 1 if found else 0, 0, 0)
    record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + found
    return head + packet[12:end] + (record if found else b"")


def main():
    known = dict(word.lower().split("=") for word in sys.argv[3:])
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[2], 53))
    open(sys.argv[1], "w").close()
    while True:
        packet, sender = server.recvfrom(1500)
        try:
            server.sendto(answer(packet, known), sender)
        except (IndexError, struct.error, UnicodeDecodeError):
            continue


main()
