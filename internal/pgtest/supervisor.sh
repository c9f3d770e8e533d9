# Supervises one temporary PostgreSQL: sh -c "$this" pgtest FOLDER BIN
#
# It makes FOLDER and runs the commands on its standard input. The input ends when the
# process at the other end of the pipe ends. Then this script ends PostgreSQL and removes
# FOLDER.
#
#   init   make a data folder                    answers with initdb's status
#   start  start PostgreSQL in the background    answers with its process id
#   ended  PostgreSQL has ended                  no answer
#
# Every process of PostgreSQL holds FOLDER/alive open for writing. So a reader of alive
# sees its end when the last of these processes has ended.

trap '' INT TERM HUP PIPE
umask 077
folder=$1 bin=$2 pid=

init() {
	"$bin/initdb" -D "$folder/data" -A trust -U postgres --no-sync \
		--locale=C --encoding=UTF8 </dev/null >>"$folder/log" 2>&1
	echo "$?"
}

# Not in every shell a command inherits a descriptor that exec has opened, but it inherits
# a duplicate that its redirection makes. An open for both ways never blocks.
start() {
	exec 4<>"$folder/alive"
	"$bin/postgres" -D "$folder/data" </dev/null >>"$folder/log" 2>&1 3>&4 &
	pid=$!
	exec 4>&-
	echo "$pid"
}

# After wait another process may get the same id, so pid is cleared.
ended() {
	wait "$pid"
	pid=
}

# A shell starts a background command with SIGQUIT ignored, so PostgreSQL may miss the
# first signal.
quit() {
	(while kill -QUIT "$pid"; do sleep 1; done) >/dev/null 2>&1 &
	nagger=$!
	wait "$pid"
	kill -KILL "$nagger"
}

# A killed postmaster leaves a System V memory segment that only its next start would
# remove. The seventh line of postmaster.pid has the id of the segment.
forget_segment() {
	[ -f "$folder/data/postmaster.pid" ] || return
	set -- $(sed -n 7p "$folder/data/postmaster.pid")
	[ -z "$2" ] || ipcrm -m "$2"
}

# Backends of a killed postmaster may still write while rm runs.
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
