package fleet

// Same reports whether two members are the same to a Run.
var Same = same
