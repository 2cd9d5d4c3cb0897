# SPDX-License-Identifier: BSD-3-Clause
"""Answers connections to PORT on INTERFACE as a firewall does that refuses them: with ICMP "port
unreachable". The kernel itself must drop them. Writes its process ID to FILE when it is ready."""
import os
import socket
import struct
import sys

interface, port, ready = sys.argv[1], int(sys.argv[2]), sys.argv[3]
heard = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
heard.bind((interface, 0x0800))
answer = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


with open(ready + ".new", "w") as f:
    print(os.getpid(), file=f)
os.rename(ready + ".new", ready)
while True:
    packet, where = heard.recvfrom(65536)
    header = 4 * (packet[0] & 15)
    if where[2] == socket.PACKET_OUTGOING or packet[9] != socket.IPPROTO_TCP:
        continue
    if struct.unpack_from("!H", packet, header + 2)[0] != port:
        continue
    quoted = packet[: header + 8]
    parts = (3, 3, 0, 0)  # destination unreachable, port unreachable
    sum_ = checksum(struct.pack("!BBHI", *parts) + quoted)
    answer.sendto(struct.pack("!BBHI", 3, 3, sum_, 0) + quoted, (socket.inet_ntoa(packet[12:16]), 0))
