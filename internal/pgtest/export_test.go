package pgtest

var DefaultRepository = defaultRepository
