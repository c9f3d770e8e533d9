// Package isolate writes a batch of items and finds those that the database rejects.
//
// Items are written in groups, each under a savepoint. A rejected group is rolled back
// and bisected, until the rejected item is alone. One bad item among n costs about
// 2*log2(n) round trips.
package isolate
