# The keeper of one temporary PostgreSQL: sh -c "$this" pgtest FOLDER BIN
#
# It makes FOLDER, obeys the words on its standard input, answers each with a
# line, and at the end of input, which comes when the process that holds the
# other end ends in whatever way, it ends PostgreSQL and removes FOLDER.
#
#   init   make a data folder                    answers with initdb's status
#   start  start PostgreSQL in the background    answers with its process id
#   ended  PostgreSQL is known to have ended     no answer
#
# Every process of PostgreSQL holds FOLDER/alive open for writing, so whoever
# reads it sees its end when the last of them is gone.

trap '' INT TERM HUP PIPE
umask 077
folder=$1 bin=$2 pid=

init() {
	"$bin/initdb" -D "$folder/data" -A trust -U postgres --no-sync \
		--locale=C --encoding=UTF8 </dev/null >>"$folder/log" 2>&1
	echo "$?"
}

# A descriptor that exec opens is not inherited in every shell; a duplicate of
# it that the command itself names is. Opening for both ways never blocks.
start() {
	exec 4<>"$folder/alive"
	"$bin/postgres" -D "$folder/data" </dev/null >>"$folder/log" 2>&1 3>&4 &
	pid=$!
	exec 4>&-
	echo "$pid"
}

# Once waited for, the number may become another process's: it is forgotten.
ended() {
	wait "$pid"
	pid=
}

# A background command of a shell begins with SIGQUIT ignored, so a first
# signal may come too early for PostgreSQL to hear it.
quit() {
	(while kill -QUIT "$pid"; do sleep 1; done) >/dev/null 2>&1 &
	nagger=$!
	wait "$pid"
	kill -KILL "$nagger"
}

# A killed postmaster leaves its file and, named on the seventh line of it, a
# System V memory segment that only its next start would remove.
forget_segment() {
	[ -f "$folder/data/postmaster.pid" ] || return
	set -- $(sed -n 7p "$folder/data/postmaster.pid")
	[ -z "$2" ] || ipcrm -m "$2"
}

# Back ends of a killed postmaster may still write while rm runs.
remove() {
	rm -rf "$folder" && return
	sleep 1
	rm -rf "$folder"
}

mkdir "$folder" && mkfifo "$folder/alive" || exit
echo ready
while read -r word; do
	case $word in
	init | start | ended) "$word" ;;
	esac
done
{
	[ -z "$pid" ] || quit
	forget_segment
	remove
} >/dev/null 2>&1
