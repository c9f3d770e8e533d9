package pgtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// port is a part of the socket's name. No TCP port is opened.
const port = "5432"

// settings returns the lines to append to the postgresql.conf of a server with its socket
// in folder. The last line with a name counts.
func settings(folder string, config ServerConfig) string {
	durable := "off"
	if config.Fsync {
		durable = "on"
	}
	var text strings.Builder
	write := func(name, value string) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	}
	write("listen_addresses", "")
	write("unix_socket_directories", `"`+folder+`"`)
	write("port", port)
	write("fsync", durable)
	write("synchronous_commit", durable)
	write("full_page_writes", durable)
	write("max_connections", "300")
	write("max_prepared_transactions", "10")
	write("logging_collector", "off")
	// mmap keeps it in the data folder, which is removed also after a kill.
	write("dynamic_shared_memory_type", "mmap")
	for _, name := range slices.Sorted(maps.Keys(config.Settings)) {
		write(name, config.Settings[name])
	}
	return text.String()
}
