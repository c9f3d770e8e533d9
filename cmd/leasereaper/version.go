package main

import "runtime/debug"

// version is the module's version, as go install has it. In a checkout it is made of
// the commit, or "(devel)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
