#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Address books: what a job writes into its directory about where its nodes were, a site's book
# filtered to the job, the network by name.
# covers: node topo
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 32

hosts_of() {
	cut -d : -f 1 "$HOSTS"
}

# ---- discover: the nodes tell

with_tree 3 --net-type tcp://lo
logs=$JOB/logs
is 'the hosts are there in rank order' "$(cat "$logs/node_file.txt")" "$(hosts_of)"
is 'the book has each host once, in that order' \
	"$(cut -d ' ' -f 1 "$logs/copper_address_book.txt")" "$(hosts_of)"
for rank in 0 1 2; do
	log=$(ls "$logs/$(address_of $rank)"-*-output.log)
	is "the book has the address at which node $rank runs" \
		"$(sed -n "$((rank + 1))s/.* //p" "$logs/copper_address_book.txt")" \
		"$(sed -n 's/.*server running at address: //p' "$log")"
done
table=$logs/copper_address_book_full_output.txt
matches 'the raw table has a column for each network' \
	"$(head -n 1 "$table")" '^# host( \| [^ ]+)* \| lo( |$)'
is 'the raw table has a row for each host' "$(sed -n '2,$s/ | .*//p' "$table")" "$(hosts_of)"
column=$(head -n 1 "$table" | tr '|' '\n' | grep -nx ' lo *' | cut -d : -f 1)
is 'the column of the network that was used is the address book' \
	"$(awk -F ' \\| ' -v c="$column" 'NR > 1 { print $1, $c }' "$table")" \
	"$(cat "$logs/copper_address_book.txt")"
is 'no file was left half written' "$(find "$logs" -type f ! -name '*-output.log' | wc -l)" 4
without_tree
cp "$table" "$T/table"
cp "$logs/copper_address_book.txt" "$T/discovered"

# ---- facility: the table, and the book, of one job are books for the next on the same hosts

prepare_tree 3
cop_tree=3
sed -i "s/:.*//" "$HOSTS"
for rank in 2 1 0; do
	start_node "$rank" --address-book "$T/table" --net-type ofi+tcp://lo \
		--address-source facility &
done
wait
is 'a raw table will do as a book: the nodes are where it says' \
	"$(cat "$JOB/logs/copper_address_book.txt")" "$(cat "$T/discovered")"
ok 'the raw table is kept as it was' cmp "$T/table" "$JOB/logs/copper_address_book_full_output.txt"
ok 'a file comes down this tree' cmp "$SRC/dir/numbers" "$W/mnt/2/dir/numbers"
without_tree

# A site of 10,000 hosts, with ours among them in another order and another spelling.
prepare_tree 3
cop_tree=3
{
	for ((i = 0; i < 10000; i++)); do
		echo "x$((i / 100))c0s0b0n$i ofi+cxi://0x00${i}00"
	done
	sed '1!G; h; $!d; s/ofi+tcp:/tcp:/g' "$T/discovered"
} >"$T/site"
for rank in 0 1 2; do
	start_node "$rank" -F "$T/site" -n tcp &
done
wait
is 'a book of 10,000 hosts is filtered to the job, in its order' \
	"$(cat "$JOB/logs/copper_address_book.txt")" "$(cat "$T/discovered")"
ok 'the whole of it is kept' cmp "$T/site" "$JOB/logs/copper_address_book_full_output.txt"
is 'with the hosts beside it' "$(cat "$JOB/logs/node_file.txt")" "$(hosts_of)"
ok 'a file comes down to the last node' cmp "$SRC/dir/numbers" "$W/mnt/1/dir/numbers"
without_tree

# ---- nodes that are restarted with other addresses

running_at() { # RANK: what the newest log of that node says
	# We choose the names of logs: there is no newline in them.
	# shellcheck disable=SC2012
	sed -n 's/.*server running at address: //p' \
		"$(ls -t "$JOB/logs/$(address_of "$1")"-*-output.log | head -n 1)"
}
book_of() { # RANK…
	local rank
	for rank; do
		sed -n "$((rank + 1))s/.* //p" "$JOB/logs/copper_address_book.txt"
	done
}
is_in_book() { # RANK
	[ "$(book_of "$1")" = "$(running_at "$1")" ]
}
table_is_book() {
	awk -F ' \\| ' 'NR == 1 { for (c = 2; c <= NF; c++) if ($c == "lo") break } NR > 1 { print $1, $c }' \
		"$JOB/logs/copper_address_book_full_output.txt" |
		cmp - "$JOB/logs/copper_address_book.txt"
}
again() { # RANK: it is killed, and comes back
	kill_node "$1"
	unset "cop_killed[$1]"
	start_node "$1" --net-type tcp://lo --peer-timeout 1
}
with_tree 3 --net-type tcp://lo --peer-timeout 1
was=$(book_of 0 1 2)
ok 'a root that was killed starts again' again 0
ok 'the book has its new address' is_in_book 0
is 'in the place of the old one' "$(book_of 0 1 2 | grep -cFx "$was")" 2
is 'the addresses of the others are as before' "$(book_of 1 2)" "$(tail -n 2 <<<"$was")"
ok 'the raw table has the new address' table_is_book
ok 'a second node that was killed starts again' again 2
ok 'the root puts that into the book, too' wait_for 10 is_in_book 2
ok 'the root puts the address into the table, too' wait_for 10 table_is_book
is 'no other address in the book has changed' "$(book_of 0 1)" "$(running_at 0)
$(sed -n 2p <<<"$was")"
ok 'a file comes down to it' cmp "$SRC/dir/numbers" "$W/mnt/2/dir/numbers"
ok 'all nodes stop' without_tree

# ---- what cannot be found is named

words=("$COPPER" mount --hosts "$HOSTS" --rank 0 --secret-file "$SECRET" --source "$SRC")
sed '2d' "$T/discovered" >"$T/short"
fails_with 1 'no address of 127\.0\.0\.12$' "${words[@]}" -F "$T/short" "$W/mnt/0"
fails_with 1 'no address of 127\.0\.0\.11, 127\.0\.0\.12, 127\.0\.0\.13 on cxi1$' \
	"${words[@]}" -F "$T/table" -n cxi://cxi1 "$W/mnt/0"
fails_with 1 'no interface nosuch0' "${words[@]}" -n tcp://nosuch0 "$W/mnt/0"
fails_with 1 'provider (cxi|verbs).*providers here: .*tcp' "${words[@]}" -n cxi "$W/mnt/0"
fails_with 2 'needs an address book' "${words[@]}" -a facility "$W/mnt/0"
