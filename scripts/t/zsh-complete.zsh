# SPDX-License-Identifier: BSD-3-Clause
# zsh -f zsh-complete.zsh FUNCTIONS LINE: prints what an interactive zsh shows when LINE was typed and the completion key pressed.
zmodload zsh/zpty
zpty -b shell TERM=dumb zsh -f -i
zpty -w shell "PS1= PS2= fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -D -u; bindkey -e; LISTMAX=1000; stty cols 250; print READ''Y"

typeset seen= part
integer turns quiet

# Adds to `seen` until it matches, and then nothing came for half a second; ten seconds at most.
gather() { # PATTERN
	for ((turns = quiet = 0; turns < 200 && quiet < 10; turns++)); do
		if zpty -r -t shell part; then
			seen+=$part
			quiet=0
		else
			sleep 0.05
			[[ $seen != $~1 ]] || ((quiet++))
		fi
	done
}
gather '*READY*'
seen=
zpty -w -n shell "$2"$'\t'
gather '*[a-z]*'
print -r -- "$seen" | tr -d '\r\a\b'
zpty -d shell
