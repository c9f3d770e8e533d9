// Package isolate writes a batch of items of which the database rejects some, and
// finds out which.
//
// Items are written in groups, each in a savepoint. A group that is rejected is
// undone and halved, until the rejected item stands alone. A bad item among n costs
// about 2*log2(n) exchanges.
package isolate
