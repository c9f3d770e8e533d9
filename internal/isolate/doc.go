// Package isolate writes a batch of items, and finds those that the database rejects.
//
// Items are written in groups, each in a savepoint. A group that is rejected is
// undone and halved, until the rejected item stands alone. A bad item among n costs
// about 2*log2(n) exchanges.
package isolate
