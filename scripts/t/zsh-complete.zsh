# SPDX-License-Identifier: BSD-3-Clause
# zsh -f zsh-complete.zsh FUNCTIONS LINE: prints what an interactive zsh shows when LINE was typed and the completion key pressed.
zmodload zsh/zpty
zpty -b shell TERM=dumb zsh -f -i
zpty -w shell "PS1= PS2= fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -D -u; bindkey -e; LISTMAX=1000; stty cols 250
tell() { zle expand-or-complete; zle -R; print -n SHOW''N }; zle -N tell; bindkey '^I' tell; print READ''Y"

typeset seen= part
integer turns

# Adds to `seen` until the word is in it; fifteen seconds at most.
gather() { # WORD
	for ((turns = 0; turns < 300; turns++)); do
		while zpty -r -t shell part; do
			seen+=$part
		done
		[[ $seen != *$1* ]] || return
		sleep 0.05
	done
}
gather READY
seen=
zpty -w -n shell "$2"$'\t'
gather SHOWN
print -r -- "${seen/SHOWN/}" | tr -d '\r\a\b'
zpty -d shell
